"""Do the words tell the domain, or does the format? The control of the domain task beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.questions.domains import domain_claims, format_figures
from rtxstudy.questions.domains.format_control import format_control

if TYPE_CHECKING:
    from rtxstudy import Study


def format_and_words(study: Study) -> pd.DataFrame | Absent:
    """The table of :func:`format_control` on the domain task, made once for each state of the data."""
    control = study.table(
        "domains",
        "format_control",
        lambda: format_control(study.data(study.profile.domains)),
        key=study.source(study.profile.domains)["fingerprint"],
        optional=True,
    )
    return Absent("The published tables do not have this control yet.") if control.empty else control


def draw(study: Study, control: pd.DataFrame) -> Drawing:
    title = study.title(domain_claims.control_title, control, otherwise="Format and words")
    return Drawing(
        format_figures.format_control(control, title),
        "06_format_control",
        control.drop(columns="key"),
        alt="Accuracy on the domain task of classifiers that see the format alone, and of counting "
        "words in texts as they are and in texts of one format.",
        caption="Each classifier is chosen on validation texts. All rows have the same test texts.",
    )
