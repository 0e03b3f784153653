"""What does pretraining give an encoder?"""

from __future__ import annotations

import pandas as pd

from rtxstudy.claims import Claim, claim, listed, row
from rtxstudy.numbers import ends
from rtxstudy.statistics import mean_interval

MINILM = "all-MiniLM-L6-v2"


def worth(differences: pd.DataFrame) -> list[Claim]:
    """MiniLM minus the study's encoders on SST-2."""
    standard = row(differences, comparison=f"{MINILM} − standard-6x384", data="sst2")
    return [
        claim(
            "Fine-tuned MiniLM has as many layers as the standard encoder and is as wide, and it is {gain:points} points better "
            "({interval}). Its tokenizer, its kind of layer and its recipe differ, too.",
            holds=standard.low > 0,
            gain=standard.difference,
            interval=ends(standard.low, standard.high) if standard else None,
        ),
    ]


def ahead(differences: pd.DataFrame) -> Claim:
    """How far MiniLM is ahead of six layers from scratch on SST-2."""
    standard = row(differences, comparison=f"{MINILM} − standard-6x384", data="sst2")
    return claim(
        "**MiniLM is ahead on SST-2:** six layers of width 384, from scratch, are {gain:points} points below.",
        holds=standard.low > 0.05,
        gain=standard.difference,
    )


def worth_title(differences: pd.DataFrame) -> Claim:
    standard = row(differences, comparison=f"{MINILM} − standard-6x384", data="sst2")
    return claim(
        "MiniLM is {gain:points} points better than six layers from scratch on SST-2",
        holds=standard.low > 0,
        gain=standard.difference,
    )


def anatomy(claims: pd.DataFrame) -> list[Claim]:
    fit = int(claims["holds"].sum())
    return [
        claim(
            "Notes on the field, written before this study, make {n} statements on MiniLM and ModernBERT: {fit} are true of "
            "the released models, and {off} are not (notebook 07 lists them).",
            holds=fit < len(claims),
            fit=fit,
            n=len(claims),
            off=len(claims) - fit,
        )
    ]


def similarity_title(alike: pd.DataFrame) -> Claim:
    if alike.empty:
        return claim("", holds=None)
    table = alike.set_index("sentence")
    food, films, goods = list(table.columns[2:4]), list(table.columns[5:7]), list(table.columns[8:])
    pairs = [float(table.loc[a, b]) for a, b in (food, films, goods)]
    others = [float(table.loc[a, b]) for a in food for b in (*films, *goods)] + [
        float(table.loc[a, b]) for a in films for b in goods
    ]
    return claim(
        "Two sentences on one subject have a cosine of {low:.2f} to {high:.2f}, on two subjects at most {most:.2f}",
        holds=min(pairs) > max(others),
        low=min(pairs),
        high=max(pairs),
        most=max(others),
    )


def retrieval_title(precision: pd.DataFrame) -> Claim:
    ten = precision[precision["k"] == 10].set_index(["model", "panel"])["mean"]
    panels = precision["panel"].unique()
    ahead = [ten.get((MINILM, panel), float("nan")) - ten.get(("tf-idf", panel), float("nan")) for panel in panels]
    return claim(
        "MiniLM finds {domain:.0f} points more neighbours of the same domain than TF-IDF, and {sentiment:.0f} "
        "of the same sentiment",
        holds=min(ahead) > 0,
        domain=100 * ahead[0],
        sentiment=100 * ahead[-1],
    )


def guide(table: pd.DataFrame) -> list[Claim]:
    small, large = row(table, model="MiniLM-L3"), row(table, model="ModernBERT-base")
    return [
        claim(
            "ModernBERT-base takes {times:.0f} times as long as MiniLM-L3 for a text and has {size:.0f} times its "
            "parameters. Its quality was not measured, because its weights were not at hand.",
            holds=large.ms_median > small.ms_median and pd.isna(large.nearest),
            times=large.ms_median / small.ms_median,
            size=large.parameters / small.parameters,
        )
    ]


def spam(scores: pd.DataFrame) -> list[Claim]:
    """F1 on SMS spam; ``scores``: ``model``, ``seed`` (of the split), ``f1``."""
    f1 = scores.pivot_table(index="seed", columns="model", values="f1")
    pair = mean_interval((f1[MINILM] - f1["bert-mini"]).dropna()) if {MINILM, "bert-mini"} <= set(f1) else None
    return [
        claim(
            "On SMS spam fine-tuned MiniLM reaches an F1 of {minilm:percent} and a small BERT from scratch {bert:percent}. Three "
            "splits do not tell them apart.",
            holds=bool(pair) and pair.low <= 0 <= pair.high,
            minilm=f1[MINILM].mean() if MINILM in f1 else None,
            bert=f1["bert-mini"].mean() if "bert-mini" in f1 else None,
        ),
        claim(
            "TF-IDF reaches an F1 of {words:percent} there, and frozen MiniLM {frozen:percent}.",
            holds=True,
            words=f1["tf-idf + logistic regression"].mean() if "tf-idf + logistic regression" in f1 else None,
            frozen=f1[f"{MINILM} frozen"].mean() if f"{MINILM} frozen" in f1 else None,
        ),
    ]


def spam_title(scores: pd.DataFrame) -> Claim:
    f1 = scores.groupby("model")["f1"].mean().sort_values(ascending=False)
    return claim(
        "The two encoders reach an F1 of {low:.1f} to {high:.1f} % on spam, TF-IDF {words:.1f} %",
        holds=set(f1.index[:2]) == {MINILM, "bert-mini"},
        low=100 * f1.iloc[1],
        high=100 * f1.iloc[0],
        words=100 * f1.get("tf-idf + logistic regression", float("nan")),
    )


def heads_title(best: pd.DataFrame) -> Claim:
    """``best``: of ``heads.strongest``."""
    previous = row(best, pattern="previous token")
    return claim(
        "One head of MiniLM looks at the previous token alone ({share:share} of its attention)",
        holds=previous.share > 0.9,
        share=previous.share,
    )


def heads(best: pd.DataFrame) -> list[Claim]:
    previous, following = row(best, pattern="previous token"), row(best, pattern="next token")
    return [
        claim(
            "Head {head} of layer {layer} of MiniLM gives the previous token {share:share} of its attention; the strongest head "
            "for the next token gives {other:share}.",
            holds=previous.share > 0.9,
            head=previous.head,
            layer=previous.layer,
            share=previous.share,
            other=following.share,
        )
    ]


def probes_title(accuracies: pd.DataFrame) -> Claim:
    if accuracies.empty:
        return claim("", holds=None)
    rows = accuracies[(accuracies["model"] == MINILM) & (accuracies["weights"] == "trained")].pivot_table(
        index="depth", columns="task", values="accuracy"
    )
    return claim(
        "Layer by layer MiniLM gives up single words ({word:share} to {end:share}) and keeps sentiment",
        holds=rows["a word"].iloc[-1] < rows["a word"].iloc[0] and rows["sentiment"].iloc[-1] > rows["sentiment"].iloc[0],
        word=rows["a word"].iloc[0],
        end=rows["a word"].iloc[-1],
    )


def norms_title(norms: pd.DataFrame) -> Claim:
    growth = norms.groupby("model")["norm"].agg(["first", "last"])
    times = growth["last"] / growth["first"]
    pre = next((name for name in times.index if name.startswith("pre")), None)
    post = next((name for name in times.index if name.startswith("post")), None)
    return claim(
        "With norms before the sub-layers the state grows {times:.1f}-fold, with norms after them it keeps its size",
        holds=pre is not None and times[pre] > 1.2 and abs(times[post] - 1) < 0.1,
        times=times[pre] if pre else None,
    )


def reach_title(reach: pd.DataFrame) -> Claim:
    wide = reach.assign(seen=reach["last"] - reach["first"] + 1).groupby("layer")["seen"].max()
    return claim(
        "A token sees {local:,} tokens in a local layer of ModernBERT and all {all:,} in a global one",
        holds=wide.min() < wide.max(),
        local=int(wide.min()),
        all=int(wide.max()),
    )


def blueprints_title(names: list[str]) -> Claim:
    return claim(
        "{named}: positions enter below or in every layer, norms stand behind or before the additions",
        holds=len(names) == 3,
        named=listed(names),
    )
