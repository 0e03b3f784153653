"""How a model knows the position of a token: rotated queries and keys, a vector added to the embedding, or ALiBi.

This module computes the numbers. They are applied elsewhere: rotary angles in :mod:`~rtxlib.models.attention` (by
:func:`rtxlib.models.kernels.rotation.rotate`), sinusoidal and learned vectors in :class:`rtxlib.models.encoder.Embeddings`,
and ALiBi in the masks of :mod:`~rtxlib.models.masks`.

To add a form of position: its word in ``CHOICES["position"]`` (config.py), its numbers here, and their use in one of
those three places. ``VARIANTS`` in tests/test_recurrence.py and ``SHAPES`` in tests/test_references.py list what is tested.
"""

from __future__ import annotations

import torch
from torch import Tensor


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
