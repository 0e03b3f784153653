"""Depth by recurrence: a block of N layers passed R times, with shared weights or with a block for each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor, nn

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.layers import EncoderLayer
from rtxlib.models.masks import View
from rtxlib.models.norms import make_norm
from rtxlib.models.residual import PassResidual


@dataclass
class Walk:
    """A batch on its way through a stack: what its layers may see, and what they leave behind.

    everywhere: the view of global layers; nearby: that of local ones. layers: the state after each layer of prelude, passes
    and coda, a pass' last one after its residual. iterations: the state that entered the loop, and the state after each
    pass. attentions: of each of those layers (batch, heads, queries, length), on the eager path.
    """

    everywhere: View = field(default_factory=View)
    nearby: View | None = None
    eager: bool = False
    layers: list[Tensor] = field(default_factory=list)
    iterations: list[Tensor] = field(default_factory=list)
    attentions: list[Tensor] = field(default_factory=list)

    def through(self, layers: Sequence[EncoderLayer], h: Tensor, queries: int | None = None) -> Tensor:
        """h (batch, length, hidden) through these layers; ``queries`` limits the last one to the first positions."""
        for number, layer in enumerate(layers, start=1):
            view = self.nearby if layer.local else self.everywhere
            h, weights = layer(h, view, queries if number == len(layers) else None, self.eager)
            self.layers.append(h)
            if weights is not None:
                self.attentions.append(weights)
        return h


class RecurrentStack(nn.Module):
    """prelude → R times: h ← join(h, block(h)) → coda; everything but the block and the join is off by default.

    ``blocks`` holds one block when the weights are shared, R blocks when they are not. With R = 1 and no residual on the
    first pass this *is* the standard encoder. With unshared weights and no residual it is a standard encoder of N·R
    layers. How a pass joins its state is :class:`~rtxlib.models.residual.PassResidual`.

    What may be added, each a word in the configuration: ``input_injection`` (h + e, e being what entered the loop; Bai et
    al. 2019), ``iteration_embedding`` (a vector for each pass; Dehghani et al. 2019), ``conditioning_size`` (plan B of the
    proposal: a light layer of its own before each later pass, h ← block(conditioningᵣ(h))), ``loop_norm`` (a norm after
    each pass), prelude and coda (Geiping et al. 2025).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config, self.recurrent_depth = config, config.recurrent_depth
        shared = config.block_sharing == "shared"
        copies, layers = 1 if shared else config.recurrent_depth, config.num_hidden_layers
        first = config.prelude_layers
        self.prelude = nn.ModuleList(EncoderLayer(config, number) for number in range(first))
        self.blocks = nn.ModuleList(
            nn.ModuleList(EncoderLayer(config, first + copy * layers + number) for number in range(layers))
            for copy in range(copies)
        )
        after = first + copies * layers
        self.coda = nn.ModuleList(EncoderLayer(config, after + number) for number in range(config.coda_layers))
        self.residual = PassResidual(config)
        if config.iteration_embedding:
            self.iteration = nn.Embedding(config.recurrent_depth, config.hidden_size)
        if config.conditioning_size is not None:
            light = dataclasses.replace(config, intermediate_size=config.conditioning_size, local_attention=None)
            self.conditioning = nn.ModuleList(EncoderLayer(light, 1) for _ in range(config.recurrent_depth - 1))
        self.loop_norm = make_norm(config) if config.loop_norm else nn.Identity()
        if config.output_initializer == "depth_scaled":
            # Each of the 2·depth sub-layers adds to the state; smaller output projections keep its variance near one.
            for layer in (*self.prelude, *(layer for block in self.blocks for layer in block), *self.coda):
                for part in (layer.attention, layer.feedforward):
                    part.output.initial_std = config.initializer_range / (2 * config.effective_depth) ** 0.5

    def forward(
        self, h: Tensor, walk: Walk | None = None, queries: int | None = None, depth: int | None = None
    ) -> Tensor:
        """Run prelude, ``depth`` passes (R by default) and coda on h (batch, length, hidden): (batch, queries, hidden).

        ``queries`` limits the very last layer to the first positions. ``walk`` says what the layers see of each other, and
        keeps what they leave behind; without one all see all.
        Raises InputError for a depth below 1, or above R where passes share no weights.
        """
        walk, depth = walk or Walk(), self.check_depth(depth)
        h = entered = walk.through(self.prelude, h)
        walk.iterations.append(h)
        for iteration in range(depth):
            last = iteration == depth - 1 and not self.coda
            h = self.finish(*self.begin(h, entered, iteration, walk), iteration, walk, queries if last else None)
            walk.iterations.append(h)
        return walk.through(self.coda, h, queries)

    def begin(self, h: Tensor, entered: Tensor, iteration: int, walk: Walk) -> tuple[Tensor, Tensor]:
        """A pass on h (batch, length, hidden), iteration from 0, up to the block's last layer: h, and what that layer reads.

        Apart from :meth:`finish`, because an early exit wants the last layer for the first position alone, and for the
        others only where a text goes on.
        """
        x = self.prepare(h, entered, iteration, walk.everywhere, walk.eager)
        *most, _ = self.blocks[iteration % len(self.blocks)]
        return h, walk.through(most, x)

    def finish(self, before: Tensor, x: Tensor, iteration: int, walk: Walk, queries: int | None = None) -> Tensor:
        """The last layer of a pass and the join: the next state (batch, queries, hidden)."""
        *_, last = self.blocks[iteration % len(self.blocks)]
        after = walk.through([last], x, queries)
        h = self.loop_norm(self.residual(before[:, : after.shape[1]], after, iteration))
        walk.layers[-1] = h
        return h

    def prepare(self, h: Tensor, entered: Tensor, iteration: int, view: View, eager: bool = False) -> Tensor:
        """What a pass reads: the state, with what the configuration adds to it before a pass."""
        config = self.config
        if config.input_injection and iteration > 0:
            h = h + entered
        if config.iteration_embedding:
            h = h + self.iteration.weight[min(iteration, config.recurrent_depth - 1)]
        if config.conditioning_size is not None and iteration > 0:
            h, _ = self.conditioning[min(iteration, config.recurrent_depth - 1) - 1](h, view, eager=eager)
        return h

    def check_depth(self, depth: int | None) -> int:
        """The depth asked for, R by default. Raises InputError where the stack has no such depth."""
        if depth is None:
            return self.config.recurrent_depth
        if depth < 1:
            raise InputError(f"recurrent_depth must be at least 1, not {depth}.")
        if len(self.blocks) > 1 and depth > len(self.blocks):
            raise InputError(
                f"This model has {len(self.blocks)} blocks that share no weights, so it cannot be passed {depth} times; "
                "only a shared block can be passed more often than it was trained."
            )
        return depth
