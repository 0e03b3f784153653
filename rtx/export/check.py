"""What an exported graph answers beside the model that it was made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import nn
from transformers import PreTrainedTokenizerFast

from rtx.embedding import embed_tokens
from rtxlib.data.batching import Tokens
from rtxlib.data.rows import Text
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.training.predict import predict_logits

CLOSE = 1e-4  # largest difference of two answers in float32, as a part of the largest number if that is above one


def tokens_of(texts: Sequence[Text], tokenizer: PreTrainedTokenizerFast, max_length: int, pairs: bool) -> Tokens:
    """The token ids of cleaned texts, as training and `rtx predict` make them."""
    ids, offsets = encode(texts, tokenizer, max_length)
    return Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64), tokenizer.sep_token_id if pairs else None)


def model_answers(model: nn.Module, tokens: Tokens, pad_id: int, passes: int | None = None) -> np.ndarray:
    """Logits (texts, labels) of a classifier or embeddings (texts, hidden) of an encoder, by torch in float32 on the CPU."""
    if isinstance(model, EncoderForSequenceClassification):
        return predict_logits(model, tokens, pad_id, torch.device("cpu"), recurrent_depth=passes)
    return embed_tokens(tokens, model, pad_id, torch.device("cpu"))


def close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether two answers of one shape are equal up to rounding in float32, which grows with the numbers."""
    return bool(np.abs(ours - theirs).max() <= CLOSE * max(1.0, np.abs(ours).max()))  # False for NaN


def require_agreement(model: np.ndarray, graph: np.ndarray, classifies: bool) -> float:
    """The largest difference of two answers (texts, width). Raises InputError if they are not close or a label differs.

    Of two labels that are as good as equal, either may be given.
    """
    difference = float(np.abs(model - graph).max())
    other = 0
    if classifies:
        behind = model.max(axis=1) - model[np.arange(len(model)), graph.argmax(axis=1)]  # of the graph's label
        other = int((behind > 2 * CLOSE * np.abs(model).max()).sum())  # a label that is less far behind is as good
    if not close(model, graph) or other:
        labels = f", and {other:,} of {len(model):,} texts get another label" if classifies else ""
        raise InputError(
            f"The graph does not agree with the model (numbers differ by up to {difference:.2g}{labels}), so nothing is written; "
            "report this with the model's config.json."
        )
    return difference


def loss(model: np.ndarray, graph: np.ndarray, truth: np.ndarray | None, classifies: bool) -> dict[str, Any]:
    """What rounding costs. model, graph: answers (texts, width) in float32 and in eight bits. truth: (texts,) labels, if known.

    A classifier: the share of texts with another label, and where the truth is known both accuracies and the 95 % interval of
    their difference in points (Agresti & Min 2005, for pairs). Sentence embeddings: the mean cosine with its 95 % interval, the
    cosine that 1 % of texts are below, and the lowest.
    """
    n = len(model)
    if not classifies:
        cosines = (model * graph).sum(axis=1) / np.linalg.norm(model, axis=1) / np.linalg.norm(graph, axis=1)
        half = ndtri(0.975) * cosines.std(ddof=1) / n**0.5
        return {
            "cosine": float(cosines.mean()),
            "cosine_interval": [float(cosines.mean() - half), float(cosines.mean() + half)],
            "cosine_1_percent": float(np.quantile(cosines, 0.01)),
            "cosine_lowest": float(cosines.min()),
        }
    before, after = model.argmax(axis=1), graph.argmax(axis=1)
    if truth is None:
        return {"other_labels": float((before != after).mean())}
    lost, won = int(((before == truth) & (after != truth)).sum()), int(((before != truth) & (after == truth)).sum())
    middle = (won - lost) / (n + 2)
    half = ndtri(0.975) * max(won + lost + 1 - (won - lost) ** 2 / (n + 2), 0) ** 0.5 / (n + 2)
    return {
        "accuracy": float((before == truth).mean()),
        "accuracy_8_bits": float((after == truth).mean()),
        "points": 100 * (won - lost) / n,
        "points_interval": [float(100 * (middle - half)), float(100 * (middle + half))],
        "other_labels": float((before != after).mean()),
    }
