"""Tables with readable column names and formatted numbers."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from statsmodels.stats.multitest import multipletests

from rtx.baselines.counting_words import MAJORITY, NAME, SECOND_ALONE, best
from rtxstudy import names
from rtxstudy.numbers import percent, signed, with_ends

COSTS = {  # column of the runs table → its readable name and its format
    "parameters": ("parameters", "{:,.0f}"),
    "embedding_parameters": ("… in the token table", "{:,.0f}"),
    "non_embedding_parameters": ("… outside the token table", "{:,.0f}"),
    "size_mb": ("size of the weights (MB)", "{:.1f}"),
    "forward_flops": ("operations of a forward pass (GFLOP)", "{:.4f}"),
    "ms_median": ("one text, median (ms)", "{:.2f}"),
    "ms_p95": ("one text, 95th percentile (ms)", "{:.2f}"),
    "ms_per_text": ("full batches, each text (ms)", "{:.3f}"),
    "latency_threads": ("… with so many threads", "{:.0f}"),
    "train_seconds": ("training, wall clock (s)", "{:,.0f}"),
    "train_cpu_seconds": ("training, processor time (s)", "{:,.0f}"),
    "rows_per_second": ("training, texts a second", "{:,.0f}"),
    "padding_share": ("tokens spent on padding", "{:.2%}"),
    "epochs": ("epochs", "{:.2f}"),
}


Format = str | Callable[[float], str] | None


def _written(table: pd.DataFrame, words: Mapping[str, tuple[str, Format]]) -> pd.DataFrame:
    """Rename and format the columns in ``words``. FLOPs are shown in billions and missing values as –. Other columns stay."""
    written = {}
    for column, values in table.items():
        label, form = words.get(column, (names.column(column), None))
        values = values / 1e9 if column == "forward_flops" else values
        write = form.format if isinstance(form, str) else form
        written[label] = values if write is None else values.map(write).where(values.notna(), "–")
    return pd.DataFrame(written)


def costs(runs: pd.DataFrame) -> pd.DataFrame:
    """The costs of each model, as medians over its runs. One row per measure, one column per model.

    The last row names the device and the number format of the training. Times on different devices or formats are not
    comparable.
    """
    models = runs.groupby("model", sort=False)
    written = _written(models[list(COSTS)].median(), COSTS)
    written["trained on"] = models.apply(lambda own: "; ".join(sorted(set(own["device"] + ", " + own["dtype"]))))
    return written.T.rename_axis("measure")


MEANS = {  # column of a summary → its readable name and its format
    "mean": ("mean accuracy", percent),
    "interval": ("95 % interval (%)", None),
    "sd": ("± over seeds (points)", lambda sd: f"{100 * sd:.1f}"),
    "n": ("seeds", "{:.0f}"),
}


def means(summary: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.statistics.summarise`. Its intervals are cut at 0 and 1.

    The columns in :data:`MEANS` and :data:`COSTS` are renamed and formatted, missing values are shown as –. Other columns stay.
    """
    low, high = summary["low"].clip(lower=0), summary["high"].clip(upper=1)
    interval = ["–" if pd.isna(a) else f"{100 * a:.1f} to {100 * b:.1f}" for a, b in zip(low, high, strict=True)]
    told = summary.drop(columns=["low", "high"])
    told.insert(list(told).index("mean") + 1, "interval", interval)
    return _written(told, MEANS | COSTS)


def glance(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.summary.glance.worth_their_cost`: what each model reaches and costs."""
    spread = ["" if pd.isna(sd) else f" ± {100 * sd:.1f}" for sd in table["sd"]]
    return pd.DataFrame(
        {
            "model": table["model"],
            "accuracy (%)": [f"{100 * mean:.1f}{sd}" for mean, sd in zip(table["mean"], spread, strict=True)],
            "one text (ms)": table["ms_one"].map(_ms),
            "a text in a batch (ms)": table["ms_in_batch"].map(_ms),
            "megabytes": [f"{megabytes:.1f}" for megabytes in table["megabytes"]],
            "validation (%)": [
                f"{100 * value:.1f} ± {100 * error:.1f}"
                for value, error in zip(table["validation"], table["validation_error"], strict=True)
            ],
            "worth its cost": ["yes" if on else "–" for on in table["frontier"]],
            "seeds": [f"{int(row.n)}" if row.family != "classical" else "–" for row in table.itertuples()],
            "million parameters": [f"{n / 1e6:.1f}" for n in table["parameters"]],
            "… of its layers": ["–" if pd.isna(n) else f"{n / 1e6:.1f}" for n in table["non_embedding_parameters"]],
        }
    )


def _ms(time: float) -> str:
    return "–" if pd.isna(time) else f"{time:.2g}"


SCORES = {
    "accuracy": ("accuracy", percent),
    "f1": ("F1", percent),
    "precision": ("precision", percent),
    "recall": ("recall", percent),
}


def measures(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracy, F1, precision and recall of each model: means over its runs."""
    models = runs.groupby("model", sort=False)
    return _written(models[list(SCORES)].mean().reset_index().assign(seeds=models.size().to_numpy()), SCORES)


def baselines(counting: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtx.baselines.counting_words.counting_words` on one data set."""
    words = SCORES | {"validation_accuracy": ("validation", percent), "seconds": ("training (s)", "{:.1f}")}
    return _written(counting.filter(["model", *words]), words)


def spam(scores: pd.DataFrame) -> pd.DataFrame:
    """Precision, recall and F1 of each model on spam, as mean ± standard deviation over the splits, the best F1 first."""
    models = scores.groupby("model")
    order = models["f1"].mean().sort_values(ascending=False).index
    table = {"model": list(order)}
    for name in ("precision", "recall", "f1"):
        mean, sd = models[name].mean()[order], models[name].std()[order]
        table[f"{names.column(name)} (%)"] = [f"{100 * a:.1f} ± {100 * b:.1f}" for a, b in zip(mean, sd, strict=True)]
    return pd.DataFrame(table | {"splits": models.size()[order].tolist()})


def blocks(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.comparisons.over_blocks`, in percentage points."""
    return pd.DataFrame(
        {
            "first − second": [f"{row.passes} passes − {row.against}" for row in table.itertuples()],
            "difference (points)": _differences(table),
            "blocks": table["blocks"],
            "seeds of a block": table.get("seeds", 1),
            "smallest detectable (points)": [f"{100 * value:.1f}" for value in table["smallest"]],
        }
    )


FORMS = {  # column of the runs table → its readable name and its format
    "accuracy": ("accuracy", percent),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
    "forward_flops": ("billion operations per text", "{:.4f}"),
    "train_cpu_seconds": ("training (s of processor time)", "{:.0f}"),
}


def forms(runs: pd.DataFrame) -> pd.DataFrame:
    """Accuracy and costs of each form of the loop: means over its runs, one row per ``data`` and ``form``."""
    return _written(runs.groupby(["data", "form"], sort=False)[list(FORMS)].mean().reset_index(), FORMS)


def comparisons(rows: pd.DataFrame) -> pd.DataFrame:
    """A readable table of rows of :func:`rtxstudy.comparisons.compare`, in percentage points.

    "p (Holm)" is adjusted for the number of rows (Holm 1979). The smallest detectable difference is
    the smallest difference that its seeds and texts would show four times in five.
    """
    points = {"difference": "difference (points)", "low": "low", "high": "high"}
    shows = "smallest detectable (points)"  # tables of earlier reports do not have this column
    rows = rows.assign(**{shows: [f"{100 * v:.1f}" if pd.notna(v) else "–" for v in rows.get("smallest", [None] * len(rows))]})
    counts = {"n_seeds": "seeds", "n_items": "texts"}
    holm = multipletests(rows["p"], method="holm")[1]
    table = rows.assign(**{"p (Holm)": holm}).rename(columns=points | counts)
    for column in points.values():
        table[column] = [f"{100 * value:+.1f}".replace("-", "−") if pd.notna(value) else "–" for value in table[column]]
    for column in ("p", "p (Holm)"):
        table[column] = ["–" if pd.isna(p) else "< 0.001" if p < 0.001 else f"{p:.3f}" for p in table[column]]
    table["texts"] = table["texts"].map("{:,}".format)
    ends = zip(table["low"], table["high"], strict=True)
    table["95 % interval"] = [low if low == "–" else f"{low} to {high}" for low, high in ends]
    shown = ["comparison", "data", points["difference"], "95 % interval", "p (Holm)", *counts.values(), "p", shows, "study"]
    return table[shown]


CONVERSIONS = {  # column of rtxstudy.questions.depth_gain.gains.conversions → its readable name and its format
    "beside": ("what else", "{}"),
    "val_accuracy": ("validation accuracy", percent),
    "val_loss": ("loss (nats)", "{:.4f}"),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
}


def conversions(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the ways to make a loop, in the order of their validation accuracy."""
    return _written(table.sort_values("val_accuracy", ascending=False)[["layers", "passes", "start", *CONVERSIONS]], CONVERSIONS)


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """What counting words reaches on each task; ``table``: the baselines of all tasks, with the column ``data``."""
    rows = []
    for data, own in table.groupby("data", sort=False):
        fits = own.set_index("model")
        chosen = best(own)
        second = fits["accuracy"].get(SECOND_ALONE)
        rows.append(
            {
                "task": data,
                "test texts": f"{own['n_test'].iloc[0]:,}",
                "most frequent label": percent(fits["accuracy"][MAJORITY]),
                "TF-IDF": percent(fits["accuracy"][NAME]),
                "best on validation texts": f"{names.short(chosen['model'])}, {percent(chosen['accuracy'])}",
                "second text alone": "–" if second is None else percent(second),
            }
        )
    return pd.DataFrame(rows)


ARMS = {  # column of rtxstudy.questions.depth_gain.gains.arms → its readable name and its format
    "matthews": ("Matthews", "{:.3f}"),
    "non_embedding_parameters": ("parameters of its layers", "{:,.0f}"),
}


def arms_of_depth(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the deep, the shallow and the looped encoder of each task."""
    spread = [f"{100 * mean:.1f} ± {100 * sd:.1f}" for mean, sd in zip(table["accuracy"], table["sd"], strict=True)]
    times = ["–" if pd.isna(ms) else f"{ms:.1f} ({kind})" for ms, kind in zip(table["ms_median"], table["dtype"], strict=True)]
    named = table.assign(encoder=table["arm"], **{"accuracy (%)": spread, "one text (ms)": times})
    return _written(named[["regime", "data", "encoder", "accuracy (%)", *ARMS, "one text (ms)"]], ARMS)


def small_vocabulary(table: pd.DataFrame) -> pd.DataFrame:
    """The loops whose token table is cut, of :func:`~rtxstudy.questions.deployment.small_vocabulary.against_whole`."""
    return pd.DataFrame(
        [
            {
                "way of training": row["regime"],
                "data": row["data"],
                "six layers, all words": percent(row["deep"]),
                "loop, words of the task": percent(row["small"]),
                "difference (points)": with_ends(row["difference"], row["low"], row["high"]),
                "millions of parameters": f"{row['deep_parameters'] / 1e6:.1f} → {row['small_parameters'] / 1e6:.1f}",
                "labels changed by the cut": percent(row["changed"]),
            }
            for row in table.to_dict("records")
        ]
    )


DEPLOYED = {  # column of rtxstudy.questions.deployment.deployed.compared → its readable name and its format
    "accuracy": ("accuracy", percent),
    "megabytes": ("megabytes", "{:.1f}"),
    "ms_one": ("one text (ms)", "{:.2f}"),
    "ms_in_batch": ("a text of a batch (ms)", "{:.2f}"),
}


def deployed(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of what each arm costs in each form."""
    lost = _differences(table)
    named = table.assign(megabytes=table["bytes"] / 1e6, **{"minus float32 (points)": lost})
    return _written(named[["arm", "form", "accuracy", "minus float32 (points)", *list(DEPLOYED)[1:]]], DEPLOYED)


def neighbours(table: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`~rtxstudy.questions.pretrained.converted_embeddings.means`: one row per model, one column per panel."""
    wide = table.pivot(index="model", columns="panel", values="mean")
    percents = wide.loc[table["model"].unique(), table["panel"].unique()].map(percent)
    return percents.rename_axis(columns=None).reset_index()


EXITS = {  # column of rtxstudy.questions.early_exit.bounded_exits.against_all_passes → its readable name and its format
    "passes": ("passes", "{:.2f}"),
    "accuracy": ("accuracy", percent),
    "risk": ("risk (%)", lambda risk: f"{100 * risk:.2f}"),
    "throughput": ("throughput (all passes = 1)", "{:.2f}"),
}
_BOUNDS = {"": "fixed", "validated": "fixed, chosen", "controlled": "expected risk bounded", "certified": "risk certified"}


def bounded_exits(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of fixed passes and early exits: accuracy, its difference to all passes in percentage points, and risk."""
    named = table.assign(
        **{"leave by": table["criterion"].where(table["criterion"] != "fixed", "–"), "kind": table["bound"].map(_BOUNDS)},
        **{"accuracy − all passes (points)": _differences(table)},
    )
    shown = ["data", "leave by", "kind", "passes", "accuracy", "accuracy − all passes (points)", "risk", "throughput"]
    return _written(named[shown], EXITS)


def exits(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.early_exit.exits.exit_differences`: three rules beside fixed passes.

    The last column is the smallest fixed number of passes that is as accurate as the exit on the test texts.
    """
    return pd.DataFrame(
        [
            {
                "data": row["data"],
                "leave by": row["criterion"],
                "passes": f"{row['passes']:.2f}",
                "throughput (slowest seed)": f"{row['throughput']:.2f} ({row['throughput_least']:.2f})",
                "accuracy − all passes (points)": with_ends(row["difference"], row["low"], row["high"]),
                "fixed passes, as accurate": "none"
                if pd.isna(row["fixed_passes"])
                else f"{row['fixed_passes']:.0f}: {row['fixed_throughput']:.2f} times, {signed(row['fixed_difference'])}",
                "seeds": row["n_seeds"],
            }
            for row in table.to_dict("records")
        ]
    )


def _differences(table: pd.DataFrame) -> list[str]:
    """The columns difference, low and high of each row as :func:`rtxstudy.numbers.with_ends` writes them."""
    return [with_ends(*each) for each in zip(table["difference"], table["low"], table["high"], strict=True)]


PRETRAININGS = {  # column of rtxstudy.questions.depth_gain.gains.pretrainings → its readable name and its format
    "parameters": ("parameters", "{:,.0f}"),
    "non_embedding_parameters": ("… outside the token table", "{:,.0f}"),
    "pretraining_words": ("words of the texts", "{:,.0f}"),
    "pretraining_tokens_seen": ("tokens seen", "{:,.0f}"),
    "pretraining_val_loss": ("loss of hidden tokens (nats)", "{:.2f}"),
    "pretraining_val_accuracy": ("accuracy of hidden tokens", percent),
    "pretraining_seconds": ("wall clock (s)", "{:,.0f}"),
}


def pretrainings(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the pretrainings on the study's own texts."""
    return _written(table[["arm", "model", *PRETRAININGS]], PRETRAININGS)


def own_text(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of :func:`rtxstudy.questions.depth_gain.gains.own_text_gains`."""
    return pd.DataFrame(
        [
            {
                "data": row["data"],
                "encoder": row["arm"],
                "accuracy": percent(row["accuracy"]),
                "compared with the same": row["against"],
                "difference (points)": with_ends(row["difference"], row["low"], row["high"]),
                "seeds": row["n_seeds"],
                "test texts": f"{row['n_items']:,}",
            }
            for row in table.to_dict("records")
        ]
    )


TRIALS = {  # column of rtxstudy.questions.recipes.recipe_search.trials → its readable name and its format
    "val_accuracy": ("validation accuracy", percent),
    "standard_error": ("± standard error", "{:.3f}"),
    "val_loss": ("loss (nats)", "{:.3f}"),
    "epochs": ("epochs", "{:.2f}"),
    "core_seconds": ("training (s of processor time)", "{:,.0f}"),
}
_CHOSEN = {("first", True): "goes on", ("final", True): "chosen"}


def trials(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the recipe search: every run, those of an arm and round in the order of their accuracy."""
    arms = pd.Categorical(table["arm"], table["arm"].unique())  # keep their order
    rounds = pd.Categorical(table["round"], ["first", "final"])
    ordered = table.assign(arm=arms, round=rounds, trial=table["trial"] + 1).sort_values(
        ["arm", "round", "val_accuracy"], ascending=[True, True, False]
    )
    ordered["then"] = [_CHOSEN.get(pair, "") for pair in zip(ordered["round"], ordered["chosen"], strict=True)]
    return _written(ordered[["arm", "round", "trial", "recipe", "changes", "seed", *TRIALS, "then"]], TRIALS)


CONVERGENCE = {  # column of rtxstudy.questions.accuracy.convergence.convergence → its readable name and its format
    "best": ("best validation accuracy", percent),
    "steps": ("steps until near it", "{:,.0f}"),
    "epochs": ("epochs", "{:.2f}"),
    "core_seconds": ("core-seconds", "{:,.0f}"),
    "all_steps": ("steps in all", "{:,.0f}"),
    "all_epochs": ("epochs in all", "{:.2f}"),
    "all_core_seconds": ("core-seconds in all", "{:,.0f}"),
    "n": ("seeds", "{:.0f}"),
}


def convergence(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of how long each arm trains until it comes within a point of its best validation accuracy."""
    return _written(table[["data", "model", "recipe", *CONVERGENCE]], CONVERGENCE)


STOPPING = {  # column of rtxstudy.questions.accuracy.convergence.stopping → its readable name and its format
    "planned": ("most epochs", "{:g}"),
    "patience": ("patience (evaluations)", "{:.0f}"),
    "least": ("trained, from (epochs)", "{:.2f}"),
    "most": ("to", "{:.2f}"),
    "early": ("seeds that stopped early", "{:.0f}"),
    "lowest_loss": ("lowest loss at epoch", "{:.2f}"),
    "keep": ("weights", "{}"),
    "kept": ("kept, of epoch", "{:.2f}"),
    "n": ("seeds", "{:.0f}"),
}


def stopping(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of when each arm stopped, and which weights it kept."""
    return _written(table[["data", "model", "recipe", *STOPPING]], STOPPING)


def classical(table: pd.DataFrame) -> pd.DataFrame:
    """A readable table of the baselines without a neural network: means over the splits of a data set."""
    scores = ["accuracy", "f1", "precision", "recall", "n_test"]
    means_ = table.groupby(["data", "model"], sort=False)[scores].mean().reset_index()
    return _written(means_, {name: (names.column(name), percent) for name in scores[:-1]} | {"n_test": ("test texts", "{:,.0f}")})


def named(known: Mapping[str, names.Name]) -> pd.DataFrame:
    """The short and the long name of every data set and model, with its id."""
    return pd.DataFrame(
        [
            {"name": name.short, "what it is": name.long, "id": f"<code>{html.escape(id_)}</code>"}
            for id_, name in sorted(known.items(), key=lambda item: item[1].short)
        ]
    )


def figures(folder: Path) -> pd.DataFrame:
    """The figures in a folder: one row per figure, with its notebook, its drawings and its numbers."""
    return pd.DataFrame(
        [
            {
                "figure": file.stem,
                "notebook": file.stem.partition("_")[0],
                "drawing": f"{file.stem}.svg · .pdf · .png",
                "numbers": f"{file.stem}.csv",
            }
            for file in sorted(folder.glob("*.svg"))
        ]
    )
