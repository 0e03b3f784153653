"""Sentence embeddings of many texts, and how like each other they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from rtxlib.data.batching import Tokens, collate
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.models.kernels.linear import prepacked
from rtxlib.training.device import moved, pick_device
from rtxlib.training.predict import fitting_batches


def embed(
    texts: Sequence[str],
    encoder: Encoder,
    tokenizer: PreTrainedTokenizerBase,
    *,
    report: Callable[[int, int], object] | None = None,
) -> np.ndarray:
    """Sentence embeddings (texts, hidden) in float32, in the order of ``texts``; none give (0, hidden).

    A text is cut to the ``max_seq_length`` tokens of the encoder's configuration (None: to its positions), pooled and
    normalised as that says. Its embedding does not depend on the texts beside it, up to rounding. Special tokens spelt
    out in a text are ordinary characters. The work is done in float32 on the GPU when there is one, and the encoder
    stays there; its train/eval mode is left as it was.

    Args:
        texts: any texts, also empty ones
        encoder: from ``rtxlib.models.pretrained.load``, or of one's own
        tokenizer: the encoder's own
        report: called with (texts done, texts in all) after each batch

    Raises:
        InputError: ``texts`` is a single string, or the tokenizer has ids that the encoder has no vector for.
    """
    config = encoder.config
    if isinstance(texts, str):
        raise InputError("embed takes a list of texts; put a single one in brackets.")
    if len(tokenizer) > config.vocab_size:
        raise InputError(
            f"The tokenizer has {len(tokenizer):,} tokens and the encoder knows {config.vocab_size:,}; "
            "take the tokenizer that came with the encoder."
        )
    device = pick_device()
    ids, offsets = encode(texts, tokenizer, config.max_seq_length or config.max_position_embeddings)
    tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64))
    embeddings = np.empty((len(texts), config.hidden_size), dtype=np.float32)
    training = [module for module in encoder.modules() if module.training]
    encoder.eval().to(device)  # before inference mode, in which weights that move could not be trained any more
    groups = fitting_batches(tokens.lengths, device)
    done = 0
    with torch.inference_mode(), prepacked(encoder) if len(groups) > 1 else nullcontext():
        for index in reversed(groups):  # longest first: what memory cannot hold fails at once, and progress speeds up
            batch = moved(collate(tokens, index, tokenizer.pad_token_id), device)
            states = encoder.embed(batch["input_ids"], batch.get("attention_mask"))
            embeddings[index] = states.float().cpu().numpy()
            done += len(index)
            if report is not None:
                report(done, len(texts))
    for module in training:
        module.training = True
    return embeddings


def similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosines (n, m), −1 to 1, of the angles between the rows of ``a`` (n, d) and those of ``b`` (m, d).

    A row of zeros has no direction; its cosines are 0. Raises InputError when the rows are not of one width.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise InputError(f"The rows to compare must be of one width; the shapes are {a.shape} and {b.shape}.")
    rows = [x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (a, b)]
    return np.clip(rows[0] @ rows[1].T, -1, 1)
