"""The generated parts of README.md and docs/findings.md: sentences that are claims, and tables of the committed results."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import pandas as pd

from rtxlib.errors import InputError
from rtxstudy import names, published
from rtxstudy.claims import Claim, sentences
from rtxstudy.numbers import ends, percent, signed
from rtxstudy.questions.anatomy import architecture_figures
from rtxstudy.questions.audit import audit_claims
from rtxstudy.questions.depth_gain import depth_claims, depth_tables, equal_reading
from rtxstudy.questions.forms import loop_forms
from rtxstudy.questions.pretrained import pretraining_claims
from rtxstudy.questions.sizes import size_grid
from rtxstudy.questions.summary import cost_claims, glance, limit_claims

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "data" / "results" / "full"
HEADLINE = "sst2"


@cache
def table(name: str) -> pd.DataFrame:
    """A committed table of the full profile; empty where it was not made."""
    rows = published.read(RESULTS, name)
    return pd.DataFrame() if rows is None else rows


@cache
def findings() -> dict[str, pd.DataFrame]:
    """What all studies have left, with the names of their models and data known."""
    names.know(published.names(RESULTS))
    return published.findings(RESULTS)


def validation_rows() -> int:
    """Of the headline data."""
    sources = table("sources").set_index("data")
    return int(sources.loc[HEADLINE, "validation rows"])


@cache
def models() -> pd.DataFrame:
    """The models on SST-2, what they cost, and which are worth it."""
    at_a_glance = glance.at_a_glance(findings(), HEADLINE, table("side_by_side"))
    judged = glance.worth_their_cost(at_a_glance, validation_rows())
    counted = table("counting_words")
    baselines = counted[counted["key"] == json.dumps([{"source": HEADLINE}] * 2)]
    return glance.over_texts(judged, glance.answers(table("predictions"), findings()["runs"], baselines, HEADLINE))


# ------------------------------------------------------------------------------------------------------------ README


def drawing() -> str:
    return f"![{architecture_figures.ALT}](figures/architecture.svg)"


def finding_claims() -> list[Claim]:
    """The claims of the README: the verdict, what a loop saves, TF-IDF on Yelp, and pretraining."""
    gains, tables = findings()["depth_gains"], findings()
    verdict = depth_claims.verdict(gains)
    return [
        *verdict[:2],
        depth_claims.one_seed_less(gains),
        cost_claims.saves(models()),
        *verdict[2:],
        depth_claims.yelp(gains, table("equal_reading")),
        pretraining_claims.ahead(tables["comparisons"]),
    ]


def limits() -> str:
    return wrapped(limit_claims.in_short(findings()).sentence)


def what_we_found() -> str:
    return "\n".join(f"- {wrapped(sentence, '  ')}" for sentence in sentences(finding_claims()))


def main_figure() -> str:
    gains = findings()["depth_gains"]
    alt = (
        f"{depth_claims.title(gains).sentence}. A row for each task and way of training "
        "in which an encoder learned, and zero is the shallow encoder."
    )
    return f"![{alt}](figures/full/99_depth_gains.png)"


# ------------------------------------------------------------------------------------------------------------ docs/findings.md


def claims(question: str) -> str:
    """The true sentences of a question, as the notebooks published them."""
    findings()
    every = table("claims")
    rows = every[(every["question"] == question) & every["holds"].astype(bool) & (every["kind"] == "sentence")]
    if rows.empty:
        raise InputError(f"No published sentence answers the question '{question}'. Name the file QUESTION_claims.py.")
    lines = [sentence.removeprefix("- ") for sentence in dict.fromkeys(rows["sentence"])]
    return "\n".join(f"- {wrapped(names.said(line), '  ')}" for line in lines)


def verdicts() -> str:
    findings()
    return markdown(depth_tables.readable(table("depth_gains")))


def beside_words() -> str:
    findings()
    return markdown(depth_tables.beside_words(table("depth_gains")))


def same_tokens() -> str:
    findings()
    return markdown(equal_reading.readable(table("equal_reading")))


def tasks() -> str:
    """What the tasks are on which depth may pay, as rows of the published table of sources."""
    findings()
    every = table("sources").drop_duplicates("data").set_index("data")
    sources = every.loc[table("depth_gains")["data"].drop_duplicates()].reset_index()
    counts = {f"{split} texts": sources[f"{split} rows"].map("{:,}".format) for split in ("train", "validation", "test")}
    origin = sources["source"].map(audit_claims.reader)
    return markdown(pd.DataFrame({"task": sources["data"], "source": origin, "labels": sources["labels"], **counts}))


def models_on_sst2() -> str:
    return markdown(glance.readable(models()))


def comparisons() -> str:
    """Every comparison of the study once."""
    compared = glance.verdicts(findings())
    return markdown(
        pd.DataFrame(
            [
                {
                    "first − second": one.comparison,
                    "data": one.data,
                    "difference in points": signed(one.difference),
                    "95 % interval": ends(one.low, one.high),
                    "seeds × texts": f"{one.n_seeds} × {one.n_items:,}",
                }
                for one in compared.itertuples()
            ]
        )
    )


def own_text() -> str:
    findings()
    return markdown(depth_tables.own_text(table("own_text")))


def forms() -> str:
    findings()
    return markdown(loop_forms.explained(table("forms")))


def grid() -> str:
    return markdown(size_grid.readable_blocks(table("over_blocks")))


def carried() -> str:
    findings()
    transfer = table("transfer")
    return markdown(
        pd.DataFrame(
            {
                "trained on SST-2": transfer["model"],
                "tested on": transfer["tested_on"],
                "accuracy": transfer["mean"].map(percent),
                "seeds": transfer["n"],
            }
        )
    )


def parts_of_data() -> str:
    findings()
    parts = audit_claims.parts(table("sources"), table("balance"))
    return "\n".join(f"- {wrapped(f'{names.short(part.data)}: {part.note}.', '  ')}" for part in parts.itertuples())


# ------------------------------------------------------------------------------------------------------------ writing


def markdown(frame: pd.DataFrame) -> str:
    """A table in Markdown, with names in place of ids."""
    rows = ([names.said(str(value)) for value in one] for one in frame.itertuples(index=False))
    return lines([str(column) for column in frame], rows)


def lines(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [header, ["---"] * len(header), *rows])


def wrapped(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(paragraph, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
