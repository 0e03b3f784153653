"""The generated parts of README.md and docs/findings.md: every number in them comes from the committed tables.

    python -m rtxstudy.readme

draws the README's drawing and writes what stands between ``<!-- begin: NAME -->`` and ``<!-- end -->`` on both pages.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from rtxlib.atomic import replacing
from rtxstudy.evaluation.statistics import mean_difference, mean_interval
from rtxstudy.figures import architecture
from rtxstudy.figures.save import save
from rtxstudy.studies import MADE
from rtxstudy.words import depth_gain
from rtxstudy.words.numbers import number, signed

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("README.md", "docs/findings.md")
BLOCK = re.compile(r"(?<=<!-- begin: )([\w -]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

STANDARD, RECURRENT, ONCE, DEEP = "standard-6x384", "recurrent-3x2x256", "standard-3x256", "standard-6x256"
WORDS, MINILM = "tf-idf + logistic regression", "all-MiniLM-L6-v2"
GAINS = ("depth", "loop", "sharing")  # columns of the table depth_gains
MARGIN = 0.01  # of accuracy that a replacement may lose


@cache
def table(name: str) -> pd.DataFrame:
    """A committed table of the full profile."""
    return pd.read_parquet(ROOT / "data" / "results" / "full" / f"{name}.parquet")


def runs(model: str, data: str = "sst2") -> pd.DataFrame:
    """The runs of a model, one row per seed."""
    every = table("runs")
    return every[(every["model"] == model) & (every["data"] == data)].sort_values("seed")


def comparison(pair: str, data: str = "sst2") -> pd.Series:
    """The comparison ``"a − b"`` of two models; where several studies hold it, the one with the most seeds."""
    every = table("comparisons")
    found = every[(every["comparison"] == pair) & (every["data"] == data)]
    return found.sort_values("n_seeds", kind="stable").iloc[-1]


def words_counted(data: str = "sst2") -> pd.DataFrame:
    """The rows of TF-IDF with logistic regression, one per split."""
    every = table("classical")
    return every[(every["model"] == WORDS) & (every["data"] == data)]


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def percent(share: float) -> str:
    return f"{number(100 * share, '.0f')} %"


def interval(row: Mapping[str, float]) -> str:
    return f"{signed(row['low'])} to {signed(row['high'])}"


def accuracy(own: pd.DataFrame, decimals: int) -> str:
    """Mean ± standard deviation over seeds."""
    return f"{own['accuracy'].mean():.{decimals}f} ± {own['accuracy'].std():.{decimals}f}"


# One function for each block. The sentences of findings() are refused when the tables no longer support them.


def drawing() -> str:
    return f"![{architecture.ALT}](figures/architecture.svg)"


def findings() -> str:
    replaced, pretrained = comparison(f"{RECURRENT} − {STANDARD}"), comparison(f"{MINILM} − {STANDARD}")
    full, narrow, shared = (runs(model)["parameters"].iloc[0] for model in (STANDARD, DEEP, RECURRENT))
    once = [comparison(f"{ONCE} − {STANDARD}")["difference"], -comparison(f"{RECURRENT} − {ONCE}")["difference"]]
    words, starts = comparison(f"{STANDARD} − {WORDS}"), starts_without_a_seed()
    pairs, lower = on_pairs("depth_gains").iloc[0], on_pairs("depth_gains", "made of its lower layers").iloc[0]
    deep, _, loop = (row for _, row in on_pairs("depth_arms").iterrows())
    share = loop["non_embedding_parameters"] / deep["non_embedding_parameters"]
    supported = [
        pairs["depth_low"] > 0
        and pairs["sharing_low"] > -MARGIN
        and 0 < lower["kept_low"] < lower["kept_high"] < 1
        and 0.8 < loop["ms_median"] / deep["ms_median"] < 1.25,
        -MARGIN < replaced["low"] < replaced["difference"] < 0 and shared < full / 2 and full - narrow > narrow - shared,
        min(once) >= 0 and words["low"] < 0 < words["high"],
        pretrained["low"] > 0,
    ]
    for place, holds in enumerate(supported, 1):
        if not holds:
            raise ValueError(f"The tables do not support finding {place} of the README; write another.")
    said = (
        "**Where depth pays, a loop can keep it.** MultiNLI asks whether one sentence follows from another. A fine-tuned MiniLM "
        f"with its six layers is {100 * pairs['depth_gain']:.1f} points more accurate there than with its first three and its "
        f"last ({100 * pairs['depth_low']:.1f} to {100 * pairs['depth_high']:.1f}). A loop of these four layers, which passes "
        "the second and the third twice, loses less than a point to all six: the difference, loop minus six layers, is "
        f"{signed(pairs['sharing_gain'])} points "
        f"({signed(pairs['sharing_low'])} to {signed(pairs['sharing_high'])}). It has {percent(share)} of the layers' parameters "
        f"and saves no time. A loop of the lower three layers keeps only {percent(lower['kept'])} of what six layers "
        f"gain over these three passed once ({percent(lower['kept_low'])} to {percent(lower['kept_high'])}).",
        "**On SST-2 the recurrent encoder replaces the standard one, but narrowly.** The recurrent encoder (three layers, 256 "
        f"wide, passed twice) is {-100 * replaced['difference']:.1f} points less accurate than the standard encoder (six layers, "
        f"384 wide). If one of the {len(starts)} seeds is left out, the interval begins below −1 point in "
        f"{(starts <= -MARGIN).sum()} of {len(starts)} cases. "
        "The recurrent encoder has less than half of the parameters, and most of that saving comes from the width.",
        f"**But depth does not pay on SST-2.** A standard encoder of three layers, 256 wide, is at least as accurate as "
        f"both, at {runs(ONCE)['accuracy'].mean():.3f}. Six layers are not shown to be better than counting words: the "
        f"difference is {signed(words['difference'])} points ({interval(words)}).",
        f"**Pretraining pays.** MiniLM has six layers, 384 wide, like our standard encoder, and others have pretrained it. "
        f"It is {100 * pretrained['difference']:.1f} points more accurate after fine-tuning on the same texts.",
    )
    return "\n".join(wrapped(f"{place}. {sentence}", "   ") for place, sentence in enumerate(said, 1))


def wrapped(paragraph: str, indent: str = "") -> str:
    return textwrap.fill(paragraph, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def headline_table() -> str:
    """The README's one table."""
    said = {
        STANDARD: "6 layers of their own, 384 wide",
        RECURRENT: "3 layers passed twice, 256 wide",
        ONCE: "3 layers passed once, 256 wide",
        MINILM: "6 layers, 384 wide, pretrained by others",
    }
    lines = []
    for model, words in said.items():
        own = runs(model)
        time = f"{own['ms_median'].median():.1f} ms" + ("" if set(own["dtype"]) == {"bf16"} else " in fp32")
        size = f"{own['parameters'].iloc[0] / 1e6:.1f} M"
        lines.append([f"`{model}`", words, accuracy(own, 4), len(own), size, time])
    counted = f"{words_counted()['accuracy'].iloc[0]:.4f}"
    lines.insert(3, ["counting words", "TF-IDF and logistic regression", counted, "–", "–", "–"])
    return markdown(["encoder", "what it is", "accuracy", "seeds", "parameters", "time for one text"], lines)


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
                f"{own['ms_median'].median():.1f}",
                f"{own['ms_per_text'].median():.2f}",
                f"{own['train_cpu_seconds'].median() / 60:.1f}",
            ]
        )
    words = words_counted().iloc[0]
    costs = [f"{words['ms_per_text']:.2f}", f"{words['seconds'] / 60:.2f}"]
    lines.append(["counting words", f"{words['accuracy']:.4f}", "–", f"{words['parameters']:,}", "–", "–", "–", *costs])
    return markdown(header, lines)


def compared(rows: Iterable[pd.Series]) -> str:
    """Comparisons in points, one row each."""
    return markdown(
        ["first − second", "data", "difference in points", "95 % interval", "seeds", "test texts"],
        (
            [row["comparison"], row["data"], signed(row["difference"]), interval(row), row["n_seeds"], row["n_items"]]
            for row in rows
        ),
    )


def starts_without_a_seed() -> np.ndarray:
    """Where the interval of recurrent minus standard begins on SST-2 without each of the seeds in turn."""
    apart = correct(RECURRENT) - correct(STANDARD)
    return np.array([mean_difference(np.delete(apart, seed, axis=0)).low for seed in range(len(apart))])


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


def on_pairs(name: str, regime: str = MADE) -> pd.DataFrame:
    """The rows of a table of notebook 09 that are of MultiNLI and of one regime."""
    every = table(name)
    return every[(every["data"] == "multi_nli") & (every["regime"] == regime)]


def correct(model: str) -> np.ndarray:
    """1.0 where a run labels a test text of SST-2 rightly, else 0.0: (seeds, texts)."""
    every = table("predictions")
    own = every[(every["model"] == model) & (every["data"] == "sst2")]
    right = own.assign(right=(own["prediction"] == own["label"]).astype(float))
    return right.pivot(index="seed", columns="row", values="right").to_numpy()


def depth() -> str:
    pairs = (f"{RECURRENT} − {ONCE}", f"{DEEP} − {ONCE}", f"{ONCE} − {STANDARD}", f"{RECURRENT} − {DEEP}")
    return compared(comparison(pair) for pair in pairs)


def where_depth_pays() -> str:
    """Depth gain, loop gain and what the loop keeps, one row per task and regime."""
    lines = []
    for row in table("depth_gains").to_dict("records"):
        gains = [f"{signed(row[f'{of}_gain'])} ({signed(row[f'{of}_low'])} to {signed(row[f'{of}_high'])})" for of in GAINS]
        share, low, high = (percent(row[name]) for name in ("kept", "kept_low", "kept_high"))
        kept = "–" if np.isnan(row["kept"]) else f"{share} ({low} to {high})"
        lines.append([row["data"], row["regime"], *gains, kept, row["n_seeds"], f"{row['n_items']:,}"])
    header = ["task", "encoders", "depth gain", "loop gain", "loop − deep", "kept", "seeds", "test texts"]
    return markdown(header, lines) + f"\n\n{wrapped(depth_gain.where_depth_pays(table('depth_gains')))}"


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
    lost = mean_interval(after[4] - after[1])
    return (
        markdown(["passes", *after], [["accuracy", *(f"{mean:.3f}" for mean in after.mean())]])
        + f"\n\nFour passes − one pass: {signed(lost.mean)} points ({interval(lost._asdict())}, {lost.n} seeds)."
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


BLOCKS = {
    block.__name__.replace("_", " "): block
    for block in (
        *(drawing, findings, headline_table, models, replacement, depth, grid, counting_words, less_data),
        *(where_depth_pays, passes, early_exit, composed, worth, growth, carried, domains, pretraining, spam),
    )
}


def filled(page: str) -> str:
    """The text of a page with every block written anew."""
    return BLOCK.sub(lambda found: f"{found[1]}{found[2]}{BLOCKS[found[1]]()}\n", page)


def main() -> None:
    save(architecture.architecture(), "architecture", architecture.STACKS, ROOT / "figures", architecture.ALT)
    for name in PAGES:
        page = ROOT / name
        with replacing(page) as part:
            part.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
