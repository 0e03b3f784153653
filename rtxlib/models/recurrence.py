"""Depth by recurrence: a block of N layers passed R times, with shared weights or with a block for each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor, nn

from rtxlib.errors import InputError
from rtxlib.models.attention import SEES_ALL
from rtxlib.models.config import ModelConfig, check_depth
from rtxlib.models.layers import Context, EncoderLayer, PassParts, make_norm
from rtxlib.models.residual import PassResidual

_SEES_ALL = Context(SEES_ALL)


class RecurrentStack(nn.Module):
    """prelude → R times: h ← join(h, block(h)) → coda. By default there are no prelude and no coda.

    ``blocks`` holds one block when the weights are shared, and R blocks when they are not. With R = 1 and no residual
    across the first pass the stack *is* the standard encoder. With unshared weights and no residual across passes it is a
    standard encoder of N·R layers. :class:`~rtxlib.models.residual.PassResidual` is the join.

    The configuration can add: ``input_injection`` (h + e, where e is the state that entered the loop; Bai et al. 2019),
    ``iteration_embedding`` (a vector for each pass; Dehghani et al. 2019), ``conditioning_size`` (a small layer before
    each later pass, h ← block(conditioningᵣ(h))), ``loop_norm`` (a norm after each pass),
    prelude and coda (Geiping et al. 2025), and what each pass has of its own, ``pass_norms`` and ``pass_rank``
    (:class:`PassParts`).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        layers, copies = config.num_hidden_layers, 1 if config.block_sharing == "shared" else config.recurrent_depth
        first, after = config.prelude_layers, config.prelude_layers + copies * layers
        self.prelude = nn.ModuleList(EncoderLayer(config, number) for number in range(first))
        self.blocks = nn.ModuleList(
            nn.ModuleList(EncoderLayer(config, first + copy * layers + number) for number in range(layers))
            for copy in range(copies)
        )
        self.coda = nn.ModuleList(EncoderLayer(config, after + number) for number in range(config.coda_layers))
        self.residual = PassResidual(config)
        if config.iteration_embedding:
            self.iteration = nn.Embedding(config.recurrent_depth, config.hidden_size)
        if config.conditioning_size is not None:
            # Index 1, because a layer with index 0 may lack its attention norm.
            light = dataclasses.replace(config, intermediate_size=config.conditioning_size, local_attention=None)
            self.conditioning = nn.ModuleList(EncoderLayer(light, 1) for _ in range(config.recurrent_depth - 1))
        if config.pass_norms or config.pass_rank:
            self.of_pass = nn.ModuleList(
                nn.ModuleList(PassParts(config, layer) for layer in self.blocks[0]) for _ in range(config.recurrent_depth)
            )
        self.loop_norm = make_norm(config) if config.loop_norm else nn.Identity()
        if config.output_initializer == "depth_scaled":
            # Each of the 2·depth sub-layers adds to the state; smaller output projections keep its variance near one.
            for layer in (*self.prelude, *(layer for block in self.blocks for layer in block), *self.coda):
                for part in (layer.attention, layer.feedforward):
                    part.output.initial_std = config.initializer_range / (2 * config.effective_depth) ** 0.5

    def forward(self, h: Tensor, context: Context = _SEES_ALL, passes: int | None = None) -> Tensor:
        """Run prelude, ``passes`` passes (R by default) and coda on h (batch, length, hidden): (batch, queries, hidden).

        context: what the layers see and record; by default every token sees every token. Raises InputError for fewer than 1
        pass, more than R if the passes share no weights, or more than anybody would wait for.
        """
        passes, inside = self.check_passes(passes), context.inside
        h = entered = self.through(self.prelude, h, inside)
        context.trace.add(pass_states=h)
        for pass_index in range(passes):
            ends_here = pass_index == passes - 1 and not self.coda
            x = self.begin(h, entered, pass_index, inside)
            h = self.finish(h, x, pass_index, context if ends_here else inside)
            context.trace.add(pass_states=h)
        return self.through(self.coda, h, context)

    def begin(self, h: Tensor, entered: Tensor, pass_index: int, context: Context) -> Tensor:
        """Run a pass up to, not including, the block's last layer: (batch, length, hidden).

        :meth:`finish` runs that layer. Early exit runs it for [CLS] first.
        h: the state before the pass. entered: the state that entered the loop. pass_index counts from 0.
        """
        block, parts = self._block(pass_index)
        return self.through(block[:-1], self.prepare(h, entered, pass_index, context), context, parts)

    def finish(self, before: Tensor, x: Tensor, pass_index: int, context: Context) -> Tensor:
        """The last layer of a pass on x and the join with ``before``: the next state (batch, queries, hidden)."""
        block, parts = self._block(pass_index)
        after = context.run(block[-1], x, parts[-1])
        h = self.loop_norm(self.residual(context.view(block[-1]).asking(before), after, pass_index))
        context.trace.add(states=h)
        return h

    def prepare(self, h: Tensor, entered: Tensor, pass_index: int, context: Context) -> Tensor:
        """What a pass reads: the state, and what the configuration adds to it before a pass; (batch, length, hidden)."""
        config = self.config
        trained = min(pass_index, config.recurrent_depth - 1)  # passes after R reuse the parameters of pass R
        if config.input_injection and pass_index > 0:
            h = h + entered
        if config.iteration_embedding:
            h = h + self.iteration.weight[trained]
        if config.conditioning_size is not None and pass_index > 0:
            # The first pass has no conditioning layer, so the second pass uses layer 0.
            light = self.conditioning[trained - 1]
            h, _ = light(h, context.inside.view(light))
        return h

    def through(
        self, layers: Sequence[EncoderLayer], h: Tensor, context: Context, parts: Sequence[PassParts | None] | None = None
    ) -> Tensor:
        """h (batch, length, hidden) through these layers; the last computes only the positions that the context asks for.

        parts: what each layer of the block has of its own in this pass.
        """
        for number, layer in enumerate(layers):
            last = number == len(layers) - 1
            h = (context if last else context.inside).run(layer, h, parts and parts[number])
            context.trace.add(states=h)
        return h

    def _block(self, pass_index: int) -> tuple[nn.ModuleList, Sequence[PassParts | None]]:
        """The layers of a pass, and what each has of its own in it. Passes after R reuse the parts of pass R."""
        block = self.blocks[pass_index % len(self.blocks)]
        if not (self.config.pass_norms or self.config.pass_rank):
            return block, [None] * len(block)
        return block, self.of_pass[min(pass_index, len(self.of_pass) - 1)]

    def check_passes(self, passes: int | None) -> int:
        """The number of passes asked for; R for None. Raises InputError if the stack cannot be passed so often."""
        if passes is None:
            return self.config.recurrent_depth
        if passes < 1:
            raise InputError(f"recurrent_depth must be at least 1, not {passes}.")
        check_depth(self.config, passes)
        if len(self.blocks) > 1 and passes > len(self.blocks):
            raise InputError(
                f"This model has {len(self.blocks)} blocks that share no weights, so it cannot be passed {passes} times; "
                "only a shared block can be passed more often than it was trained."
            )
        return passes
