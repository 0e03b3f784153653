"""Sentence embeddings of many texts, and their similarities."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from rtxlib.data.batching import Tokens, collate
from rtxlib.data.tokenization import cut_texts, encode
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.models.kernels import prepacked
from rtxlib.training.device import autocast, evaluating, moved, pick_device
from rtxlib.training.predict import fitting_batches


def embed(
    texts: Sequence[str],
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    *,
    report: Callable[[int, int], object] | None = None,
) -> np.ndarray:
    """Sentence embeddings (texts, hidden) in float32, in the order of ``texts``; no texts give (0, hidden).

    The encoder's configuration decides how many tokens of a text are read (``max_seq_length``; None: as many as there are
    positions), how they are pooled, and whether the embedding is normalised. The other texts do not change an embedding, up
    to rounding. Special tokens that are spelt out in a text are read as ordinary characters. The encoder computes in float32
    on the GPU if there is one, and stays there; its train/eval mode stays as it was. Standard error says how many texts are too
    long to be tokenised whole.

    Args:
        texts: any texts; a text may be empty
        encoder: an encoder from ``rtxlib.models.pretrained.load``, or another
        tokenizer: the encoder's tokenizer
        report: is called with (texts done, all texts) after each batch

    Raises:
        InputError: ``texts`` is a single string, the tokenizer has ids that the encoder has no vector for, or an embedding is
            not finite.
    """
    config = encoder.config
    if isinstance(texts, str):
        raise InputError("embed takes a list of texts; put a single one in brackets.")
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"The tokenizer has {len(tokenizer):,} tokens and the encoder knows {config.vocab_size:,}; "
            "take the tokenizer that came with the encoder."
        )
    if cut := cut_texts(texts):
        print(cut, file=sys.stderr)
    ids, offsets = encode(texts, tokenizer, config.max_seq_length or config.max_position_embeddings)
    tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64))
    embeddings = embed_tokens(tokens, encoder, tokenizer.pad_token_id, pick_device(), report)
    if not np.isfinite(embeddings).all():
        raise InputError("The embeddings are not finite numbers, so the weights are damaged; fetch the model again.")
    return embeddings


def embed_tokens(
    tokens: Tokens,
    encoder: Encoder,
    pad_id: int,
    device: torch.device,
    report: Callable[[int, int], object] | None = None,
    precision: str = "fp32",
) -> np.ndarray:
    """Sentence embeddings (texts, hidden) in float32 of tokenised texts, in their order.

    The encoder is moved to ``device`` and stays there; its train/eval mode stays as it was. report: is called with (texts done,
    all texts) after each batch. precision: of matrix products, a key of :data:`rtxlib.training.device.DTYPES`.
    """
    embeddings = np.empty((len(tokens), encoder.config.hidden_size), dtype=np.float32)
    encoder.to(device)  # moved here, because weights that are moved in inference mode cannot be trained later
    groups = fitting_batches(tokens.lengths, device)
    done = 0
    packed = prepacked(encoder) if len(groups) > 1 else nullcontext()
    with evaluating(encoder), torch.inference_mode(), autocast(precision, device), packed:
        for index in reversed(groups):  # longest first, so that a batch too large for memory fails at once
            batch = moved(collate(tokens, index, pad_id), device)
            states = encoder.embed(batch["input_ids"], batch.get("attention_mask"))
            embeddings[index] = states.float().cpu().numpy()
            done += len(index)
            if report is not None:
                report(done, len(tokens))
    return embeddings


def similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine similarities (n, m), from −1 to 1, between the rows of ``a`` (n, d) and those of ``b`` (m, d).

    The cosines of a row of zeros are 0. Raises InputError when the rows differ in width.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(f"The rows to compare must be of one width; the shapes are {a.shape} and {b.shape}.")
    rows = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b)]
    return np.clip(rows[0] @ rows[1].T, -1, 1)
