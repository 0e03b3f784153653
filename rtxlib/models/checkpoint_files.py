"""The files in the folder of a pretrained model: JSON, weights, and what sentence-transformers says about pooling."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from rtxlib.checksums import regular
from rtxlib.errors import InputError
from rtxlib.models.config import ModelConfig

WEIGHTS = "model.safetensors"
INDEX = f"{WEIGHTS}.index.json"  # lists the files of weights that are split into several
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_MODULES = "sentence_transformers.models."  # prefix of the module classes in modules.json
_POOLINGS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean", "pooling_mode_mean_token": "mean"}


def read_json(path: Path) -> Any:
    """The content of a JSON file. Raises InputError if the file is missing, no regular file, or not JSON."""
    try:
        content = regular(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path.parent} holds no {path.name}, so it is no model.") from None
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON ({error}); fetch it again.") from error


def read_weights(folder: Path, weights: str | None = None) -> dict[str, Tensor]:
    """Every tensor of a checkpoint, by its name in the file.

    weights: the file to read, instead of model.safetensors or the files that its index lists. A pickle is opened only when
    it is named here, and then with torch's ``weights_only``. Raises InputError for a missing or damaged file, and for an index
    that names anything but safetensors in its own folder.
    """
    if weights is not None:
        files = [folder / weights]
    elif (folder / INDEX).exists():
        files = _indexed(folder)
    elif (folder / WEIGHTS).exists():
        files = [folder / WEIGHTS]
    else:
        raise InputError(f"{folder} holds no {WEIGHTS}, so there are no weights to load.{_hint(folder)}")
    tensors: dict[str, Tensor] = {}
    for path in files:
        if not path.exists():
            raise InputError(f"{folder} holds no {path.name}.")
        regular(path)
        try:
            if path.suffix in PICKLES:
                tensors |= torch.load(path, map_location="cpu", weights_only=True)
            else:
                tensors |= load_file(path)
        except pickle.UnpicklingError as error:  # torch's own message advises to open it with its code
            raise InputError(f"{path} holds more than tensors, so it is not opened; use a .safetensors file.") from error
        except (SafetensorError, RuntimeError, EOFError, OSError, TypeError, ValueError) as error:
            lines = str(error).strip().splitlines()
            reason = lines[0] if lines else type(error).__name__
            raise InputError(f"{path} is damaged or cut short ({reason}); fetch it again.") from error
    if strange := [name for name, x in tensors.items() if not (isinstance(name, str) and isinstance(x, Tensor))]:
        raise InputError(f"{files[0]} does not map names to tensors: {strange[0]!r} is none; name a file of weights.")
    return tensors


def _indexed(folder: Path) -> list[Path]:
    """The files that the index of a folder lists.

    They must be safetensors in this folder. A snapshot in the Hub's cache has links to ``../../blobs``, which are followed. Other
    links out of the folder are not.
    """
    index, here = read_json(folder / INDEX), folder.resolve()
    try:
        names = sorted(set(index["weight_map"].values()))
    except (KeyError, TypeError, AttributeError):
        raise InputError(f"{folder / INDEX} has no weight_map with names of files; fetch it again.") from None
    inside = {here, here.parents[1] / "blobs"} if here.parent.name == "snapshots" else {here}
    for name in names:
        if not isinstance(name, str) or not name.endswith(".safetensors"):
            raise InputError(
                f"{folder / INDEX} names {name!r}, which is not a .safetensors file; such a file is opened only if you name "
                "it with --weights (weights= in Python)."
            )
        try:
            outside = len(Path(name).parts) > 1 or (folder / name).resolve().parent not in inside
        except (OSError, ValueError, RuntimeError):  # too long a name, a zero byte, a circle of links
            outside = True
        if outside:
            raise InputError(
                f"{folder / INDEX} names {name!r}, which is no file of the same folder; put a copy of the file beside the index."
            )
    return [folder / name for name in names]


def _hint(folder: Path) -> str:
    """Which other files of weights the folder has, as sentences for an error."""
    others = sorted(path.name for path in folder.glob("*") if path.suffix in (".safetensors", *PICKLES))
    if not others:
        return ""
    hint = f" It has {', '.join(others)}; name one with --weights of `rtx embed` or `rtx similarity` (weights= in Python)."
    if any(name.endswith(PICKLES) for name in others):
        hint += " A pickle can run code when it is opened, so ask for one only if you trust it."
    return hint


def read_pooling(folder: Path) -> dict[str, Any]:
    """How sentence-transformers makes a sentence embedding from the states, as fields of ModelConfig.

    Returns no fields if the folder has no modules.json. Raises InputError for a pooling other than [CLS] or mean, or a module
    other than Transformer, Pooling and Normalize.
    """
    if not (folder / "modules.json").exists():
        return {}
    settings: dict[str, Any] = {"normalize": False}
    modules = read_json(folder / "modules.json")
    if not isinstance(modules, list) or not all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in modules):
        raise InputError(f"{folder / 'modules.json'} is no list of modules with a type each; fetch it again.")
    for module in modules:
        kind = module["type"].rpartition(".")[2]
        if kind == "Normalize":
            settings["normalize"] = True
        elif kind == "Pooling":
            wanted = _object(folder / str(module.get("path")) / "config.json")
            modes = {name for name, on in wanted.items() if name.startswith("pooling_mode_") and on is True}
            if "pooling_mode" in wanted:  # newer files name the mode in one word
                modes.add(f"pooling_mode_{wanted['pooling_mode']}_token")
            if len(modes) != 1 or not modes <= _POOLINGS.keys():
                raise InputError(f"{folder} pools by {', '.join(sorted(modes))}; only [CLS] or the mean is understood.")
            settings["pooling"] = _POOLINGS[modes.pop()]
        elif kind != "Transformer":
            raise InputError(f"{folder} ends in a {kind} module, which these encoders do not have.")
    file = folder / "sentence_bert_config.json"
    settings["max_seq_length"] = _object(file).get("max_seq_length") if file.is_file() else None
    return settings


def _object(path: Path) -> dict[str, Any]:
    """The content of a JSON file of named values. Raises InputError for any other content, and as :func:`read_json`."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise InputError(f"{path} holds no named values; fetch it again.")
    return content


def write_pooling(folder: Path, config: ModelConfig) -> None:
    """Write the files from which sentence-transformers reads ``pooling``, ``normalize`` and ``max_seq_length``."""
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
