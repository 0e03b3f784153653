"""Tasks composed of real phrases: what depth gains by the number of steps k, and what further passes do at test time.

The intervals treat the texts of one source sentence as one unit: test texts whose label is decided by phrases of one sentence are
a cluster (:func:`rtxstudy.statistics.by_cluster`). Of a text of *same* that sentence is the one of its first phrase.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rtx.baselines.counting_words import NAME, baseline
from rtxlib.data.datasets import SENTIMENTS, read_phrases
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import SPLITS
from rtxstudy.comparisons import correct
from rtxstudy.finished import Runs
from rtxstudy.questions.depth_gain.gains import ARMS, beside_words, depth_gain
from rtxstudy.statistics import by_cluster, mean_difference

Arms = Mapping[str, Sequence[Runs]]  # label of the data → the deep, the shallow and the looped encoders, with the same seeds


def deciding(data: Mapping[str, Prepared]) -> pd.DataFrame:
    """What decides each test text of data sets by their labels: columns ``data`` (label), ``depth`` (steps k) and ``sentence``
    (its number), in the order of the texts."""
    parts = [task.rows("test")[["depth", "sentence"]].assign(data=label) for label, task in data.items()]
    return pd.concat(parts, ignore_index=True)


def by_steps(arms: Arms, texts: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of each arm on texts of each number of steps, with intervals over new seeds and new sentences.

    texts: of :func:`deciding`. Columns: ``data``, ``arm`` ("deep", "shallow", "loop"), ``model``, ``steps``, ``mean``, ``low``,
    ``high`` (0..1), ``n`` (seeds), ``n_items`` (texts), ``n_sentences``.
    """
    rows = []
    for data, three in arms.items():
        task_texts = texts[texts["data"] == data].reset_index(drop=True)
        for arm, runs in zip(ARMS, three, strict=True):
            right = correct(runs).astype(float)
            for steps, some in task_texts.groupby("depth"):
                named = {"data": data, "arm": arm, "model": runs.model, "steps": steps}
                rows.append(named | _accuracy(right[:, some.index], some["sentence"].to_numpy()))
    return pd.DataFrame(rows)


def word_levels(counted: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What counting words reaches: columns ``data`` and ``accuracy``. counted: label of the data → the table of its baselines."""
    tables = {data: table.set_index("model")["accuracy"] for data, table in counted.items()}
    return pd.DataFrame([{"data": data, "accuracy": accuracy[NAME]} for data, accuracy in tables.items()])


def gains(arms: Arms, texts: pd.DataFrame, counted: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Depth gain, loop gain, the share kept and counting words on each task, with clusters of sentences.

    Rows of :func:`depth_gain` and :func:`beside_words`. counted: label of the data → the table of its baselines.
    """
    sentences = {data: part["sentence"].to_numpy() for data, part in texts.groupby("data")} if arms else {}
    return pd.DataFrame(
        [
            depth_gain(deep, shallow, loop, sentences[data]) | beside_words(deep, shallow, loop, counted[data], sentences[data])
            for data, (deep, shallow, loop) in arms.items()
        ]
    )


def gains_by_steps(arms: Arms, texts: pd.DataFrame) -> pd.DataFrame:
    """The same on the texts of each number of steps; the column ``steps`` says which."""
    rows = []
    for data, three in arms.items():
        task_texts = texts[texts["data"] == data]
        depth, sentences = task_texts["depth"].to_numpy(), task_texts["sentence"].to_numpy()
        rows += [{"steps": steps} | depth_gain(*three, sentences, depth == steps) for steps in np.unique(depth)]
    return pd.DataFrame(rows)


def by_passes(further: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of each loop by the number of steps and of passes at test time.

    further: of :func:`rtxstudy.measured.further_passes`, of all seeds and loops. Columns: ``data``, ``model``,
    ``trained_steps`` and ``trained_passes`` (the most of its training), ``steps``, ``passes``, ``mean``, ``low``, ``high`` (0..1,
    over new seeds and new sentences), ``n`` (seeds), ``n_items``, ``n_sentences``.
    """
    rows, by = [], ["data", "model", "trained_steps", "trained_passes", "depth", "iteration"]
    for group, part in further.groupby(by, sort=False):
        right = part.pivot(index="seed", columns="row", values="right")  # (seeds, texts)
        sentences = part.drop_duplicates("row").set_index("row")["sentence"][right.columns].to_numpy()
        named = dict(zip(by, group, strict=True))
        rows.append(named | _accuracy(right.to_numpy(dtype=float), sentences))
    return pd.DataFrame(rows).rename(columns={"depth": "steps", "iteration": "passes"})


def phrase_level(seed: int) -> pd.DataFrame:
    """One row: ``p``, how often counting words judges a single unseen phrase rightly, and ``bound``, :func:`same_bound` of it.

    Both sentiments count alike, as they are equally frequent in composed texts. seed: of the data. Raises InputError where the
    phrases are out of reach.
    """
    pool, _ = read_phrases(seed)
    of_split = {split: pool[pool["split"] == split] for split in SPLITS}
    numbers = {split: part["label"].map(SENTIMENTS.index).to_numpy() for split, part in of_split.items()}
    parts = [(of_split[split]["text"].tolist(), numbers[split]) for split in ("train", "test", "validation")]
    fit = baseline(*(part for pair in parts for part in pair), SENTIMENTS)
    right = fit["predictions"] == numbers["test"]
    p = float(np.mean([right[numbers["test"] == label].mean() for label in range(len(SENTIMENTS))]))
    return pd.DataFrame([{"p": p, "bound": same_bound(p)}])


def same_bound(p: float) -> float:
    """The accuracy on *same* of who judges each of the two phrases with accuracy p: both right, or both wrong."""
    return p**2 + (1 - p) ** 2


def _accuracy(right: np.ndarray, sentences: np.ndarray) -> dict[str, float]:
    """The mean of ``right`` (seeds, texts; 0 or 1) with its interval over new seeds and new sentences (texts,)."""
    interval = mean_difference(by_cluster(right, sentences))
    sizes = {"n": len(right), "n_items": right.shape[1], "n_sentences": len(np.unique(sentences))}
    return {"mean": interval.difference, "low": max(interval.low, 0.0), "high": min(interval.high, 1.0), **sizes}
