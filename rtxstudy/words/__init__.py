"""Sentences computed from numbers, so that a report never says more than its tables show.

A notebook calls them as ``words.verdict(row)``. Each takes a row or a table and returns Markdown.

- :mod:`~rtxstudy.words.comparisons`: one model against another, or against an aim
- :mod:`~rtxstudy.words.loop`: what the passes of a recurrent encoder are worth
- :mod:`~rtxstudy.words.answers`: the answer of the whole study
- :mod:`~rtxstudy.words.limitations`: what the runs cannot show, and the data behind them
- :mod:`~rtxstudy.words.numbers`: how a number is written in a sentence
"""

from rtxstudy.words.answers import answer
from rtxstudy.words.comparisons import over_blocks, reached, verdict
from rtxstudy.words.limitations import SPLITS, data_used, limits
from rtxstudy.words.loop import leaving_early, loop_used, worth
from rtxstudy.words.numbers import between, points

__all__ = [
    "SPLITS",
    "answer",
    "between",
    "data_used",
    "leaving_early",
    "limits",
    "loop_used",
    "over_blocks",
    "points",
    "reached",
    "verdict",
    "worth",
]
