"""Does the comparison hold on other tasks and other domains?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, row
from rtxstudy.names import said, short
from rtxstudy.numbers import aside, ends, signed
from rtxstudy.questions.accuracy.accuracy_claims import RECURRENT, STANDARD


def told(differences: pd.DataFrame, steps: int) -> list[Claim]:
    """The domain task; ``steps``: optimiser steps of each encoder."""
    pair = row(differences, comparison=f"{RECURRENT} − {STANDARD}", data="domains")
    words = row(differences, comparison=f"{STANDARD} − tf-idf + logistic regression", data="domains")
    return [
        claim(
            "On the domain task TF-IDF is {words:points} points better than the standard encoder ({interval}), which "
            "took {steps} optimiser steps.",
            holds=words.high < 0,
            words=words.difference,
            interval=ends(-words.high, -words.low) if words else None,
            steps=steps,
        ),
        claim(
            "The two encoders are not told apart there ({pair}). A training this short says nothing about depth.",
            holds=pair.low <= 0 <= pair.high and steps < 100,
            pair=aside(pair.difference, pair.low, pair.high) if pair else None,
        ),
    ]


def title(differences: pd.DataFrame) -> Claim:
    below = differences[differences["comparison"].str.contains("tf-idf|nb-svm")]
    return claim(
        "Both encoders stay below the classical baselines on the domain task",
        holds=bool((below["high"] < 0).all()),
        n=len(below) or None,
    )


def confusion_title(counts: pd.DataFrame) -> Claim:
    hits = counts[counts["truth"] == counts["prediction"]]
    right = hits.assign(share=hits["rows"] / counts.groupby(["model", "truth"])["rows"].transform("sum")[hits.index])
    films = right[right["truth"] == "movies"]["share"]
    others = right[right["truth"] != "movies"]["share"]
    return claim(
        "Film phrases are told more often than local business and online shopping",
        holds=films.min() > others.max(),
        least=films.min(),
    )


def control(table: pd.DataFrame) -> list[Claim]:
    """The control of the domain task; ``table``: of ``format_control``."""
    signs, words = row(table, input="length and signs"), row(table, input="words and signs")
    bare, few = row(table, input="words without signs"), row(table, input="a few words without signs")
    return [
        claim(
            "Length, punctuation and digits alone, without any word, tell the domain of {signs:percent} of the texts.",
            holds=signs.low > 0.5,
            signs=signs.accuracy,
        ),
        claim(
            "TF-IDF does not need them: without punctuation and digits it reaches {bare:percent}, and with them {all:percent} "
            "({texts} texts).",
            holds=bare.difference_low <= 0 <= bare.difference_high,
            bare=bare.accuracy,
            all=words.accuracy,
            texts=words.n_test,
        ),
        claim(
            "Cut to {n} words from their middle, without punctuation and digits, the same texts give TF-IDF {few:percent}.",
            holds=few.difference_high < 0,
            n=few.words,
            few=few.accuracy,
        ),
    ]


def control_title(table: pd.DataFrame) -> Claim:
    signs, words = row(table, input="length and signs"), row(table, input="words and signs")
    return claim(
        "The format alone tells {signs:percent} of the domains, all words {words:percent}",
        holds=signs.low > 0.5,
        signs=signs.accuracy,
        words=words.accuracy,
    )


def carried(transfer: pd.DataFrame) -> list[Claim]:
    """From SST-2 to Yelp; ``transfer``: ``model``, ``tested_on``, ``mean``."""
    means = transfer.pivot_table(index="model", columns="tested_on", values="mean")
    away = means.get("yelp_polarity", pd.Series(dtype=float))
    change = away - means["sst2"] if len(away) else away
    return [
        claim(
            "Trained on SST-2 and tested on 600 texts of Yelp, the means of the two encoders change by {standard} and "
            "{recurrent} points.",
            standard=signed(change[STANDARD]) if STANDARD in change else None,
            recurrent=signed(change[RECURRENT]) if RECURRENT in change else None,
        ),
        claim(
            "The bag of embeddings is the most accurate there, with {bag:percent}. The standard encoder has {standard:percent}.",
            holds=len(away) > 2 and away.idxmax() == "bag of embeddings",
            bag=away.get("bag of embeddings"),
            standard=away.get(STANDARD),
        ),
        claim(
            "An accuracy on 600 texts has a standard error of {error:points} points, so a difference of a few points tells "
            "little there. The last figure of notebook 06 uses other test texts of Yelp, ten times as many.",
            error=(away.get(STANDARD) * (1 - away.get(STANDARD)) / 600) ** 0.5 if STANDARD in away else None,
        ),
    ]


def carried_over(over: pd.DataFrame) -> list[Claim]:
    """The paired difference on other texts; ``over``: of ``comparisons.carried_over``."""
    if len(over) > 1 and ((over["low"] <= 0) & (over["high"] >= 0)).all():
        return [
            claim(
                "On none of the {n:word} pairs of training data and other test data are the two encoders told apart: the loop "
                "minus the standard encoder is {least} to {most} points, and every interval contains zero.",
                holds=True,
                n=len(over),
                least=signed(over["difference"].min()),
                most=signed(over["difference"].max()),
            )
        ]
    claims = []
    for one in over.itertuples():
        a, b = one.comparison.split(" − ")
        words = {"data": said(one.data), "interval": aside(one.difference, one.low, one.high)}
        claims.append(
            first(
                claim("On {data}, {a} is more accurate ({interval}).", holds=one.low > 0, a=short(a), **words),
                claim("On {data}, {b} is more accurate ({interval}).", holds=one.high < 0, b=short(b), **words),
                claim("On {data}, the two encoders are not told apart ({interval}).", **words),
            )
        )
    return claims


def carried_title(transfer: pd.DataFrame) -> Claim:
    means = transfer.pivot_table(index="model", columns="tested_on", values="mean")
    change = (
        means["yelp_polarity"] - means["sst2"] if {"yelp_polarity", "sst2"} <= set(means) else pd.Series(dtype=float)
    )
    ours = change[[name for name in (STANDARD, RECURRENT) if name in change]]
    return claim(
        "From film phrases to Yelp both encoders lose about {lost:.0f} points, and counting words loses less",
        holds=len(ours) == 2 and ours.max() < -0.01 and change.drop(ours.index).min() > ours.max(),
        lost=-100 * ours.mean() if len(ours) else None,
    )


def pairs(on_pool: pd.DataFrame) -> list[Claim]:
    """Two encoders and counting words on further tasks; ``on_pool``: the comparisons on each."""
    if on_pool.empty:
        return []
    claims = []
    for data, part in on_pool.groupby("data", sort=False):
        of_pair = part["comparison"] == f"{RECURRENT} − {STANDARD}"
        pair, where = row(part[of_pair]), {"data": short(str(data))}
        between = aside(pair.difference, pair.low, pair.high) if pair else None
        reverse = aside(-pair.difference, -pair.high, -pair.low) if pair else None
        claims += [
            first(
                claim("{data}: the loop is more accurate ({pair}).", holds=pair.low > 0, pair=between, **where),
                claim("{data}: the standard encoder is more accurate ({pair}).", holds=pair.high < 0, pair=reverse, **where),
                claim("{data}: the two encoders are not told apart ({pair}).", holds=bool(pair), pair=between, **where),
            ),
            _beside_words(part[~of_pair]),
        ]
    return claims


_BESIDE_WORDS = {  # how many of the two encoders are above the best classical baseline, below, and neither → the sentence
    (2, 0, 0): "Both are above the best classical baseline.",
    (0, 2, 0): "Both are below the best classical baseline.",
    (0, 0, 2): "Neither is told apart from the best classical baseline.",
    (1, 0, 1): "{above} is above the best classical baseline, and {other} is not told apart from it.",
    (0, 1, 1): "{below} is below the best classical baseline, and {other} is not told apart from it.",
    (1, 1, 0): "{above} is above the best classical baseline, and {below} below.",
}


def _beside_words(part: pd.DataFrame) -> Claim:
    """Which encoders are above and below counting words; ``part``: a row for each encoder."""
    names = part["comparison"].str.split(" − ").str[0].map(short)
    above, below = part["low"] > 0, part["high"] < 0
    groups = {"above": names[above], "below": names[below], "other": names[~above & ~below]}
    found, named = tuple(map(len, groups.values())), {group: "".join(members) for group, members in groups.items()}
    return first(*(claim(text, holds=found == counts or None, **named) for counts, text in _BESIDE_WORDS.items()))


def pair_title(on_pool: pd.DataFrame) -> Claim:
    if on_pool.empty:
        return claim("", holds=None)
    of_pair = on_pool["comparison"] == f"{RECURRENT} − {STANDARD}"
    pairs, beside_words = on_pool[of_pair], on_pool[~of_pair]
    apart = (pairs["low"] > 0) | (pairs["high"] < 0)
    alike = not apart.any()
    return first(
        claim(
            "The best classical baseline is more accurate than both encoders, which are not told apart",
            holds=alike and len(beside_words) > 0 and bool((beside_words["high"] < 0).all()),
        ),
        claim("The two encoders are not told apart on these texts", holds=alike),
        claim(
            "The two encoders are told apart in {apart:word} of {all:word} questions",
            holds=len(pairs) > 1,
            apart=int(apart.sum()),
            all=len(pairs),
        ),
        claim("The two encoders are told apart", holds=len(pairs) > 0),
    )


def cross_title(cross: pd.DataFrame) -> Claim:
    if cross.empty:
        return claim("", holds=None)
    home = cross["trained_on"] == cross["tested_on"]
    lost = cross[home].groupby("model")["mean"].mean() - cross[~home].groupby("model")["mean"].mean()
    return claim(
        "Sentiment carries at a loss of {low:.0f} to {high:.0f} points on average",
        holds=lost.min() > 0,
        low=100 * lost.min(),
        high=100 * lost.max(),
    )
