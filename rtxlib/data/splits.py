"""Seeded splits into training, validation and test rows, and seeded samples: balanced, nested, or by length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from rtxlib import memory
from rtxlib.data import datasets
from rtxlib.data.containment import groups, occurrences, words_key
from rtxlib.data.rows import FEWEST, SPLITS, Rows
from rtxlib.errors import InputError, counted

if TYPE_CHECKING:
    from rtxlib.data.spec import DataSpec

HELD_OUT = 0.1  # of each stratum in validation, and as much in test
PHRASES_HELD_OUT = 0.05  # of the maximal phrases of SST-2 in validation
PUBLISHED_HELD_OUT = 0.05  # of the other rows than the test set in validation, where the test set is published
BY_LENGTH = 0.3  # share of each split that lengths="shortest" or "longest" keeps


# ---------------------------------------- the rows of a spec


def split_rows(rows: Rows, spec: DataSpec) -> None:
    """Choose the rows of a spec and name the split of each: "train", "validation" or "test".

    A source with published splits keeps its test set. All others are pooled, sampled and split 80/10/10. Then
    ``train_fraction`` of the training rows are kept. Pairs are grouped by their first texts, so that no first text is on both
    sides of a split.

    Raises:
        InputError: too few rows or classes are left.
    """
    if isinstance(spec, datasets.Composed):  # it is split already, by the sentences of its phrases
        return
    if spec.published_test is not None:
        split = _split_phrases if spec.phrases else _split_published
        split(rows, spec)
    else:
        if spec.hub:  # other sources keep all their rows
            _drop_repeats(rows, np.zeros(len(rows.table), bool))
        _split_pool(rows, spec)
    if spec.train_fraction < 1:
        train = rows.where("train")
        chosen = train[nested(rows.table["label"].to_numpy()[train], spec.train_fraction, spec.seed)]
        step = f"{100 * spec.train_fraction:g} % of the training rows kept"
        rows.keep(step, np.sort(np.concatenate([chosen, rows.where("validation"), rows.where("test")])))
    train = rows.part("train")["label"]
    if train.nunique() < 2:
        raise InputError(f"Only the class '{train.iloc[0]}' is left in training; give more rows.")
    for name in ("validation", "test"):
        if missing := set(rows.label_names) - set(rows.part(name)["label"]):
            rows.notes.append(f"The {name} split holds no row of {', '.join(sorted(missing))}.")


def _split_phrases(rows: Rows, spec: DataSpec) -> None:
    """The published dev set becomes the test set, and whole sentences of the training set become the validation set."""
    train = rows.where("train")
    share = spec.validation_share or PHRASES_HELD_OUT
    chosen, dropped, maximal = phrase_validation(rows.table["text"].to_numpy()[train], spec.seed, share)
    where = np.full(len(rows.table), "test", dtype=object)
    where[train] = np.where(chosen, "validation", np.where(dropped, "", "train"))
    rows.table = rows.table.assign(split=where)
    rows.keep("phrases inside validation sentences dropped", where != "")
    rows.notes.append(
        f"The test set is the official dev set ({len(where) - len(train):,} sentences; the official test labels are "
        f"not public). Internal validation: {chosen.sum():,} of the {maximal:,} maximal phrases (in no other); the "
        f"{dropped.sum():,} training phrases inside them were dropped."
    )
    _draw_from_published(rows, spec)


def _split_published(rows: Rows, spec: DataSpec) -> None:
    """A published split becomes the test set, and whole groups of the other rows become the validation set.

    Rows whose text equals a test text (apart from case and punctuation), contains it or lies inside it are dropped, directly or
    through another row. Where the spec asks for the test set of a source that is pooled otherwise, the other rows are balanced;
    the test set keeps its shares.
    """
    official = spec.published_test
    test = (rows.table["split"] == official).to_numpy()
    group = groups(rows.table["text"].tolist(), spec.leak_words)
    known = ~test & np.isin(group, group[test])
    shuffled = np.random.default_rng(spec.seed).permutation(np.unique(group[~test & ~known]))
    size = np.bincount(group[~test], minlength=group.max() + 1)[shuffled].cumsum()
    held = shuffled[size <= max(size[0], (spec.validation_share or PUBLISHED_HELD_OUT) * size[-1])]
    where = np.select([test, known, np.isin(group, held)], ["test", "", "validation"], "train").astype(object)
    rows.table = rows.table.assign(split=where)
    rows.keep("training rows with a text of the test set dropped", where != "")
    rows.notes.append(
        f"The test set is the published split '{official}' ({test.sum():,} rows). Internal validation: "
        f"{(where == 'validation').sum():,} of the other rows, before repeats are dropped and rows are drawn; {known.sum():,} "
        "rows whose text is in the test set were dropped."
    )
    _drop_repeats(rows, (rows.table["split"] == "test").to_numpy())
    if spec.official_test:
        _balance_all_but_test(rows, spec.seed)
    _draw_from_published(rows, spec)


def _balance_all_but_test(rows: Rows, seed: int) -> None:
    """Keep equally many training rows of each class, and equally many validation rows."""
    labels = rows.table["label"].to_numpy()
    keep = [rows.where("test")]
    for name in ("train", "validation"):
        indices = rows.where(name)
        keep.append(indices[balanced(labels[indices], len(indices), np.random.default_rng(seed).permutation(len(indices)))])
    rows.keep("training and validation rows balanced", np.sort(np.concatenate(keep)))


def _draw_from_published(rows: Rows, spec: DataSpec) -> None:
    """Draw the asked number of rows for training and validation. The test set stays whole."""
    train, validation, test = (rows.where(name) for name in SPLITS)
    asked = datasets.POOLED_ROWS if spec.official_test and spec.rows is None else spec.rows
    if asked is not None and asked < len(train) + len(validation):
        held = min(len(validation), max(2, asked // 10))
        keep = [test]
        for pool, count in ((validation, held), (train, asked - held)):
            keep.append(pool[nested(rows.table["label"].to_numpy()[pool], count / len(pool), spec.seed)])
        rows.keep(f"{asked:,} rows drawn for training and validation", np.sort(np.concatenate(keep)))


def _drop_repeats(rows: Rows, published: np.ndarray) -> None:
    """Drop rows with conflicting labels and repeated rows, but none of a ``published`` test set: (rows,) bool."""
    key = pd.Series([" / ".join(map(words_key, row)) for row in rows.table[rows.text_columns].itertuples(index=False)])
    stays = published | (rows.table["label"].groupby(key).transform("nunique") == 1).to_numpy()
    rows.keep("texts with conflicting labels dropped", stays)
    rows.keep("duplicate texts dropped", published[stays] | ~key[stays].duplicated().to_numpy())


def _split_pool(rows: Rows, spec: DataSpec) -> None:
    """Draw the rows that are asked for and split them 80/10/10, rows of the same or contained texts together."""
    strata = (rows.table["domain"] + " " + rows.table["label"]).to_numpy(dtype=object)
    if isinstance(spec, datasets.Pooled) and spec.task == "domain":  # strata keeps the sentiment, so classes stay balanced by it
        rows.table, rows.label_names = rows.table.assign(label=rows.table["domain"]), list(datasets.DOMAINS)
    chosen = _draw(rows, strata, spec)
    if len(rows.table) < FEWEST:
        dropped = ", ".join(f"{step}: {before - after:,}" for step, before, _, after in rows.steps if after < before)
        left = f"Only {counted(len(rows.table), 'row')} {'is' if len(rows.table) == 1 else 'are'} left to split"
        raise InputError(f"{left}{f' ({dropped})' if dropped else ''}; at least {FEWEST} are needed.")
    if rows.table["label"].nunique() < 2:
        raise InputError(f"Only the class '{rows.table['label'].iloc[0]}' is left; at least two are needed.")
    _require_memory(rows.table["text"])
    group = groups(rows.table["text"].tolist(), spec.leak_words)
    sizes = np.bincount(group)
    if (sizes > 1).any():
        rows.notes.append(
            f"{sizes[sizes > 1].sum():,} rows form {(sizes > 1).sum():,} group(s) of up to {sizes.max():,} rows, and each group "
            f"stays in one split: its texts have the same words, or one of more than {spec.leak_words} words lies inside another."
        )
    rows.table = rows.table.assign(split=split(group, strata[chosen], spec.seed))


def _require_memory(texts: pd.Series) -> None:
    """Raise InputError if the texts are too many to be compared with one another, and say how many rows fit."""
    distinct = texts.drop_duplicates()
    needed = (memory.WORD * (distinct.str.count(" ") + 1) + memory.CHARACTER * distinct.str.len()).sum()
    fits = int(len(texts) * memory.available_memory() / max(needed, 1))
    memory.require_memory(needed, f"Splitting {len(texts):,} rows", f"give --rows {fits // 2}")


def _draw(rows: Rows, strata: np.ndarray, spec: DataSpec) -> np.ndarray:
    """Keep the rows that are asked for, note where there are fewer, and return their indices."""
    chosen, step = np.arange(len(strata)), "all"
    if spec.balanced:
        asked, step = spec.rows or datasets.POOLED_ROWS, "balanced first, sized second"
        rank = np.random.default_rng(spec.seed).permutation(len(strata))
        movies = np.flatnonzero(rows.table["domain"] == datasets.DOMAINS[0])  # phrases of SST-2
        rank[movies] = maximal_first(rows.table["text"].to_numpy()[movies], spec.seed)
        chosen = balanced(strata, asked, rank)
        counts = pd.Series(strata).value_counts()
        if len(chosen) < asked // len(counts) * len(counts):
            rows.notes.append(
                f"Asked for {asked:,} rows, took {len(chosen):,}: balanced, every class gives as many as the smallest "
                f"has, and '{counts.index[-1].strip()}' has {counts.iloc[-1]:,}."
            )
    elif spec.rows is not None and spec.rows < len(strata):
        chosen = nested(strata, spec.rows / len(strata), spec.seed)
        step = f"{len(chosen):,} rows drawn, classes in proportion"
    elif spec.rows is not None and spec.rows > len(strata):
        rows.notes.append(f"Asked for {spec.rows:,} rows, took {len(strata):,}: there are no more.")
    rows.keep(step, chosen)
    return chosen


# ---------------------------------------- splits and samples of any rows


def split(group: np.ndarray, strata: Sequence[str], seed: int) -> np.ndarray:
    """"train", "validation" or "test" for each row: whole groups, stratified, seeded.

    Args:
        group: (n,) rows of one number stay together
        strata: (n,) each stratum (a label, or a label and domain) is split in the same proportions
        seed: of the draw

    Returns:
        (n,) names. A group larger than 1 % of the validation split goes to training, because its rows are alike and would
        dominate a small split. Only where too few other rows are left for validation and test do they get larger groups,
        the smallest first.

    Raises:
        InputError: some split would be empty.
    """
    rng = np.random.default_rng(seed)
    codes, names = pd.factorize(np.asarray(strata, dtype=object))
    sizes = np.bincount(codes, minlength=len(names))
    # Each class of three rows or more is in every split.
    room = {name: np.where(sizes >= 3, np.maximum(1, np.rint(sizes * HELD_OUT)), 0) for name in ("validation", "test")}
    where = np.full(len(codes), "train", dtype=object)
    by_group = pd.Series(np.arange(len(codes))).groupby(group).indices
    members = list(by_group.values())
    most = max(2, HELD_OUT * len(codes) / 100)
    many = [rows for rows in members if 1 < len(rows) <= most]
    # Groups are placed first. Each group has the probabilities of a single row.
    for i in rng.permutation(len(many)):
        content = np.bincount(codes[many[i]], minlength=len(names))
        draw = rng.random()
        name = "test" if draw < HELD_OUT else "validation" if draw < 2 * HELD_OUT else "train"
        if name != "train" and (content <= room[name]).all():
            room[name] = room[name] - content
            where[many[i]] = name
    single = rng.permutation(np.array([rows[0] for rows in members if len(rows) == 1], dtype=np.int64))
    for code in range(len(names)):
        rows = single[codes[single] == code]
        tests, validations = int(room["test"][code]), int(room["validation"][code])
        if tests + validations > len(rows):
            tests = min(tests, (len(rows) + 1) // 2)
        for name, drawn in (("test", rows[:tests]), ("validation", rows[tests : tests + validations])):
            where[drawn] = name
            room[name][code] -= len(drawn)
    _fill(where, room, [members[i] for i in rng.permutation(len(members)) if len(members[i]) > 1], codes)
    for name in SPLITS:
        if not (where == name).any() and sizes.max() < 3:
            raise InputError("No class has three rows, one for each split; give more rows of a class (--rows), or fewer classes.")
        if not (where == name).any():
            raise InputError(
                f"The {len(codes):,} rows have only {len(members):,} different texts, which are too few for training, validation "
                f"and test (a text that lies inside another is no different one); give more texts."
            )
    return where


def _fill(where: np.ndarray, room: dict[str, np.ndarray], many: list[np.ndarray], codes: np.ndarray) -> None:
    """Move groups from training to validation and test, where these have room left. ``where`` and ``room`` are changed.

    Args:
        where: (n,) the split of each row so far
        room: split -> (strata,) rows that are still missing of each stratum
        many: the rows of each group
        codes: (n,) stratum of each row
    """
    if not any(missing.any() for missing in room.values()):
        return
    strata = len(room["test"])
    held = {name: np.bincount(codes[where == name], minlength=strata) for name in SPLITS}
    for rows in sorted((rows for rows in many if where[rows[0]] == "train"), key=len):
        content = np.bincount(codes[rows], minlength=strata)
        mine = content > 0
        name = max(room, key=lambda name: (room[name][mine].sum(), room[name].sum()))
        # A group is moved if it brings the split closer to its proportions, or a stratum that the split lacks.
        closer = np.abs(room[name] - content).sum() < np.abs(room[name]).sum()
        lacking = (mine & (held[name] == 0) & (room[name] > 0)).any()
        if (closer or lacking) and (content < held["train"])[mine].all():
            where[rows] = name
            room[name] -= content
            held[name] += content
            held["train"] -= content


def phrase_validation(
    texts: Sequence[str], seed: int, share: float = PHRASES_HELD_OUT
) -> tuple[np.ndarray, np.ndarray, int]:
    """A validation set for phrases of unnumbered sentences, such as the training rows of SST-2.

    A phrase that lies in no other is *maximal*; it is mostly a whole sentence. A share of the maximal phrases are drawn for
    validation. Every phrase inside a drawn phrase has to leave the training rows.

    Args:
        texts: (n,) the official training phrases
        seed: of the draw
        share: of the maximal phrases that are drawn

    Returns:
        (n,) bool, rows in validation; (n,) bool, rows to drop; and the number of maximal phrases.
    """
    row, distinct = pd.factorize(np.array([" ".join(text.split()) for text in texts], dtype=object))
    pairs = [(a[a != b], b[a != b]) for a, b in occurrences(distinct, distinct)]
    maximal = np.ones(len(distinct), bool)
    for inner, _ in pairs:
        maximal[inner] = False
    maximal = np.flatnonzero(maximal)
    chosen = np.zeros(len(distinct), bool)
    chosen[np.random.default_rng(seed).permutation(maximal)[: max(1, round(share * len(maximal)))]] = True
    dropped = np.zeros(len(distinct), bool)
    for inner, outer in pairs:
        dropped[inner[chosen[outer]]] = True
    return chosen[row], dropped[row], len(maximal)


def maximal_first(texts: Sequence[str], seed: int) -> np.ndarray:
    """Random ranks (n,). The texts that lie inside no other text have the lowest ranks."""
    row, distinct = pd.factorize(np.array([" ".join(text.split()) for text in texts], dtype=object))
    inner = np.zeros(len(distinct), bool)
    for a, b in occurrences(distinct, distinct):
        inner[a[a != b]] = True
    order = np.lexsort((np.random.default_rng(seed).random(len(row)), inner[row]))
    ranks = np.empty(len(row), np.int64)
    ranks[order] = np.arange(len(row))
    return ranks


def balanced(strata: Sequence[str], rows: int, rank: np.ndarray) -> np.ndarray:
    """Indices of at most ``rows`` rows, equally many of each stratum; the rows of lowest rank are taken.

    Balance comes before size: every stratum gives at most as many rows as the smallest stratum has.
    """
    codes, names = pd.factorize(np.asarray(strata, dtype=object))
    each = min(rows // len(names), np.bincount(codes).min())
    order = np.argsort(rank, kind="stable")
    place = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    return np.sort(order[place < each])


def nested(strata: Sequence[str], fraction: float, seed: int) -> np.ndarray:
    """Indices of a fraction of each stratum. With one seed, a smaller fraction lies inside a larger one."""
    order = np.random.default_rng(seed).permutation(len(strata))
    codes = pd.factorize(np.asarray(strata, dtype=object))[0]
    place = pd.Series(codes[order]).groupby(codes[order]).cumcount().to_numpy()
    each = np.maximum(1, np.floor(np.bincount(codes) * fraction + 1e-6))
    return np.sort(order[place < each[codes[order]]])


def by_length(lengths: np.ndarray, which: str, seed: int) -> np.ndarray:
    """Indices of the "shortest" or "longest" 30 % of the rows; ties are broken at random, seeded."""
    order = np.lexsort((np.random.default_rng(seed).random(len(lengths)), lengths))
    count = max(1, round(BY_LENGTH * len(lengths)))
    return np.sort(order[:count] if which == "shortest" else order[len(order) - count :])
