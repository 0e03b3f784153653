"""A window of the layers of a fine-tuned encoder, passed several times with nothing trained (arXiv 2605.23872).

The paper passes middle layers of frozen language models again in damped sub-steps and reports +1.1 to +2.6 points; plain
repetition hurts there. Its models normalise before each part of a layer. MiniLM normalises after it.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from rtxlib.data.prepare import Prepared
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder, without_weights
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.store import Run
from rtxstudy.reread import labels_of
from rtxstudy.run_tables import measured_once
from rtxstudy.statistics import mean_difference

LAYERS, PASSES = (1, 2, 3), (2, 3, 4)  # of a window
DAMPED, REPEATED = "damped steps", "repeated"
PLACE = ["first", "layers", "passes"]  # the columns that name a window and its passes


class Way(NamedTuple):
    """One way to pass a window again: the arguments of :func:`repeat_window`."""

    first: int  # index of the window's first layer, from 0
    layers: int
    passes: int
    damped: bool


def repeat_window(source: Encoder, first: int, layers: int, passes: int, damped: bool) -> Encoder:
    """The encoder with a window of its layers passed several times, and nothing trained.

    The layers before the window and after it run once. With ``damped`` a pass is a step of 1/K towards the window's output,
    h ← h + (F(h) − h) / K for K ``passes`` (arXiv 2605.23872); otherwise the window is repeated, h ← F(h). One pass is the
    encoder itself.

    Args:
        source: an encoder without a loop; it stays as it is
        first: index of the window's first layer, from 0
        layers: how many layers the window has

    Raises:
        InputError: the source has a loop, or the window does not lie inside it.
    """
    theirs = list(source.stack.blocks[0])
    if source.config.recurrent_depth > 1 or source.config.prelude_layers or source.config.coda_layers:
        raise InputError("This encoder has a loop already; name one with a plain stack of layers.")
    if not (first >= 0 and 1 <= layers <= len(theirs) - first):
        raise InputError(f"The layers {first + 1} to {first + layers} are not all among the {len(theirs)} of this encoder.")
    config = copy.deepcopy(source.config)
    config.prelude_layers, config.num_hidden_layers, config.coda_layers = first, layers, len(theirs) - first - layers
    config.recurrent_depth, config.residual, config.residual_scale = passes, "none", 1.0
    if damped and passes > 1:
        config.residual, config.residual_scale = "damped", 1 / passes
    config.check()
    with without_weights():
        looped = Encoder(config)
    state = {name: x for name, x in source.state_dict().items() if not name.startswith("stack.")}
    places = [f"prelude.{i}" for i in range(first)] + [f"blocks.0.{i}" for i in range(layers)]
    places += [f"coda.{i}" for i in range(config.coda_layers)]
    for layer, place in zip(theirs, places, strict=True):
        state |= {f"stack.{place}.{name}": x for name, x in layer.state_dict().items()}
    looped.load_state_dict(state, assign=True)
    return looped.eval()


ONCE = Way(0, 1, 1, damped=False)  # the encoder itself


def ways(depth: int) -> list[Way]:
    """All ways in an encoder of ``depth`` layers: each window, each number of passes, damped and repeated."""
    windows = [(first, layers) for layers in LAYERS for first in range(depth - layers + 1)]
    return [Way(*window, passes, damped) for window in windows for passes in PASSES for damped in (True, False)]


def window_passes(run: Run, data: Prepared | None, results: Path | None = None) -> pd.DataFrame:
    """Which texts a fine-tuned encoder gets right when a window is passed again; ``data`` may be None for a published run.

    Validation texts choose one damped and one repeated way, the first of the best. These two and the encoder itself see the test
    texts, so no test text chooses anything.

    Columns: ``split`` ("validation" or "test"); ``first``, ``layers`` and ``passes`` of the window; ``kind`` (:data:`DAMPED` or
    :data:`REPEATED`, and "once" for the encoder itself); ``correct`` (texts,), a list of booleans.
    """

    def measure(model: EncoderForSequenceClassification) -> pd.DataFrame:
        encoder = model.encoder

        def right(way: Way, split: str) -> np.ndarray:
            model.encoder, tokens = repeat_window(encoder, *way), data.splits[split]
            return labels_of(run, model, tokens, data.tokenizer.pad_token_id) == tokens.labels

        judged = {way: right(way, "validation") for way in (ONCE, *ways(encoder.config.num_hidden_layers))}
        chosen = {ONCE: right(ONCE, "test")}
        for kind in (DAMPED, REPEATED):
            best = max((way for way in judged if _kind(way) == kind), key=lambda way: judged[way].sum())
            chosen[best] = right(best, "test")
        return pd.DataFrame(
            [
                {"split": split, "kind": _kind(way), "correct": correct.tolist(), **way._asdict()}
                for split, by_way in (("validation", judged), ("test", chosen))
                for way, correct in by_way.items()
            ]
        ).drop(columns="damped")

    return measured_once(run, "window_passes", results, measure)


def _kind(way: Way) -> str:
    return "once" if way.passes == 1 else DAMPED if way.damped else REPEATED


def on_validation(measured: pd.DataFrame) -> pd.DataFrame:
    """What each way changes on validation texts: a row for each ``data``, ``kind`` and window with its passes.

    ``difference`` is from the encoder itself, a mean over seeds (0.01 = one percentage point).
    """
    validation = measured[measured["split"] == "validation"]
    accuracy = validation.assign(accuracy=validation["correct"].map(np.mean))
    once = accuracy[accuracy["kind"] == "once"].set_index("key")["accuracy"]
    again = accuracy[accuracy["kind"] != "once"]
    again = again.assign(difference=again["accuracy"] - again["key"].map(once))
    return again.groupby(["data", "kind", *PLACE], sort=False)["difference"].mean().reset_index()


def on_test(measured: pd.DataFrame) -> pd.DataFrame:
    """What the chosen ways change on test texts: a row for each ``data`` and ``kind``.

    Columns: ``once`` (mean accuracy of the encoder itself); ``difference`` from it with ``low`` and ``high`` (95 % interval over
    new seeds and new texts); ``worst``, ``best`` (mean differences on validation texts, over the ways); ``ways``; ``chosen``, the
    windows that the seeds chose; ``n_seeds``, ``n_items`` (texts).
    """
    test, by_way, rows = measured[measured["split"] == "test"], on_validation(measured), []
    for (data, kind), part in test[test["kind"] != "once"].groupby(["data", "kind"], sort=False):
        once = test[(test["data"] == data) & (test["kind"] == "once")].set_index("seed")["correct"]
        seeds = sorted(part["seed"])
        itself = np.stack([once[seed] for seed in seeds]).astype(float)
        again = np.stack(list(part.set_index("seed")["correct"][seeds])).astype(float)
        gain = mean_difference(again - itself)
        differences = by_way.loc[(by_way["data"] == data) & (by_way["kind"] == kind), "difference"]
        rows.append(
            {
                "data": data,
                "kind": kind,
                "once": itself.mean(),
                **{name: getattr(gain, name) for name in ("difference", "low", "high", "n_seeds", "n_items")},
                "worst": differences.min(),
                "best": differences.max(),
                "ways": len(differences),
                "chosen": "; ".join(sorted({window(row) for row in part.itertuples()})),
            }
        )
    return pd.DataFrame(rows)


def window(row: object) -> str:
    """A window in words, with its number of passes: "layers 2 to 3, 4 times"."""
    first, last = row.first + 1, row.first + row.layers
    return f"layer {first}, {row.passes} times" if first == last else f"layers {first} to {last}, {row.passes} times"
