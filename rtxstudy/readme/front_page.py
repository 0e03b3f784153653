"""The generated parts of README.md. The sentences of :func:`findings` are refused when the tables no longer support them."""

from __future__ import annotations

from rtxstudy.figures import architecture
from rtxstudy.readme.tables import (
    DEEP,
    LOOP,
    MARGIN,
    MINILM,
    ONCE,
    RECURRENT,
    STANDARD,
    WORDS,
    accuracy,
    comparison,
    interval,
    kept,
    markdown,
    of_task,
    percent,
    runs,
    side_by_side,
    starts_without_a_seed,
    words_counted,
    wrapped,
)
from rtxstudy.studies.depth_gain import MADE_LOWER
from rtxstudy.numbers import signed


def drawing() -> str:
    return f"![{architecture.ALT}](figures/architecture.svg)"


SHORT_REVIEWS = "{}_polarity official test 8,000 rows at 128 tokens"  # label of the data
MULTI_NLI_PAIRS = 392_702  # training pairs of the Hub's MultiNLI (Williams et al. 2018)


def findings() -> str:
    replaced, pretrained = comparison(f"{RECURRENT} − {STANDARD}"), comparison(f"{MINILM} − {STANDARD}")
    full, narrow, shared = (runs(model)["parameters"].iloc[0] for model in (STANDARD, DEEP, RECURRENT))
    once = [comparison(f"{ONCE} − {STANDARD}")["difference"], -comparison(f"{RECURRENT} − {ONCE}")["difference"]]
    words, starts = comparison(f"{STANDARD} − {WORDS}"), starts_without_a_seed()
    pairs, lower = of_task("depth_gains", "multi_nli"), of_task("depth_gains", "multi_nli", MADE_LOWER)
    other = of_task("depth_gains", "snli")
    reviews = [of_task("depth_gains", SHORT_REVIEWS.format(name)) for name in ("yelp", "amazon")]
    gained = " and ".join(f"{100 * task['depth_gain']:.1f}" for task in reviews)
    trained = runs(MINILM, "multi_nli")["train_rows"].iloc[0]
    slower = side_by_side(LOOP, "ms_one") / side_by_side(MINILM, "ms_one")
    supported = [
        pretrained["low"] > 0 and words["low"] < 0 < words["high"],
        pairs["depth_low"] > 0
        and pairs["sharing_low"] > -MARGIN
        and pairs["loop_low"] > 0
        and 0 < lower["kept_low"] < lower["kept_high"] < 1
        and other["depth_low"] > 0 > other["loop_low"]
        and all(min(task["depth_low"], task["kept_low"]) > 0 for task in reviews)
        and 0.8 < slower < 1.25,
        -MARGIN < replaced["low"] < replaced["difference"] < 0 and shared < full / 2 and full - narrow > narrow - shared,
        min(once) >= 0,
    ]
    for place, holds in enumerate(supported, 1):
        if not holds:
            raise ValueError(f"The tables do not support finding {place} of the README; write another.")
    said = (
        "**Fine-tune a pretrained encoder if you can.** On SST-2 a fine-tuned MiniLM reaches "
        f"{runs(MINILM)['accuracy'].mean():.3f}. It has six layers, 384 wide, like our standard encoder from random weights, and "
        f"is {100 * pretrained['difference']:.1f} points more accurate ({interval(pretrained)}). Counting words reaches "
        f"{words_counted()['accuracy'].iloc[0]:.3f} and is the smallest and fastest. The standard encoder is not shown to be "
        f"better than that: {signed(words['difference'])} points ({interval(words)}).",
        "**Where depth pays, a loop can keep its gain, but need not.** MultiNLI asks whether one sentence follows from another. "
        f"MiniLM was fine-tuned on {trained:,} of its {MULTI_NLI_PAIRS:,} training pairs and reaches {pairs['deep']:.3f}. "
        f"With all six layers it is {100 * pairs['depth_gain']:.1f} points more accurate than with its first three and its last "
        f"({100 * pairs['depth_low']:.1f} to {100 * pairs['depth_high']:.1f}). A loop of these four layers, which passes the "
        "second and the third twice, loses less than a point to all six: loop minus six layers is "
        f"{signed(pairs['sharing_gain'])} points ({signed(pairs['sharing_low'])} to {signed(pairs['sharing_high'])}). It has "
        f"{percent(pairs['loop_with_table'] / pairs['deep_with_table'])} of the parameters "
        f"({percent(pairs['loop_parameters'] / pairs['deep_parameters'])} without the token table) and saves no time. "
        "The share of the depth gain that it keeps is poorly known "
        f"({percent(pairs['kept_low'])} to {percent(pairs['kept_high'])}). A loop of the lower three layers keeps "
        f"{kept(lower)}, so a part is lost. "
        f"On reviews of Yelp and of Amazon depth gains {gained} points, and the loop of four layers keeps "
        f"{' and '.join(map(kept, reviews))} of it. "
        f"On SNLI depth pays as well (+{100 * other['depth_gain']:.1f} points), and the loop is not shown to gain anything "
        f"({signed(other['loop_gain'])}, {signed(other['loop_low'])} to {signed(other['loop_high'])}).",
        "**On SST-2 the recurrent encoder replaces the standard one, but narrowly.** The recurrent encoder (three layers, 256 "
        f"wide, passed twice) is {-100 * replaced['difference']:.1f} points less accurate than the standard encoder (six layers, "
        f"384 wide). If one of the {len(starts)} seeds is left out, the interval begins below −1 point in "
        f"{(starts <= -MARGIN).sum()} of {len(starts)} cases. "
        "The recurrent encoder has less than half of the parameters, and most of that saving comes from the width.",
        "**On SST-2 depth is not shown to pay.** With one recipe and one epoch, a standard encoder of three layers, 256 wide, "
        f"is at least as accurate as both, at {runs(ONCE)['accuracy'].mean():.3f}.",
    )
    return "\n".join(wrapped(f"{place}. {sentence}", "   ") for place, sentence in enumerate(said, 1))


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
        own, time = runs(model), f"{side_by_side(model, 'ms_one'):.1f} / {side_by_side(model, 'ms_in_batch'):.2f} ms"
        size = f"{own['parameters'].iloc[0] / 1e6:.1f} M"
        lines.append([f"`{model}`", words, accuracy(own, 4), len(own), size, time])
    counted = words_counted().iloc[0]
    batch = f"– / {counted['ms_per_text']:.2f} ms"
    size = f"{counted['parameters'] / 1e6:.1f} M"
    lines.insert(3, ["counting words", "TF-IDF and logistic regression", f"{counted['accuracy']:.4f}", "–", size, batch])
    return markdown(["encoder", "what it is", "accuracy", "seeds", "parameters", "one text / in a batch"], lines)
