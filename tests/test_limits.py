"""What no machine can hold or finish is refused in a short sentence, before anything is built."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import rtx

from rtx.errors import sentence
from rtxlib import memory, paths
from rtxlib.data.datasets import Generated
from rtxlib.errors import InputError, shown, visible
from rtxlib.models import build, pretrained, size
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.presets import PRESETS, preset
from rtxlib.runs import train
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES, recipe
from rtxstudy import profiles, studies

LONG, DIGITS, BRACKETS = "x" * 300, "9" * 5000, "[" * 100_000
RECORDS = Path(__file__).resolve().parents[1] / "data" / "results" / "full" / "runs.parquet"
TRAIN = ("train", "--model", "standard-1x32", "--data", "embedded", "--recipe", "smoke")
TABLE = ("train", "--model", "standard-1x32", "--data", "mine.csv")


def refused(*arguments: object) -> str:
    done = rtx(*arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr, (done.returncode, done.stderr[:300])
    assert len(done.stderr) < 700 and len(done.stderr.strip().splitlines()) == 1
    return done.stderr


# ---------------------------------------- endless input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*TRAIN, "--seed", DIGITS), "'--seed'"),
        ((*TRAIN, "--threads", DIGITS), "'--threads'"),
        ((*TRAIN, "--max-length", DIGITS), "'--max-length'"),
        ((*TRAIN, "--set", f"hidden_size={DIGITS}"), "hidden_size must be a whole number"),
        ((*TRAIN, "--set", f"hidden_size={DIGITS[:4000]}"), "hidden_size must be from 1 to 1,000,000"),
        ((*TRAIN, "--set", f"hidden_size={BRACKETS}"), "hidden_size must be a whole number"),
        ((*TRAIN, "--set", f"{LONG}=1"), "no setting 'xxx"),
        ((*TRAIN, "--set", BRACKETS), "is not NAME=VALUE"),
        ((*TRAIN, "--recipe-set", f"epochs={DIGITS}"), "epochs must be a finite number"),
        ((*TRAIN, "--recipe-set", f"{DIGITS}=1"), "A recipe has no setting"),
        ((*TRAIN[:-1], LONG), "There is no recipe 'xxx"),
        ((*TABLE, "--labels", BRACKETS), "--labels is not a mapping"),
        ((*TABLE, "--labels", '{"a": ' + DIGITS + "}"), "--labels is not a mapping"),
        (("params", LONG), "There is no model 'xxx"),
        (("params", "standard-１x32"), "There is no model"),
        (("params", f"standard-{DIGITS}x32"), "999…' has a number of more than 20 digits"),
        (("train", "--model", "~" + LONG, "--data", "embedded"), "There is no model '~xxx"),
        (("train", "--model", f"{LONG}/b", "--data", "embedded"), "is too long for a file"),
        (("similarity", "a", "b", "--model", LONG), "There is no folder xxx"),
        (("predict", "x", "y", "--passes", DIGITS), "'--passes'"),
        (("report", "--profile", DIGITS), "There is no profile"),
        (("report", "--dry-run", "-p", f"seeds={DIGITS}"), "parameter 'seeds'"),
        (("report", "--dry-run", "-p", f"seeds={BRACKETS}"), "parameter 'seeds'"),
        (("report", "-p", BRACKETS), "name=value"),
        (("report", "--dry-run", "-p", f"{DIGITS}x=3"), "name=value"),
        (("notebook", DIGITS), "names no notebooks"),
        (("notebook", "03", "-p", "seeds=1" + 23 * "0"), "is above 1,000,000,000,000"),
        (("pages", "--out", f"/tmp/{LONG}"), "the name 'xxx"),
        ((LONG * 20,), "There is no command 'xxx"),
    ],
    ids=lambda value: None if isinstance(value, tuple) else value[:24],
)
def test_endless_input_is_a_short_sentence(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(*arguments)


def test_a_value_that_python_does_not_write_is_described() -> None:
    assert shown(10**5000) == "a number of thousands of digits"
    assert len(shown("x" * 5000)) < 210 and shown("x") == "'x'"
    with pytest.raises(InputError, match="hidden_size must be from 1 to 1,000,000, not a number of thousands of digits"):
        preset("standard-1x32", hidden_size=10**5000)


def test_a_sentence_is_short_and_steers_no_terminal() -> None:
    assert sentence("plain – 'a\tb'\n\x1b[31m \u202e \x9b \ud800") == r"plain – 'a\tb'\n\x1b[31m \u202e \x9b \ud800"
    assert len(sentence("no " + "y" * 5000 + " here")) < 220 and len(sentence("word " * 5000)) < 4100
    assert visible("قهوة 👩‍👩‍👧 naïve") == "قهوة 👩‍👩‍👧 naïve"


@pytest.mark.parametrize("home", ["", " \t"])
def test_an_empty_home_is_refused(home: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTX_HOME", home)
    with pytest.raises(InputError, match="RTX_HOME is set but empty"):
        paths.root()
    assert "RTX_HOME is set but empty" in refused("results")


def test_a_home_that_is_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    for home in (loop, loop / "deeper"):
        for words in (("results",), TRAIN):
            done = rtx(*words, home=home)
            assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr, done.stderr
            assert "There is no run in" in done.stderr or (done.returncode == 2 and "is not a folder" in done.stderr)


# ---------------------------------------- more than anybody waits for


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("standard-1000000x256", {}, "num_hidden_layers must be from 1 to 10,000, not 1000000"),
        ("recurrent-3x1000000000x256", {}, "recurrent_depth must be from 1 to 10,000, not 1000000000"),
        ("recurrent-1000x1000x32", {}, "With 1,000 passes every token goes through 1,000,000 layers"),
        ("standard-2x32", {"prelude_layers": 10**9}, "prelude_layers must be from 0 to 10,000"),
        ("standard-2x32", {"num_decoder_layers": 10**9}, "num_decoder_layers must be"),
        ("standard-2x32", {"hidden_size": 10**8}, "hidden_size must be from 1 to 1,000,000"),
        ("standard-2x32", {"vocab_size": 10**11}, "vocab_size must be from 1 to 10,000,000"),
        ("standard-2x32", {"num_labels": 10**9}, "num_labels must be from 1 to 1,000,000"),
        ("standard-2x32", {"intermediate_size": 10**30}, "intermediate_size must be"),
        ("recurrent-2x2x32", {"conditioning_size": 10**12}, "conditioning_size must be"),
        ("bert-tiny", {"max_position_embeddings": 10**14}, "max_position_embeddings must be"),
        ("bert-tiny", {"type_vocab_size": 10**14}, "type_vocab_size must be"),
    ],
)
def test_every_size_has_an_upper_end(name: str, settings: dict[str, int], says: str) -> None:
    words = [word for field, value in settings.items() for word in ("--set", f"{field}={value}")]
    assert says in refused("params", name, *words)
    with pytest.raises(InputError, match=says):
        build(name, **settings)


def test_passes_have_an_upper_end() -> None:
    model = build("recurrent-2x2x32", vocab_size=40).eval()
    for passes in (5001, 10**9):
        with pytest.raises(InputError, match=f"With {passes:,} passes every token goes through .* the most is 10,000"):
            model(torch.ones(1, 3, dtype=torch.long), recurrent_depth=passes)


def test_recipes_and_studies_have_upper_ends() -> None:
    with pytest.raises(InputError, match="1,000,000 epochs with 10,000 evaluations each"):
        recipe("smoke", epochs=10**6, evaluations_per_epoch=10**4)
    for field in ("batch_rows", "batch_tokens"):
        with pytest.raises(InputError, match=f"{field} must be from 1 to 1,000,000,000"):
            recipe("smoke", **{field: 10**30})
    with pytest.raises(InputError, match=f"seeds must be at least 1 and at most 1,000, not 1{23 * '0'}"):
        profiles.load("smoke", seeds=10**23)
    assert "at most 1,000, not 100000" in refused("report", "--dry-run", "--profile", "smoke", "-p", "seeds=100000")


# ---------------------------------------- more than memory holds

SHAPES = [
    {"block_sharing": "unshared"}, {"residual": "gated"}, {"residual": "learned", "iteration_embedding": True},
    {"conditioning_size": 48, "prelude_layers": 2, "coda_layers": 1, "loop_norm": True, "final_norm": True, "norm": "layernorm"},
    {"embedding_size": 16, "type_vocab_size": 0, "norm_placement": "sandwich", "bias": False},
    {"pass_norms": True, "pass_rank": 5, "coda_layers": 1}, {"pass_rank": 100, "feedforward": "gelu"},
    {"first_attention_norm": False, "num_labels": 7, "embedding_norm": False, "local_attention": 4},
    {"position": "learned", "pooler": True}, {"position": "learned", "pooler": True, "pooling": "pooler", "feedforward": "gelu"},
]  # fmt: skip


def test_the_parameters_are_counted_without_building_the_model() -> None:
    for config in (*map(preset, PRESETS), *(preset("recurrent-3x4x64", **shape) for shape in SHAPES)):
        with torch.device("meta"):
            model = EncoderForSequenceClassification(config)
        assert size.parameter_count(config) == size.parameters(model)
    done = rtx("params", "standard-10000x8192")
    assert done.returncode == 0 and "10,738,897,117,186" in done.stdout, done.stdout


def test_what_does_not_fit_is_refused_with_the_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"has 10,738\.9 billion parameters; building it needs about 42,955\.6 GB"):
        build("standard-10000x8192")
    monkeypatch.setattr(size, "available_memory", lambda: 3 * 10**7)  # bytes
    monkeypatch.setattr(size, "short_of_memory", lambda: "this machine")
    with pytest.raises(InputError, match=r"needs about 0\.03\d GB of memory, and this machine has 0\.030 free; take a smaller"):
        build("standard-6x256", vocab_size=12_000)
    with torch.device("meta"):  # takes no memory
        build("standard-6x256", vocab_size=12_000)


def test_a_training_that_does_not_fit_is_refused_before_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    few = ("--rows", "60", "--set", "hidden_size=32768", "--set", "num_attention_heads=512")
    done = rtx(*TRAIN, *few, "--set", "num_hidden_layers=100", "--set", "intermediate_size=131072")
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 2 and "has 1,718" in said and "billion parameters; training it needs about 34," in said
    assert "GB of memory, and this machine has" in said and said.endswith("free; take a smaller model.")
    assert not list(tmp_path.glob("data/runs/*"))  # nothing was begun


def test_the_memory_of_a_batch_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten million tokens in one step; the advice then names the batch."""
    lengths = np.full(10_000_000 // 500, 500)
    labels = np.arange(len(lengths)) % 2
    split = type("Split", (), {"lengths": lengths, "labels": labels, "__len__": lambda self: len(lengths)})()
    tokenizer = type("Tokenizer", (), {"pad_token_id": 0, "__len__": lambda self: 400})()
    data = SimpleNamespace(splits={"train": split}, tokenizer=tokenizer, label_names=["a", "b"])
    monkeypatch.setattr(size, "available_memory", lambda: 10**11)
    spec = RunSpec("standard-6x384", Generated(), recipe("smoke", batch_rows=10**9, batch_tokens=10**9, precision="fp32"))
    with pytest.raises(InputError, match=r"take a smaller model, or smaller batches \(batch_rows, batch_tokens\) than of"):
        train._require_room(spec, data)
    for fits in (recipe("smoke", precision="fp32"), recipe("smoke", batch_rows=10**9, precision="fp32")):
        train._require_room(RunSpec("standard-6x384", Generated(), fits), data)


def test_no_committed_run_no_profile_and_no_preset_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "available_memory", lambda: 8 * 10**9)  # the smallest machine that the study is for
    for name in PRESETS:
        size.require_room(name, preset(name), "training", train.training_bytes(preset(name), RECIPES["default"], 0, "fp32")[0])
    for record in pd.read_parquet(RECORDS, columns=["spec"])["spec"].map(json.loads):
        monkeypatch.setattr(pretrained, "read_config", lambda _, **settings: preset("minilm-l6", **settings))
        spec = RunSpec.from_canonical(record)
        config = spec.config(30_522, 0, ["a", "b", "c"])
        each, activations = train.training_bytes(config, spec.recipe, spec.recipe.batch_tokens or 8192, "fp32")
        size.require_room(spec.name, config, "training", each, activations)
    for profile in map(profiles.load, profiles.PROFILES):
        assert studies.variants(profile)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and control groups")
def test_the_memory_that_is_left_is_the_least_of_all_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    left = memory.available_memory()
    assert 10**7 < left < 10**14
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (used + 10**6, used + 10**6))
    assert memory.available_memory() <= 2 * 10**6 and memory.short_of_memory() == "this shell (`ulimit -v`)"
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    monkeypatch.setattr(memory, "_rooms_of_groups", lambda: [12_345])
    assert memory.available_memory() == 12_345 and memory.short_of_memory() == "this container"
