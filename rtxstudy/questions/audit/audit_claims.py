"""Can the data be trusted, and what part of them is it?"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from rtxstudy import names
from rtxstudy.claims import Claim, claim, row
from rtxstudy.numbers import NBSP

# What the Hub's data sets hold where we have only a part: source → rows, what they are, and the splits in which we have them
WHOLE = {
    "yelp_polarity": (38_000, "test reviews", ("test",)),
    "yelp_five_stars": (50_000, "test reviews", ("test",)),
    "amazon_polarity": (400_000, "test reviews", ("test",)),
    "amazon_reviews_multi_en": (210_000, "reviews", ("train", "validation", "test")),
    "multi_nli": (392_702, "training pairs", ("train",)),
    "snli": (550_152, "training pairs", ("train",)),
}


def parts(sources: pd.DataFrame, balance: pd.DataFrame) -> pd.DataFrame:
    """One row per data set that is a part of the Hub's: ``data`` and ``note``, "6,000 of the 38,000 test reviews, 63 % positive".

    ``sources`` and ``balance``: the published tables.
    """
    rows = []
    for one in sources.to_dict("records"):
        source = str(one["data"]).partition(" ")[0]
        if source not in WHOLE:
            continue
        whole, what, splits = WHOLE[source]
        have = sum(one[f"{split} rows"] for split in splits)
        if have >= whole or (splits == ("test",) and "official test" not in one["data"]):
            continue
        note = f"{have:,} of the {whole:,} {what}"
        test = balance[(balance["data"] == one["data"]) & (balance["split"] == "test")].set_index("label_name")["rows"]
        if "positive" in test:
            note += f", {100 * test['positive'] / test.sum():.0f}{NBSP}% of the test texts positive"
        rows.append({"data": one["data"], "note": note})
    return pd.DataFrame(rows, columns=["data", "note"])


def note(sentence: str) -> str:
    """A remark of the preparation without "(s)" and with the singular after one."""
    sentence = re.sub(r"\b(\d[\d,]*) (\w+)\(s\)", lambda m: f"{m[1]} {m[2]}{'' if m[1] == '1' else 's'}", sentence)
    sentence = re.sub(
        r"(?<![\d,])1 rows whose text is in the test set were", "1 row whose text is in the test set was", sentence
    )
    return sentence


def revision(source: dict[str, Any]) -> str:
    """The revision of a data set; a mirror's commit is none, so a copy that came from one is called so."""
    return "local copy" if "mirror" in str(source["source"]) else str(source["revision"])


def reader(source: str) -> str:
    """Where texts were read from, without the name of a file that a reader does not have."""
    return re.sub(r"\w+\.parquet", "a file of pairs", str(source).removesuffix(", from a mirror of the Hub"))


def readable(sources: pd.DataFrame) -> pd.DataFrame:
    """A table of where the texts come from, narrow enough for a page."""
    return pd.DataFrame(
        [
            {
                "data": one["data"],
                "read from": reader(one["source"]),
                "revision": revision(one),
                "training, validation, test rows": ", ".join(
                    f"{one[f'{part} rows']:,}" for part in ("train", "validation", "test")
                ),
                "labels": one["labels"],
            }
            for one in sources.to_dict("records")
        ]
    )


def overlap(audit: pd.DataFrame, data: str, leak_words: int) -> list[Claim]:
    """What the audit found between the test and the training texts of the headline data."""
    hits = audit[audit["rows"] > 0]
    inside = row(hits, check="inside", left="train", right="test")
    leak = row(hits, check="leak", left="train", right="test")
    return [
        claim(
            "Of the training phrases of {data}, {rows:,} ({share:.1f} %) also stand inside a test sentence, and "
            "{long} of these are longer than {words:word} words. They were published so, and they stay.",
            holds=inside.share < 0.05,
            data=names.short(data),
            rows=inside.rows,
            share=100 * inside.share,
            long=leak.rows,
            words=leak_words,
        )
    ]


def overlap_title(audit: pd.DataFrame) -> Claim:
    between = row(audit[audit["rows"] > 0], check="inside", left="train", right="test")
    return claim(
        "{share:.1f} % of the training phrases also stand inside a test sentence",
        holds=between.share > 0,
        share=100 * between.share,
    )


def funnel_title(funnel: pd.DataFrame) -> Claim:
    first, last = funnel["rows_in"].iloc[0], funnel["rows_out"].iloc[-1]
    dropped = funnel.assign(lost=funnel["rows_in"] - funnel["rows_out"])
    return claim(
        "One step drops rows: {lost:,} of {first:,}, phrases inside validation sentences",
        holds=int((dropped["lost"] > 0).sum()) == 1
        and dropped.loc[dropped["lost"].idxmax(), "step"].startswith("phrases inside"),
        lost=int(first - last),
        first=int(first),
    )


def balance_title(balance: pd.DataFrame) -> Claim:
    shares = balance.assign(share=balance["rows"] / balance.groupby("split")["rows"].transform("sum"))["share"]
    return claim(
        "The labels are nearly balanced in every split", holds=shares.between(0.4, 0.6).all(), least=shares.min()
    )


def lengths_title(lengths: pd.DataFrame) -> Claim:
    median = lengths.groupby("split").apply(
        lambda part: part["tokens"].repeat(part["rows"]).median(), include_groups=False
    )
    return claim(
        "Test texts are longer than training texts: half have {test:.0f} tokens or more, against {train:.0f}",
        holds=median.get("test", 0) > median.get("train", 0),
        test=median.get("test"),
        train=median.get("train"),
    )
