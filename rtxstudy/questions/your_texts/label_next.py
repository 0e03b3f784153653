"""Which unlabelled texts to label next: those of which the chosen model is unsure, and which are unlike one another.

Among the texts with the smallest margin between the two most probable labels, k-means weighted by uncertainty finds as many
groups as there are texts to label, and of each group the text nearest to its centre is taken (Zhdanov 2019, arXiv:1901.05954).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from threadpoolctl import threadpool_limits

from rtx.classifiers.folder import Classifier
from rtx.classifiers.words import WORD
from rtx.cli.output import FORMATS
from rtxlib.atomic import replacing
from rtxlib.checksums import sha256
from rtxlib.data.containment import words_key
from rtxlib.data.files import as_texts, require_texts
from rtxlib.data.rows import PAIR, sides, texts_of
from rtxlib.errors import InputError
from rtxlib.runs.card import plain
from rtxstudy.questions.your_texts import reading, rows
from rtxstudy.questions.your_texts.texts import Texts

MOST = 200  # texts to label
AMONG = 10  # times as many of the least sure are candidates
FEWEST_READ, MOST_READ = 500, 20_000  # texts that are labelled to find them
SECONDS = 30.0  # that labelling may take, by the time of a single text
WIDTH = 64  # numbers of a text's vector
PREDICTED, PROBABILITY = "predicted", "probability"  # the columns of the model's answer


@dataclass(frozen=True)
class Unlabelled:
    """A file of unlabelled texts.

    Attributes:
        name: of the file
        table: its rows as they are
        cleaned: the rows with a text that no labelled row has, each text once: columns of
            :func:`rtxstudy.questions.your_texts.rows.usable`
    """

    name: str
    table: pd.DataFrame
    cleaned: pd.DataFrame


def unlabelled(texts: Texts, file: Path | str) -> Unlabelled:
    """Read a file of unlabelled texts. Raises InputError when it lacks a column of texts or has no new text."""
    values, sentence = reading.read(file)
    texts.said.extend([sentence] * bool(sentence))
    name = Path(file).name
    table = as_texts(values, name)
    columns = rows.Columns(texts.columns.text, texts.columns.text, texts.columns.pair)  # it needs no labels
    columns.require(table, name)
    require_texts(values, columns.read, name)
    if taken := {PREDICTED, PROBABILITY} & set(table.columns):
        raise InputError(f"{name} has a column '{min(taken)}' of its own, and the texts to label would get another; rename it.")
    cleaned = rows.usable(table, columns, name, [])
    key = _keys(cleaned)
    new = cleaned[~key.duplicated() & ~key.isin(set(_keys(texts.table)))]
    if new.empty:
        raise InputError(f"Every text of {name} is labelled already; name a file with others by --unlabelled.")
    return Unlabelled(name, table, new)


def _keys(table: pd.DataFrame) -> pd.Series:
    """The words of each row, by which texts are the same."""
    return table[[column for column in ("text", PAIR) if column in table]].map(words_key).agg("\0".join, axis=1)


def choose(p: np.ndarray, vectors: np.ndarray, most: int = MOST) -> np.ndarray:
    """The numbers of at most ``most`` texts, the most useful first. p: (texts, labels); vectors: (texts, width)."""
    two = np.sort(p, axis=1)[:, -2:]
    doubt = 1 - (two[:, 1] - two[:, 0])
    least_sure = np.argsort(-doubt, kind="stable")[: AMONG * most]
    if len(least_sure) <= most:
        return least_sure
    part, weights = vectors[least_sure], doubt[least_sure] + 1e-6
    with threadpool_limits(1):
        groups = MiniBatchKMeans(most, random_state=0, n_init=1, batch_size=1024).fit(part, sample_weight=weights)
        distance = groups.transform(part)
    chosen = list(dict.fromkeys(distance.argmin(axis=0).tolist()))
    rest = [number for number in range(len(least_sure)) if number not in set(chosen)]  # the least sure first
    chosen += rest[: most - len(chosen)]  # one text may be the nearest to two centres
    return least_sure[sorted(chosen)]


def vectors(texts: list[str]) -> np.ndarray:
    """(texts, width): counted words, reduced to their main directions; zeros where no text has a word."""
    counter = TfidfVectorizer(token_pattern=WORD, sublinear_tf=True, min_df=1, dtype=np.float32)
    try:
        counted = counter.fit_transform(texts)
    except ValueError:  # no text has a word
        return np.zeros((len(texts), 1), np.float32)
    width = min(WIDTH, min(counted.shape) - 1)
    with threadpool_limits(1):
        return counted.toarray() if width < 2 else TruncatedSVD(width, random_state=0).fit_transform(counted)


def put_away(listed: Path, mark: Path) -> list[str]:
    """Remove the list of an earlier call. One that was changed since, as by labelling it, is kept, and a sentence says so.

    mark: a file with the SHA-256 of the list as it was written.
    """
    if not listed.exists():
        return []
    if mark.is_file() and mark.read_text(encoding="utf-8") == sha256(listed):
        listed.unlink()
        return []
    names = (listed.with_name(f"{listed.stem}-{number}.csv") for number in itertools.count(2))
    kept = listed.rename(next(name for name in names if not name.exists()))
    return [f"{listed.name} of an earlier call was changed since, so it is kept as {kept.name}."]


def write(texts: Texts, new: Unlabelled, classifier: Classifier, ms: float, out: Path) -> str:
    """Write the texts to label next, with all columns of their file and the model's answer. Returns a sentence about them.

    ms: milliseconds that the classifier takes for one text. Of more texts than it can answer in :data:`SECONDS` some are drawn.
    """
    most, part = int(np.clip(1000 * SECONDS / max(ms, 1e-3), FEWEST_READ, MOST_READ)), new.cleaned
    if len(part) > most:
        part = part.sample(most, random_state=0).sort_index()
    new_texts = texts_of(part)
    p = classifier.probabilities(new_texts)
    chosen = choose(p, vectors([" ".join(sides(text)) for text in new_texts]))
    answers = {
        PREDICTED: [texts.label_names[number] for number in p[chosen].argmax(axis=1)],
        PROBABILITY: np.round(p[chosen].max(axis=1), 3),
    }
    table = new.table.loc[part.index[chosen]].assign(**answers)
    with replacing(out) as temporary:
        FORMATS["csv"](table, temporary)  # a spreadsheet computes nothing of it
    if len(chosen) == len(new.cleaned):
        return f"`{out.name}` has all {len(chosen):,} new texts of {plain(new.name)}. The model is least sure of the first ones."
    drawn = "" if len(part) == len(new.cleaned) else f" They were chosen among {len(part):,} that were drawn at random."
    return (
        f"`{out.name}` has {len(chosen):,} of the {len(new.cleaned):,} new texts of {plain(new.name)}, to be labelled next: the "
        f"model is unsure of them, and they are unlike one another.{drawn}"
    )
