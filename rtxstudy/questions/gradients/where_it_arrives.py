"""Which pass learns, where does the gradient arrive, and does α keep it alive?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import measured, studies
from rtxstudy.figures.save import Drawing
from rtxstudy.numbers import percent
from rtxstudy.questions.accuracy.sharing import Sharing
from rtxstudy.questions.forms import loop_tables
from rtxstudy.questions.forms.loop_forms import BASE, LoopForms
from rtxstudy.questions.gradients import gradient_claims, gradient_figures

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class Gradients:
    """The gradient in the loops on composed texts."""

    by_layer: pd.DataFrame  # at each layer of the standard, the shared and the unshared encoder, as loop_tables.by_layer
    shares: pd.DataFrame  # parameter × pass: what each pass contributes to the gradient, 0..1, mean over seeds
    bounds: pd.DataFrame  # what reaches the state after each pass, beside the claimed bound, as measured.state_gradients
    place: str  # the model and the data of ``shares``


def by_pass(study: Study, compared: Sharing) -> pd.DataFrame:
    """The gradient of each pass through the block, as :func:`measured.gradients`."""
    return study.measure(measured.gradients, compared.shared + compared.unshared)


def draw_by_pass(study: Study, flow: pd.DataFrame) -> Drawing:
    title = study.title(gradient_claims.learning_pass, flow, otherwise="Gradient of each pass")
    return Drawing(
        gradient_figures.gradient_by_pass(flow, title),
        "03_gradient_by_iteration",
        flow,
        alt="Gradient norm and share of the gradient of each pass through the block, shared and unshared.",
    )


def gradients(study: Study, forms: LoopForms) -> Gradients:
    """The gradient on the texts composed of operators, the last place of the profile's loops."""
    composed = study.profile.loops[-1]
    base, unshared = forms.arms[composed, BASE], forms.arms[composed, "unshared"]
    standard = forms.runs.of(studies.shape(composed, composed.passes, 1))
    by_parameter = study.measure(measured.parameter_gradients, standard + base + unshared)
    shares = by_parameter[by_parameter["model"] == base.model].pivot_table(
        index="parameter", columns="iteration", values="share", sort=False
    )
    bounds = [
        study.measure(measured.state_gradients, forms.arms[composed, form]).assign(model=form)
        for form in ("every", BASE, "unshared", "damped")
    ]
    place = f"{base.model} on {base[0].metrics['data']}"
    return Gradients(loop_tables.by_layer(by_parameter), shares, pd.concat(bounds, ignore_index=True), place)


def draw_by_layer(study: Study, arriving: Gradients) -> Drawing:
    title = study.title(gradient_claims.by_layer_title, arriving.by_layer, otherwise="Gradient at each layer")
    return Drawing(
        gradient_figures.gradient_by_layer(arriving.by_layer, title),
        "03_gradient_by_layer",
        arriving.by_layer,
        alt="Norm of the gradient that arrives at each layer on the way through a standard, a shared "
        "and an unshared encoder.",
    )


def shares(arriving: Gradients) -> pd.DataFrame:
    """A readable table of what each pass contributes to the gradient of each parameter of the shared layer."""
    percents = arriving.shares.rename(columns="pass {}".format).map(lambda share: percent(share, 0))
    return percents.rename_axis(columns=None).reset_index()


def draw_bound(study: Study, arriving: Gradients) -> Drawing:
    title = study.title(gradient_claims.bound_title, arriving.bounds, otherwise="Gradient by pass, and the bound")
    return Drawing(
        gradient_figures.gradient_bound(arriving.bounds[arriving.bounds["weights"] == "trained"], title),
        "03_gradient_bound",
        arriving.bounds,
        alt="Gradient that reaches the state after each pass, beside the claimed lower bound and the gain of the identity.",
    )
