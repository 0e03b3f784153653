"""Distillation of sentence embeddings on texts without labels: a smaller encoder learns to embed as the original does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rtxlib import paths
from rtxlib.checksums import SUMS
from rtxlib.data.batching import Tokens
from rtxlib.data.corpus import HELD_OUT, corpus_texts
from rtxlib.data.prepare import prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import encode, pretrained_tokenizer, special_ids, take
from rtxlib.errors import InputError
from rtxlib.models import pretrained
from rtxlib.models.checkpoint_files import read_json
from rtxlib.models.convert import to_loop
from rtxlib.models.encoder import Encoder
from rtxlib.runs.keys import GENERATION, changed, hashed
from rtxlib.runs.once import train_once
from rtxlib.training.device import device_name, pick_device
from rtxlib.training.embed import embed_tokens
from rtxlib.training.embedding_distiller import EmbeddingDistiller, SentenceEncoder
from rtxlib.training.recipe import Recipe

RECORD = "distillation.json"  # in the folder of a distilled encoder: what it is, and how its training went
MOST_HELD_OUT = 2_000  # texts on which the loss is validated; each is compared with every other
_OF_LABELS = ("freeze_encoder", "word_dropout", "label_smoothing", "balance", "distillation")  # settings without a meaning here


@dataclass(frozen=True)
class Distillation:
    """Everything that defines a distillation: the student, its teacher, the texts, the recipe and the seed.

    The texts are the training splits of ``data`` without their labels. No validation or test text of ``data`` or of ``kept_out``
    is among them (:func:`rtxlib.data.corpus.corpus_texts`). ``conversion`` holds the arguments of
    :func:`rtxlib.models.convert.to_loop` if the student is first made into a loop.
    """

    model: str  # the student: a Hub id or a folder
    teacher: str  # likewise
    data: tuple[DataSpec, ...]
    recipe: Recipe
    kept_out: tuple[DataSpec, ...] = ()
    seed: int = 0
    conversion: dict[str, Any] = field(default_factory=dict, hash=False)
    length: int = 128  # tokens of a text that student and teacher read
    threads: int = 1

    def __post_init__(self) -> None:
        if not self.data:
            raise InputError("A distillation needs texts; name at least one source of data.")
        if not 8 <= self.length <= 512:
            raise InputError(f"A distillation reads 8 to 512 tokens of a text, not {self.length}.")
        for name in _OF_LABELS:
            if getattr(self.recipe, name):
                raise InputError(f"A distillation of embeddings has no use for the recipe's {name}; leave it out.")
        for name in (self.model, self.teacher):
            if not pretrained.is_pretrained(name):
                raise InputError(f"'{name}' is no pretrained encoder; name a model's Hub id or folder.")

    @property
    def key(self) -> str:
        """Sixteen hex digits, the hash of what defines it and of the weights' versions. Settings with their default are left out.

        Raises InputError when the weights are out of reach.
        """
        weights = [pretrained.version(name) for name in (self.model, self.teacher)]
        return hashed(changed(self) | {"conversion": self.conversion, "weights": weights, "generation": GENERATION})

    @property
    def folder(self) -> Path:
        """Where the encoder lies once it is distilled."""
        return paths.pretrained_dir() / self.key

    def made(self, folder: Path) -> bool:
        """Whether ``folder`` holds the encoder of this distillation."""
        files = (folder / SUMS, folder / RECORD)
        return all(file.is_file() for file in files) and read_json(folder / RECORD)["key"] == self.key

    def student(self) -> Encoder:
        """The student before its first step. Raises InputError when its weights are out of reach or cannot be converted."""
        config = pretrained.read_config(self.model, **self.recipe.model_overrides())
        encoder = pretrained.load(self.model, config=config)
        return to_loop(encoder, **self.conversion) if self.conversion else encoder


def distil(what: Distillation, folder: Path, report: Callable[[str], None] = lambda line: None) -> Path:
    """Distil an encoder and save it with its tokenizer into ``folder``, unless it is there already; see :func:`train_once`.

    Raises InputError when the folder holds something else, when student and teacher differ in the width of their embeddings,
    when there are too few texts, or as ``prepare``.
    """
    return train_once(what, folder, lambda checkpoint: _distil_into(folder, checkpoint, what, report), report)


def _distil_into(folder: Path, checkpoint: Path, what: Distillation, report: Callable[[str], None]) -> None:
    student, teacher, device = what.student(), pretrained.load(what.teacher), pick_device()
    widths = [encoder.config.hidden_size for encoder in (student, teacher)]
    if widths[0] != widths[1]:
        raise InputError(
            f"{what.model} has embeddings of {widths[0]} numbers and {what.teacher} of {widths[1]}; take a teacher as wide."
        )
    if what.length > (most := min(encoder.config.max_position_embeddings for encoder in (student, teacher))):
        raise InputError(f"These encoders read {most} tokens of a text at most, not {what.length}.")
    for name, encoder in ((what.model, student), (what.teacher, teacher)):
        report(f"{name}: {encoder.loaded}")
    sources, kept_out = ([prepare(spec, paths.prepared_dir()) for spec in specs] for specs in (what.data, what.kept_out))
    texts = corpus_texts(sources, kept_out)
    order = np.random.default_rng(what.seed).permutation(len(texts))
    held_out = min(MOST_HELD_OUT, max(2, round(HELD_OUT * len(texts))))
    if len(texts) <= held_out:
        raise InputError("There are too few texts to distil on; give more.")
    parts = order[held_out:], order[:held_out]

    def tokenised(name: str) -> tuple[Any, list[Tokens]]:
        """The tokenizer of a model, and its tokens of the training and the validation texts."""
        tokenizer = pretrained_tokenizer(pretrained.find(name))
        whole = encode(texts, tokenizer, what.length)
        return tokenizer, [Tokens(*take(*whole, part), np.zeros(len(part), dtype=np.int64)) for part in parts]

    (tokenizer, splits), (theirs, of_teacher) = tokenised(what.model), tokenised(what.teacher)
    report(f"{len(texts):,} texts; {what.teacher} embeds them")
    taught = tuple(embed_tokens(tokens, teacher, theirs.pad_token_id, device) for tokens in of_teacher)
    del teacher
    arguments = (what.recipe, what.seed, special_ids(tokenizer), device, checkpoint, report)
    trained = EmbeddingDistiller(SentenceEncoder(student), *splits, *arguments, taught=taught).run()
    record = {
        "key": what.key,
        "distillation": dataclasses.asdict(what),
        "texts": len(texts),
        "val_loss": float(trained.curve["val_loss"].iloc[-1]),
        "val_accuracy": float(trained.curve["val_accuracy"].iloc[-1]),
        "seconds": trained.seconds,
        "cpu_seconds": trained.cpu_seconds,
        "texts_per_second": trained.rows_per_second,
        "device": device_name(device),
        "dtype": trained.precision,
        "torch": torch.__version__,
        "curve": trained.curve.to_dict("records"),
    }
    beside = {RECORD: json.dumps(record, indent=1, sort_keys=True) + "\n"}
    config = pretrained.read_config(what.model)
    for name in what.recipe.model_overrides():  # its dropout is the recipe's in this training alone
        setattr(student.config, name, getattr(config, name))
    pretrained.save(student.to("cpu"), folder, tokenizer, beside)
