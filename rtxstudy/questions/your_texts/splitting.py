"""Training, validation and test rows: whole groups of texts, each label in proportion. Few rows are cross-validated."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold

from rtxlib.errors import InputError, counted, few

CROSS_VALIDATED = 500  # fewer rows are cross-validated
FOLDS = 5
MANY, FEW_SHARE, MANY_SHARE = 2000, 0.2, 0.1  # share of the rows in validation, and as much in test: below MANY rows, and above
FEWEST_GROUPS = 3  # of the rows of a split that judges; intervals are over groups
MOST_SHARE = 1 / 3  # of the rows in test, so that it has FEWEST_GROUPS groups
SEED = 0  # of every draw here, so that a comparison that goes on has the same splits
MOST_HELD = 3000  # rows of the validation and of the test split, at most
NAMES = {
    "train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
    "dev": "validation", "test": "test", "testing": "test",
}  # fmt: skip


def split(group: np.ndarray, numbers: np.ndarray, splits: np.ndarray | None = None) -> np.ndarray:
    """ "train", "validation", "test", or "" for a row that is left out, (rows,).

    With fewer than :data:`CROSS_VALIDATED` rows that are not in test there is no validation split, unless one is given. There is
    none either where it would have fewer than :data:`FEWEST_GROUPS` groups.

    Args:
        group: (rows,) rows of one number stay together
        numbers: (rows,) numbers of the labels
        splits: (rows,) the splits that the user gave, "" where there is none

    Training and validation rows in the group of a test row are left out, and so are training rows in that of a given validation
    row.
    Raises InputError when the rows or their groups are too few.
    """
    where = (
        np.full(len(numbers), "train", dtype=object)
        if splits is None
        else np.where(splits == "", "train", splits).astype(object)
    )
    count = int((where != "test").sum())  # rows that are not a given test split
    share = FEW_SHARE if count < MANY else min(MANY_SHARE, MOST_HELD / count)
    if share < (enough := FEWEST_GROUPS / len(np.unique(group))) <= MOST_SHARE:
        share = enough
    rng = np.random.default_rng(SEED)
    if not (where == "test").any():
        where[_held_out(group, numbers, where == "train", share, rng)] = "test"
    in_test_group = (where != "test") & np.isin(group, group[where == "test"])
    where[in_test_group] = ""
    if (where == "validation").any():
        where[(where == "train") & np.isin(group, group[where == "validation"])] = ""
    elif (where == "train").sum() >= CROSS_VALIDATED:
        judged_rows = _held_out(group, numbers, where == "train", share, rng)
        if len(np.unique(group[judged_rows])) >= FEWEST_GROUPS:
            where[judged_rows] = "validation"
    judged = "validation" if (where == "validation").any() else "train"
    for name in ("train", "test", judged):
        many, least = len(np.unique(group[where == name])), 1 if name == "train" != judged else FEWEST_GROUPS
        if many < least:
            raise InputError(
                f"{len(numbers):,} rows in {len(np.unique(group)):,} groups of texts that stay together are too few: the {name} "
                f"split would hold {counted(many, 'group')}, and it needs {counted(least, 'group')}. "
                "Give more texts that are unlike the others, or leave out --group-column or --split-column where you gave it."
            )
    return where


def _held_out(
    group: np.ndarray, numbers: np.ndarray, among: np.ndarray, share: float, rng: np.random.Generator
) -> np.ndarray:
    """The rows of whole groups among those of a mask, about a share of each label, as indices."""
    sizes = np.bincount(numbers[among], minlength=numbers.max() + 1)
    room = np.where(sizes > 2, np.maximum(1, np.rint(sizes * share)), 0).astype(int)
    members = [rows for rows in pd.Series(np.arange(len(group))).groupby(group).indices.values() if among[rows].all()]
    picks: list[np.ndarray] = []
    for most in (
        max(2, 0.01 * len(numbers)),
        np.inf,
    ):  # large groups, whose texts are alike, only where nothing else is left
        for place in rng.permutation(len(members)):
            rows = members[place]
            content = np.bincount(numbers[rows], minlength=len(room))
            if len(rows) <= most and (content <= room).all():
                room, members[place] = room - content, rows[:0]
                picks.append(rows)
        if not room.any() or most == np.inf:
            break
    return np.concatenate(picks) if picks else np.empty(0, int)


def folds(group: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The number of the fold of each row, (rows,): whole groups, each label in proportion."""
    fold = np.zeros(len(numbers), int)
    many = min(FOLDS, len(np.unique(group)), int(np.bincount(numbers).max()))
    if many < 2:
        raise InputError("The texts are too few, or too much alike, to be cross-validated; give more.")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class")  # a label of few rows is in fewer folds
        parts = StratifiedGroupKFold(many, shuffle=True, random_state=SEED).split(numbers, numbers, group)
        for number, (_, rows) in enumerate(parts):
            fold[rows] = number
    return fold


def given_splits(values: pd.Series, column: str) -> np.ndarray:
    """The splits that a column names. Raises InputError for a value that names none."""
    splits = values.str.strip().str.lower().map(lambda value: "" if value == "" else NAMES.get(value, "?"))
    if (splits == "?").any():
        unknown = values[splits == "?"].unique()
        raise InputError(f"The column '{column}' names the splits {few(unknown)}; write train, validation and test.")
    if not (splits == "train").any():
        raise InputError(f"The column '{column}' has no row of train; --split-column names train, validation and test.")
    return splits.to_numpy(dtype=object)
