"""Whether later texts are still like those that a model was tested on: their length, their words, and the model's certainty.

A model of `rtx compare` keeps numbers and hashes of words of the earlier texts, and no text. A run of `rtx train` keeps nothing
of them, so its prepared data are read, where they are on this machine.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

from rtx import archive
from rtx.classifiers.words import WORD
from rtxlib.data.rows import Text, sides, spread
from rtxlib.runs import seen
from rtxlib.runs.store import Run

FILE = "earlier_texts.safetensors"
MOST_WORDS = 50_000  # the most frequent words of the training texts that count as known
MOST_TEXTS = 2000  # earlier texts whose numbers are kept
FEWEST = 50  # later texts; of fewer nothing is said
SHIFTED = 0.15  # of the Kolmogorov-Smirnov statistic: the largest difference of two cumulative distributions
UNLIKELY = 0.001 / 3  # probability of such a statistic by chance; three are looked at
_WORD = re.compile(WORD)


def _words(text: Text) -> list[str]:
    return _WORD.findall(" ".join(sides(text)).lower())


def _hashes(words: Sequence[str]) -> np.ndarray:
    return pd.util.hash_array(np.array(words, dtype=object), categorize=False) if len(words) else np.empty(0, np.uint64)


def _known(hashes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which of the hashes are known. known: sorted; it is searched and not sorted again for each text, as numpy.isin would."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    return known[np.minimum(np.searchsorted(known, hashes), len(known) - 1)] == hashes


def _numbers(texts: Sequence[Text], p: np.ndarray, known: np.ndarray) -> dict[str, np.ndarray]:
    """Of each text: words, the share of them that are not known, and the largest probability. known: sorted hashes."""
    lengths, unknown = [], []
    for text in texts:
        words = _hashes(_words(text))
        lengths.append(len(words))
        unknown.append(1 - _known(words, known).mean() if len(words) else 0.0)
    return {
        "length": np.array(lengths, np.float32),
        "unknown": np.array(unknown, np.float32),
        "certainty": p.max(axis=1).astype(np.float32),
    }


def _earlier(training: Sequence[Text], texts: Sequence[Text], p: np.ndarray) -> dict[str, np.ndarray]:
    """What later texts are compared with: the known words, and the numbers of some texts that were not trained on."""
    counts = Counter(word for text in training for word in _words(text))
    known = np.unique(_hashes([word for word, _ in counts.most_common(MOST_WORDS)]))
    some = spread(len(texts), MOST_TEXTS)
    return {"known": known, **_numbers([texts[row] for row in some], p[some], known)}


def write(folder: Path, training: Sequence[Text], texts: Sequence[Text], p: np.ndarray) -> None:
    """Keep what later texts are compared with. texts: cleaned, not trained on; p: (texts, labels) what the model answers."""
    save_file(_earlier(training, texts, p), folder / FILE)


def _read(run: Run) -> dict[str, np.ndarray] | None:
    """What is kept of a run's earlier texts, or found in its prepared data; None where this machine has neither."""
    if (run.path / FILE).is_file():
        return load_file(run.path / FILE)
    if not (run.path / "predictions.parquet").is_file() or (texts := seen.prepared_texts(run, ("train", "test"))) is None:
        return None
    return _earlier(*texts, archive.answers(run))


def compare(run: Run, texts: Sequence[Text], p: np.ndarray) -> dict[str, Any] | None:
    """How later texts differ from those that a run was tested on.

    None where this machine does not have those, or the later texts are fewer than :data:`FEWEST`.

    texts: cleaned; p: (texts, labels) what the model answers. Returns ``drifted``, and for ``length`` (words of a text, the
    median), ``unknown`` (share of words, the mean) and ``certainty`` (largest probability, the mean) a dictionary of ``before``,
    ``now``, ``statistic`` (Kolmogorov-Smirnov) and ``shifted``.
    """
    if len(texts) < FEWEST or run.path is None or (earlier := _read(run)) is None:
        return None
    from scipy.stats import ks_2samp  # here, because it takes a second to import

    later, changes = _numbers(texts, p, earlier["known"]), {}
    for name, middle in (("length", np.median), ("unknown", np.mean), ("certainty", np.mean)):
        test = ks_2samp(earlier[name], later[name])
        changes[name] = {
            "before": float(middle(earlier[name])),
            "now": float(middle(later[name])),
            "statistic": float(test.statistic),
            "shifted": bool(test.statistic > SHIFTED and test.pvalue < UNLIKELY),
        }
    return {"drifted": any(one["shifted"] for one in changes.values()), **changes}


def sentence(drift: dict[str, Any]) -> str:
    """What :func:`compare` found, in a sentence."""
    if not drift["drifted"]:
        return "No drift is shown: in length, words and certainty these texts do not differ from those of the model's test."
    length, unknown, certainty = drift["length"], drift["unknown"], drift["certainty"]

    def way(one: dict[str, Any], more: str, less: str, other: str) -> str:
        return other if one["now"] == one["before"] else more if one["now"] > one["before"] else less

    def both(one: dict[str, Any], *formats: str) -> tuple[str, str]:
        """The numbers now and before, in the first format that tells them apart."""
        written = [(format(one["now"], spec), format(one["before"], spec)) for spec in formats]
        return next((pair for pair in written if pair[0] != pair[1]), written[0])

    parts = []
    if length["shifted"]:
        longer, (now, before) = way(length, "longer", "shorter", "of other lengths"), both(length, ".0f", ".1f")
        parts.append(f"they are {longer} (median {now} word{'' if now == '1' else 's'}, before {before})")
    if unknown["shifted"]:
        more = way(unknown, "more", "fewer", "another share")
        now, before = both(unknown, ".0%", ".1%", ".2%")
        parts.append(f"{more} of their words are not among the frequent words of the training texts ({now}, before {before})")
    if certainty["shifted"]:
        surer = way(certainty, "surer", "less sure", "sure to another degree")
        now, before = both(certainty, ".2f", ".3f", ".4f")
        parts.append(f"the model is {surer} (largest probability {now} on average, before {before})")
    return f"These texts have drifted from those that the model was tested on: {'; '.join(parts)}."
