"""Attention by kind of token and linear probes find what was put in, and nothing where nothing is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from near import assert_near
from test_figures import on_its_page, refuses

from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset
from rtxstudy.questions.pretrained import guide, head_figures, heads, probing, probing_figures


@pytest.fixture(scope="module")
def data(prepared_cache) -> Prepared:
    return prepare(Generated(rows=240, depth=1, vocab_size=400), prepared_cache, progress=False)


def encoder(data: Prepared, name: str = "bert-tiny", **changes: object) -> Encoder:
    torch.manual_seed(0)
    return Encoder(
        preset(name, vocab_size=len(data.tokenizer), pad_token_id=data.tokenizer.pad_token_id, **changes)
    ).eval()


# ---------------------------------------- heads


@pytest.fixture(scope="module")
def patterns(data: Prepared) -> pd.DataFrame:
    """Of an encoder whose queries and keys are zero: every head attends to all tokens alike."""
    uniform = encoder(data)
    with torch.no_grad():
        for layer in uniform.stack.blocks[0]:
            layer.attention.qkv.weight[: 2 * uniform.config.hidden_size] = 0
    return heads.attention_patterns(data.texts("test"), uniform, data.tokenizer)


def test_a_head_that_attends_to_all_alike_has_the_uniform_share_of_every_kind(patterns: pd.DataFrame) -> None:
    measured = patterns.dropna()
    assert set(measured["pattern"]) == set(heads.PATTERNS) and (measured["queries"] > 0).all()
    assert_near(measured["share"], measured["uniform"])
    assert len(patterns) == 2 * len(heads.PATTERNS) * 2 * 2  # halves, kinds, layers, heads


def test_a_head_that_looks_at_the_previous_token_is_found(data: Prepared) -> None:
    looks = encoder(data)
    attend = looks.stack.blocks[0][0].attention

    def previous(module, given, made):
        weights = made[1].clone()
        length = weights.shape[-1]
        weights[:, 1] = torch.eye(length).roll(1, dims=0)  # query i reads key i - 1
        return made[0], weights

    attend.register_forward_hook(previous)
    found = heads.strongest(heads.attention_patterns(data.texts("test"), looks, data.tokenizer)).set_index("pattern")
    best = found.loc["previous token"]
    assert (best["layer"], best["head"]) == (1, 2) and best["share"] == pytest.approx(1) and best["over_half"] == 1
    assert found.loc["next token", "share"] < 0.5 and 0 < best["uniform"] < 0.5


def test_the_map_of_heads_shows_each_kind_and_refuses_what_it_cannot_draw(patterns: pd.DataFrame) -> None:
    both = patterns.groupby(["pattern", "layer", "head"], sort=False)[["share", "uniform"]].mean().reset_index()
    _, texts = on_its_page(lambda: head_figures.attention_patterns(both))
    assert all(any(text.get_text().startswith(kind) for text in texts) for kind in heads.PATTERNS)
    refuses(head_figures.attention_patterns, both, ("pattern", "layer", "head", "share", "uniform"))


def test_one_text_is_too_few_for_two_halves(data: Prepared) -> None:
    with pytest.raises(InputError, match="at least two"):
        heads.attention_patterns(["a film"], encoder(data), data.tokenizer)


# ---------------------------------------- probes


def test_questions_are_balanced_and_words_do_not_follow_length(data: Prepared) -> None:
    texts = probing.probe_texts(data, rows=120)
    assert {"length", "sentiment"} <= {asked.task for asked in texts.questions}
    for asked in texts.questions:
        for index, answers in ((asked.train, asked.train_answers), (asked.judged, asked.answers)):
            assert answers.mean() == 0.5 and len(set(index)) == len(index) == len(answers)
    lengths = np.array([len(text.split()) for text in texts.train])
    for asked in texts.questions:
        if asked.task == "a word":
            assert all(
                (asked.asked in texts.train[i].lower()) or not yes
                for i, yes in zip(asked.train, asked.train_answers, strict=True)
            )
            means = [lengths[asked.train[asked.train_answers == answer]].mean() for answer in (True, False)]
            assert abs(means[0] - means[1]) < 1.5


def test_a_probe_reads_what_is_written_in_a_state_and_nothing_from_noise() -> None:
    rng = np.random.default_rng(0)
    answers = np.tile([True, False], 200)
    states = rng.normal(size=(2, 400, 8)).astype(np.float32)
    states[1, :, 3] += 3 * answers  # only the second depth knows
    half = np.arange(200)
    asked = [probing.Question("length", "at least 9 tokens", half, answers[:200], half, answers[200:])]
    table = probing.probe(states[:, :200], states[:, 200:], asked).set_index("depth")
    assert table.loc[1, "accuracy"] > 0.9 and table.loc[0, "low"] <= 0.5 <= table.loc[0, "high"]
    assert (table["n"] == 200).all()


def test_the_states_of_a_loop_are_followed_by_pass_and_padding_is_left_out(data: Prepared) -> None:
    loop = encoder(data, "recurrent-1x3x32")
    texts = data.texts("test")[:5]
    found = probing.mean_states(texts, loop, data.tokenizer, None, by_pass=True)
    assert found.shape == (4, 5, 32)
    alone = probing.mean_states(texts[2:3], loop, data.tokenizer, None, by_pass=True)
    assert_near(found[:, 2], alone[:, 0])


def test_the_probes_are_drawn_and_said_beside_random_weights(data: Prepared) -> None:
    texts = probing.probe_texts(data, rows=120)
    parts = []
    for name in ("bert-tiny", "recurrent-1x3x32"):
        pair = (encoder(data, name), encoder(data, name))
        parts.append(probing.probes(texts, *pair, data.tokenizer, None).assign(model=name))
    table = pd.concat(parts, ignore_index=True)
    assert dict(table.groupby("model")["by"].first()) == {"bert-tiny": "layer", "recurrent-1x3x32": "pass"}
    on_its_page(lambda: probing_figures.probes(table))
    refuses(probing_figures.probes, table, ("model", "weights", "depth", "task", "accuracy"))


# ---------------------------------------- the guide


def test_the_guide_measures_each_size_and_names_what_it_could_not_measure(data: Prepared, monkeypatch) -> None:
    monkeypatch.setattr(guide, "try_to_load_from_cache", lambda *_: None)
    table = guide.guide(data, data, 10, None, fetch=False, presets={"tiny": "bert-tiny", "mini": "bert-mini"})
    assert table["parameters"].is_monotonic_increasing and table["nearest"].isna().all()
    assert (table[["ms_median", "ms_per_text", "mb"]] > 0).all(axis=None)
    shown = guide.shown(table)
    quality = "neighbour of the same kind (published weights)"
    assert set(shown[quality]) == {"not measured"}
    assert guide.shown(table.assign(nearest=[0.75, np.nan]))[quality].tolist() == ["75.0 %", "not measured"]
    both = table.assign(nearest=[0.75, 0.8])
    assert guide.shown(both)[quality].tolist() == ["75.0 %", "80.0 %"]
    three = pd.concat([both, table[:1].assign(model="large")], ignore_index=True)
    assert guide.shown(three)[quality].iloc[-1] == "not measured"
