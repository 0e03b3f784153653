"""Pretraining: a corpus without evaluation texts, hidden tokens, a head at these alone, and runs that start from it."""

from __future__ import annotations

import dataclasses
import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from in_process import rtx
from near import assert_near
from safetensors.torch import load_file

from rtxlib.data.corpus import corpus_texts, packed
from rtxlib.data.datasets import File
from rtxlib.data.prepare import prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import special_ids
from rtxlib.errors import InputError
from rtxlib.models import kernels, preset
from rtxlib.models.heads import EncoderForMaskedLM
from rtxlib.runs.pretraining import RECORD, Pretraining, pretrain
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.train import train_run
from rtxlib.training import trainer
from rtxlib.training.pretrainer import Pretrainer, hide
from rtxlib.training.recipe import recipe

REACHED = ("words", "tokens_seen", "val_loss", "val_accuracy", "seconds")
LETTERS = "abcdefghij"
TINY = {"num_attention_heads": 2, "hidden_dropout": 0.0, "attention_dropout": 0.0}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts in which each word is told by its neighbours: ten words in a circle, entered at a random one."""
    rng = np.random.default_rng(0)
    rows = []
    for n in range(400):
        start, length = rng.integers(10), rng.integers(8, 20)
        words = " ".join(f"w{LETTERS[(start + i) % 10]}" for i in range(length))
        rows.append((f"{words} n{n}", ("odd", "even")[start % 2]))
    file = tmp_path_factory.mktemp("made") / "circle.csv"
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def spec(file: Path) -> DataSpec:
    return File(path=str(file), tokenizer="wordpiece", vocab_size=150, leak_words=100)


@pytest.fixture(scope="module")
def data(spec: DataSpec, prepared_cache: Path):
    return prepare(spec, prepared_cache, progress=False)


def test_the_corpus_holds_training_texts_alone(data) -> None:
    texts = corpus_texts([data], [])
    assert len(texts) > 100 and set(texts) <= set(data.texts("train"))


def test_evaluation_texts_and_phrases_of_other_texts_are_left_out(tmp_path: Path, prepared_cache: Path) -> None:
    def made(name: str, texts: list[str]):
        path = tmp_path / f"{name}.csv"
        pd.DataFrame({"text": texts, "label": [f"l{i % 2}" for i in range(len(texts))]}).to_csv(path, index=False)
        return prepare(File(path=str(path), vocab_size=200), prepared_cache, progress=False)

    judge = made("judge", [f"the judge reads number {n} of many" for n in range(60)])
    judged = judge.texts("test")[0]
    mine = [f"my own sentence with the number {n}" for n in range(60)]
    of_training = [
        f"and now , {judged} , once more",  # an evaluation text inside
        judged.upper() + " !",  # the same words
        " ".join(judged.split()[:4]),  # inside an evaluation text
        "sentence with the number 7",  # a phrase of a text of its own (or of one that is held out)
        "my my",
    ]
    both = made("mine", mine + of_training * 4)
    texts = corpus_texts([both], [judge])
    train_texts = set(both.texts("train"))
    assert not [text for text in texts if "judge" in text] and [text for text in train_texts if "judge" in text]
    assert len(set(texts)) == len(texts) and "sentence with the number 7" not in texts
    assert set(texts) <= train_texts and len([text for text in texts if text.startswith("my own")]) > 30


def test_rows_are_packed_without_padding_and_lose_no_token(data) -> None:
    tokenizer, texts = data.tokenizer, data.texts("train")
    training, validation = packed(texts, tokenizer, 24, seed=0)
    assert set(training.lengths) == set(validation.lengths) == {24}
    rows = training.ids.reshape(-1, 24)
    assert (rows[:, 0] == tokenizer.cls_token_id).all() and (rows[:, -1] == tokenizer.sep_token_id).all()
    assert 0 <= sum(len(ids) - 1 for ids in tokenizer(texts)["input_ids"]) - 22 * (len(training) + len(validation)) < 44
    with pytest.raises(InputError, match="too few rows"):
        packed(texts[:5], tokenizer, 128, seed=0)


def test_a_new_setting_keeps_the_keys_of_what_was_pretrained_before(spec: DataSpec) -> None:
    later = dataclasses.make_dataclass("Later", [("more", int, 7)], bases=(Pretraining,), frozen=True)
    given = ("standard-1x32", (spec,), recipe("pretrain"))
    assert later(*given).key == Pretraining(*given).key
    changes = ({"seed": 1}, {"share": 0.3}, {"kept_out": (spec,)}, {"overrides": {"embedding_size": 16}})
    assert len({Pretraining(*given, **change).key for change in ({}, *changes)}) == 5


def test_tokens_are_hidden_as_by_bert() -> None:
    ids = torch.randint(5, 1000, (400, 100), generator=torch.Generator().manual_seed(0))
    ids[:, 0], ids[:, -1] = 2, 3
    read, labels = hide(ids, 0.15, 4, 1000, torch.tensor([0, 1, 2, 3, 4]), torch.Generator().manual_seed(1))
    chosen = labels != -100
    assert not chosen[:, [0, -1]].any() and torch.equal(labels[chosen], ids[chosen]) and torch.equal(read[~chosen], ids[~chosen])
    assert chosen[:, 1:-1].float().mean() == pytest.approx(0.15, abs=0.01)
    masked, same = (read[chosen] == 4).float().mean(), (read[chosen] == ids[chosen]).float().mean()
    assert masked == pytest.approx(0.8, abs=0.02) and same == pytest.approx(0.1, abs=0.02)


@pytest.mark.parametrize("changes", [{}, {"embedding_size": 16}, {"recurrent_depth": 3, "residual": "none"}])
def test_the_head_runs_at_the_hidden_tokens_alone(changes: dict) -> None:
    torch.manual_seed(0)
    model = EncoderForMaskedLM(preset("standard-1x32", vocab_size=50, **changes)).eval()
    ids = torch.randint(5, 50, (3, 12))
    read, labels = hide(ids, 0.3, 4, 50, torch.arange(5))
    whole, some = model(read).logits, model(read, labels=labels)
    assert whole.shape == (3, 12, 50)
    assert torch.equal(some.best, whole[labels != -100].argmax(dim=-1))
    expected = F.cross_entropy(whole.flatten(0, 1), labels.flatten())
    assert some.loss.item() == pytest.approx(expected.item(), rel=1e-4)
    parameters = list(model.parameters())
    for ours, theirs in zip(*(torch.autograd.grad(loss, parameters) for loss in (some.loss, expected)), strict=True):
        assert_near(ours, theirs)


def test_pieces_of_rows_give_the_loss_and_gradients_of_one_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    x, table, bias = (torch.randn(*size, dtype=torch.float64).float() for size in ((37, 8), (23, 8), (23,)))
    true = torch.randint(23, (37,))
    monkeypatch.setattr(kernels, "_ROWS", {"cpu": 10})
    for given in (x, table, bias):
        given.requires_grad_()
    loss, best = kernels.vocabulary_loss(x, table, bias, true)
    logits = F.linear(x, table, bias)
    assert torch.equal(best, logits.argmax(dim=-1))
    ours, theirs = (
        torch.autograd.grad(3 * each, (x, table, bias)) for each in (loss, F.cross_entropy(logits, true, reduction="sum"))
    )
    for one, other in zip(ours, theirs, strict=True):
        assert_near(one, other)
    with torch.no_grad():
        assert kernels.vocabulary_loss(x, table, bias, true)[0].item() == pytest.approx(loss.item(), rel=1e-5)


def pretrainer(data, **changes) -> Pretrainer:
    training, validation = packed(data.texts("train"), data.tokenizer, 24, seed=0)
    torch.manual_seed(0)
    model = EncoderForMaskedLM(preset("standard-2x64", vocab_size=len(data.tokenizer), pad_token_id=0, **TINY))
    plan = recipe("pretrain", **({"epochs": 2, "batch_rows": 16, "learning_rate": 3e-3} | changes.pop("recipe", {})))
    ids, device = special_ids(data.tokenizer), torch.device("cpu")
    return Pretrainer(model, training, validation, plan, 0, ids, device, share=0.2, **changes)


def test_hidden_words_are_learned(data) -> None:
    trained = pretrainer(data, recipe={"epochs": 15}).run()
    first, last = trained.curve["val_accuracy"].iloc[[0, -1]]
    assert last > 0.6 > first, trained.curve["val_accuracy"].tolist()  # numbers cannot be told, words can


def test_a_resumed_pretraining_ends_with_equal_weights(data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pretrainer(data)
    whole.run()
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0.0)
    broken = pretrainer(data, checkpoint_file=tmp_path / "checkpoint.safetensors")
    step = broken.step

    def stopped(pieces) -> None:
        if broken.progress.step == 7:
            raise KeyboardInterrupt
        step(pieces)

    broken.step = stopped
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    again = pretrainer(data, checkpoint_file=tmp_path / "checkpoint.safetensors")
    again.run()
    for (name, one), (_, other) in zip(whole.model.state_dict().items(), again.model.state_dict().items(), strict=True):
        assert torch.equal(one, other), name


def test_a_run_starts_from_its_pretraining(
    data, spec: DataSpec, prepared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    model, words = "recurrent-1x2x32", {"residual": "none"}
    first = Pretraining(model, (spec,), recipe("pretrain", epochs=1, batch_rows=8), length=32, overrides=words)
    run = RunSpec(model, spec, recipe("smoke"), overrides=words, pretraining=first)
    assert RunSpec.from_canonical(json.loads(json.dumps(run.canonical()))) == run
    others = [dataclasses.replace(run, pretraining=other) for other in (None, dataclasses.replace(first, seed=1))]
    assert len({one.key("f") for one in (run, *others)}) == 3
    frozen = dataclasses.replace(run, recipe=recipe("frozen", epochs=0.1))
    trained = train_run(frozen, tmp_path / "data" / "runs", data=data)
    ours, theirs = (load_file(folder / "model.safetensors") for folder in (trained.path, first.folder))
    assert all(torch.equal(ours[f"encoder.{name}"], weight) for name, weight in theirs.items())
    record = json.loads((first.folder / RECORD).read_text())
    shown = {name: value for name, value in trained.metrics.items() if name.startswith("pretraining_")}
    assert shown == {f"pretraining_{name}": record[name] for name in REACHED}
    assert f"Pretrained on {record['words']:,} words" in (trained.path / "README.md").read_text()
    with pytest.raises(InputError, match="same model"):
        dataclasses.replace(run, model="recurrent-1x3x32")
    other = prepare(dataclasses.replace(spec, vocab_size=100), prepared_cache, progress=False)
    with pytest.raises(InputError, match="different tokenizers"):
        train_run(dataclasses.replace(run, data=other.spec), tmp_path / "data" / "runs", data=other)


def test_who_waits_for_a_pretraining_neither_repeats_nor_spoils_it(
    spec: DataSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    what = Pretraining("standard-1x32", (spec,), recipe("pretrain", epochs=1, batch_rows=8), length=32)
    lines: dict[str, list[str]] = {"first": [], "stopped": [], "second": []}
    with ThreadPoolExecutor(1) as second:
        others = []

        def stopped(line: str) -> None:
            lines["stopped"].append(line)
            raise InterruptedError

        def first(line: str) -> None:
            lines["first"].append(line)
            if not others:  # the training has begun; two more want the same encoder, and one of them gives up
                with pytest.raises(InterruptedError):
                    second.submit(pretrain, what, what.folder, stopped).result(timeout=60)
                others.append(second.submit(pretrain, what, what.folder, lines["second"].append))
                while not lines["second"]:
                    time.sleep(0.01)

        trained = pretrain(what, what.folder, first)
        assert others[0].result(timeout=60) == trained == what.folder
    waiting = ["waiting for another process that trains the same"]
    assert len(lines["first"]) > 1 and lines["stopped"] == lines["second"] == waiting
    assert {path.name for path in what.folder.parent.iterdir()} == {what.key, f".{what.key}.lock"}


def test_rtx_pretrain_goes_on_and_is_fine_tuned(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "encoder"
    command = ("pretrain", "--model", "standard-1x32", "--data", file, "--length", 32, "--recipe-set", "epochs=1", "--out", out)
    done = rtx(*command, "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["texts"] > 50 and record["rows"] > 5 and np.isfinite(record["val_loss"])
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("encoder")) == ["encoder"]
    again = rtx(*command, "--json", home=tmp_path)
    assert again.returncode == 0 and json.loads(again.stdout) == record
    other = rtx(*command, "--seed", 1, home=tmp_path)
    assert other.returncode == 2 and "is another encoder" in other.stderr
    partial = tmp_path / "next.partial"
    partial.mkdir()
    for name in ("checkpoint.safetensors", "letters.txt"):  # of another training, and of somebody else
        (partial / name).write_text("mine")
    unfinished = (*command[:-1], tmp_path / "next")
    refused = rtx(*unfinished, home=tmp_path)
    assert refused.returncode == 2 and "next.partial holds the unfinished training of another encoder" in refused.stderr
    (partial / "checkpoint.safetensors").unlink()
    assert rtx(*unfinished, home=tmp_path).returncode == 0 and (tmp_path / "next").is_dir()
    assert [path.name for path in partial.iterdir()] == ["letters.txt"]
    tuned = rtx("train", "--model", out, "--data", file, "--recipe-set", "epochs=1", "--json", home=tmp_path)
    assert tuned.returncode == 0, tuned.stderr


def test_a_model_beyond_the_memory_is_refused_before_it_is_built(
    data, spec: DataSpec, prepared_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rtxlib.paths.prepared_dir", lambda: prepared_cache)
    monkeypatch.setattr("rtxlib.runs.pretraining.EncoderForMaskedLM", lambda config: pytest.fail("it was built"))
    what = Pretraining("standard-200x8192", (spec,), recipe("pretrain"), length=24)
    with pytest.raises(InputError, match="memory"):
        pretrain(what, tmp_path / "out")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--length", 8), "16 to 512"),
        (("--share", 1), "above 0 and below 1"),
        (("--length", 512), "too few rows"),
        (("--threads", 999), "too many for this machine"),
        (("--set", "hidden_sise=2"), "no setting"),
        (("--recipe-set", "epochs=0"), "epochs must be"),
        (("--recipe-set", "label_smoothing=0.1"), "has no use for the recipe's label_smoothing"),
        (("--tokenizer", "mytok"), "mytok holds neither tokenizer.json nor vocab.txt"),
    ],
)
def test_a_pretraining_that_cannot_be_is_refused(file: Path, tmp_path: Path, arguments: tuple, words: str, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mytok").mkdir()
    done = rtx("pretrain", "--model", "standard-1x32", "--data", file, *arguments, "--out", tmp_path / "out", home=tmp_path)
    said = [line for line in done.stderr.splitlines() if not line.startswith("data: ")]
    assert done.returncode == 2 and len(said) == 1 and words in said[0], done.stderr
    assert not list(tmp_path.glob("out*"))
