"""Settings of a model, a recipe and a run: a wrong value is refused in a sentence, and a valid one keeps its run's key."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from transformers import BertConfig, ModernBertConfig

from rtx.cli.commands import cli
from rtx.cli.common import settings_of
from rtxlib.data.datasets import Generated, Hub
from rtxlib.errors import InputError
from rtxlib.models import ModelConfig, build, pretrained
from rtxlib.models.presets import PRESETS, preset
from rtxlib.models.references import our_config
from rtxlib.runs.spec import RunSpec
from rtxlib.training.recipe import RECIPES, Recipe, recipe
from rtxstudy import profiles, studies


def refusal(*arguments: str) -> str:
    """What ``rtx`` says to a command that it refuses before it fetches any data."""
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code, "was not refused"
    assert isinstance(done.exception, InputError | SystemExit), repr(done.exception)
    return " ".join((done.output + str(done.exception)).split())


def train(*more: str) -> tuple[str, ...]:
    return ("train", "--model", "recurrent-1x2x32", "--data", "embedded", "--recipe", "smoke", *more)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("False", False), ("True", True), ("None", None), ("false", False), ("null", None), ("0.5", 0.5), ("3", 3),
        ("maybe", "maybe"), ("1" * 5000, "1" * 5000), ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:10],
)  # fmt: skip
def test_values_are_read_in_the_spelling_of_json_and_of_python(written: str, read: Any) -> None:
    value = settings_of((f"x={written}",))["x"]
    assert value == read and type(value) is type(read)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("freeze_encoder=maybe", "freeze_encoder must be true or false, not 'maybe'"),
        ("freeze_encoder=0", "freeze_encoder must be true or false, not 0"),
        ("word_dropout=3", "word_dropout must be a probability below 1, not 3"),
        ("warmup=5", "warmup must be from 0 to 1, not 5"),
        ("weight_decay=-1", "weight_decay must be at least 0, not -1"),
        ("patience=-1", "patience must be at least 1, not -1"),
        ("patience=abc", "patience must be a whole number or None, not 'abc'"),
        ("plateau_patience=-1", "plateau_patience must be at least 0"),
        ("min_delta=-1", "min_delta must be at least 0"),
        ("epochs=abc", "epochs must be a finite number, not 'abc'"),
        ("epochs=Infinity", "epochs must be a finite number, not inf"),
        ("epochs=1e12", "epochs must be above zero and at most 1,000,000"),
        ("epochs=true", "epochs must be a finite number, not True"),
        ("learning_rate=null", "learning_rate must be a finite number, not None"),
        ("learning_rate=NaN", "learning_rate must be a finite number, not nan"),
        ("learning_rate=1" + "0" * 400, "learning_rate must be a finite number"),
        ("learning_rate=0", "learning_rate must be above zero, not 0"),
        ("batch_rows=1.5", "batch_rows must be a whole number, not 1.5"),
        ("batch_rows=0", "batch_rows must be from 1 to"),
        ("batch_tokens=abc", "batch_tokens must be a whole number or None"),
        ("beta2=2", "beta2 must be at least 0 and below 1"),
        ("label_smoothing=3", "label_smoothing must be at least 0 and below 1"),
        ("evaluations_per_epoch=0.5", "evaluations_per_epoch must be a whole number"),
        ("evaluations_per_epoch=100000000000", "evaluations_per_epoch must be from 1 to 10,000"),
        ("dropout=abc", "dropout must be a finite number or None"),
        ("name=5", "name must be a word, not 5"),
        ("embedding_initializer_range=-1", "embedding_initializer_range must be at least 0"),
        ("layer_decay=1e300", "layer_decay must be above zero and at most 2"),
        ("output_initializer=depth_scald", "Did you mean 'depth_scaled'"),
        ("precision=fp8", "precision='fp8' is not one of auto, fp32"),
        ("schedule=[1]", "is not one of cosine, linear, plateau"),
    ],
    ids=lambda text: text[:28],
)
def test_a_recipe_that_makes_no_sense_is_refused(change: str, says: str) -> None:
    assert says in refusal(*train("--recipe-set", change))


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        *(
            (f"num_labels={value}", "num_labels is decided by the data; leave it out")
            for value in ("0", "1", "7", "abc")
        ),
        ("vocab_size=10", "vocab_size is decided by the data"),
        ("id2label=7", "id2label is decided by the data"),
        ("label2id={}", "label2id is decided by the data"),
        ("final_norm=maybe", "final_norm must be true or false, not 'maybe'"),
        ("hidden_dropout=abc", "hidden_dropout must be a finite number, not 'abc'"),
        ("hidden_dropout=1", "hidden_dropout must be a probability below 1, not 1"),
        ("rope_theta=abc", "rope_theta must be a finite number"),
        ("rope_theta=0", "rope_theta must be above zero"),
        ("norm_eps=abc", "norm_eps must be a finite number"),
        ("norm_eps=-1", "norm_eps must be at least 0"),
        ("residual_scale=NaN", "residual_scale must be a finite number"),
        ("pad_token_id=999999", "pad_token_id must be one of the 30,522 tokens"),
        ("local_attention=abc", "local_attention must be a whole number or None"),
        ("initializer_range=-3", "initializer_range must be at least 0, not -3"),
        ("hidden_size=1e9", "hidden_size must be a whole number in digits alone, not 1000000000.0"),
        ("max_position_embeddings=4", "80 tokens and the model 4 positions; give it max_position_embeddings=80, or"),
        ("hidden_size=true", "hidden_size must be a whole number, not True"),
        ("name=5", "A model has no setting 'name'"),
        ("return_dict=5", "A model has no setting 'return_dict'"),  # a field of transformers' configuration, not of ours
    ],
)
def test_a_model_that_makes_no_sense_is_refused(setting: str, says: str) -> None:
    assert says in refusal(*train("--set", setting))


@pytest.mark.parametrize("setting", ["num_labels=abc", "num_labels=0", "id2label=7", "seed=1", "norm_eps=abc"])
def test_counting_refuses_them_too(setting: str) -> None:
    assert setting.partition("=")[0] in refusal("params", "standard-1x32", "--set", setting)


def test_counting_takes_what_only_data_decide_in_training() -> None:
    words = ["params", "standard-1x32", "--set", "vocab_size=10", "--json"]
    count = [json.loads(CliRunner().invoke(cli, [*words, "--set", f"num_labels={labels}"]).stdout) for labels in (2, 7)]
    assert count[0]["embedding"] == 10 * 32 and count[1]["total"] - count[0]["total"] == 5 * (32 + 1)


def test_a_checkpoint_of_ours_refuses_them_too(tmp_path: Path) -> None:
    build("standard-1x32", vocab_size=40).save_pretrained(tmp_path / "ours")
    for setting in ({"num_labels": "abc"}, {"num_labels": 0}, {"final_norm": "False"}, {"pad_token_id": 40}):
        with pytest.raises(InputError, match=f"{next(iter(setting))} must be"):
            pretrained.read_config(str(tmp_path / "ours"), **setting)


def test_a_seed_and_threads_out_of_range_are_told_in_a_sentence() -> None:
    assert "'--seed'" in refusal(*train("--seed", "99999999999999999999"))
    for seed in (2**63, -1, 0.5):
        with pytest.raises(InputError, match="seed is a whole number from 0 to"):
            RunSpec("standard-1x32", Generated(), RECIPES["smoke"], seed)
    assert RunSpec("standard-1x32", Generated(), RECIPES["smoke"], 2**63 - 1).seed == 2**63 - 1
    cores = os.cpu_count()
    assert f"give at most {4 * cores}" in refusal(*train("--threads", "1000000"))
    assert f"give at most {4 * cores}" in refusal(*train("--threads", str(4 * cores + 1)))


def test_a_run_leaves_to_the_data_what_they_decide() -> None:
    for name in ("num_labels", "vocab_size"):
        with pytest.raises(InputError, match=f"{name} is decided by the data"):
            RunSpec("standard-1x32", Generated(), RECIPES["smoke"], overrides={name: 7})
    config = RunSpec("standard-1x32", Generated(), RECIPES["smoke"]).config(400, 0, ["a", "b", "c"])
    assert (config.vocab_size, config.num_labels) == (400, 3)
    modern = RunSpec("modernbert-base", Generated(), RECIPES["smoke"]).config(400, 5, ["a", "b"])
    assert modern.pad_token_id == 5  # its default, 50,283, is not one of 400 tokens


def test_embedded_texts_are_no_more_than_fit_in_memory() -> None:
    Generated(rows=10**7).check()
    Hub("sst2", rows=10**9).check()
    for rows in (10**7 + 1, 10**9, True):
        with pytest.raises(InputError, match="rows is a whole number from 20 to 10,000,000"):
            Generated(rows=rows).check()


def test_what_makes_sense_is_taken_and_keeps_its_key() -> None:
    """Keys from before values were checked: old runs in a store must still be found."""
    data, words = Hub("sst2"), {"residual": "damped", "residual_scale": 0.5}
    assert RunSpec("recurrent-3x2x256", data, RECIPES["default"], 0).key("x") == "b620403e00f69fb6"
    keys = {name: RunSpec("recurrent-3x2x256", data, recipe(name), 3, words, 2).key("x") for name in RECIPES}
    assert keys == {
        "published": "15e9e64ac0ab3def",
        "default": "63ab98fc120225db",
        "demo": "e30765d0174a81d8",
        "smoke": "b641a62510886ae2",
        "small": "2b7b037d75977df1",
        "few": "fd3f0d33521c6bf8",
        "medium": "a3a91605d78ba594",
        "finetune": "7fe7c7507a64af43",
        "frozen": "1158e3bf8e333c5b",
        "pretrain": "d2a3551c26f5b408",
        "distill": "543204264c912b41",
    }
    whole = recipe("smoke", epochs=2, learning_rate=1, warmup=0, patience=None, clip_norm=1e30, layer_decay=1)
    assert (whole.epochs, type(whole.epochs)) == (2, int)  # a float would change the key


def test_every_preset_profile_and_reference_is_taken() -> None:
    for name in PRESETS:
        preset(name)
    for profile in map(profiles.load, profiles.PROFILES):
        assert studies.variants(profile)
    for theirs in (BertConfig(), ModernBertConfig(), BertConfig(pad_token_id=-1), BertConfig(pad_token_id=None)):
        assert our_config(theirs, num_labels=3).num_labels == 3
    assert ModelConfig(norm_eps=0, rope_theta=10, initializer_range=0, pad_token_id=None).norm_eps == 0


def test_every_field_of_a_recipe_has_a_type_that_is_checked() -> None:
    for field in dataclasses.fields(Recipe):
        with pytest.raises(InputError, match=field.name):
            dataclasses.replace(RECIPES["smoke"], **{field.name: object()})
