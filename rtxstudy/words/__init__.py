"""Sentences computed from numbers, so that a report never says more than its tables show.

A notebook calls them as ``words.verdict(row)``. Most take a row or a table; all return a string of Markdown.

- :mod:`~rtxstudy.words.data`: the data of a notebook, and what their audit found
- :mod:`~rtxstudy.words.claims`: what the proposal claims, and what is measured of it
- :mod:`~rtxstudy.words.comparisons`: one model against another, or against an aim
- :mod:`~rtxstudy.words.costs`: what accuracy costs
- :mod:`~rtxstudy.words.depth_gain`: where depth pays, and how much of it a loop keeps
- :mod:`~rtxstudy.words.format_control`: what format alone tells of the domain task
- :mod:`~rtxstudy.words.exits`: early exit whose risk is bounded
- :mod:`~rtxstudy.words.composed`: tasks whose answer must be computed; notebook 09 imports this module itself
- :mod:`~rtxstudy.words.loop`: what the passes of a recurrent encoder are worth
- :mod:`~rtxstudy.words.passes`: what each pass does to gradients, states and labels
- :mod:`~rtxstudy.words.recipe_search`: the search for recipes, convergence, early stopping; notebooks import it themselves
- :mod:`~rtxstudy.words.answers`: the answer of the headline comparison
- :mod:`~rtxstudy.words.summary`: the first screen of the report; notebook 99 imports this module itself
- :mod:`~rtxstudy.words.titles`: titles of figures that state what was found; notebooks import this module itself
- :mod:`~rtxstudy.words.limitations`: the limits of the runs
- :mod:`~rtxstudy.words.encoders`: pretrained encoders, their heads and layers; notebooks 07 and 08 import this module itself
- :mod:`~rtxstudy.words.tour`: the parts of an encoder; notebook 08 imports this module itself
- :mod:`~rtxstudy.words.your_data` and :mod:`~rtxstudy.words.your_texts`: somebody's own texts; notebook 10 imports them itself
- :mod:`~rtxstudy.numbers`: how a number is written in a sentence
"""

from rtxstudy.words.answers import answer as answer
from rtxstudy.words.claims import claims as claims
from rtxstudy.words.comparisons import away_from_home as away_from_home
from rtxstudy.words.comparisons import beside_words as beside_words
from rtxstudy.words.comparisons import carried as carried
from rtxstudy.words.comparisons import over_blocks as over_blocks
from rtxstudy.words.comparisons import reached as reached
from rtxstudy.words.comparisons import smallest as smallest
from rtxstudy.words.comparisons import verdict as verdict
from rtxstudy.words.costs import cost_ratio as cost_ratio
from rtxstudy.words.costs import frontiers as frontiers
from rtxstudy.words.data import overlap as overlap
from rtxstudy.words.data import setting as setting
from rtxstudy.words.data import validation as validation
from rtxstudy.words.depth_gain import chosen_conversion as chosen_conversion
from rtxstudy.words.depth_gain import deployed as deployed
from rtxstudy.words.depth_gain import found_by_embeddings as found_by_embeddings
from rtxstudy.words.depth_gain import rounding as rounding
from rtxstudy.words.depth_gain import small_vocabulary as small_vocabulary
from rtxstudy.words.depth_gain import what_to_use as what_to_use
from rtxstudy.words.depth_gain import where_depth_pays as where_depth_pays
from rtxstudy.words.exits import beside_plain_loop as beside_plain_loop
from rtxstudy.words.exits import bounded_exit as bounded_exit
from rtxstudy.words.exits import may_leave as may_leave
from rtxstudy.words.format_control import format_control as format_control
from rtxstudy.words.format_control import format_tells as format_tells
from rtxstudy.words.limitations import limits as limits
from rtxstudy.words.limitations import not_run as not_run
from rtxstudy.words.loop import leaving_early as leaving_early
from rtxstudy.words.loop import loop_used as loop_used
from rtxstudy.words.loop import worth as worth
from rtxstudy.numbers import between as between
from rtxstudy.numbers import points as points
from rtxstudy.words.passes import clear_forms as clear_forms
from rtxstudy.words.passes import composition as composition
from rtxstudy.words.passes import gradient_reach as gradient_reach
from rtxstudy.words.passes import learning_pass as learning_pass
from rtxstudy.words.passes import passes_read as passes_read
from rtxstudy.words.passes import stability as stability
from rtxstudy.words.passes import state_changes as state_changes
