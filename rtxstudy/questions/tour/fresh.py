"""Measurements of notebook 08 on fresh encoders, before any training, with a few texts of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rtx.latency import Batch
from rtxlib.data.batching import collate
from rtxlib.data.prepare import Prepared
from rtxlib.models.presets import build
from rtxstudy.questions.forms.loop_tables import by_layer
from rtxstudy.questions.gradients.gradients import gradients_by_parameter
from rtxstudy.questions.tour import tour

TEXTS = 64  # texts of every measurement


def sample(data: Prepared) -> Batch:
    """The first training texts, as one batch."""
    return collate(data.splits["train"], np.arange(TEXTS), data.tokenizer.pad_token_id)


def sizes(data: Prepared) -> dict[str, int]:
    """The ModelConfig fields that depend on the data."""
    tokenizer = data.tokenizer
    return {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "num_labels": len(data.label_names)}


def gradient_paths(models: Mapping[str, Mapping[str, Any]], seeds: int, data: Prepared) -> pd.DataFrame:
    """The norm of the gradient of each unrolled layer of fresh models, with and without a norm before the classifier.

    ``models``: name → overrides. The first word of the name is the preset. Columns: ``depth`` (number of the unrolled layer,
    from 1), ``iteration`` (number of the pass, from 1), norm, model, seed, ``final_norm``.
    """
    parts = []
    for name, overrides in models.items():
        for seed in range(seeds):
            for final_norm in (False, True):
                model = build(name.split()[0], seed, final_norm=final_norm, **overrides, **sizes(data))
                gradients = gradients_by_parameter(model, [sample(data)])
                norms = by_layer(gradients.assign(model=name, seed=seed))  # it groups by model and seed
                columns = norms[["depth", "iteration", "norm", "model", "seed"]]
                parts.append(columns.assign(final_norm=final_norm))
    return pd.concat(parts, ignore_index=True)


def gradient_signal(
    width: int, passes: tuple[int, ...], alphas: tuple[float, ...], seeds: int, data: Prepared
) -> pd.DataFrame:
    """:func:`rtxstudy.questions.tour.tour.gradient_signal` on a few texts."""
    return tour.gradient_signal(width, passes, alphas, seeds, [sample(data)], **sizes(data))


def norm_inputs(model: str, changes: Mapping[str, Any], data: Prepared) -> pd.DataFrame:
    """:func:`rtxstudy.questions.tour.tour.norm_inputs` of a fresh model on a few texts."""
    return tour.norm_inputs(build(model, 0, **changes, **sizes(data)).encoder, [sample(data)])
