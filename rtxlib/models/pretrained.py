"""Pretrained encoders: found on the Hub or on disk, opened with every tensor accounted for, and saved for others."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoConfig, PreTrainedTokenizerBase

from rtxlib.errors import InputError, nearest
from rtxlib.hub import revision, unreachable
from rtxlib.models.config import ModelConfig, check_names
from rtxlib.models.encoder import Encoder
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.references import REFERENCES, our_config, tensor_names, their_config

WEIGHTS = "model.safetensors"
_INDEX = f"{WEIGHTS}.index.json"  # of weights cut into several files
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
# What is fetched of a repo: nothing that another framework would read, and no pickle.
_FILES = [
    "config.json", WEIGHTS, _INDEX, "model-*.safetensors", "tokenizer.json", "tokenizer_config.json", "vocab.txt",
    "special_tokens_map.json", "modules.json", "sentence_bert_config.json", "*_Pooling/config.json",
]  # fmt: skip
_MODULES = "sentence_transformers.models."  # before the kinds of module that sentence-transformers names


def is_pretrained(name: str) -> bool:
    """Whether a model's name means a checkpoint (a Hub id with its owner, or a folder) rather than a preset."""
    return "/" in name or Path(name).expanduser().is_dir()


def find(source: str, weights: str | None = None) -> Path:
    """The folder with a checkpoint's files: a directory as it is, a Hub id through the Hub's cache.

    ``weights``: a file to fetch beside the usual ones. Raises InputError when there is no such directory or repo, or
    neither the Hub nor its cache can be read.
    """
    folder = Path(source).expanduser()
    if folder.is_dir():
        return folder
    owner, slash, name = source.partition("/")
    if not slash or not owner.strip(".~") or not name or "/" in name:
        raise InputError(f"There is no folder {source}, and a model of the Hub is written owner/name.")
    answers = revision(source, "model") is not None
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    quiet = are_progress_bars_disabled()
    if not sys.stderr.isatty():  # a log or a notebook is no place for a bar
        disable_progress_bars()
    try:
        return Path(
            snapshot_download(  # by its branch, not by the commit: then the cache can be read offline, by that name
                source,
                allow_patterns=[*_FILES, *([weights] if weights else [])],
                local_files_only=not answers,
            )
        )
    except Exception as error:
        raise unreachable(source, error, "name a folder that holds the model's files") from error
    finally:
        if not quiet:
            enable_progress_bars()


def out_of_reach(source: str) -> str | None:
    """Why a checkpoint cannot be had here, weights included, in a sentence; None where it can."""
    try:
        folder = find(source)
        if not any(folder.glob("model*.safetensors")):
            return f"{source} is here without its weights."
    except InputError as error:
        return str(error)
    return None


def version(source: str) -> str:
    """What tells this checkpoint from an earlier one of the same name: its commit on the Hub, or a hash of its files."""
    folder = find(source)
    if not Path(source).expanduser().is_dir():
        return folder.name  # the cache names the folder by the commit
    digest = hashlib.sha256()
    for path in [*sorted(folder.glob("*.safetensors")), folder / "config.json"]:
        digest.update(path.read_bytes() if path.is_file() else b"")
    return "sha256:" + digest.hexdigest()[:16]


def _json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no {path.name}, so it is no model.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not JSON ({error}); fetch it again.") from error


def _pooling(folder: Path) -> dict[str, Any]:
    """How sentence-transformers reads a sentence from the states, where the folder says so."""
    if not (folder / "modules.json").is_file():
        return {}
    settings: dict[str, Any] = {"normalize": False}
    for module in _json(folder / "modules.json"):
        kind = module["type"].rpartition(".")[2]
        if kind == "Normalize":
            settings["normalize"] = True
        elif kind == "Pooling":
            wanted = _json(folder / module["path"] / "config.json")
            modes = {name for name, on in wanted.items() if name.startswith("pooling_mode_") and on is True}
            modes |= {f"pooling_mode_{wanted.get('pooling_mode')}_token"} if "pooling_mode" in wanted else set()
            if len(modes) != 1 or not (
                modes <= {"pooling_mode_cls_token", "pooling_mode_mean_tokens", "pooling_mode_mean_token"}
            ):
                raise InputError(f"{folder} pools by {', '.join(sorted(modes))}; only [CLS] or the mean is understood.")
            settings["pooling"] = "cls" if "cls" in modes.pop() else "mean"
        elif kind != "Transformer":
            raise InputError(f"{folder} ends in a {kind} module, which these encoders do not have.")
    file = folder / "sentence_bert_config.json"
    settings["max_seq_length"] = _json(file).get("max_seq_length") if file.is_file() else None
    return settings


def read_config(source: str, **overrides: Any) -> ModelConfig:
    """The ModelConfig of a checkpoint; ``overrides`` are its fields.

    Raises InputError for an architecture not known here, and for a field that there is not or cannot be so.
    """
    check_names(overrides)
    folder = find(source)
    model_type = _json(folder / "config.json").get("model_type")
    known = ("rtx", *REFERENCES)
    if model_type not in known:
        raise InputError(
            f"{source} is of the architecture {model_type!r}; {', '.join(known)} are understood."
            f"{nearest(str(model_type), known)}"
        )
    theirs = AutoConfig.from_pretrained(folder)
    settings = _pooling(folder) | overrides
    if model_type in REFERENCES:
        return our_config(theirs, **settings)
    for name, value in settings.items():
        setattr(theirs, name, value)
    theirs.check()
    return theirs


def _read_weights(folder: Path, weights: str | None) -> dict[str, Tensor]:
    """Every tensor of a checkpoint by its name in the file. A pickle is opened only when it is asked for by name."""
    if weights is not None:
        files = [weights]
    elif (folder / _INDEX).is_file():
        files = sorted(set(_json(folder / _INDEX)["weight_map"].values()))
    else:
        files = [WEIGHTS]
        if not (folder / WEIGHTS).is_file():
            others = sorted(path.name for path in folder.glob("*") if path.suffix in (".safetensors", *_PICKLES))
            hint = f" It has {', '.join(others)}; name one with weights=." if others else ""
            hint += (
                " A pickle can run code when it is opened, so ask for one only if you trust it."
                if any(name.endswith(_PICKLES) for name in others)
                else ""
            )
            raise InputError(f"{folder} holds no {WEIGHTS}, so there are no weights to load.{hint}")
    tensors: dict[str, Tensor] = {}
    for name in files:
        path = folder / name
        if not path.is_file():
            raise InputError(f"{folder} holds no {name}.")
        try:
            if path.suffix in _PICKLES:
                tensors |= torch.load(path, map_location="cpu", weights_only=True)
            else:
                tensors |= load_file(path)
        except (SafetensorError, pickle.UnpicklingError, RuntimeError, EOFError, OSError) as error:
            line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(f"{path} is damaged or cut short ({line}); fetch it again.") from error
    return tensors


def _list(names: Iterable[str]) -> str:
    names = sorted(names)
    return f"{', '.join(names[:6])}{f' and {len(names) - 6} more' if len(names) > 6 else ''}" if names else "none"


def assign(encoder: Encoder, tensors: dict[str, Tensor], model_type: str, where: str = "the checkpoint") -> None:
    """Put the tensors of a reference (or of ours, ``model_type="rtx"``) into an encoder, each accounted for.

    tensors: by the reference's names, with or without the prefix of a model that has a head. Names are mapped by
    :mod:`rtxlib.models.references`; Q, K and V are stacked into one where the reference keeps them apart. Tensors of
    heads, which an encoder does not have, are left out. Raises InputError that lists what is missing, what is
    unexpected, and whose shape is not ours.
    """
    reference = REFERENCES.get(model_type)
    prefix, heads = (reference.prefix, reference.heads) if reference else ("encoder.", ("classifier.",))
    renamed = reference.renamed if reference else {}
    found = {}
    for name, tensor in tensors.items():
        for old, new in renamed.items():
            name = name.removesuffix(old) + new if name.endswith(old) else name
        found[name.removeprefix(prefix)] = tensor
    table = tensor_names(encoder.config, model_type)
    wanted = {name for names in table.values() for name in names}
    missing = wanted - found.keys()
    unexpected = {name for name in found.keys() - wanted if not name.startswith(heads)}
    if missing or unexpected:
        raise InputError(
            f"The tensors of {where} are not those of this architecture. Missing: {_list(missing)}. "
            f"Unexpected: {_list(unexpected)}."
        )
    state = {name: torch.cat([found[part] for part in parts]).float() for name, parts in table.items()}
    shapes = {name: tuple(tensor.shape) for name, tensor in encoder.state_dict().items()}
    wrong = [
        f"{' + '.join(table[name])} makes {tuple(state[name].shape)} where {name} has {shape}"
        for name, shape in shapes.items()
        if tuple(state[name].shape) != shape
    ]
    if wrong:
        raise InputError(f"The shapes of {where} do not fit its configuration: {'; '.join(wrong[:3])}.")
    encoder.load_state_dict(state, assign=True)


def load(source: str, weights: str | None = None, config: ModelConfig | None = None) -> Encoder:
    """The pretrained encoder of a Hub id or a directory, in evaluation mode and float32.

    ``load("sentence-transformers/all-MiniLM-L6-v2")``. weights: another file of the checkpoint than model.safetensors; a
    pickle is opened only when it is named here, and then with torch's ``weights_only``. config: what
    :func:`read_config` gave, with dropout, pooling or labels of your own. Raises InputError that says what and where: no
    such model, an unknown architecture, a damaged file, a tensor missing, unexpected or of a wrong shape.
    """
    folder = find(source, weights)
    config = config or read_config(source)
    tensors = _read_weights(folder, weights)
    if config.pooler and not any(name.endswith(("pooler.dense.weight", "pooler.weight")) for name in tensors):
        config.pooler = False  # a masked language model has none
        config.pooling = "cls" if config.pooling == "pooler" else config.pooling
    with torch.device("meta"):
        encoder = Encoder(config)
    model_type = _json(folder / "config.json")["model_type"]
    assign(encoder, tensors, model_type, f"{folder / (weights or WEIGHTS)}")
    return encoder.eval()


def load_classifier(source: str, config: ModelConfig | None = None) -> EncoderForSequenceClassification:
    """A pretrained encoder under a freshly drawn classification head; arguments and errors as in :func:`load`."""
    encoder = load(source, config=config)
    model = EncoderForSequenceClassification(encoder.config)
    kept = model.encoder.state_dict().keys()  # without a pooler that nothing reads
    model.encoder.load_state_dict({name: x for name, x in encoder.state_dict().items() if name in kept})
    return model.eval()


def save(encoder: Encoder, folder: Path | str, tokenizer: PreTrainedTokenizerBase | None = None) -> None:
    """Write an encoder as its reference would: transformers and sentence-transformers open it without this package.

    Q, K and V are split again. With a pooling that sentence-transformers has, its module files are written too. The
    folder is made whole or not at all. Raises InputError when the model has no counterpart, or the folder exists.
    """
    folder, config = Path(folder), encoder.config
    theirs = their_config(config)
    if folder.exists():
        raise InputError(f"{folder} exists already; name a new folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    state, tensors = encoder.state_dict(), {}
    for ours, parts in tensor_names(config, theirs.model_type).items():
        for name, part in zip(parts, state[ours].chunk(len(parts)), strict=True):
            tensors[name] = part.contiguous().clone()
    try:
        theirs.save_pretrained(aside)
        save_file(tensors, aside / WEIGHTS, metadata={"format": "pt"})
        if tokenizer is not None:
            tokenizer.save_pretrained(aside)
        if config.pooling in ("cls", "mean"):
            _write_sentence_files(aside, config)
        aside.chmod(0o755)  # a temporary folder is its owner's alone
        os.replace(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _write_sentence_files(folder: Path, config: ModelConfig) -> None:
    """The files by which sentence-transformers knows how a sentence is read from the states."""
    kinds = ["Transformer", "Pooling", *(["Normalize"] if config.normalize else [])]
    paths = ["", *(f"{i}_{kind}" for i, kind in enumerate(kinds[1:], start=1))]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": _MODULES + kind}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    pooling = {
        "word_embedding_dimension": config.hidden_size,
        "pooling_mode_cls_token": config.pooling == "cls",
        "pooling_mode_mean_tokens": config.pooling == "mean",
    }
    length = config.max_seq_length or config.max_position_embeddings
    for path in paths[1:]:
        (folder / path).mkdir()
    (folder / "modules.json").write_text(json.dumps(modules, indent=2))
    (folder / paths[1] / "config.json").write_text(json.dumps(pooling, indent=2))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": length, "do_lower_case": False}))
