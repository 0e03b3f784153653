"""How much data does each encoder need, and how does it read short, long and longer texts?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import comparisons, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.data_and_length import longer_texts
from rtxstudy.questions.sizes import size_claims, size_figures
from rtxstudy.statistics import summarise

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Parts:
    """Both encoders trained on parts of the data: on shares of the rows, and on the shortest and the longest texts."""

    runs: Runs
    by_rows: pd.DataFrame  # accuracy by model and train_rows, as statistics.summarise
    by_length: pd.DataFrame  # accuracy by model and lengths ("shortest", "all", "longest")
    row_differences: pd.DataFrame  # recurrent − standard on each share, as comparisons.comparisons
    length_differences: pd.DataFrame  # the same on the shortest and on the longest texts
    differences: pd.DataFrame  # both tables, one below the other
    steps: pd.DataFrame  # optimiser steps of each part: data, train_rows, steps


@dataclass(frozen=True)
class Longer:
    """The recurrent encoder with each form of positions, trained on texts that are cut short and tested on longer ones."""

    runs: Runs
    by_length: pd.DataFrame  # accuracy by position and tokens read, as longer_texts.by_length
    differences: pd.DataFrame  # from the length of training, as longer_texts.differences
    trained_to: int  # tokens of the longest training text

    @property
    def published(self) -> pd.DataFrame:
        """The differences with the columns of other comparisons."""
        return self.differences.drop(columns=["position", "read"])


def parts_of_data(study: Study) -> Parts:
    """Both encoders on each part; missing runs are trained."""
    sizes = study.profile
    names = sizes.recurrent, sizes.standard
    sized, cut = study.run("data_size"), study.run("text_length")
    on_shares = [[sized.where(model=name, train_fraction=share) for name in names] for share in sizes.fractions]
    on_lengths = [[cut.where(model=name, lengths=lengths) for name in names] for lengths in ("shortest", "longest")]
    both = sized + cut
    steps = both.table[["key", "data", "train_rows"]].drop_duplicates("key")
    steps["steps"] = steps["key"].map(both.part("curves").groupby("key")["step"].max())
    lengths = pd.concat([cut.table, sized.where(train_fraction=1.0).table])
    of_rows, of_lengths = comparisons.comparisons(*on_shares), comparisons.comparisons(*on_lengths)
    return Parts(
        both,
        summarise(sized.table, ["model", "train_rows"]),
        summarise(lengths, ["model", "lengths"]),
        of_rows,
        of_lengths,
        pd.concat([of_rows, of_lengths], ignore_index=True),
        steps.groupby(["data", "train_rows"], as_index=False, sort=False)["steps"].min(),  # some may have stopped earlier
    )


def draw_rows(study: Study, parts: Parts) -> Drawing:
    title = study.title(size_claims.data_size_title, parts.by_rows, otherwise="Accuracy by texts")
    return Drawing(
        size_figures.data_size(parts.by_rows, title),
        "04_data_size",
        parts.by_rows,
        alt="Mean test accuracy of both encoders by number of training rows.",
        caption="The smaller training sets lie inside the larger ones; validation and test data stay the same.",
    )


def draw_lengths(study: Study, parts: Parts) -> Drawing:
    title = study.title(size_claims.lengths_title, parts.length_differences, otherwise="Accuracy by length of the texts")
    return Drawing(
        size_figures.text_length(parts.by_length, title),
        "04_text_length",
        parts.by_length,
        alt="Mean test accuracy of both encoders on the shortest 30 %, all, and the longest 30 % of the texts.",
    )


def longer(study: Study) -> Longer | Absent:
    """The study of longer texts; missing runs are trained."""
    how = study.profile.longer
    if how is None:
        return Absent("This profile has no study of longer texts.")
    runs = study.run("longer_texts")
    arms = {name: runs.of(specs) for name, specs in studies.position_arms(study.profile).items()}
    answered = study.measure(longer_texts.read_to(how.lengths), runs)
    by_length, differences = longer_texts.by_length(arms, answered), longer_texts.differences(arms, answered)
    return Longer(runs, by_length, differences.assign(study="longer_texts"), how.data.max_length)


def draw_longer(study: Study, answer: Longer) -> Drawing:
    title = study.title(size_claims.longer_title, answer.differences, otherwise="Accuracy on longer texts")
    return Drawing(
        size_figures.longer_texts(answer.by_length, title, trained_to=answer.trained_to),
        "04_longer_texts",
        answer.by_length,
        alt="Mean test accuracy of the recurrent encoder with rotary, ALiBi and learned positions by "
        "the number of tokens that are read of a text.",
        caption="Only test texts that are longer than the longest training text.",
    )
