"""Which model for somebody's own texts? The question of notebook 10, and of ``rtx compare``.

Read in this order: ``reading`` (the file), ``columns`` (which of them), ``rows`` and ``texts`` (the rows), ``near_duplicates``
and ``splitting`` (which texts stay together), ``text_facts`` (what is odd about them), ``candidates`` (the models), ``prior``
(what won on public files), ``race`` (in which order, and how long each), ``clock``, ``training_time`` and ``plans`` (what fits
into the time), ``state`` and ``finished_candidates`` (what is there), ``fitted``, ``tuned`` with ``contrastive``, and
``networks`` (how each is trained), ``beside`` (in a second process), ``on_ray`` (networks on a cluster), ``choice`` (the rule),
``limits`` and ``latency`` (how large and how slow a model may be), ``busy`` (whether the machine is), ``further`` (what the
report shows besides), ``label_next`` (which texts to label), ``hand_over`` (the model's folder), ``comparison``, the handle of
the notebook, with its ``answer``, and ``sections``, the parts of the notebook with their ``text_sentences``,
``model_sentences`` and ``text_figures``.
"""
