"""Measure trained runs and compare them. The notebooks draw the tables that these modules return.

Runs and comparisons:

- :mod:`~rtxstudy.evaluation.finished`: finished runs, chosen by model, data and seed
- :mod:`~rtxstudy.evaluation.comparisons`: paired accuracy differences between two models
- :mod:`~rtxstudy.evaluation.statistics`: confidence intervals over seeds and texts
- :mod:`~rtxstudy.evaluation.pareto`: the Pareto frontier
- :mod:`~rtxstudy.evaluation.worth`: φ, the worth of a pass in layers
- :mod:`~rtxstudy.evaluation.convergence`: how fast a training converges, and where it stops
- :mod:`~rtxstudy.evaluation.recipe_search`: the trials of the recipe search (notebook 02)

Inside the loop:

- :mod:`~rtxstudy.evaluation.measured`: tables that are measured once and kept beside the run; it calls the next three
- :mod:`~rtxstudy.evaluation.gradients`: gradients of each pass
- :mod:`~rtxstudy.evaluation.states`: states after each pass
- :mod:`~rtxstudy.evaluation.exits`: early exit
- :mod:`~rtxstudy.evaluation.exit_risk`, :mod:`~rtxstudy.evaluation.bounded_exits`: early exit whose risk is bounded
- :mod:`~rtxstudy.evaluation.loop_tables`: tables of notebook 03 from these measurements

Other notebooks:

- :mod:`~rtxstudy.evaluation.data_tables`: prepared data (notebook 01)
- :mod:`~rtxstudy.evaluation.pretraining`, :mod:`~rtxstudy.evaluation.retrieval`,
  :mod:`~rtxstudy.evaluation.behaviour`: pretrained encoders (07)
- :mod:`~rtxstudy.evaluation.guide`: size, speed and quality of pretrained encoders (07)
- :mod:`~rtxstudy.evaluation.heads`, :mod:`~rtxstudy.evaluation.probing`: what heads look at, and what states know (07)
- :mod:`~rtxstudy.evaluation.blueprints`, :mod:`~rtxstudy.evaluation.shapes`: drawings of encoders (02, 07), shapes (08)
- :mod:`~rtxstudy.evaluation.tour`, :mod:`~rtxstudy.evaluation.fresh`: the parts of an encoder (08)
- :mod:`~rtxstudy.evaluation.anatomy`: parameters and modules of an encoder
"""
