"""What a forward pass records on its way, for callers who ask for it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Trace:
    """Lists that a forward pass appends to. None means that nobody asked: nothing is recorded and nothing is kept alive.

    states: the embedding, and the state (batch, length, hidden) after each layer. For the last layer of a pass it is the state
    after the residual across passes.
    pass_states: the state that enters the loop, and the state after each pass.
    attentions: for each layer the self-attention weights (batch, heads, queries, keys). Only the eager path builds them.
    cross_attentions: the same for a decoder's attention to the source.
    """

    states: list[Tensor] | None = None
    pass_states: list[Tensor] | None = None
    attentions: list[Tensor] | None = None
    cross_attentions: list[Tensor] | None = None

    def add(self, **tensors: Tensor) -> None:
        """Append each tensor to the list of its name, where there is one."""
        for name, tensor in tensors.items():
            wanted = getattr(self, name)
            if wanted is not None:
                wanted.append(tensor)


NO_TRACE = Trace()
