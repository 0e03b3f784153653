"""How the reference implementations name what we have: the fields of a configuration and the tensors of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import BertConfig, ModernBertConfig, PreTrainedConfig

from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig
from rtxlib.models.encoder import Encoder
from rtxlib.models.presets import BERT, MODERNBERT, Settings

_LAYER = "stack.blocks.0.{i}."


@dataclass(frozen=True)
class Reference:
    """One architecture of transformers, and the tables that lead from its names to ours and back."""

    config_class: type[PreTrainedConfig]
    architecture: str  # the class whose checkpoints these are
    fixed: Settings  # what the architecture decides and its configuration does not say
    fields: Mapping[str, str]  # our field -> theirs
    activation: tuple[str, Mapping[str, str]]  # their field, and their word -> our feedforward
    modules: Mapping[str, tuple[str, ...]]  # our module -> theirs; several are stacked, first on top
    prefix: str  # before every name in a checkpoint that also has a head
    heads: tuple[str, ...] = ()  # how names begin that belong to a head, which an encoder does not have
    renamed: Mapping[str, str] = field(default_factory=dict)  # ends of names in older checkpoints -> today's


REFERENCES: dict[str, Reference] = {
    "bert": Reference(
        config_class=BertConfig,
        architecture="BertModel",
        fixed=BERT,
        fields={
            **{name: name for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")},
            **{name: name for name in ("intermediate_size", "max_position_embeddings", "type_vocab_size")},
            **{name: name for name in ("pad_token_id", "initializer_range")},
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
            **{name: name for name in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")},
            **{name: name for name in ("intermediate_size", "max_position_embeddings", "pad_token_id")},
            **{name: name for name in ("initializer_range", "norm_eps", "norm_bias", "local_attention")},
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
            _LAYER + "feedforward.input": ("layers.{i}.mlp.Wi",),  # the half that is activated on top, as here
            _LAYER + "feedforward.output": ("layers.{i}.mlp.Wo",),
            _LAYER + "feedforward_norm": ("layers.{i}.mlp_norm",),
            "final_norm": ("final_norm",),
        },
        prefix="model.",
        heads=("head.", "decoder.", "classifier."),
    ),
}


def our_config(theirs: PreTrainedConfig, **overrides: Any) -> ModelConfig:
    """The ModelConfig of a BertConfig or a ModernBertConfig. Raises InputError for what our parts do not have."""
    reference = REFERENCES[theirs.model_type]
    settings = reference.fixed | {ours: getattr(theirs, name) for ours, name in reference.fields.items()}
    name, words = reference.activation
    word = getattr(theirs, name)
    if word not in words:
        raise InputError(f"{name}={word!r} is an activation these encoders do not have; they have {', '.join(words)}.")
    settings["feedforward"] = words[word]
    if theirs.model_type == "modernbert":
        settings |= _modern_positions(theirs)
    if getattr(theirs, "position_embedding_type", None) not in (None, "absolute") or getattr(
        theirs, "is_decoder", False
    ):
        raise InputError("Only BERT encoders with absolute positions are understood, not relative ones or decoders.")
    return ModelConfig(**(settings | overrides))


def _modern_positions(theirs: ModernBertConfig) -> Settings:
    """The rhythm of global and local layers, and the two rotary bases."""
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


# What a configuration of theirs does not say, or says for training alone. Of the rhythm of local layers no more than a model's
# own layers show can come back.
_UNSAID = {"pooler", "pooling", "normalize", "max_seq_length", "global_attention_every", "output_initializer"}
_UNSAID |= {"classifier_dropout", "activation_dropout", "embedding_initializer_range"}


def _computes(config: ModelConfig) -> Settings:
    """Every field that decides what an encoder makes of its input."""
    resolved = {
        "intermediate_size": config.resolved_intermediate_size,
        "local_rope_theta": config.local_rope_theta or config.rope_theta,
    }
    return {name: getattr(config, name) for name in ModelConfig.__annotations__ if name not in _UNSAID} | resolved


def their_config(config: ModelConfig) -> PreTrainedConfig:
    """The BertConfig or ModernBertConfig of a ModelConfig. Raises InputError where neither can say what it is."""
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
        except StrictDataclassError:  # a value that theirs cannot have, such as no local attention
            continue
        if _computes(our_config(theirs)) == _computes(config):  # a field that got lost would make it another model
            return theirs
    raise InputError(
        f"This model is neither a {' nor a '.join(REFERENCES)} of transformers, so it has no checkpoint in their names; "
        "save_pretrained keeps it in ours."
    )


def tensor_names(config: ModelConfig, model_type: str) -> dict[str, tuple[str, ...]]:
    """Every tensor of an :class:`Encoder` of this configuration -> the tensors of the reference that it is stacked from.

    ``model_type``: a key of :data:`REFERENCES`, or "rtx" for our own checkpoints, whose names are the same.
    """
    with torch.device("meta"):
        ours = list(Encoder(config).state_dict())
    if model_type not in REFERENCES:
        return {name: (name,) for name in ours}
    modules = REFERENCES[model_type].modules
    names = {}
    for name in ours:
        module, _, kind = name.rpartition(".")  # kind: weight or bias
        parts, number = module.split("."), ""
        if module.startswith("stack.blocks.0."):
            number, parts[3] = parts[3], "{i}"
        names[name] = tuple(f"{theirs.format(i=number)}.{kind}" for theirs in modules[".".join(parts)])
    return names
