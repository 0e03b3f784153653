"""A tokenizer of a kind that is never trained here, as a model of somebody else may bring one."""

from __future__ import annotations

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from rtxlib.data.tokenization import SPECIAL, wrap


def unigram_tokenizer() -> PreTrainedTokenizerFast:
    """A Unigram vocabulary (Kudo 2018, as in SentencePiece) of the special tokens and the letters."""
    pieces = [(piece, -1.0) for piece in (*SPECIAL, *map(chr, range(ord("a"), ord("z") + 1)))]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=1, byte_fallback=False))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return wrap(tokenizer)
