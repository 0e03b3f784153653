"""The encoder: embeddings, the recurrent stack and pooling; and how every model's weights start and are saved.

``EncoderBase._init_weights`` sets the initial weights. To add an initialiser, add its name to ``CHOICES["output_initializer"]``
(config.py) and set ``initial_std`` of the modules concerned, as :class:`~rtxlib.models.recurrence.RecurrentStack` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import initialization
from transformers.modeling_outputs import BaseModelOutputWithPooling

from rtxlib.errors import InputError
from rtxlib.models.attention import packed_positions, packed_view, self_attention_view, sinusoidal_table
from rtxlib.models.checkpoint_files import WEIGHTS
from rtxlib.models.config import ModelConfig
from rtxlib.models.kernels import Dropout, Linear
from rtxlib.models.layers import NO_TRACE, Context, LowRank, Trace, make_norm
from rtxlib.models.recurrence import RecurrentStack
from rtxlib.models.residual import PassResidual


class Embeddings(nn.Module):
    """Sum of token, segment and position embeddings, as configured; then a norm and dropout.

    With ``embedding_size`` E the table is (vocabulary, E) and a matrix E → d widens its vectors (ALBERT, Lan et al. 2020).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = config.embedding_size or config.hidden_size
        padding = None if config.pad_token_id == -1 else config.pad_token_id  # torch takes −1 for the last token
        self.token = nn.Embedding(config.vocab_size, width, padding_idx=padding)
        self.token.initial_std = config.embedding_initializer_range
        self.widen = nn.Identity() if width == config.hidden_size else Linear(width, config.hidden_size, bias=False)
        if config.type_vocab_size:
            self.token_type = nn.Embedding(config.type_vocab_size, config.hidden_size)
        if config.position == "learned":
            self.position = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.hidden_dropout)

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """Token ids (batch, length) → (batch, length, hidden). positions: (length,), by default 0, 1, 2, …"""
        length = input_ids.shape[1]
        x = self.widen(self.token(input_ids))  # (B, T, d)
        if self.config.embedding_scale:
            x = x * self.config.hidden_size**0.5
        if self.config.type_vocab_size:  # without ids every token is of type 0: a text is one segment
            one_type = token_type_ids is None or self.config.type_vocab_size == 1  # [SEP] alone divides a pair
            x = x + (self.token_type.weight[0] if one_type else self.token_type(token_type_ids))
        if self.config.position == "learned":
            x = x + (self.position.weight[:length] if positions is None else self.position(positions))
        elif self.config.position == "sinusoidal":
            table = sinusoidal_table(length, x.shape[-1], x.device).to(x.dtype)
            x = x + (table if positions is None else table[positions])
        return self.dropout(self.norm(x))


class _NoDraws(TorchFunctionMode):
    """Functions of torch.nn.init leave their tensor as it is."""

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if getattr(func, "__module__", None) == nn.init.__name__:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


@contextmanager
def without_weights() -> Iterator[None]:
    """Models are built on the meta device, without memory for their weights and without drawing them.

    To draw on that device torch imports its compiler, which takes longer than torch itself.
    """
    with torch.device("meta"), _NoDraws():
        yield


class EncoderBase(nn.Module):
    """What every model of this package shares: its configuration, how its weights start, and how it is saved.

    These are plain modules, because the base class of transformers' models takes longer to import than torch.
    :mod:`rtxlib.models.for_transformers` has the same models with that base class, which ``AutoModel`` opens.
    """

    config_class = ModelConfig
    base_model_prefix = "encoder"  # how transformers finds the encoder in a model with a head

    def __init__(self, config: ModelConfig) -> None:
        nn.Module.__init__(self)  # not super(): for_transformers has called the other base class itself
        self.config = config

    def draw_weights(self) -> None:
        """Set the initial weights, each module after its parts. A model inside this one has drawn its own."""

        def draw(module: nn.Module) -> None:
            for part in module.children():
                if not isinstance(part, EncoderBase):
                    draw(part)
            self._init_weights(module)

        draw(self)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Normal weights with standard deviation ``initializer_range``, or ``initial_std`` of modules that have one."""
        std = getattr(module, "initial_std", None) or self.config.initializer_range
        if isinstance(module, nn.Linear | nn.Embedding):
            initialization.normal_(module.weight, std=std)
        elif isinstance(module, nn.RMSNorm | nn.LayerNorm):
            initialization.ones_(module.weight)
        elif isinstance(module, PassResidual | LowRank):
            module.reset_parameters()
        if getattr(module, "bias", None) is not None:
            initialization.zeros_(module.bias)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def get_input_embeddings(self) -> nn.Embedding:
        """The embedding matrix."""
        return getattr(self, self.base_model_prefix, self).embeddings.token

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        getattr(self, self.base_model_prefix, self).embeddings.token = value

    def save_pretrained(self, folder: Path | str) -> None:
        """Write config.json and model.safetensors, as transformers does. ``AutoModel`` opens the folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.config.architectures = [type(self).__name__]
        self.config.dtype = self.get_input_embeddings().weight.dtype
        self.config.save_pretrained(folder)
        tensors = {name: tensor.contiguous() for name, tensor in self.state_dict().items()}
        save_file(tensors, Path(folder) / WEIGHTS, metadata={"format": "pt"})


@dataclass
class EncoderOutput(BaseModelOutputWithPooling):
    """What transformers' encoders return, and ``pass_states``: the state that entered the loop and the one after each pass."""

    pass_states: tuple[Tensor, ...] | None = None


def check_length(length: int, config: ModelConfig) -> None:
    """Raise InputError if a text is longer than its model's positions."""
    if length > config.max_position_embeddings:
        raise InputError(
            f"A text of {length} tokens is longer than the {config.max_position_embeddings} positions of this model; "
            "truncate it (the tokenizer's truncation=True) or build the model with more max_position_embeddings."
        )


class Encoder(EncoderBase):
    """Token ids (batch, length) → one state per token (batch, length, hidden)."""

    loaded = ""  # how many tensors of a checkpoint it was loaded from, in words

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.embeddings = Embeddings(config)
        self.stack = RecurrentStack(config)
        self.final_norm = make_norm(config) if config.final_norm else nn.Identity()
        if config.pooler:
            self.pooler = Linear(config.hidden_size, config.hidden_size)
        self.draw_weights()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        queries: int | None = None,
        offsets: Sequence[int] | None = None,
        recurrent_depth: int | None = None,
    ) -> EncoderOutput | tuple:
        """Encode a batch.

        input_ids, token_type_ids: (batch, length). attention_mask: (batch, length), nonzero where a token is real; None:
        all are. queries: the last layer computes only the first ``queries`` positions. offsets: the batch is one packed row,
        texts end to end without padding. Text i occupies offsets[i]:offsets[i+1] and attends only to itself. The states
        equal those of a padded batch. Texts sorted by length are fastest. Of a packed row ``queries`` can only be 1, the
        first token of each text, which gives (1, texts, hidden). recurrent_depth: the number of passes instead of R.
        Without it, training with ``depth_sampling="uniform"`` draws a number from 1 to R.

        Returns last_hidden_state (batch, length or queries, hidden) and, with a pooler, pooler_output (texts, hidden).
        With output_hidden_states also hidden_states, the embedding and the state after each layer of each pass, and
        pass_states, the state that entered the loop and the state after each pass. With output_attentions also the
        weights (batch, heads, length, length) of each layer of each pass. Raises InputError if a text is longer than
        ``max_position_embeddings``, or if attention weights of a packed row are asked for.
        """
        config = self.config
        trace, device = Trace(output_hidden_states, output_attentions), input_ids.device
        if offsets is None:
            positions, context = None, self.context(input_ids.shape[1], attention_mask, device, trace)
        elif output_attentions:
            raise InputError("A packed row has no attention weights to show; pad the texts instead of packing them.")
        else:
            positions, context = packed_positions(offsets, device), self.packed_context(offsets, device, trace)
        h = self.embeddings(input_ids, token_type_ids, positions)
        trace.add(states=h)
        if recurrent_depth is None and self.training and config.depth_sampling == "uniform":
            recurrent_depth = int(torch.randint(1, config.recurrent_depth + 1, ()))
        h = self.final_norm(self.stack(h, context._replace(queries=queries), recurrent_depth))
        firsts = h[:, 0] if offsets is None else context.full._replace(queries=1).asking(h)[0]  # [CLS] of each text
        output = EncoderOutput(
            last_hidden_state=h,
            pooler_output=self.pooler(firsts).tanh() if config.pooler else None,
            hidden_states=tuple(trace.states) if output_hidden_states else None,
            attentions=tuple(trace.attentions) if output_attentions else None,
            pass_states=tuple(trace.pass_states) if output_hidden_states else None,
        )
        return output if return_dict is not False else output.to_tuple()

    def context(
        self, length: int, attention_mask: Tensor | None, device: torch.device, trace: Trace = NO_TRACE
    ) -> Context:
        """What the layers see of texts padded to ``length``. attention_mask: (batch, length); None: every token is real.

        Raises InputError if ``length`` is above ``max_position_embeddings``.
        """
        config = self.config
        check_length(length, config)
        full, local = self_attention_view(config, length, attention_mask, device), None
        if config.local_attention is not None:
            local = self_attention_view(config, length, attention_mask, device, local=True)
        return Context(full, local, trace=trace, eager=config._attn_implementation == "eager")

    def packed_context(self, offsets: Sequence[int], device: torch.device, trace: Trace) -> Context:
        """What the layers see of a packed row. Raises InputError if a text is longer than ``max_position_embeddings``."""
        check_length(max(end - start for start, end in pairwise(offsets)), self.config)
        local = packed_view(self.config, offsets, device, local=True) if self.config.local_attention is not None else None
        return Context(packed_view(self.config, offsets, device), local, trace=trace)

    def pool(
        self, states: Tensor, attention_mask: Tensor | None = None, offsets: Sequence[int] | None = None
    ) -> Tensor:
        """One vector per text (batch, hidden) from the states after any pass (batch, length, hidden).

        ``config.pooling`` says how: the state of [CLS], the mean over real tokens, or the pooler on top of [CLS].
        For a packed row (1, total, hidden) with ``offsets`` the result is (texts, hidden). Where [CLS] is read, the row may
        be cut to the first token of each text (1, texts, hidden).
        """
        if offsets is not None:
            lengths = [end - start for start, end in pairwise(offsets)]
            if not self.config.reads_cls:
                return torch.stack([text.mean(dim=0) for text in states[0].split(lengths)])
            cut = states.shape[1] == len(lengths)
            states = (states if cut else states[:, list(offsets[:-1])]).transpose(0, 1)  # (texts, 1, hidden)
        if self.config.pooling == "pooler":
            return self.pooler(states[:, 0]).tanh()
        if self.config.pooling == "cls":
            return states[:, 0]
        if attention_mask is None:
            return states.mean(dim=1)
        real = attention_mask.to(states.dtype)[..., None]  # (B, T, 1)
        return (states * real).sum(dim=1) / real.sum(dim=1)

    def summary(self, states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The [CLS] state or the mean state (batch, hidden). The pooler or the classifier reads it."""
        return states[:, 0] if self.config.reads_cls else self.pool(states, attention_mask)

    def embed(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Sentence embeddings (batch, hidden): pooled states, scaled to length one if ``config.normalize`` is set.

        Arguments as in :meth:`forward`.
        """
        states = self(input_ids, attention_mask, queries=1 if self.config.reads_cls else None).last_hidden_state
        pooled = self.pool(states, attention_mask)
        return nn.functional.normalize(pooled, dim=-1) if self.config.normalize else pooled
