"""Multi-head attention: positions, who may see whom, the projections, and softmax(QKᵀ)V.

A model knows the position of a token in one of three ways: rotary angles turn queries and keys (``kernels.rotate``),
sinusoidal and learned vectors are added in :class:`rtxlib.models.encoder.Embeddings`, and ALiBi is a cost of distance in the
masks. To add a form of position, add its word to ``CHOICES["position"]`` (config.py), its numbers here, and their use in one of
those three places. ``VARIANTS`` in tests/test_recurrence.py and ``SHAPES`` in tests/test_references.py list what is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels import Dropout, Linear, dropout, linear, rotate

if TYPE_CHECKING:
    from rtxlib.models.layers import PassParts

_LONGEST_LEARNED, _LONGEST_READ = 256, 48  # keys up to which plain products are faster in bfloat16, with gradients and without
_VECTOR = 16  # float32 numbers in the widest vector instruction


def attend_formula(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """softmax(Q·Kᵀ / √D + mask)·V (Vaswani et al. 2017, equation 1), and the weights, the softmax itself.

    q: (B, H, T, D). k, v: (B, H, S, D). mask: (B or 1, H or 1, T or 1, S), either bool, True where a key may be seen, or
    numbers that are added to the scores. Returns (B, H, T, D) and (B, H, T, S).
    """
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + mask if mask.is_floating_point() else scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1)
    return weights @ v, weights


def attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, p: float = 0.0, eager: bool = False
) -> tuple[Tensor, Tensor | None]:
    """:func:`attend_formula`, fast, with dropout of the weights at probability ``p``.

    The mask is cut to T queries and S keys. ``eager`` asks for the weights
    before dropout; without it they are None, and the fused kernel never builds them.
    """
    if mask is not None:
        mask = mask[..., : q.shape[-2], : k.shape[-2]]  # an axis of size one stays
        mask = mask.to(q.dtype) if mask.is_floating_point() else mask
    if not eager and not _plain_is_faster(q, k.shape[-2], p):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p), None
    scores = (q @ k.transpose(-1, -2)).to(torch.promote_types(q.dtype, torch.float32))  # (B, H, T, S)
    scores /= q.shape[-1] ** 0.5
    if mask is not None:  # masked_fill is slow on CPUs, so the mask is added
        scores += mask if mask.is_floating_point() else torch.where(mask, 0.0, torch.finfo(torch.float32).min)
    weights = _softmax(scores).to(v.dtype)
    return dropout(weights, p) @ v, weights if eager else None


def _plain_is_faster(q: Tensor, keys: int, p: float) -> bool:
    """Whether plain products beat torch's fused kernel on this device.

    They do on a CPU with dropout, where the fused kernel falls back to plain products and a slow mask, and in bfloat16 for
    short texts, unless a text is alone. The fused kernel's backward pass is slow, so with gradients texts count as short for
    longer (LOG.md).
    """
    longest = _LONGEST_LEARNED if q.requires_grad else _LONGEST_READ if len(q) > 1 else 0
    return q.device.type == "cpu" and (p > 0 or (q.dtype == torch.bfloat16 and keys <= longest))


def _softmax(scores: Tensor) -> Tensor:
    """Softmax over the last axis. torch's CPU softmax is slow over short rows, so short rows are transposed first."""
    if scores.shape[-1] >= _VECTOR or scores.device.type != "cpu":
        return scores.softmax(dim=-1)
    return scores.transpose(-1, -2).contiguous().softmax(dim=-2).transpose(-1, -2)


def rotary_angles(
    length: int, head_dim: int, theta: float, device: torch.device | None = None
) -> tuple[Tensor, Tensor]:
    """Cosine and sine of m·θᵢ for every position m and pair i, with θᵢ = theta^(−2i / head_dim) (Su et al. 2021).

    Returns two tensors (length, head_dim) in float32. Pair i joins the dimensions i and i + head_dim/2 (the
    "rotate-half" layout), so the second half repeats the angles of the first.
    """
    pair = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device)
    frequency = theta ** (-pair / head_dim)  # (head_dim/2,)
    position = torch.arange(length, dtype=torch.float32, device=device)
    angle = torch.outer(position, frequency).repeat(1, 2)  # (length, head_dim)
    return angle.cos(), angle.sin()


def sinusoidal_table(length: int, hidden_size: int, device: torch.device | None = None) -> Tensor:
    """PE(m, 2i) = sin(m / 10000^(2i/d)) and PE(m, 2i+1) = cos(m / 10000^(2i/d)) (Vaswani et al. 2017).

    Returns (length, hidden_size) in float32.
    """
    pair = torch.arange(0, hidden_size, 2, dtype=torch.float32, device=device)
    angle = torch.outer(torch.arange(length, dtype=torch.float32, device=device), 10000 ** (-pair / hidden_size))
    table = torch.stack((angle.sin(), angle.cos()), dim=-1)  # (length, pairs, 2)
    return table.flatten(1)[:, :hidden_size]


def alibi_slopes(heads: int, device: torch.device | None = None) -> Tensor:
    """What one token of distance takes from the scores of each head: 2^(−8/n), 2^(−16/n), …, 2^(−8) for n heads.

    If n is not a power of two, the slopes of the next lower power p come first, and every second slope of 2p follows, as in
    the code of the paper (Press et al. 2022). Returns (heads,) in float32.
    """

    def geometric(n: int) -> Tensor:
        return 2.0 ** (-8.0 / n * torch.arange(1, n + 1, dtype=torch.float32, device=device))

    power = 2 ** (heads.bit_length() - 1)
    return torch.cat((geometric(power), geometric(2 * power)[0::2][: heads - power]))


ALIKE = 0.75  # of the longest text of a group, in tokens; padding costs attention at most a third more


class View(NamedTuple):
    """What the tokens of one attention layer see of each other.

    mask: (batch or 1, heads or 1, queries or 1, keys), either bool, True where a key may be seen, or numbers that are added
    to the scores. None: every token sees every token.
    rotary: cosine and sine of the positions' angles, each (length, head_dim). None: no rotation.
    groups: the groups of texts of a packed row. A text sees only itself. None: a row is one text.
    queries: how many positions of each text, from the first, the layer computes; None: all.
    eager: whether the attention weights are built and returned.
    """

    mask: Tensor | None = None
    rotary: tuple[Tensor, Tensor] | None = None
    groups: tuple[Group, ...] | None = None
    queries: int | None = None
    eager: bool = False

    def asking(self, x: Tensor) -> Tensor:
        """The positions that are computed: (batch, length, hidden) → (batch, queries, hidden).

        A packed row (1, total, hidden) has one first token for each text: (1, texts, hidden), and ``queries`` is 1.
        """
        if self.queries is None:
            return x
        if self.groups is None:
            return x[:, : self.queries]
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
        inside, longest = lengths[first : last + 1], max(lengths[first : last + 1])
        whole = min(inside) == longest
        real = torch.arange(longest) < torch.tensor(inside)[:, None]  # (texts, length); here, because a GPU would be waited for
        places = None if whole else real.flatten().nonzero().squeeze(1).to(device, non_blocking=True)
        view = self_attention_view(config, longest, None if whole else real.to(device, non_blocking=True), device, local)
        starts, tokens = tuple(offsets[first : last + 1]), offsets[last + 1] - offsets[first]
        groups.append(Group(starts=starts, tokens=tokens, places=places, length=longest, view=view))
        first = last + 1
    return View(groups=tuple(groups))


class Attention(nn.Module):
    """softmax(Q·Kᵀ / √head_dim + mask)·V over several heads (Vaswani et al. 2017).

    Self-attention projects Q, K and V from one sequence. Cross-attention projects K and V from another, the memory. The
    three projections are one matrix ``qkv`` (3·hidden, hidden): queries, keys, values, and in each third head after head.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads, self.head_dim = config.num_attention_heads, config.head_dim
        self.dropout = Dropout(config.attention_dropout)
        self.qkv = Linear(config.hidden_size, 3 * config.hidden_size, bias=config.bias)
        self.output = Linear(config.hidden_size, config.hidden_size, bias=config.bias)

    def forward(
        self,
        x: Tensor,
        view: View = SEES_ALL,
        memory: Tensor | None = None,
        parts: PassParts | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend from the positions that ``view`` asks for (all by default) to every position of x, or of ``memory``.

        x: (batch, length, hidden). memory: (batch, memory length, hidden). view: what is seen; cross-attention has no
        rotation. parts: what this pass adds to the projections. Returns the output (batch, queries, hidden), and where the view
        is eager the weights (batch, heads, queries, keys), otherwise None. x may be a packed row (1, total, hidden); with one
        query its output then holds the first token of each text (1, texts, hidden).
        """
        q, k, v = self._project(view.asking(x), x if memory is None else memory, parts)  # (B, T, d)
        if view.groups is None:
            attended, weights = self._attend(q, k, v, view)
        else:
            attended, weights = self._attend_in_groups(q, k, v, view.groups, view.queries), None
        out = self.output(attended)
        return (out + parts.attention_output(attended) if parts and parts.attention_output else out), weights

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, view: View) -> tuple[Tensor, Tensor | None]:
        """Attention of texts that stand one in a row: (B, queries, d) and (B, T, d) twice → (B, queries, d) and the weights."""
        q, k, v = self._split(q), self._split(k), self._split(v)  # (B, H, T, D)
        if view.rotary is not None:
            cos, sin = view.rotary  # (T, D)
            queries = q.shape[-2]
            q, k = rotate(q, cos[:queries], sin[:queries]), rotate(k, cos, sin)
        attended, weights = attend(q, k, v, view.mask, self.dropout.p if self.training else 0.0, view.eager)
        return attended.transpose(1, 2).flatten(2), weights  # (B, H, T, D) → (B, T, d)

    def _attend_in_groups(
        self, q: Tensor, k: Tensor, v: Tensor, groups: tuple[Group, ...], queries: int | None
    ) -> Tensor:
        """Attention inside each text of a packed row: q, k, v (1, total, d) → (1, total, d); one query a text → (1, texts, d)."""
        sizes = [group.tokens for group in groups]
        asking = sizes if queries is None else [group.texts for group in groups]
        attended = []
        # Split once: the gradient of a split is one concatenation, that of a slice a whole row of zeros.
        for group, *parts in zip(groups, q[0].split(asking), k[0].split(sizes), v[0].split(sizes), strict=True):
            keys, values = group.padded(parts[1]), group.padded(parts[2])  # (texts, length, d)
            if queries is None:
                attended.append(group.unpadded(self._attend(group.padded(parts[0]), keys, values, group.view)[0]))
            else:
                attended.append(self._attend(parts[0][:, None], keys, values, group.view)[0][:, 0])
        return torch.cat(attended)[None]

    def _project(self, asking: Tensor, seen: Tensor, parts: PassParts | None) -> tuple[Tensor, Tensor, Tensor]:
        """Q of the states that ask, K and V of the states that are seen, each (B, T, d)."""
        added = parts and parts.qkv
        if asking is seen:
            qkv = self.qkv(seen)
            q, k, v = (qkv if added is None else qkv + added(seen)).chunk(3, dim=-1)
        else:
            d, weight, bias = seen.shape[-1], self.qkv.weight, self.qkv.bias
            q = linear(asking, weight[:d], None if bias is None else bias[:d])
            kv = linear(seen, weight[d:], None if bias is None else bias[d:])
            if added is not None:
                q, kv = q + added(asking, slice(d)), kv + added(seen, slice(d, None))
            k, v = kv.chunk(2, dim=-1)
        return q, k, v

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)  # (B, T, d) → (B, H, T, D)
