"""The names that transformers' BERT and ModernBERT use for our configuration fields and tensors.

To add an architecture: one more :class:`Reference` in :data:`REFERENCES`. What its tables cannot say, for example
ModernBERT's pattern of local layers, is code in :func:`our_config` and :func:`their_config`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from transformers import BertConfig, ModernBertConfig, PreTrainedConfig

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder, without_weights
from rtxlib.models.presets import BERT, MODERNBERT, Settings

_LAYER = "stack.blocks.0.{i}."
_SAME = {  # fields that everybody calls alike
    name: name
    for name in (
        "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "max_position_embeddings", "pad_token_id", "initializer_range",
    )
}  # fmt: skip


@dataclass(frozen=True)
class Reference:
    """One architecture of transformers, and tables between its names and ours."""

    config_class: type[PreTrainedConfig]
    architecture: str  # the class that its checkpoints name
    fixed: Settings  # what the architecture implies and its configuration does not say
    fields: Mapping[str, str]  # our field -> theirs
    activation: tuple[str, Mapping[str, str]]  # their field; their word -> our feedforward
    modules: Mapping[str, tuple[str, ...]]  # our module -> theirs; several are stacked, the first on top
    prefix: str  # before each name in the checkpoint of a model with a head
    heads: tuple[str, ...] = ()  # how the names of tensors begin that an encoder does not have
    renamed: Mapping[str, str] = field(default_factory=dict)  # end of a name in older checkpoints -> today's


REFERENCES: dict[str, Reference] = {
    "bert": Reference(
        config_class=BertConfig,
        architecture="BertModel",
        fixed=BERT,
        fields={
            **_SAME,
            "type_vocab_size": "type_vocab_size",
            "norm_eps": "layer_norm_eps",
            "hidden_dropout": "hidden_dropout_prob",
            "attention_dropout": "attention_probs_dropout_prob",
        },
        activation=("hidden_act", {"gelu": "gelu", "relu": "relu"}),
        modules={
            "embeddings.token": ("embeddings.word_embeddings",),
            "embeddings.token_type": ("embeddings.token_type_embeddings",),
            "embeddings.position": ("embeddings.position_embeddings",),
            "embeddings.norm": ("embeddings.LayerNorm",),
            _LAYER + "attention.qkv": tuple(
                f"encoder.layer.{{i}}.attention.self.{x}" for x in ("query", "key", "value")
            ),
            _LAYER + "attention.output": ("encoder.layer.{i}.attention.output.dense",),
            _LAYER + "attention_norm": ("encoder.layer.{i}.attention.output.LayerNorm",),
            _LAYER + "feedforward.input": ("encoder.layer.{i}.intermediate.dense",),
            _LAYER + "feedforward.output": ("encoder.layer.{i}.output.dense",),
            _LAYER + "feedforward_norm": ("encoder.layer.{i}.output.LayerNorm",),
            "pooler": ("pooler.dense",),
        },
        prefix="bert.",
        heads=("cls.", "classifier.", "qa_outputs.", "embeddings.position_ids"),  # the last is a counter, not a weight
        renamed={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    ),
    "modernbert": Reference(
        config_class=ModernBertConfig,
        architecture="ModernBertModel",
        fixed=MODERNBERT,
        fields={
            **_SAME,
            **{name: name for name in ("norm_eps", "norm_bias", "local_attention")},
            "bias": "attention_bias",
            "hidden_dropout": "embedding_dropout",
            "attention_dropout": "attention_dropout",
            "activation_dropout": "mlp_dropout",
        },
        activation=("hidden_activation", {"gelu": "geglu", "silu": "swiglu"}),
        modules={
            "embeddings.token": ("embeddings.tok_embeddings",),
            "embeddings.norm": ("embeddings.norm",),
            _LAYER + "attention.qkv": ("layers.{i}.attn.Wqkv",),
            _LAYER + "attention.output": ("layers.{i}.attn.Wo",),
            _LAYER + "attention_norm": ("layers.{i}.attn_norm",),
            _LAYER + "feedforward.input": ("layers.{i}.mlp.Wi",),  # the gate on top, as ours
            _LAYER + "feedforward.output": ("layers.{i}.mlp.Wo",),
            _LAYER + "feedforward_norm": ("layers.{i}.mlp_norm",),
            "final_norm": ("final_norm",),
        },
        prefix="model.",
        heads=("head.", "decoder.", "classifier."),
    ),
}


def our_config(theirs: PreTrainedConfig, **overrides: Any) -> ModelConfig:
    """The ModelConfig of a BertConfig or a ModernBertConfig; ``overrides`` are fields of ours.

    Raises InputError for an activation, a position or a pattern of layers that these models do not have.
    """
    reference = REFERENCES[theirs.model_type]
    settings = reference.fixed | {ours: getattr(theirs, name) for ours, name in reference.fields.items()}
    name, words = reference.activation
    word = getattr(theirs, name)
    if word not in words:
        raise InputError(f"{name}={word!r} is an activation these encoders do not have; they have {', '.join(words)}.")
    settings["feedforward"] = words[word]
    if theirs.model_type == "modernbert":
        settings |= _modern_positions(theirs)
    position = getattr(theirs, "position_embedding_type", None)
    if position not in (None, "absolute") or getattr(theirs, "is_decoder", False):
        raise InputError("Only BERT encoders with absolute positions are understood, not relative ones or decoders.")
    return ModelConfig(**(settings | overrides))


def _modern_positions(theirs: ModernBertConfig) -> Settings:
    """The pattern of global and local layers, and the two rotary bases. Raises InputError for a pattern that is not ours."""
    if theirs.attention_bias != theirs.mlp_bias:
        raise InputError("attention_bias and mlp_bias differ; these encoders have biases in both or in neither.")
    kinds = theirs.layer_types
    globals_at = [i for i, kind in enumerate(kinds) if kind == "full_attention"]
    every = globals_at[1] if len(globals_at) > 1 else len(kinds)
    if globals_at != list(range(0, len(kinds), every)):
        raise InputError(f"layer_types must start with a global layer and repeat it at one distance, not {kinds}.")
    bases = {}
    for ours, kind in (("rope_theta", "full_attention"), ("local_rope_theta", "sliding_attention")):
        rope = theirs.rope_parameters[kind]
        if rope.get("rope_type", "default") != "default":
            raise InputError(f"Rotary positions of type {rope['rope_type']!r} are not understood; only the default is.")
        bases[ours] = rope["rope_theta"]
    return {"global_attention_every": every, **bases}


# Fields that do not change the states of a trained encoder, or that their configuration lacks. global_attention_every is here
# because theirs lists the kind of each layer: the list of a model with one global layer does not show the distance to the next.
_UNSAID = {"pooler", "pooling", "normalize", "max_seq_length", "global_attention_every", "output_initializer"}
_UNSAID |= {"classifier_dropout", "activation_dropout", "embedding_initializer_range"}


def _computes(config: ModelConfig) -> Settings:
    """Every field that the states of an encoder depend on."""
    resolved = {
        "intermediate_size": config.resolved_intermediate_size,
        "local_rope_theta": config.local_rope_theta or config.rope_theta,
    }
    return {name: getattr(config, name) for name in ModelConfig.__annotations__ if name not in _UNSAID} | resolved


def their_config(config: ModelConfig) -> PreTrainedConfig:
    """The BertConfig or ModernBertConfig of a ModelConfig. Raises InputError if neither describes the same encoder."""
    for reference in REFERENCES.values():
        name, words = reference.activation
        back = {ours: word for word, ours in words.items()}
        if config.feedforward not in back:
            continue
        settings = {theirs: getattr(config, ours) for ours, theirs in reference.fields.items()}
        settings |= {name: back[config.feedforward], "intermediate_size": config.resolved_intermediate_size}
        if reference.config_class is ModernBertConfig:
            settings |= {
                "mlp_bias": config.bias,
                "global_attn_every_n_layers": config.global_attention_every,
                "rope_parameters": {
                    "full_attention": {"rope_type": "default", "rope_theta": config.rope_theta},
                    "sliding_attention": {
                        "rope_type": "default",
                        "rope_theta": config.local_rope_theta or config.rope_theta,
                    },
                },
            }
        try:
            theirs = reference.config_class(**settings, architectures=[reference.architecture])
        except StrictDataclassError:  # a value that theirs cannot have, for example no local attention
            continue
        if _computes(our_config(theirs)) == _computes(config):  # equal: no field was lost
            return theirs
    raise InputError(
        f"This model is neither a {' nor a '.join(REFERENCES)} of transformers, so it has no checkpoint in their names; "
        "save_pretrained keeps it in ours."
    )


def tensor_names(config: ModelConfig, model_type: str) -> dict[str, tuple[str, ...]]:
    """Each tensor name of an :class:`Encoder` with this configuration -> the names of the tensors it is stacked from.

    model_type: a key of :data:`REFERENCES`, or "rtx" for our own checkpoints, whose names are ours.
    """
    with without_weights():
        ours = list(Encoder(config).state_dict())
    if model_type not in REFERENCES:
        return {name: (name,) for name in ours}
    modules = REFERENCES[model_type].modules
    names = {}
    for name in ours:
        module, _, kind = name.rpartition(".")  # kind: weight or bias
        number = ""
        if layer := re.fullmatch(r"stack\.blocks\.0\.(\d+)\.(.+)", module):
            number, module = layer[1], _LAYER + layer[2]
        names[name] = tuple(f"{theirs.format(i=number)}.{kind}" for theirs in modules[module])
    return names
