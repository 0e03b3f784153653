"""Do embeddings place similar texts together? The nearest neighbours of each text, and the share with the same label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.sparse import spmatrix
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import safe_sparse_dot

from rtxlib.errors import InputError
from rtxstudy.statistics import mean_interval

_BLOCK = 4_000_000  # similarities computed at once: a few arrays of 32 MB
_TIE = 1e-9  # cosines closer than this count as equal


def neighbours(embeddings: np.ndarray | spmatrix, k: int) -> np.ndarray:
    """Indices (n, k) of the k other rows with the highest cosine similarity to each row, the most similar first.

    ``embeddings``: (n, width), dense or sparse; a row of zeros has similarity 0 to every other. All pairs are compared, one
    block of rows at a time. Equally similar rows come in a random order that is the same in every call. Raises ``InputError``
    unless 1 ≤ k < n.
    """
    n = embeddings.shape[0]
    if not 1 <= k < n:
        raise InputError(f"Each of {n} texts has {max(n - 1, 0)} others, so k must lie between 1 and that, not be {k}.")
    vectors, rng = normalize(embeddings), np.random.default_rng(0)
    indices = np.empty((n, k), dtype=np.int64)
    step = max(1, _BLOCK // n)
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        similarity = safe_sparse_dot(vectors[rows], vectors.T, dense_output=True)  # (block, n)
        # Texts that share no word all tie at zero. In a table sorted by label, their order would favour one label.
        similarity = similarity + _TIE * rng.random(similarity.shape)
        similarity[np.arange(len(rows)), rows] = -np.inf  # a text is not its own neighbour
        near = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        ranked = np.argsort(-np.take_along_axis(similarity, near, axis=1), axis=1)
        indices[rows] = np.take_along_axis(near, ranked, axis=1)
    return indices


def precision_at_k(neighbours: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The share of each text's neighbours, indices (n, k), that have its label: (n,). ``labels``: (n,).

    ``neighbours[:, :5]`` gives the precision at 5. Raises ``InputError`` unless there is one label per text.
    """
    labels = np.asarray(labels)
    if len(labels) != len(neighbours):
        raise InputError(f"There are neighbours of {len(neighbours)} texts but {len(labels)} labels.")
    return (labels[neighbours] == labels[:, None]).mean(axis=1)


def chance(labels: np.ndarray) -> np.ndarray:
    """The expected precision of neighbours drawn at random: each text's share (n,) of all others that have its label."""
    _, place, counts = np.unique(np.asarray(labels), return_inverse=True, return_counts=True)
    if len(place) < 2:
        raise InputError("A text has no others to be compared with; give at least two.")
    return (counts[place] - 1) / (len(place) - 1)


def compare(
    representations: Mapping[str, np.ndarray | spmatrix], labels: np.ndarray, ks: Sequence[int]
) -> pd.DataFrame:
    """Precision at each k of each representation of the same texts, and of chance: ``model, k, mean, low, high, n``.

    ``representations``: name -> embeddings (n, width) as in :func:`neighbours`; ``labels``: (n,). The interval is Student's
    95 % over the n texts, which counts queries as independent. Raises ``InputError`` as the functions above do.
    """
    rows = []
    for model, embeddings in representations.items():
        near = neighbours(embeddings, max(ks))
        rows += [(model, k, *mean_interval(precision_at_k(near[:, :k], labels))) for k in ks]
    expected = float(chance(labels).mean())
    rows += [("chance", k, expected, np.nan, np.nan, len(labels)) for k in ks]  # exact, so without an interval
    return pd.DataFrame(rows, columns=["model", "k", "mean", "low", "high", "n"])
