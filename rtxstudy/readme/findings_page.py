"""The tables of docs/findings.md, one function each."""

from __future__ import annotations

import numpy as np

from rtxstudy import names
from rtxstudy.evaluation.depth_gain import ARMS
from rtxstudy.evaluation.statistics import mean_interval
from rtxstudy.readme.tables import (
    DEEP,
    MARGIN,
    MINILM,
    ONCE,
    RECURRENT,
    STANDARD,
    WORDS,
    accuracy,
    compared,
    comparison,
    interval,
    kept,
    markdown,
    runs,
    side_by_side,
    starts_without_a_seed,
    table,
    words_counted,
    wrapped,
)
from rtxstudy.words import depth_gain
from rtxstudy.numbers import signed

GAINS = ("depth", "loop", "sharing")  # columns of the table depth_gains


def models() -> str:
    """Accuracy and costs of the encoders that start from random weights, on SST-2."""
    header = [
        "SST-2",
        "accuracy",
        "seeds",
        "parameters",
        "without the token table",
        "GFLOP for a text",
        "one text (ms)",
    ]
    header += ["in full batches (ms per text)", "training (core-minutes)"]
    lines = []
    for model in (STANDARD, RECURRENT, f"{RECURRENT} unshared", ONCE, DEEP):
        own = runs(model)
        size = own.iloc[0]
        lines.append(
            [
                f"`{model}`",
                accuracy(own, 4),
                len(own),
                f"{size['parameters']:,}",
                f"{size['non_embedding_parameters']:,}",
                f"{size['forward_flops'] / 1e9:.3f}",
                f"{side_by_side(model, 'ms_one'):.1f}",
                f"{side_by_side(model, 'ms_in_batch'):.2f}",
                f"{own['train_cpu_seconds'].median() / 60:.1f}",
            ]
        )
    words = words_counted().iloc[0]
    costs = [f"{words['ms_per_text']:.2f}", f"{words['seconds'] / 60:.2f}"]
    lines.append(["counting words", f"{words['accuracy']:.4f}", "–", f"{words['parameters']:,}", "–", "–", "–", *costs])
    return markdown(header, lines)


def replacement() -> str:
    unshared = f"{RECURRENT} unshared"
    pairs = (f"{RECURRENT} − {STANDARD}", f"{unshared} − {STANDARD}", f"{RECURRENT} − {unshared}")
    starts = starts_without_a_seed()
    below = (starts <= -MARGIN).sum()
    left_out = (
        f"The lowest start of the first interval, over the {len(starts)} ways to leave out one seed, is "
        f"{signed(starts.min())}. In {below} of these {len(starts)} ways the interval begins below −1 point."
    )
    return compared(comparison(pair) for pair in pairs) + f"\n\n{wrapped(left_out)}"


def depth() -> str:
    pairs = (f"{RECURRENT} − {ONCE}", f"{DEEP} − {ONCE}", f"{ONCE} − {STANDARD}", f"{RECURRENT} − {DEEP}")
    return compared(comparison(pair) for pair in pairs)


def where_depth_pays() -> str:
    """Depth gain, loop gain and what the loop keeps, one row per task and regime."""
    lines = []
    for row in table("depth_gains").to_dict("records"):
        gains = [f"{signed(row[f'{of}_gain'])} ({signed(row[f'{of}_low'])} to {signed(row[f'{of}_high'])})" for of in GAINS]
        share = "–" if np.isnan(row["kept"]) else kept(row)
        reached = ", ".join(f"{row[arm]:.3f}" for arm in ARMS)
        lines.append([names.said(row["data"]), row["regime"], reached, *gains, share, f"{row['n_seeds']} × {row['n_items']:,}"])
    header = ["task", "encoders", "accuracy: deep, shallow, loop", "depth gain", "loop gain", "loop − deep", "kept"]
    header.append("seeds × texts")
    lines_of_words = wrapped(names.said(depth_gain.where_depth_pays(table("depth_gains"))))
    return f"{markdown(header, lines)}\n\n{lines_of_words}"


def grid() -> str:
    cells = table("grid").sort_values("mean")
    worst, best = cells.iloc[0], cells.iloc[-1]
    lines = [
        [f"{row['passes']} passes − {row['against']}", row["blocks"], signed(row["difference"]), interval(row)]
        for row in table("over_blocks").to_dict("records")
    ]
    return (
        markdown(["first − second", "blocks", "difference in points", "95 % interval"], lines)
        + f"\n\nThe best of the {len(cells)} encoders is `{best['model']}` with {best['mean']:.3f}, "
        f"the worst is `{worst['model']}` with {worst['mean']:.3f}."
    )


def counting_words() -> str:
    return compared(comparison(f"{model} − {WORDS}") for model in (STANDARD, RECURRENT))


def less_data() -> str:
    parts = ("sst2 50%", "sst2 10%", "sst2 shortest", "sst2 longest")
    return compared(comparison(f"{RECURRENT} − {STANDARD}", part) for part in parts)


def passes() -> str:
    """Accuracy on SST-2 after each pass of one encoder trained with random depth."""
    states = table("states")
    own = states[(states["model"] == "recurrent-3x4x256 uniform") & (states["weights"] == "trained")]
    after = own.pivot(index="seed", columns="iteration", values="accuracy")[[1, 2, 3, 4]]
    lost, texts = mean_interval(after[4] - after[1]), runs(STANDARD)["n_test"].iloc[0]
    return (
        markdown(["passes", *after], [["accuracy", *(f"{mean:.3f}" for mean in after.mean())]])
        + f"\n\nFour passes − one pass: {signed(lost.mean)} points ({interval(lost._asdict())} over {lost.n} seeds, on "
        f"these {texts} sentences)."
    )


def early_exit() -> str:
    rows = table("early_exits").query("data == 'sst2'").to_dict("records")
    fixed = rows[0]  # the fewest passes for every text that are as accurate; the same in each row
    lines = [
        [
            f"each text stops on {row['criterion']}",
            f"{row['passes']:.2f}",
            f"{row['throughput']:.2f} times",
            signed(row["difference"]),
            interval(row),
        ]
        for row in rows
    ]
    costs = [f"{fixed['fixed_throughput']:.2f} times", signed(fixed["fixed_difference"]), "–"]
    lines.append(["the same number for every text", f"{fixed['fixed_passes']:.2f}", *costs])
    return markdown(["passes", "on average", "throughput", "difference in points", "95 % interval"], lines)


def composed() -> str:
    said = {
        "standard-1x64": "1 layer, passed once",
        "recurrent-1x4x64 none": "1 layer, passed 4 times",
        "recurrent-1x4x64": "1 layer, passed 4 times, with the residual across passes",
        "standard-4x64": "4 layers of their own",
        "recurrent-1x4x64 unshared": "4 layers of their own, with the residual across passes",
    }
    found = [(words, runs(model, "embedded")) for model, words in said.items()]
    lines = ([words, accuracy(own, 3), len(own)] for words, own in found)
    return markdown(["generated texts, 64 wide", "accuracy", "seeds"], lines)


def growth() -> str:
    """The length of the state, by pass, of trained one-layer loops on generated texts."""
    said = {
        "recurrent-1x4x64": "half of the state is added from the second pass on",
        "recurrent-1x4x64 damped": "averaging, *damped*: h ← h + ½·(F(h) − h)",
        "recurrent-1x4x64 gated": "averaging, *gated*: a learned gate mixes h and F(h)",
        "recurrent-1x4x64 loop_norm=True": "as in the first row, with a norm after each pass",
    }
    states = table("states")
    trained = states[(states["weights"] == "trained") & (states["data"] == "embedded")]
    lengths = trained.pivot_table(index="model", columns="iteration", values="norm")  # means over seeds
    lines = [[words, *(f"{lengths.loc[model, after]:.2f}" for after in (0, 1, 4, 12))] for model, words in said.items()]
    return markdown(["length of the state", "before the loop", "after 1 pass", "after 4", "after 12"], lines)


def worth() -> str:
    fit = table("worth").set_index("data").loc["embedded"]
    return wrapped(
        f"On the generated texts φ is {fit['phi']:.2f}. Its 95 % interval begins at {fit['low']:.2f} and has no upper end "
        f"({fit['n']} runs). Without the runs of any one model φ lies between {fit['least']:.2f} and {fit['largest']:.2f}."
    )


def carried() -> str:
    rows = table("transfer").to_dict("records")
    return markdown(
        ["trained on SST-2", "tested on", "accuracy", "seeds"],
        ([row["model"], row["tested_on"], f"{row['mean']:.3f}", row["n"]] for row in rows),
    )


def domains() -> str:
    found = [(model, runs(model, "domains")) for model in (STANDARD, RECURRENT)]
    lines = [[f"`{model}`", accuracy(own, 3), len(own)] for model, own in found]
    lines.append(["counting words", f"{words_counted('domains')['accuracy'].iloc[0]:.3f}", "–"])
    return (
        markdown(["three kinds of review", "accuracy", "seeds"], lines)
        + "\n\n"
        + compared([comparison(f"{RECURRENT} − {STANDARD}", "domains")])
    )


def pretraining() -> str:
    return compared(comparison(f"{MINILM} − {model}") for model in (STANDARD, RECURRENT))


def own_text() -> str:
    """What predicting hidden words of the study's own texts gains, for each of three encoders, and beside MiniLM."""
    rows = table("own_text").to_dict("records")
    lines = ([row["arm"], f"{row['accuracy']:.3f}", row["against"], signed(row["difference"]), interval(row)] for row in rows)
    header = ["encoder, own text first", "accuracy on SST-2", "compared with", "difference in points", "95 % interval"]
    return markdown(header, lines)


def spam() -> str:
    said = {
        "MiniLM, fine-tuned": MINILM,
        "BERT-mini, from random weights": "bert-mini",
        "MiniLM frozen, its head trained": f"{MINILM} frozen",
    }
    members = table("studies")
    of_splits = members.loc[members["study"] == "spam", "key"]  # notebook 09 has runs on one split, of some of these models
    runs_of = {words: runs(model, "sms_spam") for words, model in said.items()}
    found = {words: own.loc[own["key"].isin(of_splits), "f1"].to_numpy() for words, own in runs_of.items()}
    apart = mean_interval(np.subtract(*list(found.values())[:2]))
    found["counting words"] = words_counted("sms_spam")["f1"].to_numpy()
    lines = ([words, f"{f1.mean():.3f} ± {f1.std(ddof=1):.3f}", len(f1)] for words, f1 in found.items())
    return (
        markdown(["SMS spam", "F1", "splits"], lines)
        + f"\n\nMiniLM − BERT-mini: {signed(apart.mean)} points of F1 ({interval(apart._asdict())}, {apart.n} splits)."
    )
