"""Names of data sets and models, made from the specs of data and runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rtxlib.data.datasets import Composed, Generated, Pooled
from rtxlib.data.spec import DataSpec
from rtxlib.runs.spec import RunSpec, data_label
from rtxstudy.names import SOURCES, Name
from rtxstudy.numbers import percent

MODELS = {  # the last part of a pretrained model's address → its name
    "all-MiniLM-L6-v2": "MiniLM",
    "paraphrase-MiniLM-L3-v2": "MiniLM-L3",
    "all-MiniLM-L12-v2": "MiniLM-L12",
    "ModernBERT-base": "ModernBERT",
}
SETTINGS: dict[str, dict[Any, str]] = {  # field of a model's configuration → its value → what it says; None: any value
    "residual": {
        "none": "no residual",
        "every": "residual on every pass",
        "learned": "learned residual",
        "damped": "damped residual",
        "gated": "gated residual",
    },
    "block_sharing": {"unshared": "unshared"},
    "depth_sampling": {"uniform": "random passes"},
    "norm_placement": {"sandwich": "sandwich norms", "post": "post-norm"},
    "norm": {"layernorm": "LayerNorm"},
    "feedforward": {"gelu": "GELU"},
    "intermediate_size": {None: "{} wide inside"},
    "position": {
        "none": "no positions",
        "learned": "learned positions",
        "sinusoidal": "sinusoidal positions",
        "alibi": "ALiBi",
        "rotary": "rotary positions",
    },
    "embedding_scale": {True: "tokens times √d"},
    "embedding_initializer_range": {None: "σ = {} at the start"},
    "conditioning_size": {None: "conditioned"},
    "embedding_size": {None: "embedding matrix {} wide"},
    "input_injection": {True: "input injection"},
    "iteration_embedding": {True: "pass embedding"},
    "loop_norm": {True: "norm in the loop"},
    "prelude_layers": {None: "{} layer before"},
    "coda_layers": {None: "{} layer after"},
    "residual_scale": {None: "α = {}"},
}
TIMES = {1: "once", 2: "twice"}
USUAL_TOKENS, USUAL_ROWS = 128, 10_000  # of reviews, and of pooled texts; a name says what is shorter, or larger


def of_data(spec: DataSpec) -> Name:
    """The name of a data set. The short one says what tells it apart; the long one also gives rows and tokens."""
    short = SOURCES.get(spec.source, spec.name)
    parts = [*([_task(spec)] if _task(spec) else []), *([spec.domain] if spec.domain else [])]
    if isinstance(spec, Composed):
        short = "Same sentiment" if spec.task == "same" else f"Pointers, {spec.depth} steps among {spec.items}"
        parts = []
    if spec.train_fraction < 1:
        parts.append(percent(spec.train_fraction, 0))
    if spec.lengths != "all":
        parts.append(spec.lengths)
    if spec.validation_share is not None:
        parts.append(f"{percent(spec.validation_share, 0)} held out")
    if spec.uniform:
        parts.append("uniform texts")
    if isinstance(spec, Generated) and spec.max_length != DataSpec.max_length:
        parts.append(f"up to {spec.depth} operators")
    if spec.source in ("yelp_polarity", "amazon_polarity"):
        if not spec.official_test:
            parts.append("pooled")
        elif spec.rows is None:
            parts.append("all rows")
            parts += [f"{spec.max_length} tokens"] if spec.max_length < USUAL_TOKENS else []
    if isinstance(spec, Pooled) and spec.rows is not None and spec.rows > USUAL_ROWS:
        parts.append(f"{spec.rows:,} rows")
    more = [f"{spec.rows:,} rows"] if spec.rows is not None else []
    more += ["the published test split"] if spec.official_test else []
    more = [part for part in [*more, f"at most {spec.max_length} tokens"] if part not in parts]
    return Name(f"{short} ({', '.join(parts)})" if parts else short, ", ".join([short, *parts, *more]))


def _task(spec: DataSpec) -> str | None:
    """The task, where the source has several and this is not its first one."""
    several = isinstance(spec, Generated | Pooled)
    return spec.task if several and spec.task != spec.tasks[0] else None


def of_model(spec: RunSpec) -> Name:
    """The name of a run's model, without its data and its seed."""
    model = spec.model.rstrip("/").rsplit("/", 1)[-1]
    own_text = spec.pretraining is not None  # its encoders have their settings in common
    short, long = of_preset(model)
    if spec.conversion:
        short = long = converted(short, spec.conversion)
    parts = [] if own_text else [_setting(field, value) for field, value in spec.overrides.items()]
    parts += ["own text first"] * own_text
    parts += ["frozen"] * spec.recipe.freeze_encoder + ["distilled"] * (spec.teacher is not None)
    return Name(", ".join([short, *parts]), ", ".join([long, *parts]))


def of_preset(model: str) -> Name:
    """The name of an encoder as its preset or its makers have it."""
    family, _, sizes = model.partition("-")
    numbers = sizes.split("x")
    if family in ("standard", "recurrent") and all(number.isdigit() for number in numbers):
        short = f"{family.capitalize()} {'×'.join(numbers)}"
        layers, *passes, width = numbers
        counts = [
            _plural(layers, "layer"),
            *(f"passed {TIMES.get(int(n), f'{n} times')}" for n in passes),
            f"{width} wide",
        ]
        return Name(short, f"{family} encoder, {', '.join(counts)}")
    return Name(MODELS.get(model, model.replace("bert-", "BERT-")), model)


def _plural(n: str, noun: str) -> str:
    return f"{n} {noun}{'' if n == '1' else 's'}"


def converted(model: str, conversion: Mapping[str, Any]) -> str:
    """What :func:`rtxlib.models.convert.to_loop` makes of a pretrained encoder: "MiniLM loop (4 layers, 2 twice)"."""
    layers, passes, edges = conversion["layers"], conversion["passes"], conversion.get("edges", False)
    start = {"spread": "spread ", "average": "averaged "}.get(conversion.get("start", "lower"), "")
    times = TIMES.get(passes, f"{passes} times")
    if passes == 1:
        name = f"{model}, {layers + 2} layers" if edges else f"{model}, {start or 'lower '}{layers} layers"
    elif edges:
        name = f"{model} loop ({layers + 2} layers, {layers} {times})"
    else:
        name = f"{model} loop ({start or 'lower '}{layers}, {times})"
    parts = [f"rank {conversion['rank']}"] if conversion.get("rank") else []
    parts += ["own norms"] if conversion.get("pass_norms") else []
    parts += ["random passes"] if conversion.get("depth_sampling") else []
    return ", ".join([name, *parts])


def _setting(field: str, value: Any) -> str:
    words = SETTINGS.get(field, {})
    phrase = words.get(value, words.get(None))
    return phrase.format(value) if phrase else f"{field.replace('_', ' ')} {value}"


def of_runs(specs: Iterable[RunSpec]) -> dict[str, Name]:
    """Id → name of the models and the data of some runs. The ids are those of the runs' tables."""
    names: dict[str, Name] = {}
    for spec in specs:
        names[spec.name], names[data_label(spec.data)] = of_model(spec), of_data(spec.data)
        if spec.conversion and spec.teacher is None:  # notebook 12 distils the embeddings of such encoders
            names[f"{spec.name} distilled"] = Name(*(f"{name}, distilled" for name in of_model(spec)))
    return names
