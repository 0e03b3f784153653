"""What notebook 08 measures on fresh encoders, before any training, with a few texts of the study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from rtxlib.data.batching import collate
from rtxlib.data.prepared import Prepared
from rtxlib.models.presets import build
from rtxlib.runs.cost import Batch
from rtxstudy.evaluation import tour
from rtxstudy.evaluation.gradients import gradients_by_parameter
from rtxstudy.evaluation.loop_tables import by_layer

TEXTS = 64


def sample(data: Prepared) -> Batch:
    """The first training texts, as one batch."""
    return collate(data.splits["train"], np.arange(TEXTS), data.tokenizer.pad_token_id)


def sizes(data: Prepared) -> dict[str, int]:
    """The fields of a model's configuration that the data decide."""
    tokenizer = data.tokenizer
    return {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "num_labels": len(data.label_names)}


def gradient_paths(models: Mapping[str, Mapping[str, Any]], seeds: int, data: Prepared) -> pd.DataFrame:
    """The norm of the gradient that arrives at each layer of fresh models, read with and without a norm before the classifier.

    ``models``: name → what changes the preset of that name, which is the name's first word. Columns: ``depth`` (which layer on
    the way, from 1), ``iteration`` (which pass, from 1), norm, model, seed, ``final_norm``.
    """
    parts = []
    for name, changes in models.items():
        for seed in range(seeds):
            for final_norm in (False, True):
                model = build(name.split()[0], seed, final_norm=final_norm, **changes, **sizes(data))
                gradients = gradients_by_parameter(model, [sample(data)]).assign(model=name, seed=seed)
                norms = by_layer(gradients)[["depth", "iteration", "norm"]]
                parts.append(norms.assign(model=name, seed=seed, final_norm=final_norm))
    return pd.concat(parts, ignore_index=True)


def gradient_signal(
    width: int, passes: tuple[int, ...], alphas: tuple[float, ...], seeds: int, data: Prepared
) -> pd.DataFrame:
    """:func:`rtxstudy.evaluation.tour.gradient_signal` on a few texts."""
    return tour.gradient_signal(width, passes, alphas, seeds, [sample(data)], **sizes(data))


def norm_inputs(model: str, changes: Mapping[str, Any], data: Prepared) -> pd.DataFrame:
    """:func:`rtxstudy.evaluation.tour.norm_inputs` of a fresh model on a few texts."""
    return tour.norm_inputs(build(model, 0, **changes, **sizes(data)).encoder, [sample(data)])
