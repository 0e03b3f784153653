"""The times of a study's encoders, from one session, so that they can be divided by each other."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd
import torch

from rtx.latency import latency
from rtxlib.data.batching import collate
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import spread
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.runs.train import model_config
from rtxlib.training.device import device_name, pick_device, pick_precision, training_threads
from rtxstudy import checkpoints
from rtxstudy.profiles import Profile
from rtxstudy.provenance import processor
from rtxstudy.studies import specs_of
from rtxstudy.tables import TIMES

if TYPE_CHECKING:
    from rtxstudy import Study

SHAPES = ("baseline", "recurrent", "width_vs_depth", "grid")  # studies of the encoders from random weights
PRETRAINED = ("finetuning", "converted")  # studies of the pretrained encoder and the loops made of it
TEXTS = 64  # most test texts: each is timed by itself, and all of them in one batch
THREADS = 2


def of_study(study: Study) -> pd.DataFrame:
    """The table of times that every figure and table of a study reads: :func:`times` of :func:`encoders`, measured once.

    A redraw of tables that lack it gets the columns without rows.
    """
    named = {} if study.redraws else encoders(study.profile)
    table = study.table(
        "summary",
        "side_by_side",
        lambda: times({name: (spec, study.data(spec.data)) for name, spec in named.items()}, study.profile.timing_rounds),
        key=", ".join([*named, study.data(study.profile.data).fingerprint, *_here()]) if named else None,
        optional=True,
    )
    return table.reindex(columns=["model", *TIMES]) if table.empty else table


def _here() -> list[str]:
    """What decides how long a text takes here: times of another machine or version are measured anew."""
    device = pick_device()
    return [f"{device}", processor(), pick_precision("auto", device), torch.__version__]


def with_times(study: Study, means: pd.DataFrame) -> pd.DataFrame:
    """A table with a row for each model, with the columns :data:`~rtxstudy.tables.TIMES` of :func:`of_study`."""
    return means.merge(of_study(study)[["model", *TIMES]], on="model", how="left")


def encoders(profile: Profile) -> dict[str, RunSpec]:
    """One run of each encoder that is timed, by its name, all on the headline texts; pretrained ones where they are in reach."""
    from_scratch = [dataclasses.replace(spec, data=profile.data) for name in SHAPES for spec in specs_of(name, profile)]
    pretrained = [] if checkpoints.out_of_reach(profile.pretrained) else PRETRAINED
    others = [
        spec
        for name in pretrained
        for spec in specs_of(name, profile)
        if data_label(spec.data) == data_label(profile.data) and not spec.recipe.freeze_encoder
    ]
    return {spec.name: spec for spec in [*from_scratch, *others]}


def times(runs: Mapping[str, tuple[RunSpec, Prepared]], rounds: int) -> pd.DataFrame:
    """One row per encoder of ``runs`` (name → a run and its data): the time for a text by itself, and in a batch of ``TEXTS``.

    The encoders take turns, so many ``rounds``. Their weights are random, because weights do not change the time. A trained run
    keeps a time, too, but that of another day on a shared machine is not comparable.

    Columns: ``model``; ``ms_one`` and ``ms_in_batch``, medians over the rounds, with ``ms_one_low``, ``ms_one_high``,
    ``ms_in_batch_low`` and ``ms_in_batch_high``, the fastest and the slowest round; ``dtype``, ``device``, ``rounds``, ``n``
    (texts). The time of the tokenizer is not in them.
    """
    device = pick_device()
    precision = pick_precision("auto", device)
    ready = {}
    for name, (spec, data) in runs.items():
        test, pad = data.splits["test"], data.tokenizer.pad_token_id
        rows = spread(len(test), TEXTS)
        model = EncoderForSequenceClassification(model_config(spec, data))
        ready[name] = model, [collate(test, rows[i : i + 1], pad) for i in range(len(rows))], [collate(test, rows, pad)]
    with training_threads(THREADS):
        timings = [
            {"model": name} | latency(model, single, full, device, rounds=1, precision=precision)
            for _ in range(rounds)
            for name, (model, single, full) in ready.items()
        ]
        machine = device_name(device)
    named = {"ms_one": "ms_median", "ms_in_batch": "ms_per_text"}
    ways = {"": "median", "_low": "min", "_high": "max"}
    columns = {f"{to}{end}": (column, how) for to, column in named.items() for end, how in ways.items()}
    table = pd.DataFrame(timings).groupby("model", sort=False).agg(**columns).reset_index()
    return table.assign(dtype=precision, device=machine, rounds=rounds, n=len(rows))
