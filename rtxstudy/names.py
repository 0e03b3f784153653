"""The names that a reader sees: of data sets, of models, of baselines and of columns.

Tables and file names hold ids such as ``sst2`` and ``recurrent-3x2x256``, because a program looks them up. A reader sees
"SST-2" and "Recurrent 3×2×256". :mod:`rtxstudy.naming` makes a name from the spec of the data or of the run, once, when it is
published (the table ``names``). :func:`know` takes such names, and :func:`spans` finds every known id in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple


class Name(NamedTuple):
    """A short name for sentences, tables and figures, and a long one that says what it stands for."""

    short: str
    long: str


SOURCES = {  # the source of a data set → its name
    "sst2": "SST-2",
    "multi_nli": "MultiNLI",
    "cola": "CoLA",
    "snli": "SNLI",
    "inference_mix": "Mixed inference",
    "yelp_polarity": "Yelp",
    "yelp_review_full": "Yelp reviews with stars",
    "yelp_five_stars": "Yelp stars",
    "amazon_polarity": "Amazon",
    "amazon_reviews_multi_en": "Amazon reviews with stars",
    "sms_spam": "SMS spam",
    "embedded": "Generated texts",
    "domains": "Domains",
}
WORDS = {  # ids that no spec makes
    "majority class": Name("Most frequent label", "always the most frequent label of the training texts"),
    "bag of embeddings": Name("Bag of embeddings", "the mean of learned vectors of words and word pairs"),
    "nb-svm": Name("NB-SVM", "a linear classifier over weighted counts of words and word pairs"),
    "tf-idf": Name("TF-IDF", "the cosine of TF-IDF vectors of words and word pairs"),
    "tf-idf + logistic regression": Name("TF-IDF", "TF-IDF of words and word pairs, with logistic regression"),
    "tf-idf + logistic regression, second text alone": Name(
        "TF-IDF, second text", "TF-IDF without the first text of a pair"
    ),
    "from_second": Name("residual from 2nd pass", "h ← F(h) + α·h from the second pass on"),
    "random_depth": Name("random passes", "trained with a random number of passes"),
    "input_injection": Name("input injection", "the input is added again before each later pass"),
    "iteration_embedding": Name("pass embedding", "a vector for each pass"),
    "loop_norm": Name("norm in the loop", "a norm after each pass"),
    "prelude_and_coda": Name("a layer before and after", "one layer before the loop and one after it"),
    **{source: Name(name, name) for source, name in SOURCES.items()},
}
PLAIN = {"embedded", "domains"}  # ids that are English words, too
COLUMNS = {
    "f1": "F1",
    "n_test": "test texts",
    "ms_one": "one text (ms)",
    "ms_in_batch": "in batches (ms a text)",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "recurrent_depth": "passes",
    "effective_depth": "layers × passes",
}


_known: dict[str, Name] = dict(WORDS)  # of the data and models that this process has met


def know(names: Mapping[str, Name]) -> None:
    """Take these names for the ids of data and models."""
    if new := {id_: name for id_, name in names.items() if _known.get(id_) != name}:
        _known.update(new)
        _any.cache_clear()


def known() -> dict[str, Name]:
    """The names of all ids met so far."""
    return dict(_known)


def short(id_: str) -> str:
    """The short name of an id; an unknown id is its own name."""
    return _known[id_].short if id_ in _known else id_


@cache
def _any() -> re.Pattern[str]:
    """Matches every known id, the longest first. It parses no id: each stands in it as it is."""
    words = sorted((id_ for id_ in _known if id_ not in PLAIN), key=len, reverse=True)
    plain = rf"(?:^|(?<=\b[Oo]n )|(?<=· )|(?<=, )|(?<=: ))(?:{'|'.join(PLAIN)})(?=$|[,.:;)]| [(−φ·]| ×)"
    return re.compile(rf"(?<![\w/-])(?:{'|'.join(map(re.escape, words))})(?![\w/=-])|{plain}")


class Span(NamedTuple):
    """An id in a text: where it stands, and its name."""

    start: int
    end: int
    name: Name


def spans(text: str, prose: bool = False) -> Iterator[Span]:
    """Every known id in a text, from left to right.

    ``prose``: a person wrote the text. English words such as "domains" and "majority class" are then these words and no id.
    """
    for match in _any().finditer(text):
        if not (prose and match[0].replace(" ", "").isalpha()):
            yield Span(match.start(), match.end(), _known[match[0]])


def said(text: str, prose: bool = False) -> str:
    """The text with the short name of each id in its place."""
    parts, last = [], 0
    for start, end, name in spans(text, prose):
        parts += [text[last:start], name.short]
        last = end
    return "".join([*parts, text[last:]])


def column(name: str) -> str:
    """The name of a column of a table: ``n_test`` → "test texts", ``rows_in`` → "rows in"."""
    return COLUMNS.get(name, said(name).replace("_", " "))
