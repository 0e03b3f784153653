"""Depth by recurrence: a block of N layers passed R times, with shared weights or with a block for each pass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from torch import Tensor, nn

from rtxlib.errors import InputError
from rtxlib.models.attention import SEES_ALL, Views
from rtxlib.models.config import ModelConfig, check_depth
from rtxlib.models.layers import NO_TRACE, EncoderLayer, PassParts, Trace, make_norm
from rtxlib.models.residual import PassResidual

_NO_MASKS = Views(SEES_ALL)


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

    def forward(
        self,
        h: Tensor,
        views: Views = _NO_MASKS,
        queries: int | None = None,
        passes: int | None = None,
        trace: Trace = NO_TRACE,
    ) -> Tensor:
        """Run prelude, ``passes`` passes (R by default) and coda on h (batch, length, hidden): (batch, queries, hidden).

        views: what the layers see; by default every token sees every token. queries: the last layer computes only the
        first ``queries`` positions. trace: what is recorded on the way; its ``attentions`` make attention eager.
        Raises InputError for fewer than 1 pass, more than R if the passes share no weights, or more than anybody would wait for.
        """
        passes = self.check_passes(passes)
        h = entered = self.through(self.prelude, h, views, trace=trace)
        trace.add(pass_states=h)
        for pass_index in range(passes):
            ends_here = pass_index == passes - 1 and not self.coda
            x = self.begin(h, entered, pass_index, views, trace)
            h = self.finish(h, x, pass_index, views, queries if ends_here else None, trace)
            trace.add(pass_states=h)
        return self.through(self.coda, h, views, queries, trace)

    def begin(self, h: Tensor, entered: Tensor, pass_index: int, views: Views, trace: Trace = NO_TRACE) -> Tensor:
        """Run a pass up to, not including, the block's last layer: (batch, length, hidden).

        :meth:`finish` runs that layer. Early exit runs it for [CLS] first.
        h: the state before the pass. entered: the state that entered the loop. pass_index counts from 0.
        """
        x = self.prepare(h, entered, pass_index, views, trace)
        block = self.blocks[pass_index % len(self.blocks)]
        return self.through(block[:-1], x, views, trace=trace, of_pass=self._of_pass(pass_index))

    def finish(
        self,
        before: Tensor,
        x: Tensor,
        pass_index: int,
        views: Views,
        queries: int | None = None,
        trace: Trace = NO_TRACE,
    ) -> Tensor:
        """The last layer of a pass on x and the join with ``before``: the next state (batch, queries, hidden)."""
        block = self.blocks[pass_index % len(self.blocks)]
        own = self._of_pass(pass_index)
        after = self._run(block[-1], x, views, queries, trace, own and own[-1])
        before = before if queries is None else views.full.first(before, queries)
        h = self.loop_norm(self.residual(before, after, pass_index))
        trace.add(states=h)
        return h

    def prepare(self, h: Tensor, entered: Tensor, pass_index: int, views: Views, trace: Trace = NO_TRACE) -> Tensor:
        """What a pass reads: the state, and what the configuration adds to it before a pass; (batch, length, hidden)."""
        config = self.config
        trained = min(pass_index, config.recurrent_depth - 1)  # passes after R reuse the parameters of pass R
        if config.input_injection and pass_index > 0:
            h = h + entered
        if config.iteration_embedding:
            h = h + self.iteration.weight[trained]
        if config.conditioning_size is not None and pass_index > 0:
            # The first pass has no conditioning layer, so the second pass uses layer 0.
            h, _ = self.conditioning[trained - 1](h, views.full, eager=self._eager(trace))
        return h

    def through(
        self,
        layers: Sequence[EncoderLayer],
        h: Tensor,
        views: Views,
        queries: int | None = None,
        trace: Trace = NO_TRACE,
        of_pass: Sequence[PassParts] | None = None,
    ) -> Tensor:
        """h (batch, length, hidden) through these layers; the last computes only the first ``queries`` positions.

        of_pass: what each layer of the block has of its own in this pass.
        """
        for number, layer in enumerate(layers):
            last = number == len(layers) - 1
            h = self._run(layer, h, views, queries if last else None, trace, of_pass and of_pass[number])
            trace.add(states=h)
        return h

    def _of_pass(self, pass_index: int) -> nn.ModuleList | None:
        """What the layers of the block have of their own in a pass. Passes after R reuse the parts of pass R."""
        if not (self.config.pass_norms or self.config.pass_rank):
            return None
        return self.of_pass[min(pass_index, len(self.of_pass) - 1)]

    def _run(
        self, layer: EncoderLayer, h: Tensor, views: Views, queries: int | None, trace: Trace, own: PassParts | None
    ) -> Tensor:
        """One layer with the view of its kind; its attention weights go to the trace."""
        h, weights = layer(h, views.local if layer.local else views.full, queries, self._eager(trace), own)
        trace.add(attentions=weights)
        return h

    def _eager(self, trace: Trace) -> bool:
        """Whether layers build their attention weights."""
        return trace.attentions is not None or self.config._attn_implementation == "eager"

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
