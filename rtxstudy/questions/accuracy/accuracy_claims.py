"""Does the recurrent encoder of the proposal keep up with the standard one, on SST-2 and elsewhere?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, first, listed, row
from rtxstudy.names import said, short
from rtxstudy.numbers import aside, ends, with_ends
from rtxstudy.questions.depth_gain.verdicts import MARGIN

STANDARD, RECURRENT = "standard-6x384", "recurrent-3x2x256"


def apart(one: object) -> bool:
    """Whether an interval excludes zero."""
    return one.low > 0 or one.high < 0


def difference(one: object) -> str | None:
    """The difference of a row with its interval, for brackets; None where there is no row."""
    return aside(one.difference, one.low, one.high) if one else None


def beside_words(differences: pd.DataFrame) -> Claim:
    """The title of the accuracy of the standard encoder. ``differences``: to each baseline."""
    return claim(
        "The standard encoder is not shown to be more accurate than counting words",
        holds=not (differences["low"] > 0).any(),
        n=len(differences) or None,
    )


def standard_and_words(differences: pd.DataFrame) -> list[Claim]:
    words = row(differences, comparison=f"{STANDARD} − tf-idf + logistic regression", data="sst2")
    return [
        claim(
            "Trained from scratch, the standard encoder is not told apart from TF-IDF ({between}).",
            holds=not apart(words),
            between=difference(words),
        )
    ]


def learning(curves: pd.DataFrame, encoders: int) -> Claim:
    """Where the mean validation loss is lowest."""
    mean = curves.groupby(["model", "epoch"])["val_loss"].mean().unstack("model")
    complete = mean.dropna()
    return first(
        claim(
            "The validation loss falls to the end of the training",
            holds=bool((complete.idxmin() == complete.index[-1]).all()) and encoders == 1,
            n=len(complete) or None,
        ),
        claim(
            "The validation loss of all {n:word} encoders falls to the end of the training",
            holds=bool((complete.idxmin() == complete.index[-1]).all()),
            n=encoders,
        ),
        claim("The validation loss rises before the training ends", holds=True, n=encoders),
    )


def converged(table: pd.DataFrame) -> list[Claim]:
    """How soon each encoder comes near its best validation accuracy. ``table``: of ``convergence.convergence``."""
    standard, loop = (row(table, model=model) for model in (STANDARD, RECURRENT))
    return [
        claim(
            "Both encoders are within a point of their best validation accuracy after {share:share} to {most:share} "
            "of the epoch.",
            holds=abs(standard.steps / standard.all_steps - loop.steps / loop.all_steps) < 0.15,
            share=min(standard.steps / standard.all_steps, loop.steps / loop.all_steps),
            most=max(standard.steps / standard.all_steps, loop.steps / loop.all_steps),
        )
    ]


def sharing(differences: pd.DataFrame) -> list[Claim]:
    """The headline comparison. ``differences``: rows of ``comparisons.compare``."""
    replaced = row(differences, comparison=f"{RECURRENT} − {STANDARD}", data="sst2")
    shared = row(differences, comparison=f"{RECURRENT} − {RECURRENT} unshared", data="sst2")
    return [
        claim(
            "On SST-2 the recurrent encoder is {below:points} points below the standard one over five seeds "
            "({interval}).",
            holds=not apart(replaced) and replaced.difference < 0,
            below=replaced.difference,
            interval=ends(replaced.low, replaced.high) if replaced else None,
        ),
        claim(
            "This does not show that the loop replaces depth. With one seed left out the interval can begin at {without:signed}, "
            "and no gain from depth is shown on SST-2 (notebook 05).",
            holds=replaced.low_without <= -MARGIN,
            without=replaced.low_without,
        ),
        claim(
            "Sharing the block is not shown to cost anything ({shared}).",
            holds=not apart(shared),
            shared=difference(shared),
        ),
    ]


def sharing_title(differences: pd.DataFrame) -> Claim:
    shared = row(differences, comparison=f"{RECURRENT} − {RECURRENT} unshared", data="sst2")
    replaced = row(differences, comparison=f"{RECURRENT} − {STANDARD}", data="sst2")
    return claim(
        "The recurrent encoder is not told apart from the standard one, the unshared one and counting words",
        holds=not apart(shared)
        and not apart(replaced)
        and not differences["low"].gt(0).any()
        and not differences["high"].lt(0).any(),
        low=shared.low,
    )


def confusion_title(counts: pd.DataFrame) -> Claim:
    """``counts``: of :func:`rtxstudy.confusion.confusion_counts`, of one encoder and two labels."""
    wrong = counts[counts["truth"] != counts["prediction"]]
    shares = wrong["rows"] / counts.groupby(["model", "truth"])["rows"].transform("sum")[wrong.index]
    by_truth = shares.groupby(wrong["truth"]).sum()
    return claim(
        "It errs about as often on positive as on negative texts ({positive:share} and {negative:share})",
        holds=len(shares) == 2 and shares.max() - shares.min() < 0.03,
        positive=by_truth.get("positive"),
        negative=by_truth.get("negative"),
    )


def depth_on_sst2(differences: pd.DataFrame) -> list[Claim]:
    """The encoders matched in width, in parameters and in arithmetic."""
    once = row(differences, comparison=f"{RECURRENT} − standard-3x256", data="sst2")
    layers = row(differences, comparison="standard-6x256 − standard-3x256", data="sst2")
    alike = row(differences, comparison=f"{RECURRENT} − standard-6x256", data="sst2")
    return [
        claim(
            "At 256 wide, with these three seeds, six layers of their own are less accurate than three ({layers}), and so are "
            "three passed twice ({passes}).",
            holds=layers.high < 0 and once.high < 0,
            layers=difference(layers),
            passes=difference(once),
        ),
        claim(
            "So no gain from depth is shown on SST-2 in this training: one epoch, and a recipe chosen with the two headline "
            "encoders.",
            holds=layers.high < 0 and once.high < 0,
            low=layers.low,
        ),
        claim(
            "Against six layers of its own width, which do the same arithmetic, sharing is not shown to cost anything "
            "({sharing}).",
            holds=not apart(alike),
            sharing=difference(alike),
        ),
    ]


def depth_title(differences: pd.DataFrame) -> Claim:
    once = row(differences, comparison=f"{RECURRENT} − standard-3x256", data="sst2")
    layers = row(differences, comparison="standard-6x256 − standard-3x256", data="sst2")
    return claim(
        "On SST-2 neither six layers nor three passed twice beat three layers passed once",
        holds=layers.low <= 0 and once.low <= 0,
        low=layers.low,
    )


def per_million_title(summary: pd.DataFrame) -> Claim:
    best = summary.assign(ratio=summary["mean"] / summary["non_embedding_parameters"]).nlargest(2, "ratio")
    return claim(
        "The two smallest encoders give most accuracy for a parameter",
        holds=set(best["model"]) == set(summary.nsmallest(2, "non_embedding_parameters")["model"]),
        n=len(summary) or None,
    )


def latency_title(summary: pd.DataFrame) -> Claim:
    flops = summary.set_index("model")[["forward_flops", "ms_one"]]
    alike = (
        flops[flops["forward_flops"] == flops["forward_flops"].get(RECURRENT)]
        if RECURRENT in flops.index
        else flops[:0]
    )
    return claim(
        "Equal arithmetic takes about equal time, shared or not",
        holds=len(alike) > 1 and alike["ms_one"].max() < 1.25 * alike["ms_one"].min(),
        n=len(alike) or None,
    )


def elsewhere(differences: pd.DataFrame) -> list[Claim]:
    """The recurrent encoder beside the standard ones on other data; ``differences`` of all of these data."""
    rows = (
        differences[differences["comparison"].str.startswith(f"{RECURRENT} − standard")]
        if len(differences)
        else differences
    )
    better, worse = (
        rows[rows[end].gt(0) if end == "low" else rows[end].lt(0)] if len(rows) else rows for end in ("low", "high")
    )
    return [
        first(
            claim(
                "From scratch on other sentiment data the recurrent encoder is not told apart from any standard encoder.",
                holds=not len(better) and not len(worse),
                n=len(rows) or None,
            ),
            claim(
                "From scratch on other sentiment data the recurrent encoder is shown to differ in {n} of {all} "
                "comparisons: {pairs}.",
                holds=len(better) + len(worse) > 0,
                n=len(better) + len(worse),
                all=len(rows) or None,
                pairs=_pairs(pd.concat([better, worse])) if len(rows) else None,
            ),
        )
    ]


def equal_reading(table: pd.DataFrame) -> list[Claim]:
    """``table``: :attr:`rtxstudy.questions.accuracy.other_data.OtherData.equal_reading`."""
    above, below = table[table["low"] > 0], table[table["high"] < 0]
    return [
        claim(
            "The encoders read the first {limit} tokens of a review, and the classical baselines read all of it. On the same "
            "{limit} tokens the best of them reaches {least:percent} to {most:percent}; on whole reviews it reaches "
            "{whole:percent} to {wholly:percent}.",
            holds=table["limit"].nunique() == 1 and bool((table["cut"] < table["whole"]).all()),
            limit=int(table["limit"].iloc[0]),
            least=table["cut"].min(),
            most=table["cut"].max(),
            whole=table["whole"].min(),
            wholly=table["whole"].max(),
        ),
        first(
            claim(
                "On the same tokens, too, every encoder from scratch is less accurate than the best classical baseline.",
                holds=len(below) == len(table),
            ),
            claim(
                "On the same tokens {above} of {n} comparisons show an encoder from scratch to be more accurate than the best "
                "classical baseline, and {below} show it to be less accurate.",
                holds=True,
                above=len(above),
                below=len(below),
                n=len(table),
            ),
        ),
    ]


def elsewhere_title(differences: pd.DataFrame) -> Claim:
    words = differences[~differences["comparison"].str.contains("− standard")] if len(differences) else differences
    return first(
        claim(
            "No encoder trained from scratch beats the best classical baseline on these data",
            holds=not words["low"].gt(0).any(),
            n=len(words) or None,
        )
        if len(words)
        else claim("", holds=None),
        claim(
            "Some encoders trained from scratch beat the best classical baseline on these data", holds=True, n=len(words) or None
        ),
    )


def _pairs(rows: pd.DataFrame) -> str | None:
    return (
        listed(
            [
                f"{said(one.comparison)} on {short(one.data)}, {with_ends(one.difference, one.low, one.high)}"
                for one in rows.itertuples()
            ]
        )
        or None
    )


def switches(changed: pd.DataFrame, what: str) -> Claim:
    """Whether one thing changed at a time matters; for components, for plan B and for positions. ``changed`` has ``form``."""
    if changed.empty:
        return claim("", holds=None)
    changes = changed[(changed["low"] > 0) | (changed["high"] < 0)]
    differences = listed([f"{one.form} ({aside(one.difference, one.low, one.high)})" for one in changes.itertuples()])
    return first(
        claim("None of {n} changes of {what} is shown to matter", holds=changes.empty, n=len(changed), what=what),
        claim(
            "Of {n} changes of {what}, {these} shown to matter: {told}",
            holds=len(changes) > 0,
            n=len(changed),
            what=what,
            these="one is" if len(changes) == 1 else "these are",
            told=differences or None,
        ),
    )
