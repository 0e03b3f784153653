"""``rtx compare``: which model to use for somebody's own texts.

Read in this order: ``reading`` (the file), ``columns`` (which of them), ``texts`` (the rows), ``near`` and ``splitting`` (which
texts stay together), ``look`` (what is odd about them), ``candidates`` (the models), ``prior`` (what won on public files),
``race`` (in which order, and how long each), ``clock``, ``estimate`` and ``plans`` (what fits into the time), ``state`` and
``kept`` (what is finished), ``fitted``, ``tuned`` and ``networks`` (how each is trained), ``beside`` (in a second process),
``on_ray`` (networks on a cluster), ``choice`` (the rule), ``busy`` (whether the machine is), ``further`` (what the report shows
besides), ``hand_over`` (the model's folder), and ``comparison``, the handle of the notebook, with its ``answer``.
"""
