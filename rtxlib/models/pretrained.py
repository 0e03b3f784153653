"""Pretrained encoders: found on the Hub or on disk, opened with every tensor accounted for, and saved for other libraries.

:mod:`~rtxlib.models.checkpoint_files` reads and writes the files, :mod:`~rtxlib.models.references` translates their names.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import AutoConfig, PreTrainedTokenizerBase

from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.errors import InputError, nearest, shortened, shown
from rtxlib.hub import require_intact, revision, unreachable
from rtxlib.models.checkpoint_files import INDEX, WEIGHTS, read_json, read_pooling, read_weights, write_pooling
from rtxlib.models.config import ModelConfig, check_names
from rtxlib.models.encoder import Encoder, without_weights
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.references import REFERENCES, our_config, tensor_names, their_config

# The files that are fetched from a repo: no weights of other frameworks, and no pickles.
_FILES = [
    "config.json", WEIGHTS, INDEX, "model-*.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    "special_tokens_map.json", "modules.json", "sentence_bert_config.json", "*_Pooling/config.json",
]  # fmt: skip


def is_pretrained(name: str) -> bool:
    """Whether a name means a checkpoint (a Hub id with its owner, or a folder) and not a preset."""
    return "/" in name or os.path.isdir(os.path.expanduser(name))  # a Path raises for a name that is too long


def find(source: str, weights: str | None = None) -> Path:
    """The folder with a checkpoint's files: a directory itself, or the cached copy of a Hub repo.

    weights: a file to fetch in addition to the usual ones. Raises InputError if there is no such directory or repo, if the
    repo can be read neither from the Hub nor from the cache, if a file of a directory with checksums is not as it was written, or
    if a file of the Hub was changed on its way.
    """
    folder = Path(os.path.expanduser(source))
    if os.path.isdir(folder):  # os.path, because a Path raises for a name that is too long
        _require_whole(folder)
        return folder
    owner, slash, name = source.partition("/")
    if not slash or not owner.strip(".~") or not name or "/" in name:
        raise InputError(f"There is no folder {shortened(source)}, and a model of the Hub is written owner/name.")
    answers = revision(source, "model") is not None
    quiet = are_progress_bars_disabled()
    if not sys.stderr.isatty():  # no progress bar in a log or a notebook
        disable_progress_bars()
    try:
        # Without a commit: the cache then remembers the branch, and an offline machine finds the files by it.
        patterns = [*_FILES, weights] if weights else _FILES
        local = Path(snapshot_download(source, allow_patterns=patterns, local_files_only=not answers))
    except Exception as error:
        raise unreachable(source, error, "name a folder that holds the model's files") from error
    finally:
        if not quiet:
            enable_progress_bars()
    require_intact(source, "model")
    return local


def _require_whole(folder: Path) -> None:
    checksums.check_kinds(folder)
    if what := checksums.damage(folder, checksums.opened):
        raise InputError(
            f"{folder} is damaged ({what}): copy or save it again, or delete its {checksums.SUMS} if you changed it."
        )


def version(source: str) -> str:
    """The version of a checkpoint: its commit on the Hub, or a hash of the files that it is opened from.

    Raises InputError as :func:`find` does.
    """
    folder = find(source)
    if not Path(source).expanduser().is_dir():
        return folder.name  # the cache names the folder after the commit
    files = [f"{name} {checksums.sha256(folder / name)}" for name in filter(checksums.opened, checksums.names(folder))]
    return "sha256:" + hashlib.sha256("\n".join(files).encode()).hexdigest()[:16]


def read_config(source: str, **overrides: Any) -> ModelConfig:
    """The ModelConfig of a checkpoint; ``overrides`` are fields of it.

    Raises InputError for an unknown architecture, an unknown field, or a value that its field cannot have.
    """
    check_names(overrides)
    folder = find(source)
    described = read_json(folder / "config.json")
    model_type = described.get("model_type") if isinstance(described, dict) else None
    known = ("rtx", *REFERENCES)
    if model_type not in known:
        raise InputError(
            f"{source} is of the architecture {model_type!r}; {', '.join(known)} are understood."
            f"{nearest(str(model_type), known)}"
        )
    labels, many = described.get("id2label"), described.get("num_labels")
    if isinstance(labels, dict) and many not in (None, len(labels)):  # transformers would warn and take the number
        what = f"num_labels {shown(many)} and {len(labels)} labels in id2label"
        raise InputError(f"{folder / 'config.json'} has {what}; fetch it again.")
    try:
        theirs = AutoConfig.from_pretrained(folder)
    except InputError:
        raise
    except Exception as error:  # transformers and its dataclasses raise several kinds
        reason = " ".join(str(error).split())
        raise InputError(f"{folder / 'config.json'} describes no {model_type} model ({reason}); fetch it again.") from error
    settings = read_pooling(folder) | overrides
    if model_type in REFERENCES:
        return our_config(theirs, **settings)
    for name, value in settings.items():
        setattr(theirs, name, value)
    theirs.check()
    return theirs


def _list(names: Iterable[str]) -> str:
    """At most six names, as a sentence lists them."""
    names = sorted(names)
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return ", ".join(names[:6]) + more if names else "none"


def assign(encoder: Encoder, tensors: dict[str, Tensor], model_type: str, where: str = "the checkpoint") -> str:
    """Load the tensors of a checkpoint into an encoder, with every tensor accounted for.

    tensors: by their names in the checkpoint, with or without the prefix of a model that has a head. model_type: a key of
    :data:`REFERENCES`, whose tables map the names, or "rtx" for our own. Separate Q, K and V are stacked into one matrix.
    Tensors of heads are left out. Returns a line that says so: "loaded 103 of 104 tensors; left out: …". Raises InputError as
    :func:`_fill`.
    """
    reference = REFERENCES.get(model_type)
    prefix, heads = (reference.prefix, reference.heads) if reference else ("encoder.", ("classifier.",))
    renamed = reference.renamed if reference else {}
    named = {}
    for name, tensor in tensors.items():
        for old, new in renamed.items():
            if name.endswith(old):
                name = name.removesuffix(old) + new
        named[name.removeprefix(prefix)] = tensor
    table = tensor_names(encoder.config, model_type)
    _fill(encoder, named, table, heads, where)
    wanted = {name for names in table.values() for name in names}
    left = named.keys() - wanted
    return f"loaded {len(wanted)} of {len(named)} tensors" + (f"; left out: {_list(left)}" if left else "")


def _fill(
    module: nn.Module, tensors: dict[str, Tensor], table: dict[str, tuple[str, ...]], heads: tuple[str, ...], where: str
) -> None:
    """Load tensors into a module in float32.

    table: each tensor of the module -> the names of the ``tensors`` that it is stacked from. heads: how the names of
    tensors begin that are left out. Raises InputError that lists missing tensors, unexpected tensors, tensors without
    floating-point numbers, wrong shapes, or tensors with NaN or infinity.
    """
    wanted = {name for names in table.values() for name in names}
    missing = wanted - tensors.keys()
    unexpected = {name for name in tensors.keys() - wanted if not name.startswith(heads)}
    if missing or unexpected:
        raise InputError(
            f"The tensors of {where} are not those of this architecture. Missing: {_list(missing)}. "
            f"Unexpected: {_list(unexpected)}."
        )
    if strange := [f"{name} ({tensors[name].dtype})" for name in wanted if not tensors[name].is_floating_point()]:
        raise InputError(f"Weights are floating-point numbers, and these tensors of {where} are not: {_list(strange)}.")
    shapes = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    wrong = []
    for name, shape in shapes.items():
        parts = [tuple(tensors[part].shape) for part in table[name]]
        fits = len({part[1:] for part in parts}) == 1 and all(parts)  # else they cannot be stacked
        made = parts[0] if len(parts) == 1 else (sum(part[0] for part in parts), *parts[0][1:]) if fits else parts
        if made != shape:
            wrong.append(f"{' + '.join(table[name])} makes {made} where {name} has {shape}")
    if wrong:
        raise InputError(f"The shapes of {where} do not fit its configuration: {'; '.join(wrong[:3])}.")
    state = {}
    for name, (first, *others) in table.items():  # always a copy, because the tensors of a file may be mapped from the disk
        x = torch.cat([tensors[part] for part in (first, *others)]) if others else tensors[first].clone()
        state[name] = x.float()
    if strange := [" + ".join(table[name]) for name, x in state.items() if not x.isfinite().all()]:
        raise InputError(f"These tensors of {where} have NaN or infinite numbers: {_list(strange)}; fetch or train it again.")
    module.load_state_dict(state, assign=True)


def load(source: str, weights: str | None = None, config: ModelConfig | None = None) -> Encoder:
    """The pretrained encoder of a Hub id or a directory, in evaluation mode and float32.

    ``load("sentence-transformers/all-MiniLM-L6-v2")``. weights: a file other than model.safetensors; a pickle is opened
    only when it is named here. config: the result of :func:`read_config`, with your own dropout, pooling or labels. The line of
    :func:`assign` is kept as the encoder's attribute ``loaded``. Raises InputError that says what is wrong and where: no such
    model, an unknown architecture, a damaged file, a tensor that is missing, unexpected, of a wrong shape or type, or not finite.
    """
    folder = find(source, weights)
    with checksums.unchanged(folder):
        _require_whole(folder)
        config = config or read_config(source)
        tensors = read_weights(folder, weights)
        if config.pooler and not any(name.endswith(("pooler.dense.weight", "pooler.weight")) for name in tensors):
            config.pooler = False  # a masked language model has none
            config.pooling = "cls" if config.pooling == "pooler" else config.pooling
        with without_weights():
            encoder = Encoder(config)
        model_type = read_json(folder / "config.json")["model_type"]
        encoder.loaded = assign(encoder, tensors, model_type, f"{folder / (weights or WEIGHTS)}")
    return encoder.eval()


def with_head(encoder: Encoder) -> EncoderForSequenceClassification:
    """A classifier on this encoder's weights, with a newly initialised head, in evaluation mode."""
    model = EncoderForSequenceClassification(encoder.config)
    names = model.encoder.state_dict().keys()  # without the pooler if nothing reads it
    model.encoder.load_state_dict({name: x for name, x in encoder.state_dict().items() if name in names})
    return model.eval()


def load_trained(folder: Path) -> EncoderForSequenceClassification:
    """The classifier of a folder, head and all, in evaluation mode and float32.

    ``save_pretrained`` wrote it in our names, or :mod:`rtx.export.bert` in those of transformers. Raises InputError as
    :func:`load`.
    """
    config, tensors = read_config(str(folder)), read_weights(folder)
    described = read_json(folder / "config.json")
    reference = REFERENCES.get(described["model_type"])
    if reference is not None:
        config.id2label = {int(number): name for number, name in described["id2label"].items()}
        config.label2id = {name: number for number, name in config.id2label.items()}
    with without_weights():
        model = EncoderForSequenceClassification(config)
    table = {name: (name,) for name in model.state_dict()}
    if reference is not None:
        for ours, parts in tensor_names(model.config, described["model_type"]).items():
            table[f"encoder.{ours}"] = tuple(reference.prefix + part for part in parts)
    _fill(model, tensors, table, (), str(folder / WEIGHTS))
    return model.eval()


def save(
    encoder: Encoder,
    folder: Path | str,
    tokenizer: PreTrainedTokenizerBase | None = None,
    beside: Mapping[str, str] | None = None,
) -> None:
    """Write an encoder as its reference implementation would, so that transformers opens it without this package.

    An encoder without a reference implementation, such as a loop, is written in this package's format, which transformers opens
    once ``rtxlib.models`` is imported. With [CLS] or mean pooling sentence-transformers opens it too. Q, K and V are split where
    the reference keeps them apart. beside: names and contents of further files. The folder is written whole or not at all, last
    of all SHA256SUMS with the checksum of each file. Raises InputError if the folder exists.
    """
    folder, config = Path(folder), encoder.config
    try:
        theirs = their_config(config)
    except InputError:  # it has no reference implementation
        theirs = config
    if folder.exists():
        raise InputError(f"{folder} exists already; name a new folder.")
    state, tensors = encoder.state_dict(), {}
    for ours, parts in tensor_names(config, theirs.model_type).items():
        for name, part in zip(parts, state[ours].chunk(len(parts)), strict=True):
            tensors[name] = part.contiguous().clone()
    with replacing_folder(folder, new=True) as aside:
        theirs.save_pretrained(aside)
        save_file(tensors, aside / WEIGHTS, metadata={"format": "pt"})
        if tokenizer is not None:
            tokenizer.save_pretrained(aside)
        if config.pooling in ("cls", "mean"):
            write_pooling(aside, config)
        for name, content in (beside or {}).items():
            (aside / name).write_text(content, encoding="utf-8")
        checksums.write(aside)
