"""Depth by recurrence: a block of N layers passed R times, with shared weights or with a block for each pass."""

from __future__ import annotations

from torch import Tensor, nn

from rtxlib.models.config import ModelConfig
from rtxlib.models.layers import EncoderLayer
from rtxlib.models.masks import View


class RecurrentStack(nn.Module):
    """h ← block(h) + α·h, R times; the α term is left out on the first pass by default.

    ``blocks`` holds one block when the weights are shared, R blocks when they are not. With R = 1 this *is* the standard
    encoder, whatever α. With unshared weights and no residual it is a standard encoder of N·R layers.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.recurrent_depth, self.residual, self.alpha = config.recurrent_depth, config.residual, config.residual_scale
        copies = 1 if config.block_sharing == "shared" else config.recurrent_depth
        layers = config.num_hidden_layers
        self.blocks = nn.ModuleList(
            nn.ModuleList(EncoderLayer(config, copy * layers + number) for number in range(layers))
            for copy in range(copies)
        )
        if config.output_initializer == "depth_scaled":
            # Each of the 2·N·R sub-layers adds to the state; smaller output projections keep its variance near one.
            for layer in (layer for block in self.blocks for layer in block):
                for part in (layer.attention, layer.feedforward):
                    part.output.initial_std = config.initializer_range / (2 * config.effective_depth) ** 0.5

    def forward(
        self,
        h: Tensor,
        everywhere: View = View(),  # noqa: B008 - immutable
        nearby: View | None = None,
        queries: int | None = None,
        eager: bool = False,
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Run every pass on h (batch, length, hidden).

        everywhere: the view of global layers; nearby: that of local ones, where there are any. Returns the last state
        (batch, queries, hidden), the state after each layer of each pass (after a pass' last layer with its α term), and
        with ``eager`` the attention weights of each layer of each pass, in order. ``queries`` limits the very last layer
        to the first positions.
        """
        states: list[Tensor] = []
        attentions: list[Tensor] = []
        for iteration in range(self.recurrent_depth):
            start = h
            block = self.blocks[iteration % len(self.blocks)]
            for number, layer in enumerate(block, start=1):
                last = iteration == self.recurrent_depth - 1 and number == len(block)
                h, weights = layer(h, nearby if layer.local else everywhere, queries if last else None, eager)
                states.append(h)
                if weights is not None:
                    attentions.append(weights)
            if self.residual == "every" or (self.residual == "from_second" and iteration > 0):
                states[-1] = h = h + self.alpha * start[:, : h.shape[1]]
        return h, states, attentions
