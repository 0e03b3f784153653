"""Where does depth pay, and what does a loop keep? A deep encoder, a shallow one and a loop on every task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.questions.composed.composed_tasks import composed_tasks
from rtxstudy.questions.depth_gain import depth_claims, depth_figures, gains
from rtxstudy.questions.depth_gain.depth_runs import Trio
from rtxstudy.questions.pretrained.checkpoint import checkpoint

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Arms:
    """The trained encoders of every comparison."""

    runs: Runs
    trios: list[Trio]
    arms: list[list[Runs]]  # of each trio the deep encoder, the shallow one and the loop


@dataclass(frozen=True)
class ThreeEncoders(Arms):
    """What depth and passes gain in each comparison."""

    gains: pd.DataFrame  # a row for each comparison, as gains.depth_gain, with regime, learned, selected and counting words
    verdicts: pd.DataFrame  # the same with a verdict, sorted by depth gain
    reached: pd.DataFrame  # what each encoder reaches and costs, as gains.arms


def baselines(study: Study) -> pd.DataFrame:
    """What classifiers without a neural network reach on each task (``data``), as :meth:`Study.counting_words`."""
    tasks = {task.data: study.source(task.data)["data"] for task in study.profile.depth_tasks}
    return pd.concat([study.counting_words(spec).assign(data=label) for spec, label in tasks.items()], ignore_index=True)


def conversions(study: Study) -> pd.DataFrame | Absent:
    """The ways to make a pretrained encoder into a loop, trained once each and judged on validation texts."""
    if isinstance(absent := study.ask(checkpoint), Absent):
        return absent
    profile = study.profile
    table = study.table(
        "where_depth_pays",
        "conversions",
        lambda: gains.conversions(
            study.run("conversions"), texts=study.source(profile.depth_tasks[0].data)["validation rows"]
        ),
        key="" if study.redraws else studies.key_of("conversions", profile),
        optional=True,
    )
    return Absent("The published tables have no conversions.") if table.empty else table


def trained_arms(study: Study) -> Arms:
    """The encoders of all comparisons; without pretrained weights those from random weights alone. Missing runs are trained."""
    without = isinstance(study.ask(conversions), Absent)
    trios = studies.trios(study.profile, studies.WITHOUT_WEIGHTS if without else studies.REGIMES)
    runs = study.run("where_depth_pays")
    runs += runs[:0] if without else study.run("converted")
    return Arms(runs, trios, [[runs.of(arm) for arm in trio[1:]] for trio in trios])


def three_encoders(study: Study) -> ThreeEncoders:
    """All comparisons with what depth and passes gain, the composed tasks among them."""
    choice, composed, trained = study.ask(conversions), study.ask(composed_tasks), study.ask(trained_arms)
    trios, arms, counted = trained.trios, trained.arms, study.ask(baselines)
    of_task = dict(iter(counted.groupby("data")))
    table = pd.DataFrame(
        [
            {"regime": trio.regime}
            | gains.depth_gain(*three)
            | gains.beside_words(*three, of_task[three[0][0].metrics["data"]])
            | {"learned": gains.learned(three)}
            for trio, three in zip(trios, arms, strict=True)
        ]
    )
    if not isinstance(composed, Absent):
        table = pd.concat([table, composed.gains], ignore_index=True)
    first_task = study.source(study.profile.depth_tasks[0].data)["data"]
    conversion_table = pd.DataFrame() if isinstance(choice, Absent) else choice
    table["selected"] = table["regime"].map(lambda regime: depth_claims.selected(regime, conversion_table, first_task))
    reached = [gains.arms(*three).assign(regime=trio.regime) for trio, three in zip(trios, arms, strict=True)]
    return ThreeEncoders(trained.runs, trios, arms, table, depth_claims.shown(table), pd.concat(reached, ignore_index=True))


def draw(study: Study, compared: ThreeEncoders) -> Drawing:
    title = study.title(depth_claims.title, compared.gains, otherwise="What depth and passes add on each task")
    return Drawing(
        depth_figures.depth_gains(compared.verdicts, title),
        "09_depth_gains",
        compared.verdicts,
        alt="A row for each task and way of training: what the deep encoder and the loop gain over the "
        "shallow one, with intervals.",
        caption="Paired by seed and by test text; the intervals cover new seeds and new texts. TF-IDF reads whole texts, also "
        "where the encoders read their beginning.",
    )


def own_text(study: Study, compared: ThreeEncoders) -> Runs | Absent:
    """One comparison of encoders that were pretrained on the study's own texts: deep, shallow and loop."""
    trios = [three for three in compared.arms if three[0].specs[0].pretraining]
    return trios[0] if trios else Absent("This profile pretrains no encoder on its own texts.")


def own_text_gains(study: Study, compared: ThreeEncoders) -> pd.DataFrame:
    """Own text first beside the same encoders from scratch, and beside MiniLM (:func:`gains.own_text_gains`)."""
    by_regime = {
        (trio.regime, three[0][0].metrics["data"]): three
        for trio, three in zip(compared.trios, compared.arms, strict=True)
    }
    return gains.own_text_gains(by_regime, studies.OWN_TEXT, studies.SCRATCH, studies.MADE)
