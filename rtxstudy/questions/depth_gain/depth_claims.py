"""Where does depth pay, and does a loop replace it?"""

from __future__ import annotations

import pandas as pd

from rtxstudy import names
from rtxstudy.claims import Claim, claim, first, listed, row
from rtxstudy.numbers import aside, ends, percent
from rtxstudy.questions.depth_gain.verdicts import LESS_ACCURATE, MARGIN, counted, judged

WAYS = {  # way of training in the tables → its short name
    "from scratch": "from scratch",
    "own text first": "own text first",
    "made from a pretrained encoder": "MiniLM, 6 against 4 layers",
    "made of its lower layers": "MiniLM, 6 against 3 layers",
    "made, and taught by the deep one": "MiniLM, distilled",
}
ONE_LAYER = "from scratch, one layer"  # and its width


def way(regime: str) -> str:
    """The short name of a way of training."""
    return "one narrow layer" if regime.startswith(ONE_LAYER) else WAYS.get(regime, regime)


def selected(regime: str, choice: pd.DataFrame, first_task: str) -> str:
    """Among how many ways an arm of a way of training was chosen, and on which rows; empty where nothing was chosen.

    ``choice``: of :func:`rtxstudy.questions.depth_gain.gains.conversions`; the study's own loop stands first. ``first_task``: the
    task on whose validation rows they were compared.
    """
    if regime == "own text first":
        return "the rate of the pretraining: the better of two, by the loss on masked words"
    if regime not in ("made from a pretrained encoder", "made, and taught by the deep one") or len(choice) < 2:
        return ""
    rows = f"{choice['texts'].iloc[0]:,} validation rows of {names.short(first_task)}"
    if not _best_of_all(choice):
        return f"the loop: the study's own, one of {len(choice)} tried on {rows}, one seed each"
    return f"the loop: the best of {len(choice)} on {rows}, one seed each"


def _best_of_all(choice: pd.DataFrame) -> bool:
    """Whether the study's own loop, which stands first, has the highest validation accuracy of all ways that were tried."""
    return len(choice) > 1 and bool(choice["val_accuracy"].iloc[0] == choice["val_accuracy"].max())


def shown(gains: pd.DataFrame) -> pd.DataFrame:
    """The rows with their verdicts and with the short names of data and way of training, for the figure and the tables."""
    table = judged(gains)
    return table.assign(id=table["data"], data=table["data"].map(names.short), way=table["regime"].map(way))


def tasks(table: pd.DataFrame) -> list[str]:
    """The names of the tasks of some rows of :func:`shown`, each once; a task with two ways of training is named once."""
    return list(dict.fromkeys(table["data"]))


def with_ways(table: pd.DataFrame) -> list[str]:
    """The names of the tasks of some rows, each with its way of training in brackets."""
    return [f"{one.data} ({one.way})" for one in table.itertuples()]


def _on(text: str, rows: pd.DataFrame) -> Claim:
    """A sentence about the tasks of some rows, which it names; without rows it has no data."""
    return claim(text, named=listed(tasks(rows)) or None)


# ------------------------------------------------------------------------------------------- the summary


def verdict(gains: pd.DataFrame) -> list[Claim]:
    """The answer of the study in three sentences."""
    table = shown(gains)
    counts = counted(table)
    pays = table[table["pays"]]
    replaced, loses = (table[table["verdict"] == name] for name in ("replaces", "loses"))
    below = table[table["verdict"].isin(LESS_ACCURATE)]
    generated, layers = pays[pays["id"] == "embedded"], pays[pays["way"].str.startswith("MiniLM")]
    least, most = (pays["kept"].min(), pays["kept"].max()) if len(pays) else (None, None)
    flat = row(table, id="sst2", regime="from scratch")
    return [
        first(
            claim(
                "**Depth pays on {paying:word} of {all:word} tasks:** {generated} (narrow encoders), and with MiniLM's layers "
                "{layers}.",
                holds=counts["paying"] > 0
                and len(generated) + len(layers) == len(pays)
                and generated["regime"].str.startswith(ONE_LAYER).all(),
                paying=counts["paying"],
                all=counts["tasks"],
                generated=listed(tasks(generated)) or None,
                layers=listed(tasks(layers)) or None,
            ),
            claim(
                "**Depth pays on {paying:word} of {all:word} tasks:** {named}.",
                holds=counts["paying"] > 0,
                paying=counts["paying"],
                all=counts["tasks"],
                named=listed(tasks(pays)),
            ),
            claim(
                "**Depth is not shown to pay** on any of {all} tasks.", holds=counts["tasks"] > 0, all=counts["tasks"]
            ),
        ),
        first(
            claim(
                "There **a loop keeps** about {least:share} to {most:share} of the gain; it replaces depth on {named} and "
                "is less accurate on {below:word} {noun}.",
                holds=len(replaced) > 0 and len(below) > 0 and loses.empty,
                least=least,
                most=most,
                named=listed(tasks(replaced)),
                below=len(tasks(below)),
                noun="task" if len(tasks(below)) == 1 else "tasks",
            ),
            claim(
                "There **a loop keeps** {least:share} to {most:share} of the gain and replaces the deep encoder on "
                "{named}; the rest is not settled.",
                holds=0 < len(replaced) < len(pays) and below.empty and loses.empty,
                least=least,
                most=most,
                named=listed(tasks(replaced)),
            ),
            claim(
                "There **a loop keeps** {least:share} to {most:share} of the gain, is nowhere shown to replace depth, and "
                "is less accurate on {below:word} tasks.",
                holds=replaced.empty and len(below) > 0,
                least=least,
                most=most,
                below=len(tasks(below)),
            ),
            claim(
                "There **a loop keeps** {least:share} to {most:share} of the gain, but nowhere is it shown to replace "
                "the deep encoder.",
                holds=replaced.empty,
                least=least,
                most=most,
            ),
            claim(
                "There **a loop replaces** the deep encoder everywhere, and keeps {least:share} to {most:share} of the gain.",
                holds=len(replaced) == len(pays) > 0,
                least=least,
                most=most,
            ),
            claim(
                "There **a loop replaces** the deep encoder on {named}, and loses more than a point on {lost}.",
                holds=len(replaced) > 0,
                named=listed(tasks(replaced)),
                lost=listed(tasks(loses)) or None,
            ),
        ),
        claim(
            "**On SST-2 no gain from depth is shown:** from scratch, neither six layers nor three passed twice beat three.",
            holds=flat.verdict == "no gain" and flat.loop_low <= 0,
            low=flat.loop_low,
        ),
    ]


def one_seed_less(gains: pd.DataFrame) -> Claim:
    """Whether a loop still replaces depth where one of the seeds is left out, in all three conditions of the verdict."""
    table = shown(gains)
    replaced = table[table["verdict"] == "replaces"]
    shaky = replaced[replaced[["depth_low_without", "loop_low_without"]].min(axis=1) <= 0]
    return _on("On {named} the two gains are shown only with all seeds.", shaky)


def open_questions(gains: pd.DataFrame) -> list[Claim]:
    """What is open: rows where depth pays and it is not known whether the loop loses more than a point."""
    table = shown(gains)
    unsettled = table[table["verdict"].isin(["not settled", "below"])]
    below = table[table["verdict"].isin(LESS_ACCURATE)]
    return [
        _on(
            "**Open**, with any one seed left out: whether a loop loses more than a point to the deep encoder on {named}.",
            unsettled,
        ),
        claim("The loop is shown to be less accurate on {named}.", named=listed(with_ways(below)) or None),
        one_seed_less(gains),
    ]


def title(gains: pd.DataFrame) -> Claim:
    """The title of the figure."""
    table = judged(gains)
    counts = counted(table)
    return first(
        claim(
            "Depth pays in {pays} of {comparisons} comparisons, on {paying} of {tasks} tasks, and there a loop gains, "
            "too",
            holds=counts["pays"] > 0 and table.loc[table["pays"], "loop_low"].gt(0).all(),
            **counts,
        ),
        claim(
            "Depth pays in {pays} of {comparisons} comparisons, on {paying} of {tasks} tasks",
            holds=counts["comparisons"] > 0,
            **counts,
        ),
    )


# ------------------------------------------------------------------------------------------- task by task


def by_task(gains: pd.DataFrame, choice: pd.DataFrame) -> list[Claim]:
    """A sentence or two on each task where depth pays, and on those where one might have expected it.

    ``choice``: of :func:`rtxstudy.questions.depth_gain.gains.conversions`, among which the loop was chosen.
    """
    table = shown(gains)
    generated = row(table[table["regime"].str.startswith(ONE_LAYER)], id="embedded")
    return [
        claim(
            "- **Generated texts:** one narrow layer reaches {shallow:percent}, four reach {deep:percent}, and one "
            "layer passed four times reaches {loop:percent}; the loop keeps {kept:share} of the gain.",
            holds=generated.pays and generated.loop_low > 0 and generated.kept_low > 0.5,
            shallow=generated.shallow,
            deep=generated.deep,
            loop=generated.loop,
            kept=generated.kept,
        ),
        *_inference(table, choice),
        *_reviews(table),
    ]


def _inference(table: pd.DataFrame, choice: pd.DataFrame) -> list[Claim]:
    """MultiNLI, and four times as many pairs."""
    lower = row(table, id="multi_nli", regime="made of its lower layers")
    edges = row(table, id="multi_nli", regime="made from a pretrained encoder")
    pooled_lower = row(table, id="inference_mix", regime="made of its lower layers")
    pooled_edges = row(table, id="inference_mix", regime="made from a pretrained encoder")
    return [
        claim(
            "- **MultiNLI:** the upper three layers of MiniLM are worth {gain:points} points ({interval}), and a loop "
            "of the lower three keeps {kept:share} of them.",
            holds=lower.pays and lower.loop_low > 0 and lower.sharing_high < 0,
            gain=lower.depth_gain,
            interval=ends(lower.depth_low, lower.depth_high),
            kept=lower.kept,
        ),
        claim(
            "- On MultiNLI a loop of four layers is not told apart from all six ({interval}). But it was the best of "
            "{tried:word} ways on {rows:,} validation rows of this very task, and the gain of six layers over four does not "
            "survive the correction (p = {p:.2f}).",
            holds=not edges.pays and -MARGIN < edges.sharing_low <= 0 <= edges.sharing_high and _best_of_all(choice),
            interval=aside(edges.sharing_gain, edges.sharing_low, edges.sharing_high),
            tried=len(choice),
            rows=choice["texts"].iloc[0] if len(choice) else None,
            p=edges.depth_holm,
        ),
        claim(
            "- **Mixed inference** has four times as many training pairs as MultiNLI. On its {pairs:,} test pairs the upper "
            "three layers are worth {gain:points} points ({interval}), and a loop of the lower three keeps {kept:share} of "
            "them. Six layers stay {ahead:points} points ahead ({behind}).",
            holds=pooled_lower.pays and pooled_lower.loop_low > 0 and pooled_lower.sharing_high < 0,
            pairs=pooled_lower.n_items,
            gain=pooled_lower.depth_gain,
            interval=ends(pooled_lower.depth_low, pooled_lower.depth_high),
            kept=pooled_lower.kept,
            ahead=-pooled_lower.sharing_gain if pooled_lower else None,
            behind=ends(-pooled_lower.sharing_high, -pooled_lower.sharing_low) if pooled_lower else None,
        ),
        claim(
            "- On Mixed inference the loop of four layers is not told apart from six layers (difference {interval}), and six "
            "layers gain {gain:points} points over four. The way to make the loop was chosen before, on validation rows of "
            "MultiNLI, which is a part of Mixed inference.",
            holds=pooled_edges.pays
            and pooled_edges.loop_low > 0
            and -MARGIN < pooled_edges.sharing_low <= 0 <= pooled_edges.sharing_high,
            gain=pooled_edges.depth_gain,
            interval=aside(pooled_edges.sharing_gain, pooled_edges.sharing_low, pooled_edges.sharing_high),
        ),
        claim(
            "- If one of the three seeds is left out, the interval of that difference reaches below −1 point. So more seeds must "
            "settle whether the loop replaces six layers there.",
            holds=pooled_edges.pays and pooled_edges.sharing_low_without <= -MARGIN < pooled_edges.sharing_low,
            low=pooled_edges.sharing_low_without,
        ),
    ]


def _reviews(table: pd.DataFrame) -> list[Claim]:
    """Yelp with two labels and with stars, and Amazon."""
    yelp, amazon = (
        row(
            table, id=f"{name}_polarity official test 8,000 rows at 128 tokens", regime="made from a pretrained encoder"
        )
        for name in ("yelp", "amazon")
    )
    stars = row(
        table, id="yelp_five_stars official test 8,000 rows at 128 tokens", regime="made from a pretrained encoder"
    )
    return [
        claim(
            "- **Yelp stars:** six layers gain {gain:points} points over four ({interval}), and the loop keeps "
            "{kept:share} of them.",
            holds=stars.pays and stars.loop_low > 0,
            gain=stars.depth_gain,
            interval=ends(stars.depth_low, stars.depth_high),
            kept=stars.kept,
        ),
        claim(
            "- **Yelp:** six layers gain {gain:points} points over four. They read 128 tokens and are not told apart from "
            "TF-IDF on whole reviews ({words:percent}). TF-IDF is {beside:points} points better than the loop ({interval}).",
            holds=yelp.pays and yelp.deep_words_low < 0 < yelp.deep_words_high and yelp.loop_words_high < 0,
            gain=yelp.depth_gain,
            words=yelp.words,
            beside=yelp.loop_words_gain,
            interval=ends(-yelp.loop_words_high, -yelp.loop_words_low),
        ),
        first(
            claim(
                "- **Amazon:** the loop replaces the six layers (difference {interval}) and beats counting words.",
                holds=amazon.verdict == "replaces" and amazon.loop_words_low > 0 and amazon.loop_baseline_low > 0,
                interval=aside(amazon.sharing_gain, amazon.sharing_low, amazon.sharing_high),
            ),
            claim(
                "- **Amazon:** six layers gain {gain:points} points over four ({interval}) by themselves, and not after the "
                "correction (p = {p:.3f}). The loop is within a point of six layers ({behind}), with any seed left out, and more "
                "accurate than counting words.",
                holds=amazon.verdict == "no gain"
                and amazon.depth_low > 0
                and min(amazon.sharing_low, amazon.sharing_low_without) > -MARGIN
                and min(amazon.loop_words_low, amazon.loop_baseline_low) > 0
                if amazon
                else None,
                gain=amazon.depth_gain,
                interval=ends(amazon.depth_low, amazon.depth_high) if amazon else None,
                p=amazon.depth_holm,
                behind=aside(amazon.sharing_gain, amazon.sharing_low, amazon.sharing_high) if amazon else None,
            ),
        ),
        claim(
            "- If one of the three seeds is left out, neither the gain from depth nor that of the loop is shown on Amazon.",
            holds=amazon.loop_low_without <= 0 < amazon.loop_low and amazon.depth_low_without <= 0 < amazon.depth_low,
            low=amazon.loop_low_without,
        ),
    ]


def yelp(gains: pd.DataFrame, equal_reading: pd.DataFrame) -> Claim:
    """Counting words beside six layers on Yelp, on whole reviews and on the tokens that the encoder reads.

    ``equal_reading``: of :func:`rtxstudy.questions.depth_gain.equal_reading.beside`.
    """
    data = "yelp_polarity official test 8,000 rows at 128 tokens"
    task = row(shown(gains), id=data, regime="made from a pretrained encoder")
    cut = row(equal_reading, data=task.data, way=task.way)
    return claim(
        "**On Yelp** TF-IDF on whole reviews is not told apart from MiniLM on {limit}. On these {limit} TF-IDF is "
        "{behind:points} points worse.",
        holds=task.deep_words_low < 0 < task.deep_words_high and cut.deep_words_low > 0,
        limit=f"{cut.limit:.0f} tokens" if cut else None,
        behind=cut.deep_words_gain,
    )


def equal_reading(table: pd.DataFrame) -> list[Claim]:
    """What the encoders' limit costs them beside counting words.

    ``table``: of :func:`rtxstudy.questions.depth_gain.equal_reading.beside`.
    """
    once = table.drop_duplicates("data")
    instead = [f"{percent(one.words)} instead of {percent(one.whole_words)} on {one.data}" for one in once.itertuples()]
    lows = ["deep_words_low", "loop_words_low"]
    both = table[(table[lows] > 0).all(axis=1)]
    rest = table.drop(both.index)
    return [
        claim(
            "An encoder reads a text up to its limit of tokens, and TF-IDF reads all of it. On the same tokens TF-IDF reaches "
            "{instead}.",
            holds=True,
            instead=listed(instead) or None,
        ),
        _on("The deep encoder and the loop are more accurate than TF-IDF on the same tokens on {named}.", both),
        _on(
            "On {named} only the deep encoder is shown to be more accurate than TF-IDF on the same tokens.",
            rest[rest["deep_words_low"] > 0],
        ),
        _on(
            "On {named} only the loop is shown to be more accurate than TF-IDF on the same tokens.",
            rest[rest["loop_words_low"] > 0],
        ),
        _on(
            "On {named} neither is shown to be more accurate than TF-IDF on the same tokens.",
            rest[(rest[lows] <= 0).all(axis=1)],
        ),
    ]


def flat_tasks(gains: pd.DataFrame) -> list[Claim]:
    """Where depth does not pay."""
    table = shown(gains)
    flat = table[table["verdict"] == "no gain"]
    paying = set(table.loc[table["pays"], "id"])
    never = flat[~flat["id"].isin(paying)]
    beaten = flat[flat["depth_high"] < 0]
    inference = row(table, id="snli", regime="made from a pretrained encoder")
    return [
        _on("**No gain from depth is shown, in any way of training, on** {named}.", never),
        claim(
            "From scratch on {named} the deep encoder is less accurate than the shallow one with these three seeds ({interval}).",
            holds=len(beaten) == 1 and beaten["regime"].iloc[0] == "from scratch",
            named=beaten["data"].iloc[0] if len(beaten) else None,
            interval=aside(*beaten.iloc[0][["depth_gain", "depth_low", "depth_high"]]) if len(beaten) else None,
        ),
        claim(
            "SNLI shows a gain of {gain:points} points by itself, and not after the correction (p = {p:.2f}).",
            holds=not inference.pays and inference.depth_low > 0,
            gain=inference.depth_gain,
            p=inference.depth_holm,
        ),
    ]
