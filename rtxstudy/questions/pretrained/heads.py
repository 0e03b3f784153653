"""What single heads of an encoder look at: the share of their attention that goes to tokens of a kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxstudy.questions.pretrained.behaviour import reading

PATTERNS = ("previous token", "next token", "the token itself", "[CLS]", "[SEP]", "same token elsewhere")
_TOKENS = 2048  # padded tokens of a batch: the weights of one layer then take a few megabytes


def attention_patterns(texts: Sequence[str], encoder: Encoder, tokenizer: PreTrainedTokenizerBase) -> pd.DataFrame:
    """The share of each head's attention that goes to tokens of each of :data:`PATTERNS`, on two halves of the texts.

    The shares are means over queries: tokens of a text other than [CLS] and [SEP]. Only queries count that have a token of
    the kind. The previous and the next token are never [CLS] or [SEP]. "same token elsewhere" leaves neighbours out, because
    a head that looks at neighbours finds those anyway.

    Columns: ``layer``, ``head`` (from 1), ``pattern``, ``half`` (0 or 1: texts of even and of odd place), ``share``,
    ``uniform`` (the share if a query attended to all tokens of its text alike) and ``queries``.

    Raises InputError for fewer than two texts, for a tokenizer without [CLS] and [SEP], and for weights on the meta device.
    """
    if len(texts) < 2:
        raise InputError(
            f"Attention is measured on two halves of the texts, so {len(texts)} are too few; give at least two."
        )
    ids, offsets = encode(texts, tokenizer, encoder.config.max_seq_length or encoder.config.max_position_embeddings)
    tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64))
    depth, heads = encoder.config.effective_depth, encoder.config.num_attention_heads
    shares = np.zeros((2, len(PATTERNS), depth, heads))
    uniform, queries = np.zeros((2, len(PATTERNS), 1, 1)), np.zeros((2, len(PATTERNS), 1, 1))
    with reading(encoder):
        for index in batches(tokens.lengths, _TOKENS, None, seed=None, epoch=0):
            batch = collate(tokens, index, tokenizer.pad_token_id)
            here, mask = batch["input_ids"], batch["attention_mask"]
            real = torch.ones_like(here, dtype=torch.bool) if mask is None else mask.bool()
            on = None if mask is None else mask.to(encoder.device)
            attentions = encoder(here.to(encoder.device), on, output_attentions=True).attentions
            weights = torch.stack([layer.float().cpu() for layer in attentions])  # (layers, B, heads, T, T)
            inner = real & (here != tokenizer.cls_token_id) & (here != tokenizer.sep_token_id)
            for number, kind in enumerate(_kinds(here, real, inner).values()):
                kind = kind & inner[:, :, None] & real[:, None, :]  # (B, queries, keys)
                has = kind.any(dim=-1)  # (B, queries)
                attention = (weights * kind[None, :, None]).sum(dim=-1)  # (layers, B, heads, queries)
                alike = kind.sum(dim=-1) / real.sum(dim=-1, keepdim=True)
                for half in (0, 1):
                    half_mask = torch.from_numpy(np.asarray(index) % 2 == half)[:, None] & has
                    shares[half, number] += (attention * half_mask[None, :, None]).sum(dim=(1, 3)).numpy()
                    uniform[half, number] += float(alike[half_mask].sum())
                    queries[half, number] += int(half_mask.sum())
    places = pd.MultiIndex.from_product(
        [(0, 1), PATTERNS, range(1, depth + 1), range(1, heads + 1)], names=["half", "pattern", "layer", "head"]
    )
    counts = np.broadcast_to(queries, shares.shape)
    with np.errstate(invalid="ignore"):  # no query has a token of the kind
        columns = {
            "share": shares / counts,
            "uniform": np.broadcast_to(uniform, shares.shape) / counts,
            "queries": counts,
        }
    table = pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=places).reset_index()
    return table.astype({"queries": int})[["layer", "head", "pattern", "half", "share", "uniform", "queries"]]


def _kinds(ids: Tensor, real: Tensor, inner: Tensor) -> dict[str, Tensor]:
    """Pattern → which keys each query would look at, (batch, queries, keys) or what broadcasts to it. ids: (batch, length)."""
    place = torch.arange(ids.shape[1])
    away = place[None, :] - place[:, None]  # (queries, keys)
    last = real.sum(dim=1) - 1  # where [SEP] is
    same = ids[:, :, None] == ids[:, None, :]
    keys = inner[:, None, :]
    kinds = (
        (away == -1)[None] & keys,
        (away == 1)[None] & keys,
        (away == 0)[None] & keys,
        (place == 0)[None, None].expand(len(ids), 1, -1),
        (place[None] == last[:, None])[:, None],
        same & (away.abs() > 1)[None] & keys,
    )
    return dict(zip(PATTERNS, kinds, strict=True))


def strongest(table: pd.DataFrame) -> pd.DataFrame:
    """The head that gives most of its attention to each pattern: one row per pattern.

    The head is chosen on the texts of half 0, and its ``share`` and ``uniform`` are those of half 1, so that the choice does not
    flatter it. A pattern that no text has is left out. ``over_half``: how many heads give the pattern more than half of their
    attention, on all texts; ``heads``: how many there are.
    """
    rows = []
    for pattern, of_pattern in table.dropna(subset="share").groupby("pattern", sort=False):
        by_half = {half: part.set_index(["layer", "head"]) for half, part in of_pattern.groupby("half")}
        if len(by_half) < 2:
            continue
        layer, head = by_half[0]["share"].idxmax()
        judged = by_half[1].loc[(layer, head)]
        mean = (by_half[0]["share"] + by_half[1]["share"]) / 2
        shares = {"share": judged["share"], "uniform": judged["uniform"], "over_half": int((mean > 0.5).sum())}
        rows.append({"pattern": pattern, "layer": layer, "head": head, **shares, "heads": len(mean)})
    return pd.DataFrame(rows, columns=["pattern", "layer", "head", "share", "uniform", "over_half", "heads"])
