"""One configuration for every model: the field's standard names, and one word per choice."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from transformers import PreTrainedConfig

from rtxlib.errors import InputError, nearest, shortened, shown
from rtxlib.models.residual import FORMS

CHOICES: dict[str, tuple[str, ...]] = {
    "position": ("rotary", "learned", "sinusoidal", "alibi", "none"),
    "norm": ("rmsnorm", "layernorm"),
    "norm_placement": ("pre", "post", "sandwich"),
    "feedforward": ("swiglu", "geglu", "gelu", "relu"),
    "pooling": ("cls", "mean", "pooler"),
    "block_sharing": ("shared", "unshared"),
    "residual": tuple(FORMS),
    "depth_sampling": ("fixed", "uniform"),
    "output_initializer": ("plain", "depth_scaled"),
}
GATED = ("swiglu", "geglu")
OF_DATA = ("vocab_size", "num_labels", "id2label", "label2id")  # a training run takes these from its data

# First word of an annotation -> the word for it in a sentence, and a test of a value. A bool does not count as a number.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "bool": ("true or false", lambda x: isinstance(x, bool)),
    "int": ("a whole number", lambda x: isinstance(x, int) and not isinstance(x, bool)),
    "float": (
        "a finite number",
        lambda x: isinstance(x, int | float) and not isinstance(x, bool) and abs(x) <= sys.float_info.max,
    ),
    "str": ("a word", lambda x: isinstance(x, str) and bool(x)),
}
# What a number must be -> a test of it. The upper ends are far beyond use: the deepest published encoders have 1,000 layers, the
# widest are some ten thousand wide, and the longest texts are of ten million tokens. They stop a mistyped number from filling
# memory or computing for years. Below them, rtxlib.models.size compares a model with the memory that is there.
_RANGES: dict[str, Callable[[float], bool]] = {
    "at least 0": lambda x: x >= 0,
    "at least 1": lambda x: x >= 1,
    "at least 0 and below 1": lambda x: 0 <= x < 1,
    "a probability below 1": lambda x: 0 <= x < 1,
    "from 0 to 1": lambda x: 0 <= x <= 1,
    "from 0 to 10,000": lambda x: 0 <= x <= 10**4,
    "from 1 to 10,000": lambda x: 1 <= x <= 10**4,
    "from 0 to 1,000,000": lambda x: 0 <= x <= 10**6,
    "from 1 to 1,000,000": lambda x: 1 <= x <= 10**6,
    "from 1 to 10,000,000": lambda x: 1 <= x <= 10**7,
    "from 1 to 1,000,000,000": lambda x: 1 <= x <= 10**9,
    "above zero": lambda x: x > 0,
    "above zero and at most 2": lambda x: 0 < x <= 2,
    "above zero and at most 1,000,000": lambda x: 0 < x <= 10**6,
}
_FIELDS = {
    "at least 0": "norm_eps initializer_range embedding_initializer_range",
    "from 0 to 10,000": "prelude_layers coda_layers num_decoder_layers",
    "from 1 to 10,000": "num_hidden_layers recurrent_depth",
    "from 0 to 1,000,000": "type_vocab_size",
    "from 1 to 1,000,000": "hidden_size num_attention_heads embedding_size pass_rank",
    "from 1 to 10,000,000": "vocab_size max_position_embeddings max_seq_length intermediate_size conditioning_size "
    "local_attention global_attention_every",
    "a probability below 1": "hidden_dropout attention_dropout activation_dropout classifier_dropout",
    "above zero": "rope_theta local_rope_theta",
}
MOST_LAYERS = 10_000  # that a token passes through; each takes about a tenth of a millisecond, however small it is


class ModelConfig(PreTrainedConfig):
    """What a model is, apart from its weights. Each field has its meaning or its unit beside it.

    Sizes default to those of BERT-base (Devlin et al. 2019). Choices default to those of the study: rotary positions,
    SwiGLU, RMSNorm, pre-norm. Raises InputError for a word that is not among :data:`CHOICES`, for a value of the wrong type
    or out of range, and for fields that contradict each other.
    """

    model_type = "rtx"

    vocab_size: int = 30522
    hidden_size: int = 768  # d, the width of the state
    num_hidden_layers: int = 12  # N, layers of a block
    num_decoder_layers: int = 0  # of an encoder–decoder; 0: only an encoder
    num_attention_heads: int = 12
    intermediate_size: int | None = 3072  # width inside the feed-forward; None: 4d, or ⌊8/3·d⌋ if it is gated
    max_position_embeddings: int = 512  # the longest text, in tokens
    type_vocab_size: int = 2  # segments, each with a vector of its own; 0: none
    pad_token_id: int | None = 0

    position: str = "rotary"
    rope_theta: float | int = 10000.0  # base of the rotary frequencies
    local_rope_theta: float | int | None = None  # the base in local layers; None: rope_theta
    local_attention: int | None = None  # tokens that a local layer sees, half on each side; None: no local layers
    global_attention_every: int = 3  # with local_attention: of so many layers, the first sees all tokens
    norm: str = "rmsnorm"
    norm_placement: str = "pre"
    norm_eps: float = 1e-12
    norm_bias: bool = True  # of LayerNorm; RMSNorm has no bias
    embedding_scale: bool = False  # token vectors are multiplied by √d before positions are added
    embedding_norm: bool = True
    first_attention_norm: bool = True  # pre-norm: whether the first layer's attention has a norm
    final_norm: bool = False
    feedforward: str = "swiglu"
    bias: bool = True  # in attention and feed-forward
    pooler: bool = False  # BERT's dense layer with tanh on top of [CLS]
    pooling: str = "cls"  # the vector of a text: the state of [CLS], the mean of all states, or the pooler's output
    normalize: bool = False  # sentence embeddings have length one
    max_seq_length: int | None = None  # tokens that a sentence embedding reads; None: max_position_embeddings

    recurrent_depth: int = 1  # R, passes through the block; 1 is the standard encoder
    block_sharing: str = "shared"  # "unshared": each pass has weights of its own
    residual: str = "from_second"  # how a pass joins its output to the state before it (models/residual.py)
    residual_scale: float | int = 0.5  # α
    input_injection: bool = False  # each pass after the first adds the state that entered the loop
    loop_norm: bool = False  # a norm after each pass
    iteration_embedding: bool = False  # each pass adds a vector of its own to the state
    conditioning_size: int | None = None  # width inside the light layer before each later pass; None: no layer
    pass_norms: bool = False  # in each pass the block's layers have norms of their own
    pass_rank: int | None = None  # rank of what each pass adds to the block's matrices; None: nothing is added
    prelude_layers: int = 0  # layers before the loop, passed once
    coda_layers: int = 0  # layers after the loop, passed once
    embedding_size: int | None = None  # E, width of the embedding matrix, which a matrix widens to d; None: d
    depth_sampling: str = "fixed"  # "uniform": random depth, each training batch takes 1 to R passes

    hidden_dropout: float | int = 0.1  # of the embedding and of each sub-layer's output
    attention_dropout: float | int = 0.1  # of the attention weights
    activation_dropout: float | int = 0.0  # inside the feed-forward, after the activation
    classifier_dropout: float | int = 0.1
    initializer_range: float = 0.02  # standard deviation of every weight matrix at the start
    embedding_initializer_range: float | None = None  # of the embedding matrix; None: initializer_range
    output_initializer: str = "plain"  # "depth_scaled": output projections start smaller by √(2·depth)

    def __post_init__(self, **kwargs: Any) -> None:
        super().__post_init__(**kwargs)
        self.check()

    def check(self) -> None:
        """Raise InputError for a value that its field cannot have, or fields that contradict each other.

        To be called again after a field was changed.
        """
        for field, known in CHOICES.items():
            word = getattr(self, field)
            if word not in known:
                raise InputError(f"{field}={shown(word)} is not one of {', '.join(known)}.{nearest(str(word), known)}")
        check_values({field: getattr(self, field) for field in _ANNOTATIONS}, _ANNOTATIONS, _FIELDS)
        # Some models on the Hub have −1.
        if self.pad_token_id is not None and not -1 <= self.pad_token_id < self.vocab_size:
            raise InputError(
                f"pad_token_id must be one of the {self.vocab_size:,} tokens, counted from 0, or None, not {self.pad_token_id}."
            )
        if self.hidden_size % self.num_attention_heads:
            raise InputError(
                f"hidden_size {self.hidden_size} cannot be divided among {self.num_attention_heads} attention heads; "
                "choose a multiple of num_attention_heads."
            )
        if self.position == "rotary" and self.head_dim % 2:
            raise InputError(f"Rotary positions rotate pairs, so the width of a head ({self.head_dim}) must be even.")
        if self.pooling == "pooler" and not self.pooler:
            raise InputError("pooling='pooler' reads BERT's pooler, so it needs pooler=True.")
        if self.local_attention is not None and (self.local_attention < 2 or self.local_attention % 2):
            raise InputError(f"local_attention is an even number of tokens, not {self.local_attention!r}.")
        if self.num_decoder_layers and self.norm_placement == "sandwich":
            raise InputError("norm_placement='sandwich' is not for decoders; take 'pre' or 'post'.")
        self._check_loop()

    def _check_loop(self) -> None:
        """Raise InputError for fields of the loop that contradict each other, or a loop that is too long."""
        check_depth(self)
        if self.residual in ("learned", "damped") and not 0 < self.residual_scale < 1:
            raise InputError(
                f"residual={self.residual!r} needs a residual_scale between 0 and 1, not {self.residual_scale!r}: "
                + ("it starts there and stays inside." if self.residual == "learned" else "it is the part taken on.")
            )
        if self.depth_sampling == "uniform" and self.block_sharing == "unshared":
            raise InputError(
                "depth_sampling='uniform' trains one block for every depth; with block_sharing='unshared' the later "
                "blocks would be trained less than the earlier ones."
            )
        for field in ("pass_norms", "pass_rank"):
            if getattr(self, field) and self.block_sharing == "unshared":
                raise InputError(f"{field} relaxes sharing, and with block_sharing='unshared' the passes share nothing.")
        if self.recurrent_depth > 1:
            return
        for field in ("input_injection", "iteration_embedding", "conditioning_size", "pass_norms", "pass_rank", "depth_sampling"):
            if getattr(self, field) != getattr(ModelConfig, field):
                raise InputError(f"{field} is about passes after the first, and recurrent_depth=1 has none of them.")

    @property
    def head_dim(self) -> int:
        """Width of one attention head."""
        return self.hidden_size // self.num_attention_heads

    @property
    def resolved_intermediate_size(self) -> int:
        """Width inside the feed-forward, with None resolved: 4d, or ⌊8/3·d⌋ if it is gated (Shazeer 2020)."""
        if self.intermediate_size is not None:
            return self.intermediate_size
        return 8 * self.hidden_size // 3 if self.feedforward in GATED else 4 * self.hidden_size

    @property
    def reads_cls(self) -> bool:
        """Whether [CLS] alone is read, so that the last layer need not compute the other positions."""
        return self.pooling in ("cls", "pooler")

    @property
    def effective_depth(self) -> int:
        """Layers that a token passes through: prelude, N·R and coda; light conditioning layers do not count."""
        return self.prelude_layers + self.num_hidden_layers * self.recurrent_depth + self.coda_layers

    @property
    def family(self) -> str:
        """``"recurrent"`` if the block is passed more than once, otherwise ``"standard"``."""
        return "recurrent" if self.recurrent_depth > 1 else "standard"


def check_depth(config: ModelConfig, passes: int | None = None) -> None:
    """Raise InputError if a token goes through more than :data:`MOST_LAYERS` layers. passes: instead of the configured number."""
    passes = config.recurrent_depth if passes is None else passes
    depth = config.effective_depth + config.num_hidden_layers * (passes - config.recurrent_depth)
    if depth > MOST_LAYERS:
        raise InputError(
            f"With {passes:,} passes every token goes through {depth:,} layers, prelude and coda included; the most is "
            f"{MOST_LAYERS:,}. Take fewer passes or layers."
        )


_ANNOTATIONS: dict[str, str] = dict(ModelConfig.__annotations__)  # our fields without those of transformers


def check_values(
    values: Mapping[str, object], annotations: Mapping[str, str], ranges: Mapping[str, str], whose: str = ""
) -> None:
    """Raise InputError for a value that is not of its field's type or not in its field's range.

    annotations: field -> "int", "float | None", … ranges: a key of ``_RANGES`` -> the names of its fields, in one string.
    ``whose`` stands before the field's name in the sentence.
    """
    for field, value in values.items():
        kind, *others = annotations[field].split(" | ")
        if value is None and "None" in others:
            continue
        what, is_one = _KINDS[kind]
        if not is_one(value):
            wanted = f"{what} or None" if "None" in others else what
            if kind == "int" and isinstance(value, float) and value.is_integer():  # 1e9 is whole, but JSON reads a float
                wanted += " in digits alone"
            raise InputError(f"{whose}{field} must be {wanted}, not {shown(value)}.")
        for within, fields in ranges.items():
            if field in fields.split() and not _RANGES[within](value):
                raise InputError(f"{whose}{field} must be {within}, not {shown(value)}.")


def check_names(settings: Mapping[str, object]) -> None:
    """Raise InputError for a name that is not a field of :class:`ModelConfig`, or a wrong number of labels."""
    fields = {*_ANNOTATIONS, *OF_DATA}
    for name in settings:
        if name not in fields:
            raise InputError(f"A model has no setting '{shortened(name)}'.{nearest(name, fields)}")
    if "num_labels" in settings:  # checked here, before transformers makes a name for each label
        check_values({"num_labels": settings["num_labels"]}, {"num_labels": "int"}, {"from 1 to 1,000,000": "num_labels"})
