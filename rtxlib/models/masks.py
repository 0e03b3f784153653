"""Which token may see which: padding, windows, causal masks, ALiBi's cost of distance, packed rows."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from rtxlib.models.config import ModelConfig
from rtxlib.models.positions import alibi_slopes, rotary_angles

ALIKE = 0.75  # of the longest text of a group, in tokens; padding costs attention at most a third more


class View(NamedTuple):
    """What the tokens of one attention layer see of each other.

    mask: (batch or 1, heads or 1, queries or 1, keys), either bool, True where a key may be seen, or numbers that are added
    to the scores. None: every token sees every token.
    rotary: cosine and sine of the positions' angles, each (length, head_dim). None: no rotation.
    groups: the groups of texts of a packed row. A text sees only itself. None: a row is one text.
    """

    mask: Tensor | None = None
    rotary: tuple[Tensor, Tensor] | None = None
    groups: tuple[Group, ...] | None = None

    def first(self, x: Tensor, queries: int) -> Tensor:
        """The first ``queries`` tokens of each text: (batch, length, hidden) → (batch, queries, hidden).

        A packed row (1, total, hidden) has one first token for each text: (1, texts, hidden), and ``queries`` is 1.
        """
        if self.groups is None:
            return x[:, :queries]
        return x if x.shape[1] == sum(group.texts for group in self.groups) else x[:, self.starts(x.device)]

    def starts(self, device: torch.device) -> Tensor:
        """(texts,) where each text of a packed row begins."""
        return torch.cat([torch.as_tensor(group.starts, device=device) for group in self.groups])


class Group(NamedTuple):
    """Neighbouring texts of a packed row. Their attention is computed together, each text padded to the longest.

    starts: where each text begins in the packed row. tokens: how many tokens they have. places: (tokens,) where each token
    stands among the padded texts, counted through all of them; None: nothing is padded. length: tokens of the longest text.
    view: what the padded texts (texts, length) see.
    """

    starts: tuple[int, ...]
    tokens: int
    places: Tensor | None
    length: int
    view: View

    @property
    def texts(self) -> int:
        return len(self.starts)

    def padded(self, x: Tensor) -> Tensor:
        """The states of these texts, one text a row: (tokens, d) → (texts, length, d), zero in padding."""
        if self.places is not None:
            x = x.new_zeros(self.texts * self.length, x.shape[-1]).index_add(0, self.places, x)
        return x.unflatten(0, (self.texts, self.length))

    def unpadded(self, x: Tensor) -> Tensor:
        """The states of their tokens end to end: (texts, length, d) → (tokens, d)."""
        x = x.flatten(0, 1)
        return x if self.places is None else x.index_select(0, self.places)


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


def packed_view(config: ModelConfig, offsets: Sequence[int], device: torch.device, local: bool = False) -> View:
    """The view of a packed row: text i occupies ``offsets[i]:offsets[i + 1]``. ``local`` as in :func:`self_attention_view`.

    Neighbours form a group as long as the shortest has at least :data:`ALIKE` times the tokens of the longest. Texts that
    are sorted by length therefore make few groups with little padding.
    """
    lengths = [end - start for start, end in pairwise(offsets)]
    groups: list[Group] = []
    first = 0
    while first < len(lengths):
        last = first  # the last text of the group
        least = most = lengths[first]
        for length in lengths[first + 1 :]:
            least, most = min(least, length), max(most, length)
            if least < ALIKE * most:
                break
            last += 1
        inside = torch.tensor(lengths[first : last + 1], device=device)
        longest = int(inside.max())
        real = torch.arange(longest, device=device) < inside[:, None]  # (texts, length)
        whole = bool(real.all())
        groups.append(
            Group(
                starts=tuple(offsets[first : last + 1]),
                tokens=offsets[last + 1] - offsets[first],
                places=None if whole else real.flatten().nonzero().squeeze(1),
                length=longest,
                view=self_attention_view(config, longest, None if whole else real, device, local),
            )
        )
        first = last + 1
    return View(groups=tuple(groups))
