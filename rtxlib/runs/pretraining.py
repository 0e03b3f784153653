"""Pretraining as a part of a run: hidden tokens are predicted on texts without labels, before the run is trained on its own.

:func:`train_once` trains an encoder of any kind into a folder of its own, where it is found again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from transformers import PreTrainedTokenizerFast

from rtxlib import paths
from rtxlib.checksums import SUMS
from rtxlib.data.corpus import corpus_texts, packed
from rtxlib.data.datasets import from_record
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import special_ids
from rtxlib.errors import InputError, disk_full
from rtxlib.models import pretrained
from rtxlib.models.checkpoint_files import read_json
from rtxlib.models.config import ModelConfig
from rtxlib.models.heads import EncoderForMaskedLM
from rtxlib.models.presets import preset
from rtxlib.models.size import require_room
from rtxlib.runs import store
from rtxlib.runs.store import GENERATION, changed, hashed
from rtxlib.training import parallel
from rtxlib.training.device import device_name, pick_device, training_threads
from rtxlib.training.pretrainer import Pretrainer
from rtxlib.training.recipe import Recipe

OF = "of"  # beside an unfinished training: which one of which texts it is, as a hash
RECORD = "pretraining.json"  # in the folder of a pretrained encoder: what it is, and how its training went


@dataclass(frozen=True)
class Pretraining:
    """Everything that defines a pretraining: the model from scratch, the texts, the recipe and the seed.

    The texts are the training splits of ``data`` without their labels. No validation or test text of ``data`` or of ``kept_out``
    is among them (:func:`rtxlib.data.corpus.corpus_texts`). All have one tokenizer.
    """

    model: str
    data: tuple[DataSpec, ...]
    recipe: Recipe
    kept_out: tuple[DataSpec, ...] = ()
    seed: int = 0
    overrides: dict[str, Any] = field(default_factory=dict, hash=False)
    length: int = 128  # tokens of a row
    share: float = 0.15  # of the tokens that are hidden
    threads: int = 1

    def __post_init__(self) -> None:
        if not self.data:
            raise InputError("A pretraining needs texts; name at least one source of data.")
        if not 0 < self.share < 1:
            raise InputError(f"The share of hidden tokens is above 0 and below 1, not {self.share}.")
        if not 16 <= self.length <= 512:
            raise InputError(f"A row of a pretraining has 16 to 512 tokens, not {self.length}.")
        self.recipe.require_no_labels("A pretraining")

    def canonical(self) -> dict[str, Any]:
        """All of it as plain JSON values."""
        return json.loads(json.dumps(dataclasses.asdict(self)))

    @classmethod
    def from_canonical(cls, record: Mapping[str, Any]) -> Pretraining:
        """The pretraining of a record that :meth:`canonical` made."""
        data, kept_out = (tuple(map(from_record, record[name])) for name in ("data", "kept_out"))
        return cls(**{**record, "data": data, "kept_out": kept_out, "recipe": Recipe(**record["recipe"])})

    @property
    def key(self) -> str:
        """Sixteen hex digits, the hash of what defines it. Settings that have their default value are left out."""
        return hashed(changed(self) | {"generation": GENERATION})

    @property
    def folder(self) -> Path:
        """Where the encoder lies once it is pretrained."""
        return paths.pretrained_dir() / self.key

    def made(self, folder: Path) -> bool:
        """Whether ``folder`` holds the encoder of this pretraining."""
        return (folder / SUMS).is_file() and Pretraining.from_canonical(read_json(folder / RECORD)["pretraining"]) == self


class Training(Protocol):
    """What defines an encoder, such as a :class:`Pretraining`."""

    threads: int

    def made(self, folder: Path) -> bool:
        """Whether ``folder`` holds the encoder of this training."""


def train_once(what: Training, folder: Path, train: Callable[[Path], None], report: Callable[[str], None]) -> Path:
    """Train an encoder into ``folder``, unless it is there already.

    An unfinished training lies beside it in ``<folder>.partial``, and the next call goes on from there. Two processes that want
    the same encoder wait for each other. Their lock, ``.<folder>.lock``, stays (:func:`rtxlib.runs.store.lock`). ``train`` takes
    the checkpoint's file and writes the folder.

    Raises InputError when the folder holds something else, when several processes train together, or when the disk is full.
    """
    if parallel.processes() > 1:
        raise InputError("This encoder is trained in one process; start without torchrun.")
    partial = folder.with_name(f"{folder.name}{store.PARTIAL}")
    checkpoint = partial / "checkpoint.safetensors"
    try:
        with store.hold(folder.parent, folder.name, -1, report):
            try:
                if not folder.exists():
                    partial.mkdir(exist_ok=True)
                    with training_threads(what.threads):
                        train(checkpoint)
                    checkpoint.unlink(missing_ok=True)
            finally:  # under the lock, so that a process that only waited removes nothing of the one that trains
                if not checkpoint.exists():  # there is nothing to go on from
                    for ours in (*partial.glob(f"*{checkpoint.name}*"), partial / OF):
                        ours.unlink(missing_ok=True)
                    with contextlib.suppress(OSError):  # it is missing, or holds files of somebody else
                        partial.rmdir()
    except Exception as error:  # on a full disk, safetensors and tokenizers do not raise OSError
        if disk_full(error) and not isinstance(error, InputError):
            raise InputError(
                f"The disk is full while training into {folder}; free some space and give the same command again."
            ) from error
        raise
    if not what.made(folder):
        raise InputError(f"{folder} exists already and is another encoder; name a new folder.")
    return folder


def require_own(checkpoint: Path, key: str, sources: Iterable[Prepared]) -> None:
    """Note beside a checkpoint which training of which texts it is of. Raises InputError where it is of another."""
    mark, named = checkpoint.with_name(OF), hashed({"key": key, "texts": [source.fingerprint for source in sources]})
    if checkpoint.exists() and (not mark.is_file() or mark.read_text(encoding="utf-8") != named):
        raise InputError(
            f"{checkpoint.parent} holds the unfinished training of another encoder, or on other texts; delete it to start anew."
        )
    mark.write_text(named, encoding="utf-8")


def pretrain(what: Pretraining, folder: Path, report: Callable[[str], None] = lambda line: None) -> Path:
    """Pretrain an encoder and save it with its tokenizer into ``folder``, unless it is there already; see :func:`train_once`.

    Raises InputError when the folder holds something else, when the sources have different tokenizers, or as ``prepare``.
    """
    return train_once(what, folder, lambda checkpoint: _pretrain_into(folder, checkpoint, what, report), report)


def reached(what: Pretraining) -> dict[str, float]:
    """What a finished pretraining read, reached and cost, for the metrics of the runs that start from it.

    ``pretraining_words`` of its texts, ``pretraining_tokens_seen`` in all epochs, ``pretraining_val_loss`` (nats) and
    ``pretraining_val_accuracy`` of the hidden tokens of validation texts, and ``pretraining_seconds``.
    """
    record = read_json(what.folder / RECORD)
    return {f"pretraining_{name}": record[name] for name in ("words", "tokens_seen", "val_loss", "val_accuracy", "seconds")}


def config_of(what: Pretraining, tokenizer: PreTrainedTokenizerFast) -> ModelConfig:
    """The configuration of the model that is pretrained, given the tokens of its texts."""
    sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "max_position_embeddings": 512}
    return preset(what.model, **(sizes | what.recipe.model_overrides() | what.overrides))


def _pretrain_into(folder: Path, checkpoint: Path, what: Pretraining, report: Callable[[str], None]) -> None:
    sources, kept_out = ([prepare(spec, paths.prepared_dir()) for spec in specs] for specs in (what.data, what.kept_out))
    require_own(checkpoint, what.key, (*sources, *kept_out))
    tokenizer = sources[0].tokenizer
    if any(source.tokenizer.get_vocab() != tokenizer.get_vocab() for source in sources[1:]):
        raise InputError("The texts have different tokenizers; give all of them one, as with --tokenizer bert.")
    texts = corpus_texts(sources, kept_out)
    training, validation = packed(texts, tokenizer, what.length, what.seed)
    report(f"{len(texts):,} texts, {len(training):,} rows of {what.length} tokens")
    config, device = config_of(what, tokenizer), pick_device()
    require_room(what.model, config, "training", 20, device=device)  # bytes: see rtxlib.runs.train.training_bytes
    torch.manual_seed(what.seed)
    model = EncoderForMaskedLM(config)
    arguments = (model, training, validation, what.recipe, what.seed, special_ids(tokenizer), device, checkpoint, report)
    trained = Pretrainer(*arguments, share=what.share).run()
    record = {
        "pretraining": what.canonical(),
        "texts": len(texts),
        "words": sum(len(text.split()) for text in texts),
        "rows": len(training),
        "tokens_seen": trained.tokens,
        "val_loss": float(trained.curve["val_loss"].iloc[-1]),
        "val_accuracy": float(trained.curve["val_accuracy"].iloc[-1]),
        "seconds": trained.seconds,
        "rows_per_second": trained.rows_per_second,
        "device": device_name(device),
        "dtype": trained.precision,
        "torch": torch.__version__,
        "curve": trained.curve.to_dict("records"),
    }
    beside = {RECORD: json.dumps(record, indent=1, sort_keys=True) + "\n"}
    pretrained.save(model.to("cpu").encoder, folder, tokenizer, beside)
