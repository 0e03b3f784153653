"""A pretrained checkpoint is fine-tuned, whole or frozen, with its own tokenizer, and its weights are a part of the key."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import rtx
from near import assert_near
from transformers import AutoModel, BertModel

from rtx.cli.commands import cli
from rtx.embedding import embed
from rtxlib.data import tokenization
from rtxlib.data.batching import collate
from rtxlib.data.datasets import File, Generated, data_spec
from rtxlib.data.prepare import prepare
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset, pretrained
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_trained
from rtxlib.runs import train, trained
from rtxlib.runs.spec import RunSpec, data_label
from rtxlib.training.recipe import recipe
from rtxlib.training.trainer import Trainer
from rtxstudy import profiles, studies
from rtxstudy.estimate import training_flops
from rtxstudy.questions.early_exit.exits import decode_passes

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
    tokenizer = tokenization.train([text for text, _ in rows], 150)
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_attention_heads": 2, "intermediate_size": 64, "num_hidden_layers": 2}
    encoder = Encoder(preset("minilm-l3", vocab_size=len(tokenizer), max_position_embeddings=64, **sizes))
    pretrained.save(encoder, folder / "tiny", tokenizer)
    return folder / "tiny", folder / "texts.csv"


def test_a_checkpoint_is_fine_tuned_from_the_command_line(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    command = ("train", "--model", str(checkpoint), "--data", str(texts), "--recipe", "finetune", "--max-length", "64",
               "--recipe-set", "learning_rate=0.003", "--json")  # fmt: skip
    done = rtx(*command, home=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r": loaded \d+ of \d+ tensors", done.stderr)
    record = json.loads(done.stdout.splitlines()[-1])
    assert record["family"] == "pretrained" and record["model"] == "tiny" and record["accuracy"] > 0.9
    run = Path(record["run"])
    assert json.loads((run / "config.json").read_text())["id2label"] == {"0": "bad", "1": "good"}
    own = tokenization.load_tokenizer(checkpoint).get_vocab()
    assert tokenization.load_tokenizer(run).get_vocab() == own  # not a tokenizer trained on the texts
    again = rtx(*command, home=tmp_path)
    assert json.loads(again.stdout.splitlines()[-1])["finished"] == record["finished"]
    answer = rtx("predict", record["key"], "a clumsy film with a stale end", "--json", home=tmp_path)
    assert json.loads(answer.stdout.splitlines()[-1])["label"] == "bad"


def test_frozen_trains_the_head_alone(made: tuple[Path, Path], tmp_path: Path, monkeypatch) -> None:
    checkpoint, texts = made
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    data = File(path=str(texts), tokenizer=str(checkpoint), max_length=64)
    spec = RunSpec(str(checkpoint), data, recipe("frozen", epochs=1))
    run = train.train_run(spec, tmp_path / "data" / "runs")
    assert run.metrics["model"] == "tiny frozen"
    trained = load_trained(run.path)
    before = pretrained.load(str(checkpoint)).state_dict()
    for name, x in trained.encoder.state_dict().items():
        assert torch.equal(x, before[name]), name
    fresh = train.fresh_model(spec, prepare(data, tmp_path / "data" / "prepared"))
    assert not torch.equal(fresh.classifier.weight, trained.classifier.weight)


def test_other_weights_are_another_run(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    copy = tmp_path / "copy"
    pretrained.save(pretrained.load(str(checkpoint)), copy, tokenization.load_tokenizer(checkpoint))
    spec = RunSpec(str(copy), File(path=str(texts)), recipe("finetune"))
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
    plain = RunSpec("standard-1x32", Generated(), recipe("smoke"))
    spelt_out = RunSpec("standard-1x32", Generated(rows=None, lengths="all"), recipe("smoke", layer_decay=1.0))
    assert plain.key("x") == spelt_out.key("x")
    for other in (
        dataclasses.replace(plain, seed=1),
        dataclasses.replace(plain, data=Generated(rows=99)),
        dataclasses.replace(plain, recipe=recipe("smoke", layer_decay=0.9)),
        dataclasses.replace(plain, recipe=recipe("smoke", learning_rate=1e-3)),
        dataclasses.replace(plain, overrides={"position": "alibi"}),
        dataclasses.replace(plain, model="standard-1x64"),
    ):
        assert other.key("x") != plain.key("x")
    assert plain.key("y") != plain.key("x")


def test_a_model_that_does_not_fit_the_data_is_told(made: tuple[Path, Path]) -> None:
    checkpoint, texts = made
    spec = RunSpec(str(checkpoint), File(path=str(texts), max_length=256), recipe("finetune"))
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
    spam = data_spec("sms_spam")
    assert spam.task == "spam" and not spam.strip_urls and data_label(spam) == "sms_spam"
    assert data_spec("sst2").strip_urls and data_spec("domains").task == "domain"
    assert data_spec("sms_spam", strip_urls=True).strip_urls
    assert not data_spec("embedded", task="spam").strip_urls and data_spec("embedded").strip_urls


def test_each_seed_of_the_spam_study_has_a_split_of_its_own() -> None:
    profile = profiles.load("full", seeds=4)
    assert [spec.data.seed for spec in studies.spam(profile)] == [0, 1, 2, 3]
    tuned = studies.finetuning(profile)
    assert {spec.data.tokenizer for spec in tuned} == {profile.pretrained}
    assert [spec.recipe.freeze_encoder for spec in tuned if spec.data.task == "spam"] == [False] * 4 + [True] * 4
    assert {spec.data.seed for spec in tuned if spec.data.task == "sentiment"} == {0}


def test_a_converted_checkpoint_is_fine_tuned_as_its_own_folder_would_be(made: tuple[Path, Path], tmp_path: Path) -> None:
    """A run may name the conversion, or the folder that `rtx convert` wrote: the trained weights are the same."""
    checkpoint, texts = made
    named = rtx("convert", checkpoint, "--layers", "1", "--passes", "2", "--out", tmp_path / "loop", "--json")
    assert named.returncode == 0, named.stderr
    data = File(path=str(texts), tokenizer=str(checkpoint), max_length=64)
    short = recipe("finetune", epochs=0.5)
    ours = RunSpec(str(checkpoint), data, short, conversion={"layers": 1, "passes": 2, "start": "lower"})
    folder = RunSpec(str(tmp_path / "loop"), dataclasses.replace(data, tokenizer=str(tmp_path / "loop")), short)
    models = [train_here(spec, tmp_path / f"runs{n}") for n, spec in enumerate((ours, folder))]
    for (name, one), (_, other) in zip(*(model.state_dict().items() for model in models), strict=True):
        assert torch.equal(one, other), name
    assert models[0].config.recurrent_depth == 2 and ours.name == "tiny 1×2 lower"
    assert RunSpec.from_canonical(json.loads(json.dumps(ours.canonical()))) == ours


def test_a_loop_made_of_pretrained_layers_is_fine_tuned_at_random_depth(made: tuple[Path, Path], tmp_path: Path) -> None:
    """Texts whose label is a word of theirs: the label can be read after every pass."""
    checkpoint, texts = made
    data = File(path=str(texts), tokenizer=str(checkpoint), max_length=64)
    loop = {"layers": 1, "passes": 4, "start": "lower", "depth_sampling": "uniform"}
    ours = RunSpec(str(checkpoint), data, recipe("finetune", epochs=8, learning_rate=2e-3), conversion=loop)
    model = train_here(ours, tmp_path)
    assert ours.name == "tiny 1×4 lower random depth" and model.config.pooling == "mean"
    prepared = prepare(data, tmp_path / "prepared", progress=False)
    test = prepared.splits["test"]
    decoded = decode_passes(model, [collate(test, np.arange(len(test)), prepared.tokenizer.pad_token_id)])
    assert (decoded.predictions == test.labels[:, None]).mean(axis=0).min() > 0.9
    fixed = dataclasses.replace(ours, conversion=loop | {"depth_sampling": "fixed"})
    assert training_flops(ours, prepared) < 0.7 * training_flops(fixed, prepared)  # (1 + 2 + 3 + 4) / 4 of 4 passes


def train_here(spec: RunSpec, runs: Path) -> EncoderForSequenceClassification:
    data = prepare(spec.data, runs / "prepared", progress=False)
    return trained.open_model(train.train_run(spec, runs, data=data))


def test_with_all_of_the_loss_from_the_teacher_the_labels_do_not_matter(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    told = pd.read_csv(texts)
    told["label"] = told["label"].map({"good": "bad", "bad": "good"})
    told.to_csv(tmp_path / "turned.csv", index=False)
    device = torch.device("cpu")
    logits = np.random.default_rng(0).normal(size=(192, 2)).astype(np.float32)
    found = []
    for file, share in ((texts, 1.0), (tmp_path / "turned.csv", 1.0), (texts, 0.5)):
        spec = File(path=str(file), tokenizer=str(checkpoint), max_length=64)
        data = prepare(spec, tmp_path / "prepared", progress=False)
        whole = RunSpec(str(checkpoint), spec, recipe("finetune", epochs=1))
        model = train.fresh_model(whole, data)
        splits = data.splits["train"], data.splits["validation"]
        taught = dataclasses.replace(whole.recipe, distillation=share)
        ids = tokenization.special_ids(data.tokenizer)
        Trainer(model, *splits, taught, 0, ids, device, teacher=logits[: len(splits[0])]).run()
        found.append(model.classifier.weight)
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_a_teacher_is_named_on_the_command_line_and_is_a_part_of_the_key(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made[0], Path(shutil.copy(made[1], tmp_path))
    home, common = tmp_path / "home", ("train", "--model", checkpoint, "--data", texts, "--max-length", 64, "--json")
    teacher = json.loads(rtx(*common, home=home).stdout.splitlines()[-1])
    loop = tmp_path / "loop"
    rtx("convert", checkpoint, "--layers", 1, "--passes", 2, "--out", loop)
    student = ("train", "--model", loop, "--data", texts, "--max-length", 64, "--json")
    done = rtx(*student, "--teacher", teacher["key"], home=home)
    assert done.returncode == 0, done.stderr
    copy = shutil.copytree(teacher["run"], tmp_path / "mine")  # a run that was copied to a folder of another name
    again = rtx(*student, "--teacher", copy, home=home)
    keys = {json.loads(one.stdout.splitlines()[-1])["key"] for one in (again, done)}
    assert again.returncode == 0 and len(keys) == 1, again.stderr
    beside = json.loads(done.stdout.splitlines()[-1])
    spec = RunSpec.from_canonical(json.loads((Path(beside["run"]) / "spec.json").read_text()))
    other = dataclasses.replace(spec, teacher=dataclasses.replace(spec.teacher, seed=1))
    assert spec.key(beside["fingerprint"]) == beside["key"] != other.key(beside["fingerprint"])
    with pytest.raises(InputError, match="go together"):
        dataclasses.replace(spec.teacher, teacher=spec)
    pd.concat([pd.read_csv(texts), pd.read_csv(texts).head(1).assign(text="one more row of words")]).to_csv(texts, index=False)
    done = rtx(*student, "--teacher", teacher["key"], home=home)
    assert done.returncode == 2 and "have changed since it was trained; train the teacher again" in done.stderr


def test_a_teacher_that_has_seen_the_test_texts_is_refused(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    home = tmp_path / "home"
    turned = tmp_path / "turned.csv"  # the same rows in another order have another split
    pd.read_csv(texts).sample(frac=1, random_state=1).to_csv(turned, index=False)
    teacher = rtx("train", "--model", checkpoint, "--data", turned, "--max-length", 64, "--json", home=home)
    key = json.loads(teacher.stdout.splitlines()[-1])["key"]
    done = rtx("train", "--model", checkpoint, "--data", texts, "--max-length", 64, "--teacher", key, home=home)
    assert done.returncode == 2 and "has seen" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--layers", 3, "--passes", 1), "cannot be made from 2 layers"),
        (("--layers", 1, "--passes", 3, "--rank", 2), "1 × 3 must be 2"),
        (("--layers", 1, "--passes", 2, "--start", "lowest"), "Did you mean 'lower'"),
        (("--layers", 1, "--passes", 2, "--text-column", "t"), "belong to --vocabulary"),
        (("--layers", 1, "--passes", 2, "--vocabulary", "none.csv"), "no file"),
    ],
)
def test_a_conversion_that_cannot_be_is_refused(made: tuple[Path, Path], tmp_path: Path, arguments: tuple, words: str) -> None:
    done = rtx("convert", made[0], *arguments, "--out", tmp_path / "out")
    *loaded, error = done.stderr.splitlines()
    assert done.returncode == 2 and words in error and all("loaded" in line for line in loaded), done.stderr
    assert not (tmp_path / "out").exists()


def test_a_conversion_opens_in_transformers_and_as_embeddings(made: tuple[Path, Path], tmp_path: Path) -> None:
    checkpoint, texts = made
    once, twice, cut = (tmp_path / name for name in ("once", "twice", "cut"))
    for out, passes, more in ((once, 1, ()), (twice, 2, ()), (cut, 2, ("--vocabulary", texts))):
        done = rtx("convert", checkpoint, "--layers", 1, "--passes", passes, *more, "--out", out)
        assert done.returncode == 0, done.stderr
    assert BertModel.from_pretrained(once).config.num_hidden_layers == 1  # without this package's classes
    assert AutoModel.from_pretrained(twice).config.recurrent_depth == 2
    some = pd.read_csv(texts)["text"].head(20).tolist()
    vectors = [
        embed(some, pretrained.load(str(folder)), tokenization.pretrained_tokenizer(folder)) for folder in (twice, cut, once)
    ]
    assert_near(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2], atol=1e-3)
    again = rtx("convert", checkpoint, "--layers", 1, "--passes", 1, "--out", once)
    assert again.returncode == 2 and "exists already" in again.stderr
