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
import torch.nn.functional as F
from torch import Tensor, nn

from rtx.embedding import embed_tokens, similarity
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
from rtxlib.runs.pretraining import require_own, train_once
from rtxlib.runs.store import GENERATION, changed, hashed
from rtxlib.training.device import autocast, device_name, pick_device
from rtxlib.training.recipe import Recipe
from rtxlib.training.trainer import Trainer

RECORD = "distillation.json"  # in the folder of a distilled encoder: what it is, and how its training went
MOST_HELD_OUT = 2_000  # texts on which the loss is validated; each is compared with every other


class SentenceEncoder(nn.Module):
    """An encoder whose output is its sentence embeddings, (batch, length) → (batch, hidden)."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder, self.config = encoder, encoder.config

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        return self.encoder.embed(input_ids, attention_mask)


class EmbeddingDistiller(Trainer):
    """Trains a :class:`SentenceEncoder` to give each text the embedding that a teacher gives it (Reimers & Gurevych 2020).

    The loss of a text is 1 − cos(student, teacher), because embeddings are compared by their cosine and their lengths are nothing
    to learn. It is half the squared distance of the two vectors at length one.

    Arguments as :class:`Trainer` takes them, and ``taught``: the teacher's embeddings of the training texts and of the validation
    texts, both (texts, hidden). The curve's accuracy is the share of the validation texts whose embedding is nearer to the
    teacher's embedding of the same text than to that of any other.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        training: Tokens,
        validation: Tokens,
        *rest: Any,
        taught: tuple[np.ndarray, np.ndarray],
        **further: Any,
    ) -> None:
        self.taught = taught
        super().__init__(model, training, validation, *rest, **further)

    def loss(self, index: np.ndarray) -> Tensor:
        """1 − cos(student, teacher), summed over the rows of a micro-batch."""
        batch = self.batch(index)
        with autocast(self.precision, self.device):
            embeddings = self.model(batch["input_ids"], batch.get("attention_mask")).float()
        wanted = torch.from_numpy(self.taught[0][index]).to(self.device)
        return (1 - F.cosine_similarity(embeddings, wanted)).sum()

    def validate(self) -> tuple[float, float]:
        """Mean of 1 − cosine over the validation texts, and the share of them whose nearest teacher's embedding is their own."""
        embeddings = embed_tokens(self.validation, self.model_to_keep().encoder, self.pad_id, self.device)
        cosines = similarity(embeddings, self.taught[1])  # (texts, texts)
        nearest = cosines.argmax(axis=1) == np.arange(len(cosines))
        return float(1 - cosines.diagonal().mean()), float(nearest.mean())


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
        self.recipe.require_no_labels("A distillation of embeddings")
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
    require_own(checkpoint, what.key, (*sources, *kept_out))
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
