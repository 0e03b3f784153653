"""How long a classifier takes for one text."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from rtx.classifiers.folder import Classifier
from rtxlib.data.rows import Text

ROUNDS = 3


def single_text_seconds(
    classifier: Classifier, clean: Callable[[Sequence[Text]], list[Text]], texts: Sequence[Text]
) -> list[float]:
    """Seconds that a classifier takes for each text alone, cleaning included: the median of some rounds."""
    classifier.probabilities(clean(texts[:1]))  # warm
    rounds = []
    for _ in range(ROUNDS):
        spent = []
        for text in texts:
            begun = time.perf_counter()
            classifier.probabilities(clean([text]))
            spent.append(time.perf_counter() - begun)
        rounds.append(spent)
    return np.median(rounds, axis=0).tolist()
