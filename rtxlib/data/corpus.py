"""A corpus for pretraining: the training texts of several data sets without their labels, packed into rows of one length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from transformers import PreTrainedTokenizerFast

from rtxlib.data.batching import Tokens
from rtxlib.data.containment import occurrences, words_key
from rtxlib.data.prepare import Prepared
from rtxlib.data.rows import sides
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError

LEAK_WORDS = 3  # as of a DataSpec
HELD_OUT = 0.02  # share of the packed rows on which the loss is validated


def corpus_texts(sources: Sequence[Prepared], kept_out: Sequence[Prepared]) -> list[str]:
    """The distinct training texts of ``sources``, in order, without any text that evaluates.

    Of a text that lies inside another, such as a phrase of a sentence, only the longer one is kept. A pair counts as two texts.

    Args:
        sources: the data whose training texts are wanted
        kept_out: data whose validation and test texts must not be in the corpus; those of ``sources`` are kept out anyway

    A text is left out if it has the words of an evaluation text, or if it contains one, or lies inside one, of more than
    :data:`LEAK_WORDS` words.
    """
    texts = pd.Series([text for data in sources for text in _single(data, "train")], dtype=object)
    evaluating = {text for data in (*sources, *kept_out) for split in ("validation", "test") for text in _single(data, split)}
    held = pd.unique(np.array([words_key(text) for text in evaluating], dtype=object))
    keys = np.array([words_key(text) for text in texts], dtype=object)
    distinct, first = np.unique(keys, return_index=True)
    leaves = np.isin(distinct, held)
    lengths = np.array([len(key.split()) for key in distinct])
    long = np.array([key for key in held if len(key.split()) > LEAK_WORDS], dtype=object)
    for _, row in occurrences(long, distinct):  # an evaluation text inside a text
        leaves[row] = True
    for needle, _ in occurrences(distinct, held):  # a text inside an evaluation text
        leaves[needle[lengths[needle] > LEAK_WORDS]] = True
    for inner, outer in occurrences(distinct, distinct):
        leaves[inner[inner != outer]] = True
    return texts[np.sort(first[~leaves])].tolist()


def _single(data: Prepared, split: str) -> list[str]:
    return [side for text in data.texts(split) for side in sides(text)]


def packed(texts: Sequence[str], tokenizer: PreTrainedTokenizerFast, length: int, seed: int) -> tuple[Tokens, Tokens]:
    """Rows of exactly ``length`` tokens for training and validation, so that nothing is padded.

    The texts are shuffled and joined by [SEP]. Each row is [CLS], the next ``length`` − 2 tokens of this sequence, and [SEP]
    ("full sentences" of Liu et al. 2019, RoBERTa). The labels are zeros. The validation rows are the last ``HELD_OUT`` of the
    shuffled texts, so no text is on both sides.

    Raises InputError when the texts fill fewer than two rows of either kind.
    """
    order = np.random.default_rng(seed).permutation(len(texts))
    cut = len(texts) - max(1, round(HELD_OUT * len(texts)))
    parts = [_rows([texts[i] for i in some], tokenizer, length) for some in (order[:cut], order[cut:])]
    if min(map(len, parts)) < 2:
        raise InputError(f"The texts fill too few rows of {length} tokens to pretrain on; give more texts or shorter rows.")
    return parts[0], parts[1]


def _rows(texts: list[str], tokenizer: PreTrainedTokenizerFast, length: int) -> Tokens:
    ids, _ = encode(texts, tokenizer, None)
    stream = ids[ids != tokenizer.cls_token_id]  # every text ends in [SEP]
    rows = len(stream) // (length - 2)
    framed = np.full((rows, length), tokenizer.sep_token_id, dtype=np.int32)
    framed[:, 0] = tokenizer.cls_token_id
    framed[:, 1:-1] = stream[: rows * (length - 2)].reshape(rows, length - 2)
    return Tokens(framed.ravel(), np.arange(0, framed.size + 1, length), np.zeros(rows, dtype=np.int64))
