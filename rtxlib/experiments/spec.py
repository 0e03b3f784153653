"""What a run is: model × data × recipe × seed, and the key that names it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from rtxlib.data.spec import DataSpec
from rtxlib.models.config import ModelConfig
from rtxlib.models.presets import preset
from rtxlib.training.recipe import Recipe

# Raise it when a change of code changes what a run of the same spec means: old runs then no longer count.
GENERATION = 1


@dataclass(frozen=True)
class RunSpec:
    """One training run, whole before it starts. ``overrides`` are ModelConfig fields that differ from the preset's."""

    model: str
    data: DataSpec
    recipe: Recipe
    seed: int = 0
    overrides: dict[str, Any] = field(default_factory=dict, hash=False)

    def config(self, vocab_size: int, label_names: list[str]) -> ModelConfig:
        """The configuration of this run's model, once the data say how many tokens and labels there are."""
        settings: dict[str, Any] = {
            "vocab_size": vocab_size,
            "num_labels": len(label_names),
            "id2label": dict(enumerate(label_names)),
            "label2id": {name: number for number, name in enumerate(label_names)},
            "max_position_embeddings": max(512, self.data.max_length),
        }
        return preset(self.model, **(settings | self.recipe.model_overrides() | self.overrides))

    def canonical(self) -> dict[str, Any]:
        """Everything that determines the run but the data's content, as plain JSON values."""
        return {
            "generation": GENERATION,
            "model": self.model,
            "overrides": self.overrides,
            "data": dataclasses.asdict(self.data),
            "recipe": dataclasses.asdict(self.recipe),
            "seed": self.seed,
        }

    def key(self, fingerprint: str) -> str:
        """Sixteen hex digits: the hash of the canonical JSON and of the data's fingerprint."""
        text = json.dumps(self.canonical() | {"fingerprint": fingerprint}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        """The model's name in tables and figures: the preset, and the words that differ from it."""
        changed = (value if isinstance(value, str) else f"{field}={value}" for field, value in self.overrides.items())
        return " ".join((self.model, *changed))

    @property
    def title(self) -> str:
        """How a person calls this run: model, data and seed."""
        return f"{self.name} on {data_label(self.data)}, seed {self.seed}"


def data_label(data: DataSpec) -> str:
    """A short name of the data: the source, and what part of it."""
    name = data.path.rsplit("/", 1)[-1] if data.source == "file" and data.path else data.source
    parts = [name]
    if data.task != "sentiment":
        parts.append(data.task)
    if data.domain is not None:
        parts.append(data.domain)
    if data.train_fraction < 1:
        parts.append(f"{data.train_fraction:.0%}")
    if data.lengths != "all":
        parts.append(data.lengths)
    return " ".join(parts)
