"""``rtx compare``: which model to use for somebody's own texts.

Read in this order: ``reading`` (the file), ``columns`` (which of them), ``texts`` (the rows), ``near`` and ``splitting`` (which
texts stay together), ``look`` (what is odd about them), ``candidates`` and ``networks`` (the models), ``race`` (in what order,
for how long), ``choice`` (the rule), ``further`` (what the report shows besides), ``hand_over`` (the model's folder), and
``comparison``, the handle of the notebook.
"""
