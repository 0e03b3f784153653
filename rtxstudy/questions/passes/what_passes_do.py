"""How many passes does one checkpoint need, what does each change, which form stays bounded, and what is a pass worth?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import measured, studies, tables
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.finished import Runs
from rtxstudy.numbers import percent, signed, with_ends
from rtxstudy.questions.early_exit import exit_figures, exits
from rtxstudy.questions.forms import loop_figures, loop_tables
from rtxstudy.questions.forms.loop_forms import BASE, LoopForms
from rtxstudy.questions.passes import pass_claims, worth, worth_figures
from rtxstudy.questions.summary import glance

if TYPE_CHECKING:
    from rtxstudy import Study

RESIDUALS = ["none", "every", BASE, "learned", "damped", "gated", "input_injection", "loop_norm"]
READ = (BASE, "none", "random_depth")  # the forms that are read after each pass on every place
DRAWN = (BASE, "none", "damped", "unshared")  # the forms whose states are drawn


@dataclass(frozen=True)
class States:
    """The state of each loop after each of twelve passes."""

    by_pass: pd.DataFrame  # as measured.states, with form
    random_depth: Runs  # the headline loop that is trained with random depth
    composed: str  # the label of the texts composed of operators
    passes: int  # passes of training there
    read_passes: int  # passes of training of the loops that are read after each pass

    @property
    def trained(self) -> pd.DataFrame:
        """The rows of trained weights."""
        return self.by_pass[self.by_pass["weights"] == "trained"]

    @property
    def read(self) -> pd.DataFrame:
        """What is read after each pass: the trained weights of the forms in :data:`READ`."""
        return self.trained[self.trained["form"].isin(READ) & (self.trained["iteration"] > 0)]


@dataclass(frozen=True)
class Exits:
    """Leaving early by three rules, with thresholds calibrated on validation labels."""

    ways: pd.DataFrame  # as measured.early_exits
    differences: pd.DataFrame  # from all passes, as exits.exit_differences, with learned


@dataclass(frozen=True)
class PassWorth:
    """What one more pass is worth, in layers."""

    errors: pd.DataFrame  # test error by layers passed through, as worth.errors
    fits: pd.DataFrame  # φ of each place, as loop_tables.worth


def states(study: Study, forms: LoopForms) -> States:
    """Every loop that is followed, read after each pass."""
    composed = study.profile.loops[-1]
    followed = [
        (place, form)
        for place in study.profile.loops
        for form in ((*RESIDUALS, "unshared", "random_depth") if place == composed else READ)
    ]
    random_depth = forms.runs.of(studies.random_depth(study.profile))
    tables = [study.measure(measured.states, forms.arms[place, form]).assign(form=form) for place, form in followed]
    tables.append(study.measure(measured.states, random_depth).assign(form="random_depth"))
    label = forms.arms[composed, BASE][0].metrics["data"]
    by_pass = pd.concat(tables, ignore_index=True)
    return States(by_pass, random_depth, label, composed.passes, study.profile.loops[0].passes)


def draw_accuracy(study: Study, loops: States) -> Drawing:
    title = study.title(pass_claims.read_title, loops.read, loops.read_passes, otherwise="Accuracy after each pass")
    return Drawing(
        worth_figures.accuracy_by_pass(loops.read, trained_depth=loops.read_passes, title=title),
        "11_accuracy_by_iteration",
        loops.read[["data", "model", "form", "seed", "iteration", "accuracy", "loss"]],
        alt="Test accuracy read after each of up to twelve passes, for loops trained with a fixed "
        "and with a random number of passes.",
    )


def most_frequent(study: Study) -> pd.DataFrame:
    """What classifiers without a neural network reach on the headline data and on the texts composed of operators."""
    specs = {study.source(spec)["data"]: spec for spec in (study.profile.data, study.profile.loops[-1].data)}
    return pd.concat([study.counting_words(spec).assign(data=label) for label, spec in specs.items()])


def early_exits(study: Study, forms: LoopForms, loops: States) -> Exits:
    """Leaving early on the loops that are trained with random depth."""
    leaving = loops.random_depth + forms.arms[study.profile.loops[-1], "random_depth"]
    ways = study.measure(measured.early_exits, leaving)
    differences = exits.exit_differences(ways, leaving.part("exit_predictions"))
    return Exits(ways, differences.assign(learned=glance.learned(differences, study.ask(most_frequent))))


def draw_exits(study: Study, leaving: Exits) -> Drawing:
    title = study.title(pass_claims.leaving_title, leaving.differences, otherwise="Leaving early")
    return Drawing(
        exit_figures.exits(leaving.ways, title),
        "11_early_exit",
        leaving.ways,
        alt="Test accuracy against measured milliseconds per text, for fixed numbers of passes "
        "and for three rules of leaving early.",
        caption=f"Measured on {leaving.ways['device'].iloc[0]}, in batches of like length. Large marks: thresholds calibrated "
        f"so that at most {percent(measured.TOLERANCE)} of the validation labels change.",
    )


def draw_states(study: Study, loops: States) -> Drawing:
    on_composed = loops.trained[loops.trained["data"] == loops.composed]
    figure_rows = on_composed[(on_composed["iteration"] <= loops.passes) & on_composed["form"].isin(DRAWN)]
    figure_rows = figure_rows.assign(model=figure_rows["form"])
    return Drawing(
        loop_figures.states_by_pass(
            figure_rows, study.title(pass_claims.states_title, figure_rows, otherwise="The state after each pass")
        ),
        "11_states",
        figure_rows,
        alt="Length of the state, similarity to the state before, step, correlation of tokens, "
        "accuracy and attention entropy after each pass.",
        caption="Token correlation near 1 would mean that all tokens of a text have become one. Attention entropy: "
        "100 % where a token looks at all tokens alike, 0 % where it looks at one.",
    )


def lengths(study: Study, loops: States) -> pd.DataFrame:
    """The length of the state after each pass of each residual form on composed texts, trained and untrained."""
    rows = (
        loops.by_pass["data"].eq(loops.composed)
        & loops.by_pass["form"].isin(RESIDUALS)
        & (loops.by_pass["iteration"] > 0)
    )
    return loops.by_pass.loc[rows, ["form", "weights", "seed", "iteration", "norm", "accuracy"]]


def draw_stability(study: Study, loops: States, by_form: pd.DataFrame) -> Drawing:
    title = study.title(pass_claims.stability_title, by_form, otherwise="Length of the state by pass")
    return Drawing(
        loop_figures.stability(by_form, alpha=0.5, trained_depth=loops.passes, title=title),
        "11_stability",
        by_form,
        alt="Length of the state after each of twelve passes for each form of the loop, at "
        "initialisation and after training.",
    )


def growth(study: Study, loops: States, by_form: pd.DataFrame) -> pd.DataFrame:
    """The mean factor by which the state grows in each pass beyond those of training (:func:`loop_tables.growth`)."""
    return loop_tables.growth(by_form, loops.passes)


def growth_table(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`growth`: at 1.0 the state keeps its length, at 1.5 it grows by half in each pass."""
    formats = {"gain": "{:.3f}", "length": "{:,.1f}", "accuracy": percent}  # by the first word of a column
    named = {column: (column, formats[kind]) for column in table if (kind := column.split()[0]) in formats}
    return tables.written(table, named)


def composition(study: Study, forms: LoopForms) -> pd.DataFrame:
    """Accuracy by the number of operators of a text, at fixed parameters and at fixed arithmetic."""
    composed = study.profile.loops[-1]
    shapes, most = studies.shapes(composed), max(composed.layers)
    fixed = {
        "fixed parameters": [(layers, passes) for layers, passes in shapes if layers == 1],
        "fixed arithmetic": [(layers, passes) for layers, passes in shapes if layers * passes == most],
    }

    def measure() -> pd.DataFrame:
        data = study.data(composed.data)
        tables = [
            worth.by_composition(forms.runs.of(studies.shape(composed, *shape)), data, study.results).assign(arm=arm)
            for arm, of_arm in fixed.items()
            for shape in of_arm
        ]
        return pd.concat(tables, ignore_index=True)

    return study.table("loop", "composition", measure)


def draw_composition(study: Study, by_operators: pd.DataFrame) -> Drawing:
    title = study.title(pass_claims.composition_title, by_operators, otherwise="Accuracy by operators")
    return Drawing(
        worth_figures.composition(by_operators, title),
        "11_composition",
        by_operators,
        alt="Accuracy on texts with each number of operators, for one layer passed more and more often "
        "and for a constant number of layers passed.",
    )


def pass_worth(study: Study, forms: LoopForms) -> PassWorth | Absent:
    """The law that N layers passed r times are worth N·r^φ layers of their own, fitted on each place."""
    tested = [
        worth.errors(forms.runs.of(studies.shape(place, *shape)))
        for place in study.profile.loops
        for shape in studies.shapes(place)
    ]
    errors = pd.concat(tested, ignore_index=True)
    fits = loop_tables.worth(errors, study.ask(most_frequent))
    return fits if isinstance(fits, Absent) else PassWorth(errors, fits)


def draw_worth(study: Study, law: PassWorth) -> Drawing:
    title = study.title(pass_claims.worth_title, law.fits, otherwise="Test error by layers passed through")
    return Drawing(
        worth_figures.worth(law.errors, law.fits, title),
        "11_worth",
        law.errors,
        alt="Test error by number of layers passed through, for standard encoders and for loops, with the fitted curves.",
        caption="Intervals count runs as independent.",
    )


def readable_exits(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.early_exit.exits.exit_differences`: three rules beside fixed passes.

    The last column is the smallest fixed number of passes that is as accurate as the exit on the test texts.
    """
    return pd.DataFrame(
        [
            {
                "data": row["data"],
                "leave by": row["criterion"],
                "passes": f"{row['passes']:.2f}",
                "throughput (slowest seed)": f"{row['throughput']:.2f} ({row['throughput_least']:.2f})",
                "accuracy − all passes (points)": with_ends(row["difference"], row["low"], row["high"]),
                "fixed passes, as accurate": "none"
                if pd.isna(row["fixed_passes"])
                else f"{row['fixed_passes']:.0f}: {row['fixed_throughput']:.2f} times, {signed(row['fixed_difference'])}",
                "seeds": row["n_seeds"],
            }
            for row in table.to_dict("records")
        ]
    )
