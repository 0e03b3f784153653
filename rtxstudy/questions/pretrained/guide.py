"""Several pretrained encoders: their size, their speed, and how well they find similar texts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch
from huggingface_hub import try_to_load_from_cache

from rtx.latency import Batch, latency
from rtxlib.data.batching import Tokens, collate
from rtxlib.data.prepare import Prepared
from rtxlib.models.checkpoint_files import WEIGHTS
from rtxlib.models.encoder import Encoder, without_weights
from rtxlib.models.presets import CHECKPOINTS, preset
from rtxlib.models.size import parameters, size_mb
from rtxlib.training.device import device_name
from rtxstudy.questions.pretrained.similar_texts import Embedder, neighbours

GUIDED = {  # name -> preset
    "MiniLM-L3": "minilm-l3",
    "MiniLM-L6": "minilm-l6",
    "MiniLM-L12": "minilm-l12",
    "ModernBERT-base": "modernbert-base",
}
SINGLE, ROUNDS = 8, 3  # texts that are timed one by one, and how often
BATCH = 8  # texts of the batch that is timed


def sizes_and_speed(data: Prepared, presets: Mapping[str, str] = GUIDED) -> pd.DataFrame:
    """What each encoder weighs and how long it takes for test texts, in float32 on the CPU: one row per preset.

    All its weights are one number: neither the time nor the size depends on their values. Columns: ``model``, ``layers``,
    ``width``, ``parameters``, ``mb`` (10⁶ bytes), ``ms_median`` and ``ms_p95`` (one text), ``ms_per_text`` (in a batch of
    :data:`BATCH` texts), ``tokens`` (mean of the texts that are timed one by one), ``device``, ``threads``.
    """
    test, rows = data.splits["test"], []
    order = np.argsort(test.lengths, kind="stable")
    single = order[np.linspace(0, len(test) - 1, min(SINGLE, len(test))).astype(int)]
    start = max(0, (len(test) - BATCH) // 2)  # texts of middle length
    together = order[start : start + BATCH]
    for name, of_preset in presets.items():
        config = preset(of_preset)
        with without_weights():
            encoder = Encoder(config).eval()
        encoder.to_empty(device="cpu")
        with torch.no_grad():
            for weights in encoder.parameters():
                weights.fill_(0.01)  # random numbers for ModernBERT take as long as all that is timed
        timing = latency(
            encoder,
            [_batch(test, np.array([row]), config.vocab_size) for row in single],
            [_batch(test, together, config.vocab_size)],
            "cpu",
            rounds=ROUNDS,
        )
        rows.append(
            {
                "model": name,
                "layers": config.num_hidden_layers,
                "width": config.hidden_size,
                "parameters": parameters(encoder)["total"],
                "mb": size_mb(encoder),
                **timing,
                "tokens": float(test.lengths[single].mean()),
                "device": device_name(torch.device("cpu")),
                "threads": torch.get_num_threads(),
            }
        )
        del encoder
    return pd.DataFrame(rows)


def _batch(test: Tokens, index: np.ndarray, vocabulary: int) -> Batch:
    """One padded batch; ids that the encoder does not have become others, which takes it the same time."""
    batch = collate(test, index, 0)
    return batch | {"input_ids": batch["input_ids"] % vocabulary}


def guide(
    data: Prepared, pool: Prepared, rows: int, own_model: Embedder | None, fetch: bool, presets: Mapping[str, str] = GUIDED
) -> pd.DataFrame:
    """:func:`sizes_and_speed`, and how often the nearest neighbour of a text has its label.

    pool: the texts to search; rows: most texts of each label. own_model: the study's pretrained encoder. Further columns:
    ``nearest`` (the share, NaN where the weights are not at hand) and ``nearest_n`` (texts).
    """
    table = sizes_and_speed(data, presets).assign(nearest=np.nan, nearest_n=np.nan)
    for place, name in enumerate(presets.values()):
        is_own = own_model is not None and CHECKPOINTS[name].endswith(f"/{own_model.name}")
        embedder = own_model if is_own else at_hand(name, fetch)
        if embedder is not None:
            precision = neighbours({"": pool}, rows, embedder)
            of_model = precision[(precision["model"] == embedder.name) & (precision["k"] == 1)].iloc[0]
            table.loc[place, ["nearest", "nearest_n"]] = of_model["mean"], of_model["n"]
    return table


def at_hand(name: str, fetch: bool) -> Embedder | None:
    """A preset with its published weights; None if they are not on this machine, nor with ``fetch`` on the Hub."""
    if not fetch and not isinstance(try_to_load_from_cache(CHECKPOINTS[name], WEIGHTS), str):
        return None
    return Embedder.load(CHECKPOINTS[name])


def shown(table: pd.DataFrame) -> pd.DataFrame:
    """The guide as a reader sees it. A quality that was not measured here is named so: figures of others are not comparable."""
    quality = (100 * table["nearest"]).map("{:.1f} %".format)
    return pd.DataFrame(
        {
            "encoder": table["model"],
            "layers × width": table["layers"].astype(str) + " × " + table["width"].astype(str),
            "parameters": (table["parameters"] / 1e6).map("{:.1f} M".format),
            "weights": table["mb"].map("{:,.0f} MB".format),
            "one text": table["ms_median"].map("{:.1f} ms".format),
            f"a text in a batch of {BATCH}": table["ms_per_text"].map("{:.1f} ms".format),
            "neighbour of the same kind (published weights)": quality.where(table["nearest"].notna(), "not measured"),
        }
    )
