"""What are the data, and can they be trusted? Sources, cleaning, splits, and what the audit of the splits finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from pandas.io.formats.style import Styler

from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.numbers import percent
from rtxstudy.questions.audit import audit_claims, audit_figures, data_tables

if TYPE_CHECKING:
    from rtxstudy import Study

_STEP = ["data", "step", "rows_in", "rows_changed", "rows_out"]
_CHECK = ["data", "check", "left", "right", "rows", "share"]


@dataclass(frozen=True)
class DataAudit:
    """The tables of :mod:`data_tables` over all data sets of the profile. ``main`` is the label of the headline data."""

    main: str
    sources: pd.DataFrame  # as Study.source, with the labels in one string
    notes: pd.DataFrame  # data, note
    filters: pd.DataFrame  # data, step, rows_in, rows_changed, rows_out
    balance: pd.DataFrame  # data, split, label, …
    lengths: pd.DataFrame  # split, tokens, rows: of the headline data
    audit: pd.DataFrame  # data, check, left, right, rows, share

    def of_main(self, table: str) -> pd.DataFrame:
        """The rows of the headline data in one of the tables."""
        rows = getattr(self, table)
        return rows[rows["data"] == self.main]


def data_audit(study: Study) -> DataAudit:
    """All tables of the audit. Data that are missing are prepared."""
    main = study.source()["data"]
    sources = pd.DataFrame([study.source(spec) for spec in study.profile.data_sets])
    sources["labels"] = sources["labels"].map(", ".join)
    makers = {"notes": data_tables.notes, "filters": data_tables.filters, "balance": data_tables.balance}
    makers |= {"lengths": data_tables.lengths, "audit": data_tables.audit}
    tables = {
        name: study.table(
            "data", name, lambda make=make, only=(main,) * (name == "lengths"): make(study.prepared_sets(*only))
        )
        for name, make in makers.items()
    }
    tables["lengths"] = tables["lengths"][["split", "tokens", "rows"]]
    return DataAudit(main, sources, **tables)


def notes(audit: DataAudit) -> pd.DataFrame:
    """A readable table of what the sources had to remark."""
    return pd.DataFrame({"data": audit.notes["data"], "note": audit.notes["note"].map(audit_claims.note)})


def changed_rows(audit: DataAudit) -> pd.DataFrame:
    """A readable table of the cleaning steps that changed or dropped rows."""
    filters = audit.filters
    changed = filters[(filters["rows_changed"] > 0) | (filters["rows_in"] != filters["rows_out"])]
    return _with_commas(changed[_STEP])


def checks(audit: DataAudit) -> pd.DataFrame:
    """A readable table of the checks that found rows."""
    rows = audit.audit.loc[audit.audit["rows"] > 0, _CHECK]
    return _with_commas(rows.assign(share=rows["share"].map(lambda share: percent(share, 2))))


def _with_commas(table: pd.DataFrame) -> pd.DataFrame:
    return table.map(lambda value: value if isinstance(value, str) else f"{value:,}")


def draw_filters(study: Study, audit: DataAudit) -> Drawing:
    funnel = audit.of_main("filters")[_STEP[1:]]
    title = study.title(audit_claims.funnel_title, funnel, otherwise="Rows left after each step")
    first, last = funnel["rows_in"].iloc[0], funnel["rows_out"].iloc[-1]
    return Drawing(
        audit_figures.filter_funnel(funnel, title),
        "01_filter_funnel",
        funnel,
        alt=f"Rows of {audit.main} left after each cleaning step, from {first:,} to {last:,}.",
    )


def draw_balance(study: Study, audit: DataAudit) -> Drawing:
    balance = audit.of_main("balance")
    title = study.title(audit_claims.balance_title, balance, otherwise="Shares of the labels")
    return Drawing(
        audit_figures.label_balance(balance, title=title),
        "01_label_balance",
        balance,
        alt="Share of each label in the training, validation and test split of the headline data.",
    )


def draw_lengths(study: Study, audit: DataAudit) -> Drawing:
    lengths, train = audit.lengths, audit.lengths[audit.lengths["split"] == "train"]
    title = study.title(audit_claims.lengths_title, lengths, otherwise="Length of the texts")
    return Drawing(
        audit_figures.length_histogram(lengths, limit=study.profile.data.max_length, title=title),
        "01_text_lengths",
        lengths,
        alt="Distribution of text lengths in tokens by split; the median training text has "
        f"{train['tokens'].repeat(train['rows']).median():.0f} tokens.",
        caption="Lengths include [CLS] and [SEP]. Nothing is padded to a fixed length: a batch holds texts of like length.",
    )


def examples(study: Study) -> pd.DataFrame | Absent:
    """A few generated texts of each class, as the models see them after cleaning."""
    generated = study.profile.loops[-1].data
    some = study.table("data", "examples", lambda: data_tables.examples(study.data(generated)), optional=True)
    return Absent("The published tables do not have these texts yet.") if some.empty else some


def wrapped(some: pd.DataFrame) -> Styler:
    """The examples with their texts at the left and broken into lines."""
    return some.style.set_properties(subset=["text"], **{"text-align": "left", "white-space": "normal"})


def draw_overlap(study: Study, audit: DataAudit) -> Drawing:
    overlaps = audit.of_main("audit")[_CHECK[1:]]
    title = study.title(audit_claims.overlap_title, overlaps, otherwise="Texts in two splits")
    return Drawing(
        audit_figures.overlap(overlaps, title),
        "01_overlap",
        overlaps,
        alt="Share of rows that each check of the audit found in the headline data.",
    )
