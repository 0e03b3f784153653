"""What a forward pass records on its way, for callers who ask for it."""

from __future__ import annotations

from torch import Tensor


class Trace:
    """Lists that a forward pass appends to. A list that nobody asked for is None, and nothing is kept alive for it.

    With ``states``:
        states: the embedding, and the state (batch, length, hidden) after each layer. For the last layer of a pass it is
            the state after the residual across passes.
        pass_states: the state that enters the loop, and the state after each pass.
    With ``attentions``, which makes attention eager:
        attentions: the self-attention weights of each layer (batch, heads, queries, keys).
        cross_attentions: the weights of each decoder layer's attention to the source.
    """

    def __init__(self, states: bool | None = False, attentions: bool | None = False) -> None:
        self.states: list[Tensor] | None = [] if states else None
        self.pass_states: list[Tensor] | None = [] if states else None
        self.attentions: list[Tensor] | None = [] if attentions else None
        self.cross_attentions: list[Tensor] | None = [] if attentions else None

    def add(self, **tensors: Tensor) -> None:
        """Append each tensor to the list of its name, if that list was asked for."""
        for name, tensor in tensors.items():
            wanted = getattr(self, name)
            if wanted is not None:
                wanted.append(tensor)


NO_TRACE = Trace()
