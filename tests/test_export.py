"""An exported graph answers as the model does, stores shared weights once, and runs where there is no torch."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import exported, rtx
from near import assert_near
from test_packaging import environment
from test_recurrence import VARIANTS
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime

from rtx.export import bert, beside, check, folder, held_out, opened, quantize, standalone
from rtx.export.onnx_model import to_onnx
from rtxlib import checksums
from rtxlib.data import clean
from rtxlib.data.tokenization import encode, train
from rtxlib.errors import InputError
from rtxlib.models import Encoder, EncoderForSequenceClassification, ModelConfig, preset
from rtxlib.models.presets import PRESETS

TINY = {"vocab_size": 200, "hidden_size": 64, "num_attention_heads": 2, "intermediate_size": 96, "max_position_embeddings": 64}
LOOP = preset("recurrent-2x3x64", **(TINY | {"depth_sampling": "uniform"}))
FURTHER = {
    "norms and ranks of a pass": {"pass_norms": True, "pass_rank": 4, "residual": "none"},
    "alibi": {"position": "alibi", "pooling": "mean"},
    "sinusoidal": {"position": "sinusoidal", "embedding_scale": True},
    "no positions": {"position": "none", "feedforward": "geglu"},
    "learned": {"position": "learned", "norm": "layernorm", "norm_bias": False, "bias": False},
}


def batch(config: ModelConfig) -> dict[str, torch.Tensor]:
    ids = torch.randint(5, config.vocab_size, (3, 17), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(ids)
    real[1, 9:] = 0
    return {"input_ids": ids, "attention_mask": real, "token_type_ids": real * (torch.arange(17) > 6)}


def filled(model: torch.nn.Module) -> torch.nn.Module:
    """The model with weights far from zero and one, so that a missing part shows."""
    torch.manual_seed(0)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0.0, p.shape[1] ** -0.5 if p.ndim == 2 else 0.2)
            if "norm" in name and name.endswith("weight"):
                p.add_(1.0)
    return model.eval()


def answered(graph: bytes, given: dict[str, torch.Tensor], passes: int | None = None) -> np.ndarray:
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    feed = {name: x.numpy() for name, x in given.items()} | {"passes": np.array(passes or 0)}
    return session.run(None, {each.name: feed[each.name] for each in session.get_inputs()})[0]


# ---------------------------------------- the graph


@torch.inference_mode()
@pytest.mark.parametrize("name", PRESETS)
def test_every_architecture_answers_as_the_model(name: str) -> None:
    settings = TINY | {"num_hidden_layers": min(PRESETS[name]["num_hidden_layers"], 4), "pad_token_id": 0}
    config = preset(name, **(settings | ({"local_attention": 4} if "modern" in name else {})))
    given, model = batch(config), filled(EncoderForSequenceClassification(config))
    graph = to_onnx(model, pairs=True).SerializeToString()
    assert_near(answered(graph, given), model(**given).logits.numpy())
    encoder = filled(Encoder(config))
    found = answered(to_onnx(encoder).SerializeToString(), given)
    assert_near(found, encoder.embed(given["input_ids"], given["attention_mask"]).numpy())


@torch.inference_mode()
@pytest.mark.parametrize("name", [*VARIANTS, *FURTHER])
def test_every_loop_answers_as_the_model_at_every_depth(name: str) -> None:
    changed = {**VARIANTS, **FURTHER}[name]
    fixed = filled(EncoderForSequenceClassification(preset("recurrent-2x3x64", **(TINY | changed))))
    given = batch(fixed.config)
    found = answered(to_onnx(fixed, pairs=True).SerializeToString(), given)
    assert_near(found, fixed(**given).logits.numpy())
    if fixed.config.block_sharing == "unshared":
        return
    trained = preset("recurrent-2x3x64", **(TINY | changed | {"depth_sampling": "uniform"}))
    free = filled(EncoderForSequenceClassification(trained))
    graph = to_onnx(free, pairs=True).SerializeToString()
    for passes in (1, 3, 5):
        expected = free(**given, recurrent_depth=passes).logits.numpy()
        assert_near(answered(graph, given, passes), expected)


def test_a_shared_block_stands_in_the_file_once() -> None:
    """Of a loop of any depth, and of a pass that is written out: the file grows by nodes, and not by weights."""
    sizes = {"vocab_size": 200, "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 2, "residual": "none"}
    once = EncoderForSequenceClassification(preset("recurrent-2x1x128", **sizes))
    weights = sum(4 * p.numel() for p in once.parameters())
    of_pass = to_onnx(once).ByteSize() - weights  # the nodes
    for passes, more in ((6, {}), (6, {"depth_sampling": "uniform"})):
        graph = to_onnx(EncoderForSequenceClassification(preset(f"recurrent-2x{passes}x128", **sizes, **more)))
        stored = sum(len(tensor.raw_data) for tensor in graph.graph.initializer)
        assert weights <= stored <= weights + 2000
        assert graph.ByteSize() <= weights + (passes + 1) * of_pass
    assert [node.op_type for node in graph.graph.node].count("Loop") == 1
    assert "passes" in {each.name for each in graph.graph.input}


# ---------------------------------------- eight bits


@torch.inference_mode()
def test_eight_bits_take_a_quarter_and_stay_near_float32() -> None:
    sizes = {"vocab_size": 2000, "hidden_size": 128, "intermediate_size": 512, "num_hidden_layers": 2}
    config = preset("minilm-l6", **(TINY | sizes))
    encoder, given = filled(Encoder(config)), batch(config)
    encoder.embeddings.norm.weight[7] *= 20  # a channel that is much larger than the others
    plain = to_onnx(encoder).SerializeToString()
    several = [{"input_ids": given["input_ids"][i : i + 1]} for i in range(3)]
    calibration = quantize.Calibration(quantize.largest_inputs(encoder, several), 0.5)
    graph = to_onnx(encoder, calibration=calibration).SerializeToString()
    assert len(graph) < 0.3 * len(plain)
    before, after = answered(plain, given), answered(graph, given)
    assert 1e-4 < (1 - (before * after).sum(axis=1)).max() + 1e-4 < 0.01
    assert np.abs(before - after).max() > 0
    alone = answered(graph, {name: x[2:] for name, x in given.items()})  # the other texts change nothing
    assert_near(alone, after[2:])
    assert np.abs(quantize.rounded(np.random.default_rng(0).normal(size=(8, 4)), axis=0)[0]).max() == 63


def test_every_map_of_a_classifier_gets_eight_bits() -> None:
    """The last layer of an encoder that reads [CLS] computes one query alone; its map has eight-bit weights all the same."""
    model = filled(EncoderForSequenceClassification(preset("standard-2x64", **TINY)))
    calibration = quantize.Calibration(quantize.largest_inputs(model, [batch(model.config)]), 0.5)
    stored = to_onnx(model, calibration=calibration).graph.initializer
    rounded = {tensor.name.removesuffix(".smooth") for tensor in stored if tensor.name.endswith(".smooth")}
    assert rounded == {name for name, _ in model.named_modules() if quantize.is_rounded(name)} and len(rounded) == 8


@torch.inference_mode()
def test_eight_bits_of_a_loop_are_read_in_every_pass() -> None:
    model, given = filled(EncoderForSequenceClassification(LOOP)), batch(LOOP)
    calibration = quantize.Calibration(quantize.largest_inputs(model, [given]), 0.5)
    graph = to_onnx(model, calibration=calibration).SerializeToString()
    for passes in (1, 3):
        expected = model(given["input_ids"], given["attention_mask"], recurrent_depth=passes).logits.numpy()
        error = np.abs(answered(graph, given, passes) - expected).max()
        assert 0 < error < 0.2 * np.abs(expected).max()


def test_the_loss_of_eight_bits_has_an_interval_even_where_nothing_changed() -> None:
    logits, truth = np.eye(2)[[0, 1, 1, 0] * 25], np.array([0, 1, 0, 0] * 25)
    same = check.loss(logits, logits, truth, True)
    assert "np." not in str(same)  # people read it
    assert same["points"] == 0 and same["points_interval"][0] < 0 < same["points_interval"][1]
    worse = check.loss(logits, logits[::-1][:, ::-1], truth, True)
    assert worse["accuracy_8_bits"] < worse["accuracy"] and worse["points_interval"][1] < 0


# ---------------------------------------- the folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run, exported as ``graph`` and in eight bits as ``graph8``, and an encoder, exported as ``vectors``."""
    where = tmp_path_factory.mktemp("export")
    run = exported(where)
    done = rtx("export", where / "data" / "runs" / run, "--int8", "--out", where / "graph8", home=where)
    assert done.returncode == 0, done.stderr
    texts = [f"{a} {b} film" for a in ("a fine", "the dull", "one slow") for b in ("warm", "cold", "loud")]
    tokenizer = train(texts * 3, 64)
    sizes = TINY | {"vocab_size": len(tokenizer), "num_hidden_layers": 1, "max_seq_length": 32}
    encoder = filled(Encoder(preset("minilm-l3", **sizes)))
    folder.pretrained.save(encoder, where / "encoder", tokenizer)
    with mock.patch("rtx.cli.export._GENERATED", 240):  # the texts of the run
        done = rtx("export", where / "encoder", "--out", where / "vectors", home=where)
    assert done.returncode == 0 and "encoder: loaded " in done.stderr, done.stderr
    return where


TEXTS = ["a fine &amp; <b>warm</b> film http://x.org/y", "dull", "[SEP] " + "slow " * 400]


def test_rtx_predict_answers_from_the_folder_as_from_the_run(home: Path) -> None:
    run = (home / "run").read_text()
    for more in ((), ("--passes", "1"), ("--passes", "3")):
        ours, graph = (
            [json.loads(line) for line in rtx("predict", name, *TEXTS, *more, "--json", home=home).stdout.splitlines()]
            for name in (run, home / "graph")
        )
        assert [row["label"] for row in ours] == [row["label"] for row in graph]
        for a, b in zip(ours, graph, strict=True):
            assert a["probabilities"] == pytest.approx(b["probabilities"], abs=0.01)  # the run may compute in bf16
    card = (home / "graph8" / "README.md").read_text(encoding="utf-8")
    assert "difference in points (95 % interval)" in card and "import rtxlib.models" in card
    record = json.loads((home / "graph" / "export.json").read_text())
    assert record["any_depth"] and record["difference"] <= 1e-4 and record["n_test"] > 20


def test_a_run_answers_a_few_texts_by_the_graph_beside_it_without_torch(home: Path, tmp_path: Path) -> None:
    run = tmp_path / "model"
    shutil.copytree(home / "data" / "runs" / (home / "run").read_text(), run)
    by_torch = [json.loads(line)["label"] for line in rtx("predict", run, *TEXTS, "--json").stdout.splitlines()]
    done = rtx("export", run, home=home)
    assert done.returncode == 0 and (tmp_path / "model.graph" / "model.onnx").is_file(), done.stderr
    command = "import atexit, sys; atexit.register(lambda: print('torch' in sys.modules)); from rtx.cli import main; main()"
    answered = subprocess.run(
        [sys.executable, "-c", command, "predict", run, *TEXTS, "--json"], capture_output=True, text=True, check=True
    )
    *lines, imported = answered.stdout.splitlines()
    assert [json.loads(line)["label"] for line in lines] == by_torch and imported == "False" and answered.stderr == ""
    (tmp_path / "many.txt").write_text("a fine film\n" * (beside.MOST // 11 + 1))
    with mock.patch.object(opened, "Opened", side_effect=AssertionError):  # more texts, or another way, are torch's
        assert rtx("predict", run, "--file", tmp_path / "many.txt").returncode == 0
        assert rtx("predict", run, *TEXTS, "--passes", "1").returncode == 0
    other = rtx("export", run, home=home)
    assert other.returncode == 2 and "exists already" in other.stderr
    record = tmp_path / "model.graph" / "export.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"origin": "another"}))
    checksums.write(tmp_path / "model.graph")
    done = rtx("predict", run, *TEXTS, "--json")
    assert [json.loads(line)["label"] for line in done.stdout.splitlines()] == by_torch and "other weights" in done.stderr


def test_the_script_cleans_and_tokenises_as_training_does(home: Path) -> None:
    exported = opened.find(str(home / "graph")).exported
    rules = standalone.Exported.clean
    awkward = [*TEXTS, "<!-- x -->A<br/>b &lt;p&gt; www.a.de, x", "<script>1</script> \t Ä&nbsp;ß", "a < b &notit;"]
    for uniform in (True, False):
        switches = {step: True for step in clean.STEPS} | {"uniform": uniform}
        exported.record["cleaning"] = folder.cleaning_rules(switches)
        assert [rules(exported, text) for text in awkward] == clean.clean_texts(awkward, **switches)
    from rtxlib.data.tokenization import load_tokenizer

    run = load_tokenizer(home / "data" / "runs" / (home / "run").read_text())
    length = exported.record["max_length"]
    pairs = [("a b " * n, "c d e " * m) for n, m in ((1, 1), (90, 1), (1, 90), (90, 90), (40, 50), (127, 127), (65, 60))]
    for texts in (TEXTS, pairs):
        ids, ends = encode(texts, run, length)
        ours = [ids[a:b].tolist() for a, b in pairwise(ends)]
        theirs = exported.tokenizer.encode_batch(texts)
        assert [[i for i, real in zip(e.ids, e.attention_mask, strict=True) if real] for e in theirs] == ours


def test_without_torch_script_predict_and_embed_answer(home: Path, wheel: Path, tmp_path: Path) -> None:
    """In an environment with onnxruntime, tokenizers, numpy and what reads tables."""
    needed = ["onnxruntime", "tokenizers", "numpy", "click", "pandas", "pyarrow", "tqdm", "filelock", "packaging"]
    bare = environment(tmp_path, wheel, needed)
    python = tmp_path / "venv" / "bin" / "python"
    assert subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 1
    found = subprocess.run([python, home / "graph" / "run.py", *TEXTS], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    expected = rtx("predict", home / "graph", *TEXTS, "--json", home=home).stdout.splitlines()
    assert [line.split()[0] for line in found.stdout.splitlines()] == [json.loads(line)["label"] for line in expected]
    done = bare("predict", str(home / "graph"), *TEXTS, "--json")
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["label"] for line in done.stdout.splitlines()] == [json.loads(line)["label"] for line in expected]
    (tmp_path / "empty" / "t.txt").write_text("a fine film\nthe dull one\n")
    done = bare("embed", "t.txt", "--model", str(home / "vectors"), "--out", "v.parquet")
    assert done.returncode == 0, done.stderr
    theirs = np.stack(pd.read_parquet(tmp_path / "empty" / "v.parquet")["embedding"])
    done = rtx("embed", tmp_path / "empty" / "t.txt", "--model", home / "encoder", "--out", tmp_path / "ours.parquet", home=home)
    assert done.returncode == 0, done.stderr
    assert_near(theirs, np.stack(pd.read_parquet(tmp_path / "ours.parquet")["embedding"]))
    script = Path(standalone.__file__).read_text(encoding="utf-8")
    assert len([line for line in script.split('"""', 2)[2].splitlines() if line.strip()]) <= 62


def test_onnxruntime_reports_nothing_to_its_makers(tmp_path: Path) -> None:
    """With telemetry it leaves its session in a file when it is imported."""
    code = "import sys; sys.path.pop(0); import runpy; runpy.run_path(sys.argv[1]); import onnxruntime"
    variables = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"} | {"TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code, standalone.__file__], env=variables, check=True)
    assert list(tmp_path.iterdir()) == []


def test_a_graph_that_disagrees_is_not_left(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder.check, "model_answers", lambda *a, _of=check.model_answers: _of(*a) + 1e-3)
    monkeypatch.setattr("rtx.cli.export._GENERATED", 240)
    done = rtx("export", home / "encoder", "--out", tmp_path / "out", home=home)
    assert done.returncode == 2 and "does not agree with the model" in done.stderr and done.stderr.count("\n") < 20
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="3 of 3 texts get another label"):
        check.require_agreement(np.eye(3) * 1e-5, np.roll(np.eye(3), 1, axis=0) * 1e-5, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "{home}/encoder", "--out", "{home}"], "exists already"),
        (["export", "{home}/encoder"], "Name a folder with --out"),
        (["export", "{run}", "--int8"], "Name a folder with --out"),
        (["export", "nothing", "--out", "{home}/new"], "There is no run"),
        (["export", "{home}/encoder", "--out", "{home}/new", "--format", "pickle"], "--format is onnx or transformers"),
        (["export", "{run}", "--out", "{home}/new", "--data", "sst2"], "its own data"),
        (["export", "{run}", "--out", "{home}/new", "--texts", "t.csv", "--text-pair-column", "b"], "trained on single texts"),
        (["export", "{home}/encoder", "--out", "{home}/new", "--texts", "t.csv"], "--texts are for the ONNX graph of a run"),
        (["export", "{run}", "--out", "{home}/new", "--format", "transformers"], "Only a model of BERT's layers"),
        (["predict", "{home}/vectors", "a"], "rtx embed --model"),
        (["predict", "{home}/graph", "a", "--early-exit", "confidence:0.9"], "no early exits"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(home: Path, words: list[str], said: str) -> None:
    run = (home / "run").read_text()
    done = rtx(*(word.format(home=home, run=run) for word in words), home=home)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr
    assert not (home / "new").exists()


def test_a_damaged_folder_and_a_missing_runtime_are_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = home / "vectors" / "export.json"
    before = record.read_bytes()
    record.write_bytes(before.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(InputError, match="is damaged"):
        opened.find(str(home / "vectors"))
    record.write_bytes(before)
    assert opened.find(str(home / "encoder")) is None
    for name in ("rtx.export.standalone", "onnxruntime"):
        monkeypatch.setitem(sys.modules, name, None)
    for words in (["predict", home / "graph", "a"], ["export", home / "encoder", "--out", home / "new"]):
        done = rtx(*words, home=home)
        assert done.returncode == 2 and 'pip install "rtxlib[export]"' in done.stderr and done.stderr.count("\n") == 1


ODD_RECORDS = [  # field, its value, what the sentence says; None: the field is missing
    ("width", 7, "has the width 7"),
    ("width", "2", "has the width '2'"),
    ("width", None, "has no width"),
    ("labels", ["a"], "has the labels"),
    ("labels", ["a", "b", "c"], "the width 2 and 3 labels"),
    ("passes", 10**9, "has the passes 1000000000"),
    ("passes", True, "has the passes True"),
    ("longest", -1, "has the longest -1"),
    ("cleaning", [["replace", "(", ""]], "unterminated subpattern"),
    ("cleaning", [["run", "", ""]], "has the cleaning"),
    ("cleaning", None, "has no cleaning"),
    ("pairs", "no", "has the pairs 'no'"),
    ("any_depth", 3, "has the any_depth 3"),
]


def spoilt(home: Path, out: Path) -> Path:
    """A copy of the exported run, to be spoilt."""
    return Path(shutil.copytree(home / "graph", out))


@pytest.mark.parametrize(("field", "value", "said"), ODD_RECORDS)
def test_a_record_that_export_does_not_write_is_named(home: Path, field: str, value: object, said: str, tmp_path: Path) -> None:
    """Somebody may have edited it and its checksum."""
    graph = spoilt(home, tmp_path / "graph")
    record = json.loads((graph / "export.json").read_text())
    record.pop(field)
    (graph / "export.json").write_text(json.dumps(record if value is None else record | {field: value}))
    checksums.write(graph)
    done = rtx("predict", graph, "a fine film", home=home)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_labels_that_are_as_good_as_equal_may_be_told_apart_otherwise() -> None:
    model, graph = np.array([[1.0, 1.0 - 1e-6], [2.0, 0.0]]), np.array([[1.0 - 1e-6, 1.0], [2.0, 0.0]])
    assert check.require_agreement(model, graph, True) == pytest.approx(1e-6)
    with pytest.raises(InputError, match="1 of 2 texts get another label"):
        check.require_agreement(np.array([[1.0, 0.9], [2.0, 0.0]]), np.array([[0.9, 1.0], [2.0, 0.0]]), True)


def test_another_graph_is_not_taken_where_the_checksums_lack_it(home: Path, tmp_path: Path) -> None:
    for name in ("model.onnx", "export.json", "tokenizer.json"):
        graph = spoilt(home, tmp_path / name)
        sums = (graph / checksums.SUMS).read_text().splitlines(keepends=True)
        (graph / checksums.SUMS).write_text("".join(line for line in sums if not line.endswith(f"{name}\n")))
        done = rtx("predict", graph, "a fine film", home=home)
        assert done.returncode == 2 and f"is damaged ({name} was added to it)" in done.stderr


def test_a_graph_that_is_swapped_while_it_is_opened_answers_nothing(home: Path, tmp_path: Path, monkeypatch) -> None:
    graph, other = spoilt(home, tmp_path / "graph"), spoilt(home, tmp_path / "other")

    class Swapped(standalone.Exported):
        def __init__(self, *given: object) -> None:
            graph.rename(tmp_path / "away")
            other.rename(graph)
            super().__init__(*given)

    monkeypatch.setattr(standalone, "Exported", Swapped)
    done = rtx("predict", graph, "a fine film", home=home)
    assert done.returncode == 2 and "was changed while it was opened" in done.stderr


def test_a_tokenizer_with_words_that_the_graph_lacks_is_named(home: Path, tmp_path: Path) -> None:
    graph = spoilt(home, tmp_path / "graph")
    tokenizer = json.loads((graph / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["dull"] = 10**6
    (graph / "tokenizer.json").write_text(json.dumps(tokenizer))
    checksums.write(graph)
    done = rtx("predict", graph, "a dull film", home=home)
    assert done.returncode == 2 and "cannot be used" in done.stderr and done.stderr.count("\n") == 1, done.stderr


# ---------------------------------------- without the data of a run


@pytest.fixture(scope="module")
def moved(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a user's file in a folder alone: neither its file nor its prepared data are in reach."""
    there, here = tmp_path_factory.mktemp("there"), tmp_path_factory.mktemp("here")
    rows = [(f"a {word} film number {n}", label) for n in range(60) for word, label in (("fine", "good"), ("dull", "bad"))]
    pd.DataFrame(rows, columns=["text", "label"]).to_csv(there / "mine.csv", index=False)
    done = rtx("train", "--model", "standard-1x32", "--data", there / "mine.csv", "--recipe", "smoke", "--json", home=there)
    assert done.returncode == 0, done.stderr
    run = there / "data" / "runs" / json.loads(done.stdout.splitlines()[-1])["key"]
    shutil.move(run, here / "run")
    shutil.rmtree(there)
    return here / "run"


def test_a_float32_graph_needs_no_data(moved: Path, tmp_path: Path) -> None:
    done = rtx("export", moved, "--out", tmp_path / "graph", "--json", home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    card = (tmp_path / "graph" / "README.md").read_text()
    assert "On 440 texts (generated ones, because the data of the run were out of reach: There is no file" in card
    assert json.loads(done.stdout.splitlines()[-1])["difference"] <= check.CLOSE
    both = [rtx("predict", name, "a fine film", "--json", home=tmp_path) for name in (moved, tmp_path / "graph")]
    assert len({json.loads(answer.stdout)["label"] for answer in both}) == 1


def test_eight_bits_ask_for_texts(moved: Path, tmp_path: Path) -> None:
    done = rtx("export", moved, "--int8", "--out", tmp_path / "graph", home=tmp_path / "home")
    assert done.returncode == 2 and "name a file of such texts with --texts" in done.stderr and not (tmp_path / "graph").exists()
    (tmp_path / "few.txt").write_text("a film\n" * 5)
    done = rtx("export", moved, "--int8", "--texts", tmp_path / "few.txt", "--out", tmp_path / "graph", home=tmp_path)
    assert done.returncode == 2 and "few.txt has 5 texts; at least 20 are needed" in done.stderr
    table = pd.DataFrame({"review": [f"a {word} film {n}" for n in range(30) for word in ("fine", "dull")]})
    table.to_csv(tmp_path / "more.csv", index=False)
    words = ("--int8", "--texts", tmp_path / "more.csv", "--text-column", "review", "--json")
    done = rtx("export", moved, *words, "--out", tmp_path / "graph", home=tmp_path)
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "graph" / "export.json").read_text())
    assert record["n_test"] == record["n_calibration"] == 30 and record["loss"].keys() == {"other_labels"}
    card = (tmp_path / "graph" / "README.md").read_text()
    assert "of the file more.csv, without labels" in card and "texts with another label" in card and "accuracy" not in card


# ---------------------------------------- transformers alone


@pytest.mark.parametrize("pooling", ["pooler", "mean", "cls"])
@torch.inference_mode()
def test_transformers_alone_opens_a_classifier_of_berts_layers(pooling: str, tmp_path: Path) -> None:
    """So does this package, with the same logits."""
    tokenizer = train(["a fine film and a dull one"], 64)
    config = preset("bert-tiny", **(TINY | {"vocab_size": len(tokenizer), "num_labels": 3, "pooling": pooling}))
    model = filled(EncoderForSequenceClassification(config))
    bert.save(model, tokenizer, ["no", "maybe", "yes"], tmp_path / "out")
    auto = AutoModelForSequenceClassification if pooling == "pooler" else AutoModelForTokenClassification
    theirs = auto.from_pretrained(tmp_path / "out").eval()
    assert type(theirs).__module__.startswith("transformers.") and theirs.config.id2label == {0: "no", 1: "maybe", 2: "yes"}
    given = batch(config)
    logits, real = theirs(**given).logits, given["attention_mask"][..., None]
    if pooling != "pooler":
        logits = logits[:, 0] if pooling == "cls" else (logits * real).sum(dim=1) / real.sum(dim=1)
    assert_near(logits, model(**given).logits)
    again = folder.pretrained.load_trained(tmp_path / "out")
    assert again.config.id2label == theirs.config.id2label
    assert_near(again(**given).logits, model(**given).logits)
    exec(bert.snippet(config, repr(str(tmp_path / "out"))), {})  # what the card says can be pasted
    loop = EncoderForSequenceClassification(preset("recurrent-1x2x32", vocab_size=len(tokenizer)))
    with pytest.raises(InputError, match="Only a model of BERT's layers"):
        bert.save(loop, tokenizer, ["no", "yes"], tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(("pairs", "texts"), [(True, ["one"]), (True, []), (True, ["a", "b", "c"]), (False, [])])
def test_the_script_says_how_many_texts_it_wants(pairs: bool, texts: list[str]) -> None:
    with pytest.raises(SystemExit, match=r"^Give texts as arguments, each in quotes; "):
        standalone.main(mock.Mock(record={"pairs": pairs}), texts)


def test_a_run_is_checked_on_its_own_data(home: Path) -> None:
    from rtx import archive

    run = archive.find(home / "data" / "runs", (home / "run").read_text())
    held = held_out.of_run(run)
    source = folder.of_run(run)
    assert held.what == "the test split of embedded"
    cut = dataclasses.replace(run, spec=run.spec | {"longest": 20_000})
    assert folder._record(folder.of_run(cut), 1)["longest"] == 20_000 < folder._record(source, 1)["longest"]
    assert source.labels and not source.pairs and len(held.test) == len(held.labels) == run.metrics["n_test"]
    grown = dataclasses.replace(run, metrics=run.metrics | {"fingerprint": "of other rows"})
    with pytest.raises(InputError, match="have changed since the run was trained"):
        held_out.of_run(grown)


def test_of_a_large_test_split_some_texts_check_a_graph(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rtx import archive

    run = archive.find(home / "data" / "runs", (home / "run").read_text())
    whole = held_out.of_run(run)
    monkeypatch.setattr(held_out, "MOST", 10)
    held, label = held_out.of_run(run), dict(zip(whole.test, whole.labels, strict=True))
    assert held.test[0] == whole.test[0] and held.test[-1] == whole.test[-1] and len(held.test) == 10
    assert held.labels.tolist() == [label[text] for text in held.test]
    assert held.what == f"of the {len(whole.test)} in {whole.what}" and held.validation == whole.validation


def test_rounding_grows_with_the_numbers_and_nothing_is_close_to_nan() -> None:
    small, large = np.array([[0.5, -0.25]]), np.array([[500.0, -250.0]])
    assert check.close(small, small + 0.9e-4) and not check.close(small, small + 1.1e-4)
    assert check.close(large, large + 0.04) and not check.close(large, large + 0.06)
    assert not check.close(small, np.array([[0.5, np.nan]]))
