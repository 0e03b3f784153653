"""What a run is: model × data × recipe × seed, and the key that names it."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from rtxlib.data.datasets import Composed, from_record
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError
from rtxlib.models import pretrained
from rtxlib.models.config import OF_DATA, ModelConfig, check_names
from rtxlib.models.presets import CHECKPOINTS, preset
from rtxlib.runs.pretraining import Pretraining
from rtxlib.runs.store import GENERATION, changed, hashed
from rtxlib.training.recipe import FOR_PRETRAINED, Recipe

LARGEST_SEED = 2**63 - 1


def check_overrides(overrides: Mapping[str, Any], but: Collection[str] = ()) -> None:
    """Raise InputError for an unknown setting or one that the data decide. but: settings to allow."""
    for name in OF_DATA:
        if name in overrides and name not in but:
            raise InputError(f"{name} is decided by the data; leave it out of the model's settings.")
    check_names(overrides)


def check_weights(model: str, recipe: Recipe) -> None:
    """Raise InputError when a recipe for pretrained weights is to train a model that starts from random ones."""
    if recipe.name not in FOR_PRETRAINED or pretrained.is_pretrained(model):
        return
    others = "for random weights leave the recipe out or take small"
    if model in CHECKPOINTS:
        raise InputError(
            f"The recipe {recipe.name} is for pretrained weights, and {model} starts from random ones; the pretrained model is "
            f"{CHECKPOINTS[model]}, so give that as the model ({others})."
        )
    raise InputError(
        f"The recipe {recipe.name} is for pretrained weights, and {model} starts from random ones; give a model's Hub id or "
        f"folder, such as {CHECKPOINTS['minilm-l6']} ({others})."
    )


@dataclass(frozen=True)
class RunSpec:
    """Everything that defines a training run.

    ``overrides`` are ModelConfig fields that differ from the preset's. ``conversion`` holds the arguments of
    :func:`rtxlib.models.convert.to_loop` if a pretrained encoder is made into a loop first. ``teacher`` is a run
    whose probabilities the model learns beside the labels (Hinton et al. 2015); ``recipe.distillation`` says how much.
    ``pretraining`` is a pretraining of the same model, after which the run starts; it is done first where it is missing.

    The number of CPU ``threads`` is a part of a run: another number of threads rounds sums differently. So is the number of
    ``processes`` that train together (:mod:`rtxlib.training.parallel`). Raises InputError when either number is
    below one, when the seed is out of range, when an override is unknown or decided by the data, or when conversion, teacher
    and recipe do not fit together.
    """

    model: str
    data: DataSpec
    recipe: Recipe
    seed: int = 0
    overrides: dict[str, Any] = field(default_factory=dict, hash=False)
    threads: int = 1
    processes: int = 1
    conversion: dict[str, Any] = field(default_factory=dict, hash=False)
    teacher: RunSpec | None = None
    pretraining: Pretraining | None = None

    def __post_init__(self) -> None:
        if self.threads < 1:
            raise InputError(f"A run computes with at least one thread, not with {self.threads}.")
        if self.processes < 1:
            raise InputError(f"A run computes with at least one process, not with {self.processes}.")
        if not isinstance(self.seed, int) or not 0 <= self.seed <= LARGEST_SEED:
            raise InputError(f"A run's seed is a whole number from 0 to {LARGEST_SEED:,}, not {self.seed!r}.")
        check_overrides(self.overrides)
        if self.conversion and not self.pretrained:
            raise InputError(f"Only a pretrained encoder is made into a loop; write recurrent-… in place of {self.model}.")
        if self.pretraining and (self.pretraining.model, self.pretraining.overrides) != (self.model, self.overrides):
            raise InputError("A run starts from a pretraining of the same model with the same settings.")
        if (self.teacher is None) != (self.recipe.distillation == 0):
            raise InputError("A teacher and a recipe with distillation above 0 go together; give both or neither.")

    def config(self, vocab_size: int, pad_token_id: int, label_names: list[str]) -> ModelConfig:
        """The configuration of this run's model, given the tokens and labels of the data.

        Raises InputError when a pretrained model has fewer tokens or positions than the data.
        """
        settings: dict[str, Any] = {
            "num_labels": len(label_names),
            "id2label": dict(enumerate(label_names)),
            "label2id": {name: number for number, name in enumerate(label_names)},
            **self.recipe.model_overrides(),
            **self.overrides,
        }
        if not self.pretrained:
            texts = {
                "vocab_size": vocab_size,
                "pad_token_id": pad_token_id,
                "max_position_embeddings": max(512, self.data.max_length),
            }
            return preset(self.model, **(texts | settings))
        config = pretrained.read_config(self.model, **settings)
        if config.vocab_size < vocab_size or config.max_position_embeddings < self.data.max_length:
            raise InputError(
                f"{self.model} has {config.vocab_size:,} tokens and {config.max_position_embeddings} positions, the data "
                f"{vocab_size:,} tokens and texts of up to {self.data.max_length}; give the data its tokenizer "
                "(tokenizer=the model's name) and a max_length that fits."
            )
        return config

    @property
    def pretrained(self) -> bool:
        """Whether the run starts from a checkpoint instead of random weights."""
        return pretrained.is_pretrained(self.model)

    def canonical(self) -> dict[str, Any]:
        """Everything that determines the run, except for the content of the data, as plain JSON values."""
        whole = {
            "generation": GENERATION,
            "model": self.model,
            "overrides": self.overrides,
            "data": dataclasses.asdict(self.data),
            "recipe": dataclasses.asdict(self.recipe),
            "seed": self.seed,
            "threads": self.threads,
            "processes": self.processes,
        }
        if self.pretrained:
            whole["weights"] = pretrained.version(self.model)
        if self.conversion:
            whole["conversion"] = self.conversion
        if self.teacher is not None:
            whole["teacher"] = self.teacher.canonical()
        if self.pretraining is not None:
            whole["pretraining"] = self.pretraining.canonical()
        return whole

    @classmethod
    def from_canonical(cls, record: Mapping[str, Any]) -> RunSpec:
        """The spec of a record that :meth:`canonical` made, such as a run's ``spec.json``.

        Further entries are ignored. The first records have no threads and processes; they mean one of each.
        """
        return cls(
            record["model"],
            from_record(record["data"]),
            Recipe(**record["recipe"]),
            record["seed"],
            record["overrides"],
            record.get("threads", 1),
            record.get("processes", 1),
            record.get("conversion", {}),
            cls.from_canonical(record["teacher"]) if "teacher" in record else None,
            Pretraining.from_canonical(record["pretraining"]) if "pretraining" in record else None,
        )

    def key(self, fingerprint: str) -> str:
        """Sixteen hex digits: the hash of the canonical JSON and of the data's fingerprint.

        Settings that have their default value are left out, so that a new setting does not change the keys of old runs.
        """
        named = self.canonical() | {"data": changed(self.data), "recipe": changed(self.recipe), "fingerprint": fingerprint}
        for count in ("threads", "processes"):
            if named[count] == 1:
                del named[count]
        if self.teacher is not None:
            named["teacher"] = self.teacher.key(fingerprint)
        if self.pretraining is not None:
            named["pretraining"] = self.pretraining.key
        return hashed(named)

    @property
    def name(self) -> str:
        """The model's name in tables and figures: the preset, and the settings that differ from it."""
        words = (_setting(field, value) for field, value in self.overrides.items())
        parts = [self.model.rstrip("/").rsplit("/", 1)[-1], *conversion_words(self.conversion), *words]
        parts += ["pretrained here"] * (self.pretraining is not None)
        parts += ["frozen"] * self.recipe.freeze_encoder + ["distilled"] * (self.teacher is not None)
        return " ".join(parts)

    @property
    def title(self) -> str:
        """The run's name in messages: model, data and seed."""
        return f"{self.name} on {data_label(self.data)}, seed {self.seed}"


def conversion_words(conversion: Mapping[str, Any]) -> list[str]:
    """What a conversion made, in words: its shape, "3×2", and each of its other settings; empty without a conversion."""
    if not conversion:
        return []
    others = {name: value for name, value in conversion.items() if name not in ("layers", "passes")}
    words = {"start": "{}", "rank": "rank {}", "pass_norms": "own norms", "edges": "between edges"}
    words |= {"depth_sampling": "random depth"}
    return [f"{conversion['layers']}×{conversion['passes']}", *(words[name].format(value) for name, value in others.items())]


def _setting(field: str, value: Any) -> str:
    """A setting in a run's name: its word, where the word tells which setting it is."""
    if field == "position":  # a residual can be learned, or none, as well
        return "no positions" if value == "none" else f"{value} positions"
    return value if isinstance(value, str) else f"{field}={value}"


def data_label(data: DataSpec) -> str:
    """The data's name in tables and figures: the source, and the part of it that is used."""
    parts = [data.name]
    if isinstance(data, Composed) or data.task != data.tasks[0]:  # not the source's own task
        parts.append(data.task)
    if isinstance(data, Composed) and data.task == "pointer":
        parts.append(f"{data.depth} steps among {data.items}")
    if data.domain is not None:
        parts.append(data.domain)
    if data.train_fraction < 1:
        parts.append(f"{data.train_fraction:.0%}")
    if data.lengths != "all":
        parts.append(data.lengths)
    if data.official_test:
        parts.append("official test")
        if data.rows is not None:  # other tasks train on all rows that this one could have
            parts.append(f"{data.rows:,} rows")
    if data.max_length != DataSpec.max_length:
        parts.append(f"at {data.max_length} tokens")
    if data.validation_share is not None:
        parts.append(f"with {data.validation_share:.0%} held out")
    if data.uniform:
        parts.append("uniform")
    return " ".join(parts)
