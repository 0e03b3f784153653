"""The generated parts of README.md. The sentences of :func:`findings` are refused when the tables no longer support them."""

from __future__ import annotations

from rtxstudy.figures import architecture
from rtxstudy.readme.tables import (
    DEEP,
    MARGIN,
    MINILM,
    ONCE,
    RECURRENT,
    STANDARD,
    WORDS,
    accuracy,
    comparison,
    interval,
    markdown,
    on_pairs,
    percent,
    runs,
    starts_without_a_seed,
    words_counted,
    wrapped,
)
from rtxstudy.words.numbers import signed


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
