"""Which token may see which: padding, windows, causal masks, ALiBi's cost of distance, packed rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from rtxlib.models.config import ModelConfig
from rtxlib.models.positions import alibi_slopes, rotary_angles


class View(NamedTuple):
    """What the tokens of one attention layer see of each other.

    mask: (batch or 1, heads or 1, queries or 1, keys), either bool, True where a key may be seen, or numbers that are added
    to the scores. None: every token sees every token.
    rotary: cosine and sine of the positions' angles, each (length, head_dim). None: no rotation.
    offsets: for a packed row, the place where each text begins, and the end of the last. A text sees only itself, and the
    mask is that of the longest text. None: a row is one text.
    """

    mask: Tensor | None = None
    rotary: tuple[Tensor, Tensor] | None = None
    offsets: Sequence[int] | None = None


class Views(NamedTuple):
    """What the layers of an encoder see: ``full`` is for global layers, ``local`` for layers with a window (None: no such)."""

    full: View
    local: View | None = None


SEES_ALL = View()


def padding_view(real: Tensor | None) -> View:
    """Every query sees every real key. real: (batch, length), nonzero where a token is real; None: all are."""
    return View(None if real is None else real.bool()[:, None, None, :])


def self_attention_view(
    config: ModelConfig,
    length: int,
    real: Tensor | None,
    device: torch.device,
    local: bool = False,
    causal: bool = False,
) -> View:
    """The view of a self-attention layer on texts padded to ``length``; ``real`` as in :func:`padding_view`.

    local: a token sees keys at most ``local_attention``/2 away, and rotary angles use ``local_rope_theta`` (ModernBERT,
    Warner et al. 2024). causal: a token sees keys at or before itself (Vaswani et al. 2017). With ``position="alibi"``
    the mask holds −slope·|query − key| for each head, the symmetric form for encoders (Press et al. 2022), and −∞ for
    hidden keys.
    """
    rotary = None
    if config.position == "rotary":
        theta = config.local_rope_theta if local and config.local_rope_theta else config.rope_theta
        rotary = rotary_angles(length, config.head_dim, theta, device)
    visible = padding_view(real).mask  # (B, 1, 1, T)
    reach = config.local_attention // 2 if local else length
    windowed = causal or reach < length - 1
    if not windowed and config.position != "alibi":  # no (T, T) mask for long texts
        return View(visible, rotary)
    position = torch.arange(length, device=device)
    distance = position - position[:, None]  # (queries, keys): key − query
    if windowed:
        near = (distance <= 0 if causal else distance <= reach) & (distance >= -reach)
        # Every token sees itself: a softmax over a window that holds only padding would be NaN.
        visible = near[None, None] if visible is None else (visible & near) | (distance == 0)
    if config.position != "alibi":
        return View(visible, rotary)
    slopes = alibi_slopes(config.num_attention_heads, device)
    bias = -slopes[:, None, None] * distance.abs()  # (H, T, T)
    return View(bias[None] if visible is None else bias.masked_fill(~visible, -torch.inf))


def packed_positions(offsets: Sequence[int], device: torch.device) -> Tensor:
    """(total,) the position of each token in its own text, for texts that lie end to end in one row."""
    return torch.cat([torch.arange(end - start, device=device) for start, end in pairwise(offsets)])


def packed(view: View, offsets: Sequence[int], positions: Tensor) -> View:
    """The view of a packed row, made from the view of its longest text; positions: :func:`packed_positions`."""
    rotary = None if view.rotary is None else (view.rotary[0][positions], view.rotary[1][positions])
    return View(view.mask, rotary, offsets)
