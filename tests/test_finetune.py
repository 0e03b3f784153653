"""A pretrained checkpoint is fine-tuned, whole or frozen, with its own tokenizer, and its weights are a part of the key."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from rtxlib.cli.commands import cli
from rtxlib.data import tokenization
from rtxlib.data.prepare import prepare
from rtxlib.data.spec import DataSpec, of_source
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset, pretrained
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.runs import train
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.training.recipe import recipe
from rtxstudy import profiles, studies

FINE, DULL = ("fine", "lovely", "moving", "clever"), ("dull", "stale", "clumsy", "flat")


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path]:
    """A tiny checkpoint with a tokenizer of its own, and a file of labelled texts."""
    folder = tmp_path_factory.mktemp("made")
    rng = np.random.default_rng(0)
    rows = []
    for i in range(240):
        words = (FINE, DULL)[i % 2]
        rows.append((f"a {rng.choice(words)} film number {i} with a {rng.choice(words)} end", ("good", "bad")[i % 2]))
    (folder / "texts.csv").write_text("text,label\n" + "\n".join(f"{text},{label}" for text, label in rows))
    tokenizer = tokenization.train("wordpiece", [text for text, _ in rows], 150)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "num_hidden_layers": 2}
    encoder = Encoder(preset("minilm-l3", vocab_size=len(tokenizer), max_position_embeddings=64, **sizes))
    pretrained.save(encoder, folder / "tiny", tokenizer)
    return folder / "tiny", folder / "texts.csv"


def rtx(home: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "rtxlib", *arguments],
        env={**os.environ, "RTX_HOME": str(home), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )


def test_a_checkpoint_is_fine_tuned_from_the_command_line(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    command = ("train", "--model", str(checkpoint), "--data", str(texts), "--recipe", "finetune", "--max-length", "64",
               "--recipe-set", "learning_rate=0.003", "--json")  # fmt: skip
    done = rtx(tmp_path, *command)
    assert done.returncode == 0, done.stderr[-2000:]
    record = json.loads(done.stdout.splitlines()[-1])
    assert record["family"] == "pretrained" and record["model"] == "tiny" and record["accuracy"] > 0.9
    run = Path(record["run"])
    assert json.loads((run / "config.json").read_text())["id2label"] == {"0": "bad", "1": "good"}
    own = tokenization.load_tokenizer(checkpoint).get_vocab()
    assert tokenization.load_tokenizer(run).get_vocab() == own  # not a tokenizer trained on the texts
    again = rtx(tmp_path, *command)
    assert json.loads(again.stdout.splitlines()[-1])["finished"] == record["finished"]
    answer = rtx(tmp_path, "predict", record["key"], "a clumsy film with a stale end", "--json")
    assert json.loads(answer.stdout.splitlines()[-1])["label"] == "bad"


def test_frozen_trains_the_head_alone(made: tuple[Path, Path], tmp_path: Path, monkeypatch) -> None:
    checkpoint, texts = made
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    data = DataSpec(source="file", path=str(texts), tokenizer=str(checkpoint), max_length=64)
    spec = RunSpec(str(checkpoint), data, recipe("frozen", epochs=1))
    run = train.train_run(spec, tmp_path / "data" / "runs")
    assert run.metrics["model"] == "tiny frozen"
    trained = EncoderForSequenceClassification.from_pretrained(run.path)
    before = pretrained.load(str(checkpoint)).state_dict()
    for name, x in trained.encoder.state_dict().items():
        assert torch.equal(x, before[name]), name
    fresh = train.fresh_model(spec, prepare(data, tmp_path / "data" / "prepared"))
    assert not torch.equal(fresh.classifier.weight, trained.classifier.weight)


def test_other_weights_are_another_run(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    copy = tmp_path / "copy"
    pretrained.save(pretrained.load(str(checkpoint)), copy, tokenization.load_tokenizer(checkpoint))
    spec = RunSpec(str(copy), DataSpec(source="file", path=str(texts)), recipe("finetune"))
    before = spec.key("data")
    assert spec.key("data") == before
    (copy / pretrained.WEIGHTS).unlink()
    torch.manual_seed(7)
    other = Encoder(pretrained.load(str(checkpoint)).config)
    pretrained.save(other, tmp_path / "other")
    (tmp_path / "other" / pretrained.WEIGHTS).rename(copy / pretrained.WEIGHTS)
    (copy / "SHA256SUMS").unlink()  # it has the checksum of the weights that were there
    assert spec.key("data") != before


def test_a_key_knows_what_differs_from_the_defaults_and_nothing_else() -> None:
    plain = RunSpec("standard-1x32", DataSpec(), recipe("smoke"))
    spelt_out = RunSpec("standard-1x32", DataSpec(rows=None, lengths="all"), recipe("smoke", layer_decay=1.0))
    assert plain.key("x") == spelt_out.key("x")
    for other in (
        dataclasses.replace(plain, seed=1),
        dataclasses.replace(plain, data=DataSpec(rows=99)),
        dataclasses.replace(plain, recipe=recipe("smoke", layer_decay=0.9)),
        dataclasses.replace(plain, recipe=recipe("smoke", learning_rate=1e-3)),
        dataclasses.replace(plain, overrides={"position": "alibi"}),
        dataclasses.replace(plain, model="standard-1x64"),
    ):
        assert other.key("x") != plain.key("x")
    assert plain.key("y") != plain.key("x")


def test_a_model_that_does_not_fit_the_data_is_told(made: tuple[Path, Path]) -> None:
    checkpoint, texts = made
    spec = RunSpec(str(checkpoint), DataSpec(source="file", path=str(texts), max_length=256), recipe("finetune"))
    with pytest.raises(InputError, match=r"64 positions, the data .* texts of up to 256"):
        spec.config(100, 0, ["bad", "good"])
    with pytest.raises(InputError, match="give the data its tokenizer"):
        spec.config(30_000, 0, ["bad", "good"])


def test_mistakes_on_the_command_line_are_one_sentence(made: tuple[Path, Path], tmp_path: Path, monkeypatch) -> None:
    checkpoint, texts = made
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    for arguments, says in (
        (("--model", f"{checkpoint}x"), "There is no folder"),
        (("--model", str(checkpoint), "--recipe", "finetun"), "Did you mean 'finetune'"),
        (("--model", str(checkpoint), "--recipe", "finetune"), "64 positions"),
    ):
        with pytest.raises(InputError, match=says):
            cli.main(["train", "--data", str(texts), *arguments], standalone_mode=False)


def test_spam_keeps_its_links_and_is_called_by_its_name() -> None:
    spam = of_source("sms_spam")
    assert spam.task == "spam" and not spam.strip_urls and data_label(spam) == "sms_spam"
    assert of_source("sst2").strip_urls and of_source("domains").task == "domain"
    assert of_source("sms_spam", strip_urls=True).strip_urls


def test_each_seed_of_the_spam_study_has_a_split_of_its_own() -> None:
    profile = profiles.load("full", pretrained_seeds=4)
    assert [spec.data.seed for spec in studies.spam(profile)] == [0, 1, 2, 3]
    tuned = studies.finetuning(profile)
    assert {spec.data.tokenizer for spec in tuned} == {profile.pretrained}
    assert [spec.recipe.freeze_encoder for spec in tuned if spec.data.task == "spam"] == [False] * 4 + [True] * 4
    assert {spec.data.seed for spec in tuned if spec.data.task == "sentiment"} == {0}
    assert profiles.load("full", seeds=1).pretrained_seeds == 1
    assert profiles.load("full", seeds=1, pretrained_seeds=3).pretrained_seeds == 3
