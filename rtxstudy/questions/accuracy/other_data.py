"""Is the recurrent encoder as accurate as the standard one on other sentiment data?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtx.baselines.counting_words import best
from rtxstudy import comparisons, studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.names import said, short
from rtxstudy.numbers import percent, with_ends
from rtxstudy.questions.accuracy import accuracy_claims, accuracy_figures
from rtxstudy.questions.domains import further_data
from rtxstudy.same_tokens import same_tokens

if TYPE_CHECKING:
    from rtxstudy import Study

_PUBLISHED = ["model", "family", "seed", "accuracy", "f1", "precision", "recall", "parameters", "ms_per_text", "n_test", "data"]


@dataclass(frozen=True)
class OtherData:
    """The standard, the recurrent and the matched encoders beside classifiers without a neural network."""

    runs: Runs
    results: pd.DataFrame  # a row for each run and each baseline: data, model, seed, accuracy, f1, …
    differences: pd.DataFrame  # recurrent − each other, and each − the best baseline; as comparisons.comparisons
    scores: pd.DataFrame  # means with macro-F1, as further_data.scores
    classical: pd.DataFrame  # the baselines, as the report shows them
    equal_reading: pd.DataFrame | Absent  # each − the best baseline on the tokens that the encoders read, with whole and cut


def other_data(study: Study) -> OtherData | Absent:
    """The encoders on each further sentiment data set; missing runs are trained."""
    tasks = {study.source(task.data)["data"]: task for task in study.profile.elsewhere}
    if not tasks:
        return Absent("This profile has no other sentiment data.")
    runs = study.run("elsewhere")
    names = dict.fromkeys([study.profile.standard, *studies.matched(study.profile).values()])
    results, differences, at_words, scores, equal = [runs.table], [], [], [], []
    read_alike = study.ask(same_tokens)
    for label, task in tasks.items():
        baselines, loop = study.counting_words(task.data), runs.where(data=label, model=study.profile.recurrent)
        others = [runs.where(data=label, model=name) for name in names]
        results.append(baselines.assign(data=label))
        differences.append(comparisons.comparisons(*((loop, other) for other in others)))
        at_words += [further_data.against_best_words(arm, baselines) for arm in (loop, *others)]
        scores.append(further_data.macro_f1(runs.where(data=label), baselines))
        if len(read_alike) and len(fits := read_alike[read_alike["data"] == label]):
            reached = {"whole": best(baselines)["accuracy"], "cut": best(fits)["accuracy"], "limit": fits["limit"].iloc[0]}
            equal += [further_data.against_best_words(arm, fits).assign(**reached) for arm in (loop, *others)]
    table = pd.concat(results, ignore_index=True)
    return OtherData(
        runs,
        table,
        pd.concat([*differences, *at_words], ignore_index=True).assign(study="elsewhere"),
        further_data.scores(pd.concat(scores, ignore_index=True)),
        table.loc[table["family"] == "classical", _PUBLISHED],
        pd.concat(equal, ignore_index=True) if equal else Absent("No text of these data is longer than what the encoders read."),
    )


def readable_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :attr:`OtherData.scores`."""
    numbers = scores.select_dtypes("float").columns
    return scores.assign(**{name: scores[name].map(lambda x: "–" if pd.isna(x) else f"{x:.3f}") for name in numbers})


def readable_equal_reading(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :attr:`OtherData.equal_reading`, in points."""
    rows = table.to_dict("records")
    return pd.DataFrame(
        [
            {
                "first − second": said(one["comparison"]),
                "data": short(one["data"]),
                "tokens": int(one["limit"]),
                "second on whole texts": percent(one["whole"]),
                "second on these tokens": percent(one["cut"]),
                "difference": with_ends(one["difference"], one["low"], one["high"]),
            }
            for one in rows
        ]
    )


def draw(study: Study, other: OtherData) -> Drawing:
    title = study.title(
        accuracy_claims.elsewhere_title, other.differences, otherwise="Accuracy of each model on other data"
    )
    return Drawing(
        accuracy_figures.accuracy_intervals(other.results, title=title),
        "03_elsewhere",
        other.results[["data", "model", "seed", "accuracy", "f1", "n_test"]],
        alt="Test accuracy of the standard, the recurrent and the matched encoders and of classical "
        "baselines on other sentiment data.",
        caption="Small points are seeds; the bar is the 95 % interval of their mean.",
    )


def draw_differences(study: Study, other: OtherData) -> Drawing:
    named = other.differences["comparison"] + " · " + other.differences["data"]
    return Drawing(
        accuracy_figures.paired_differences(other.differences.assign(comparison=named), "Differences on other data"),
        "03_elsewhere_differences",
        other.differences,
        alt="Differences in test accuracy on other data, between encoders and from the best classical "
        "baseline, with 95 % intervals.",
        caption="Paired by seed and by test text; the interval covers new seeds and new texts.",
        finds=comparisons.finds(other.differences),
    )
