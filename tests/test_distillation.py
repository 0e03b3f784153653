"""A smaller encoder learns the sentence embeddings of another on texts without labels, once, and goes on where it stopped."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from in_process import rtx
from near import assert_near

from rtx.distillation import RECORD, Distillation, EmbeddingDistiller, SentenceEncoder, distil
from rtx.embedding import embed, embed_tokens, similarity
from rtxlib.data.batching import Tokens
from rtxlib.data.corpus import corpus_texts
from rtxlib.data.datasets import File
from rtxlib.data.prepare import prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import encode, pretrained_tokenizer, special_ids, train
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset, pretrained
from rtxlib.models.convert import to_loop
from rtxlib.training import trainer
from rtxlib.training.recipe import recipe

WORDS = [f"w{letter}{other}" for letter in "abcdef" for other in "abcdef"]
LOOP = {"layers": 2, "passes": 2}
QUICK = {"epochs": 6, "batch_rows": 16, "learning_rate": 2e-3, "precision": "fp32"}


def saved(folder: Path, width: int = 32) -> str:
    """The folder of an encoder of four layers with random weights, far apart, and a tokenizer of its own."""
    tokenizer = train([" ".join(WORDS)] * 3, 200)
    torch.manual_seed(1)
    sizes = {"num_hidden_layers": 4, "hidden_size": width, "num_attention_heads": 2, "intermediate_size": 2 * width}
    words = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "initializer_range": 0.15}
    config = preset("minilm-l6", pooling="mean", normalize=True, pooler=False, hidden_dropout=0.1, **sizes, **words)
    pretrained.save(Encoder(config), folder, tokenizer)
    return str(folder)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    return saved(tmp_path_factory.mktemp("encoders") / "teacher")


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory, teacher: str) -> DataSpec:
    rng = np.random.default_rng(0)
    rows = [(" ".join(rng.choice(WORDS, rng.integers(5, 15))), ("odd", "even")[n % 2]) for n in range(500)]
    file = tmp_path_factory.mktemp("made") / "words.csv"
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(file, index=False)
    return File(path=str(file), tokenizer=teacher)


@pytest.fixture(scope="module")
def what(teacher: str, spec: DataSpec) -> Distillation:
    return Distillation(teacher, teacher, (spec,), recipe("distill", **QUICK), conversion=LOOP, length=24)


@pytest.fixture(scope="module")
def texts(spec: DataSpec, prepared_cache: Path) -> dict[str, list[str]]:
    data = prepare(spec, prepared_cache, progress=False)
    return {"all": corpus_texts([data], []), **{split: data.texts(split) for split in ("train", "test")}}


def distiller(what: Distillation, texts: list[str], **further) -> EmbeddingDistiller:
    source, tokenizer = pretrained.load(what.teacher), pretrained_tokenizer(what.teacher)
    splits = [Tokens(*encode(part, tokenizer, 24), np.zeros(len(part), int)) for part in (texts[40:], texts[:40])]
    taught = tuple(embed_tokens(split, source, tokenizer.pad_token_id, torch.device("cpu")) for split in splits)
    arguments = (what.recipe, 0, special_ids(tokenizer), torch.device("cpu"))
    return EmbeddingDistiller(SentenceEncoder(what.student()), *splits, *arguments, taught=taught, **further)


def test_a_loop_learns_the_embeddings_of_the_original(what: Distillation, texts: dict, tmp_path: Path) -> None:
    lines: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RTX_HOME", str(tmp_path))
        folder = distil(what, what.folder, lines.append)
        assert folder == what.folder and distil(what, folder, lines.append) == folder
    assert len([line for line in lines if "texts;" in line]) == 1  # found again, and not trained again
    tokenizer, unseen = pretrained_tokenizer(what.teacher), texts["test"]
    source, before, after = (
        embed(unseen, encoder, tokenizer) for encoder in (pretrained.load(what.teacher), what.student(), pretrained.load(folder))
    )
    far, near = (1 - (source * own).sum(axis=1).mean() for own in (before, after))
    assert near < 0.5 * far, (near, far)
    found = [(similarity(own, source).argmax(axis=1) == np.arange(len(unseen))).mean() for own in (before, after)]
    assert found[1] > found[0], found
    record = json.loads((folder / RECORD).read_text())
    assert record["texts"] == len(texts["all"]) < len(texts["train"]) + 1
    opened = pretrained.read_config(str(folder))
    assert (opened.hidden_dropout, opened.recurrent_depth, opened.normalize) == (0.1, 2, True)


def test_the_loss_is_half_the_squared_distance_at_length_one(what: Distillation, texts: dict) -> None:
    """And it is the same in one batch as in several, whose gradients are added up."""
    whole = distiller(what, texts["all"])
    rows = np.arange(20)
    loss = whole.loss(rows) / 20
    loss.backward()
    own = embed_tokens(whole.training, whole.model.encoder, whole.pad_id, whole.device)[rows]
    a, b = (F.normalize(torch.from_numpy(x), dim=1) for x in (own, whole.taught[0][rows]))
    assert loss.item() == pytest.approx((a - b).square().sum(dim=1).mean().item() / 2, rel=1e-4)
    parts = distiller(what, texts["all"])
    losses = [parts.loss(some) / 20 for some in (rows[:7], rows[7:])]
    for part in losses:
        part.backward()
    assert sum(losses).item() == pytest.approx(loss.item(), rel=1e-4)
    for one, other in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert_near(one.grad, other.grad)


def test_what_gives_the_teachers_embeddings_already_has_no_loss(what: Distillation, texts: dict) -> None:
    same = distiller(dataclasses.replace(what, conversion={}), texts["all"])
    assert same.validate() == pytest.approx((0, 1), abs=1e-5)
    different = distiller(what, texts["all"]).validate()
    assert different[0] > 0.01 and different[1] < 1


def test_a_resumed_distillation_ends_with_equal_weights(
    what: Distillation, texts: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what = dataclasses.replace(what, recipe=recipe("distill", **QUICK | {"epochs": 1}))
    whole = distiller(what, texts["all"])
    whole.run()
    monkeypatch.setattr(trainer, "CHECKPOINT_SECONDS", 0.0)
    broken = distiller(what, texts["all"], checkpoint_file=tmp_path / "checkpoint.safetensors")
    step = broken.step

    def stopped(pieces) -> None:
        if broken.progress.step == 7:
            raise KeyboardInterrupt
        step(pieces)

    broken.step = stopped
    with pytest.raises(KeyboardInterrupt):
        broken.run()
    again = distiller(what, texts["all"], checkpoint_file=tmp_path / "checkpoint.safetensors")
    again.run()
    for (name, one), (_, other) in zip(whole.model.state_dict().items(), again.model.state_dict().items(), strict=True):
        assert torch.equal(one, other), name


def test_a_key_names_what_is_learned_from_which_weights(what: Distillation, tmp_path: Path) -> None:
    later = dataclasses.make_dataclass("Later", [("more", int, 7)], bases=(Distillation,), frozen=True)
    fields = {field.name: getattr(what, field.name) for field in dataclasses.fields(what)}
    assert later(**fields).key == what.key
    changes = ({"seed": 1}, {"length": 32}, {"conversion": LOOP | {"passes": 1}}, {"kept_out": what.data})
    assert len({dataclasses.replace(what, **change).key for change in ({}, *changes)}) == 5
    folder = tmp_path / "teacher"
    saved(folder)
    mine = dataclasses.replace(what, model=str(folder))
    before = mine.key
    config = json.loads((folder / "config.json").read_text())
    (folder / "SHA256SUMS").unlink()
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_eps": 1e-3}))
    assert mine.key != before


def test_rtx_distill_writes_a_folder_that_others_open(teacher: str, spec: DataSpec, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    loop, out = tmp_path / "loop", tmp_path / "taught"
    converted = rtx("convert", teacher, "--layers", 2, "--passes", 2, "--out", loop, home=tmp_path)
    assert converted.returncode == 0 and f"{teacher}: loaded " in converted.stderr
    command = ("distill", "--model", loop, "--teacher", teacher, "--data", spec.path, "--recipe-set", "epochs=2", "--out", out)
    done = rtx(*command, "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    for model in (teacher, loop):
        assert re.search(rf"{re.escape(str(model))}: loaded (\d+) of \1 tensors", done.stderr), done.stderr
    record = json.loads(done.stdout)
    assert record["texts"] > 50 and 0 < record["val_loss"] < 1
    assert not list(tmp_path.glob("taught.*"))
    again = rtx(*command, "--json", home=tmp_path)
    assert again.returncode == 0 and json.loads(again.stdout) == record
    other = rtx(*command, "--seed", 1, home=tmp_path)
    assert other.returncode == 2 and "is another encoder" in other.stderr
    mine = ["waa wbc", "wff " * 100]
    ours = embed(mine, pretrained.load(str(out)), pretrained_tokenizer(out))
    assert_near(SentenceTransformer(str(out)).encode(mine), ours)
    embedded = rtx("embed", spec.path, "--model", out, "--out", tmp_path / "embeddings.parquet", home=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    assert not np.allclose(ours, embed(mine, pretrained.load(str(loop)), pretrained_tokenizer(loop)), atol=1e-3)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("--length", 4), "8 to 512"),
        (("--teacher", "minilm-l6"), "is no pretrained encoder"),
        (("--teacher", "WIDE"), "take a teacher as wide"),
        (("--recipe-set", "word_dropout=0.1"), "no use for the recipe's word_dropout"),
        (("--recipe-set", "freeze_encoder=true"), "no use for the recipe's freeze_encoder"),
        (("--recipe-set", "epochs=0"), "epochs must be"),
        (("--threads", 999), "too many for this machine"),
    ],
)
def test_a_distillation_that_cannot_be_is_refused(
    teacher: str, spec: DataSpec, tmp_path: Path, arguments: tuple, words: str
) -> None:
    wide = saved(tmp_path / "wide", width=64) if "WIDE" in arguments else ""
    given = [wide if argument == "WIDE" else argument for argument in arguments]
    usual = ("--model", teacher, "--teacher", teacher, "--data", spec.path)
    done = rtx("distill", *usual, *given, "--out", tmp_path / "out", home=tmp_path)
    said = [line for line in done.stderr.splitlines() if not line.startswith("data: ")]
    assert done.returncode == 2 and len(said) == 1 and words in said[0], done.stderr
    assert not list(tmp_path.glob("out*"))


def test_a_loop_cannot_be_made_of_a_loop(what: Distillation, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    pretrained.save(to_loop(pretrained.load(what.teacher), 2, 2), loop, pretrained_tokenizer(what.teacher))
    with pytest.raises(InputError, match="has a loop already"):
        distil(dataclasses.replace(what, model=str(loop)), tmp_path / "out")
