"""What a faulty Hub, or a network before it, may do to a model: the model is whole, or one sentence says what is wrong."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from faults import hub as faulty
from huggingface_hub import constants

from rtxlib import hub
from rtxlib.data import tokenization
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset, pretrained

REPO = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repo") / "encoder"
    tokenizer = tokenization.train(["the film was dull", "the staff were kind and the soup was hot"], 100)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "vocab_size": len(tokenizer)}
    torch.manual_seed(0)
    pretrained.save(Encoder(preset("minilm-l3", **sizes)), folder, tokenizer)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the Hub, which nothing was asked yet. Its library does not wait before it asks again."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    yield tmp_path
    hub._answer.cache_clear()


def ask(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take this Hub from now on."""
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    hub._answer.cache_clear()


def find(address: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    ask(address, monkeypatch)
    return pretrained.find(REPO)


@pytest.mark.parametrize("fault", faulty.FAULTS)
def test_a_faulty_hub_is_told_and_the_next_command_gets_the_model(
    fault: str, tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    altered = fault.startswith(("changed", "short"))
    said = "another checksum" if altered else "neither from the Hub nor from its cache"
    with faulty.serving({REPO: tiny}, fault) as address, pytest.raises(InputError, match=said):
        find(address, monkeypatch)
    with faulty.serving({REPO: tiny}) as address:
        found = find(address, monkeypatch)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (found / name).read_bytes() == (tiny / name).read_bytes()


def test_a_tokenizer_that_was_changed_on_its_way_is_not_used(tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer of prepared data is fetched alone."""
    with faulty.serving({REPO: tiny}, "changed words") as address:
        ask(address, monkeypatch)
        with pytest.raises(InputError, match="another checksum"):
            tokenization.fetch(REPO)
    with faulty.serving({REPO: tiny}) as address:
        ask(address, monkeypatch)
        assert tokenization.fetch(REPO).path.read_bytes() == (tiny / "tokenizer.json").read_bytes()


def test_a_hub_that_hands_out_no_files_is_asked_once(tiny: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its library asks six times for each file, with pauses of half a minute in all."""
    asked = []
    monkeypatch.setattr(faulty.Hub, "log_message", lambda self, *_: asked.append(self.path))
    with faulty.serving({REPO: tiny}, "500 for files") as address, pytest.raises(InputError):
        find(address, monkeypatch)
    assert sum("/resolve/" in path for path in asked) == 1


def test_what_was_made_of_a_changed_data_set_goes_too(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table that was made of a file would be found again without it."""
    snapshot, content = tmp_path / "datasets--a--b" / "snapshots" / faulty.COMMIT, b"rows"
    snapshot.mkdir(parents=True)
    for name in ("whole.parquet", "changed.parquet"):
        (snapshot / name).write_bytes(content if name == "whole.parquet" else b"swor")
    lfs = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest())
    files = [SimpleNamespace(rfilename=path.name, blob_id=None, lfs=lfs) for path in snapshot.iterdir()]
    monkeypatch.setattr(hub, "_answer", lambda repo, kind: SimpleNamespace(sha=faulty.COMMIT, siblings=files))
    made: list[str] = []
    with pytest.raises(InputError, match=r"^'changed.parquet' of a/b came"):
        hub.require_intact("a/b", "dataset", lambda: made.append("removed"))
    assert made == ["removed"] and [path.name for path in snapshot.iterdir()] == ["whole.parquet"]
    monkeypatch.undo()
