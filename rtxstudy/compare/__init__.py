"""``rtx compare``: which model to use for somebody's own texts.

Read in this order: ``reading`` (the file), ``columns`` (which of them), ``texts`` (the rows), ``near`` and ``splitting`` (which
texts stay together), ``look`` (what is odd about them), ``candidates`` (the models), ``race`` (in what order), ``clock`` and
``estimate`` (for how long), ``state`` and ``kept`` (what is finished), ``fitted``, ``tuned``, ``halving`` and ``networks`` (how
each is trained), ``on_ray`` (networks on a cluster), ``choice`` (the rule), ``further`` (what the report shows besides),
``hand_over`` (the model's folder), and ``comparison``, the handle of the notebook.
"""
