"""The description of an encoder follows its modules: change one, and its row changes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from scipy.sparse import csr_matrix
from torch import nn

from rtxlib.errors import InputError
from rtxlib.models import Encoder, preset
from rtxstudy.questions.anatomy.anatomy import anatomy, claims
from rtxstudy.questions.pretrained import retrieval
from rtxstudy.questions.pretrained.behaviour import norms_by_layer, reach

SMALL = {"vocab_size": 60, "hidden_size": 48, "num_attention_heads": 4, "pad_token_id": 0}


def minilm(**changes: object) -> Encoder:
    return Encoder(preset("minilm-l3", **(SMALL | {"intermediate_size": 192} | changes))).eval()


def modernbert(**changes: object) -> Encoder:
    sizes = {"intermediate_size": 72, "num_hidden_layers": 7, "local_attention": 6}
    return Encoder(preset("modernbert-base", **(SMALL | sizes | changes))).eval()


def on_meta(name: str) -> Encoder:
    with torch.device("meta"):
        return Encoder(preset(name))


# ---------------------------------------- the rows


def test_the_two_architectures_are_told_apart_row_by_row() -> None:
    one, two = anatomy(on_meta("minilm-l6"), "bert"), anatomy(on_meta("modernbert-base"), "modernbert")
    assert list(one) == list(two)
    expected = {
        "Position encoding": ("512 positions", "rotary (RoPE), base 160,000; 10,000 in local layers"),
        "Layer normalization": ("post-norm: LayerNorm(x + f(x))", "pre-norm: x + f(LayerNorm(x))"),
        "Norm before the first attention": ("only the embedding's", "only the embedding's"),
        "LayerNorm bias": ("yes, in 13 of 13", "no, in 0 of 45"),
        "Attention mechanism": ("separate Q/K/V: 3 matrices", "combined QKV: one (2304, 768) matrix"),
        "Attention reach": ("every layer sees all", "8 of 22 layers, one in 3, see all tokens; the others see 64 to each"),
        "Feed-forward network": ("standard", "gated (GLU): W₃·(GELU(W₁x) ⊙ W₂x)"),
        "Activation": ("GELU, x·Φ(x), exact", "GELU, x·Φ(x), exact"),
        "MLP dimensions": ("symmetric: 384 → 1536 → 384", "asymmetric: 768 → 2304 → 1152 → 768"),
        "Sequence length": ("512 tokens; a sentence embedding reads the first 256", "8192 tokens"),
        "Layers": ("6", "22"),
        "Hidden size": ("384, in 12 heads", "768, in 12 heads"),
        "Pooling of a sentence": ("mean of the real tokens' states, scaled to length one",) * 2,
        "Parameters": ("22,713,216, including 11,720,448", "149,014,272, including 38,682,624"),
    }
    assert list(expected) == list(one)
    for row, (of_minilm, of_modernbert) in expected.items():
        assert of_minilm in one[row] and of_modernbert in two[row], row


def swap_activation(encoder: Encoder) -> None:
    encoder.stack.blocks[0][0].feedforward.activation = F.silu


def cut_positions(encoder: Encoder) -> None:
    encoder.embeddings.position = nn.Embedding(40, 48)


def drop_a_bias(encoder: Encoder) -> None:
    encoder.embeddings.norm = nn.LayerNorm(48, bias=False)


def end_in_a_norm(encoder: Encoder) -> None:
    encoder.final_norm = nn.LayerNorm(48)


def widen(encoder: Encoder) -> None:
    encoder.stack.blocks[0][0].feedforward.output = nn.Linear(24, 48)


def lose_a_layer(encoder: Encoder) -> None:
    del encoder.stack.blocks[0][-1]


@pytest.mark.parametrize(
    ("change", "row", "says"),
    [
        (swap_activation, "Activation", "SiLU, x·σ(x)"),
        (cut_positions, "Sequence length", "40 tokens"),
        (cut_positions, "Position encoding", "40 positions"),
        (drop_a_bias, "LayerNorm bias", "yes, in 6 of 7 norms"),
        (end_in_a_norm, "Layer normalization", "one more norm after the last layer"),
        (widen, "MLP dimensions", "asymmetric: 48 → 192 → 24 → 48"),
        (lose_a_layer, "Layers", "2"),
    ],
    ids=lambda x: getattr(x, "__name__", x),
)
def test_rows_are_read_off_the_modules_and_not_off_the_configuration(change, row: str, says: str) -> None:
    encoder = minilm()
    before = anatomy(encoder)[row]
    change(encoder)
    assert says in anatomy(encoder)[row] and anatomy(encoder)[row] != before


@pytest.mark.parametrize(
    ("name", "changes", "row", "says"),
    [
        ("recurrent-3x2x64", {}, "Layers", "3 in a block, passed 2 times"),
        ("recurrent-3x2x64", {}, "Layer normalization", "pre-norm: x + f(RMSNorm(x))"),
        ("recurrent-3x2x64", {}, "LayerNorm bias", "no, in 0 of 7 norms"),
        ("recurrent-3x2x64", {}, "Activation", "SiLU, x·σ(x)"),
        ("standard-1x64", {"position": "alibi"}, "Position encoding", "ALiBi: distance lowers the scores"),
        ("standard-1x64", {"position": "sinusoidal"}, "Position encoding", "absolute: sines and cosines, nothing learned"),
        ("standard-1x64", {"position": "none"}, "Position encoding", "none"),
        ("standard-1x64", {}, "Norm before the first attention", "its own, after the embedding's"),
        ("standard-1x64", {"embedding_norm": False}, "Norm before the first attention", "its own"),
        ("bert-tiny", {"embedding_norm": False}, "Norm before the first attention", "none"),
        ("bert-tiny", {"feedforward": "relu"}, "Feed-forward network", "standard: W₂·ReLU(W₁x)"),
        ("bert-tiny", {}, "Pooling of a sentence", "pooler on top of [CLS]"),
        ("bert-tiny", {}, "Attention mechanism", "Q, K and V stacked: one (384, 128) matrix"),
    ],
)
def test_every_other_encoder_has_its_words_too(name: str, changes: dict, row: str, says: str) -> None:
    assert anatomy(Encoder(preset(name, vocab_size=60, **changes)))[row] == says


def test_an_unknown_reference_is_refused() -> None:
    with pytest.raises(InputError, match=r"no reference 'moderbert'.*Did you mean 'modernbert'"):
        anatomy(minilm(), "moderbert")


# ---------------------------------------- the claims

FALSE = {
    "parameters of minilm-l3": "17.4M",
    "parameters of modernbert-base": "149.0M",
    "MiniLM's parameters relative to BERT-base": "0.16, 0.21, 0.30 (L3, L6, L12)",
    "ModernBERT's layers, in the diagram": "22",
    "ModernBERT's layers, in the table": "22 (base), 28 (large)",
    "MiniLM's norms, in the diagram": "before 0 of 12 sub-layers",
    "ModernBERT's norms, in the text": "before 43 of 44 sub-layers",
    "ModernBERT's norms outside the layers, in the diagram": "embeddings.norm and final_norm",
    "base of ModernBERT's rotary angles": "rotary (RoPE), base 160,000; 10,000 in local layers",
    "combined Q/K/V has fewer parameters": "1,769,472 combined, 1,769,472 separate",
    "ModernBERT's gate": "GELU",
}


def test_what_the_document_says_of_the_released_models_is_held_against_them() -> None:
    table = claims(on_meta("minilm-l6"), on_meta("modernbert-base"))
    assert list(table.columns) == ["claim", "says", "is", "holds"]
    assert table["claim"].is_unique and table["holds"].map(type).eq(bool).all()
    assert dict(table.loc[~table["holds"], ["claim", "is"]].to_numpy()) == FALSE
    assert table.set_index("claim")["is"]["parameters of minilm-l6"] == "22.7M"


def test_a_claim_follows_the_model_it_is_about() -> None:
    """A ModernBERT built as the notes say fulfils their claims; a MiniLM built differently breaks them."""
    said = {"feedforward": "swiglu", "num_hidden_layers": 12, "rope_theta": 10_000.0, "first_attention_norm": True}
    with torch.device("meta"):
        modern = Encoder(preset("modernbert-base", **said, embedding_norm=False, final_norm=False))
        odd = Encoder(preset("minilm-l6", norm_placement="pre", num_hidden_layers=5, feedforward="relu", norm_bias=False,
                             max_position_embeddings=256, intermediate_size=384))  # fmt: skip
    holds = claims(odd, modern).set_index("claim")["holds"]
    about_modern = holds[holds.index.str.startswith(("ModernBERT", "base of"))]
    # This one claim is about the presets, not about this encoder.
    assert list(about_modern.index[~about_modern]) == ["ModernBERT's layers, in the table"]
    about_mini = holds[holds.index.str.startswith("MiniLM's")]
    assert set(about_mini.index[about_mini]) == {
        "MiniLM's norms, in the diagram",
        "MiniLM's Q/K/V in the checkpoint",
        "MiniLM's MLP",
    }


# ---------------------------------------- reach and norms


def seen_by(table: pd.DataFrame, layer: int, length: int) -> np.ndarray:
    seen = np.zeros((length, length), dtype=bool)
    for run in table[table["layer"] == layer].itertuples():
        seen[run.token - 1, run.first - 1 : run.last] = True
    return seen


def test_local_layers_see_their_window_and_every_third_sees_all() -> None:
    table, length = reach(modernbert(), 20), 20
    distance = np.abs(np.arange(length) - np.arange(length)[:, None])
    assert sorted(table["layer"].unique()) == [1, 2, 3, 4, 5, 6, 7]
    for layer in range(1, 8):
        expected = distance >= 0 if layer in (1, 4, 7) else distance <= 3
        assert (seen_by(table, layer, length) == expected).all(), layer
    assert len(table) == 7 * 20  # one stretch each
    assert (reach(minilm(), 9)[["first", "last"]] == (1, 9)).all(axis=None)


def test_tokens_seen_apart_are_runs_of_their_own(monkeypatch) -> None:
    encoder = minilm(num_hidden_layers=1)
    weights = torch.tensor([[0.5, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.2, 0.8, 0.0], [0.4, 0.0, 0.3, 0.3]])
    heads = torch.stack([weights.triu(), weights.tril()])  # what one head does not see, the other does
    monkeypatch.setattr("rtxlib.models.attention.attend", lambda q, *_, **__: (q, heads[None]))
    runs = [tuple(row) for row in reach(encoder, 4).to_numpy()]
    assert runs == [(1, 1, 1, 1), (1, 1, 3, 3), (1, 2, 2, 2), (1, 3, 2, 3), (1, 4, 1, 1), (1, 4, 3, 4)]


def padded() -> dict[str, torch.Tensor]:
    ids = torch.randint(5, 60, (3, 11), generator=torch.Generator().manual_seed(0))
    return {"input_ids": ids, "attention_mask": (torch.arange(11) < torch.tensor([[11], [4], [7]])).long()}


def test_post_norm_keeps_the_length_of_a_state_and_pre_norm_lets_it_grow() -> None:
    post, pre = minilm(num_hidden_layers=6), modernbert(initializer_range=0.2)
    kept = norms_by_layer(post, [padded()])
    assert list(kept["layer"]) == [0, 1, 2, 3, 4, 5, 6]
    assert np.allclose(kept["norm"], 1, atol=1e-3)  # LayerNorm's output with fresh weights
    grown = norms_by_layer(pre, [padded()])["norm"]
    assert (np.diff(grown) > 0).all() and grown.iloc[-1] > 1.5 * grown.iloc[0]


def test_the_mean_is_over_real_tokens_whatever_the_batches() -> None:
    encoder, batch = modernbert(initializer_range=0.2), padded()
    one = norms_by_layer(encoder, [batch])
    rows = [batch["input_ids"][i : i + 1, :length] for i, length in enumerate((11, 4, 7))]
    alone = norms_by_layer(encoder, [{"input_ids": row, "attention_mask": None} for row in rows])
    pd.testing.assert_frame_equal(one, alone, rtol=1e-5)
    with torch.inference_mode():
        states = torch.cat([encoder(row, output_hidden_states=True).hidden_states[3][0] for row in rows])
    assert one["norm"][3] == pytest.approx(float(states.norm(dim=-1).mean()) / 48**0.5, rel=1e-5)


def test_a_model_in_training_is_measured_without_dropout_and_left_in_training() -> None:
    encoder = minilm(hidden_dropout=0.5)
    expected = norms_by_layer(encoder, [padded()])
    encoder.train()
    pd.testing.assert_frame_equal(norms_by_layer(encoder, [padded()]), expected)
    assert encoder.training


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: reach(on_meta("minilm-l3"), 5), "meta device"),
        (lambda: reach(minilm(), 0), "at least one token, not 0"),
        (lambda: reach(minilm(), 513), "longer than the 512 positions"),
        (lambda: norms_by_layer(minilm(), []), "not a single token"),
        (lambda: norms_by_layer(on_meta("minilm-l3"), [padded()]), "meta device"),
    ],
)
def test_what_cannot_be_measured_is_told_in_a_sentence(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()


# ---------------------------------------- neighbours


def vectors(n: int = 60) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(n, 8)) * np.random.default_rng(1).uniform(0.1, 9, (n, 1))


@pytest.mark.parametrize("block", [1, 150, 10**9], ids=["one row at a time", "some", "all at once"])
def test_neighbours_are_those_of_the_whole_similarity_matrix(monkeypatch, block: int) -> None:
    monkeypatch.setattr(retrieval, "_BLOCK", block)
    x = vectors()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    similarity = unit @ unit.T
    np.fill_diagonal(similarity, -np.inf)
    expected = np.argsort(-similarity, axis=1)[:, :7]
    assert (retrieval.neighbours(x, 7) == expected).all()
    assert (retrieval.neighbours(csr_matrix(x), 7) == expected).all()
    everyone = retrieval.neighbours(x, len(x) - 1)
    assert all(sorted([i, *row]) == list(range(len(x))) for i, row in enumerate(everyone))


def test_ties_favour_no_label_however_the_table_is_sorted() -> None:
    """Texts without a common word are all equally similar; in a sorted table the first label would win every tie."""
    labels = np.repeat([0, 1], 100)
    precision = retrieval.precision_at_k(retrieval.neighbours(np.eye(200), 20), labels)
    assert precision[labels == 0].mean() == pytest.approx(0.5, abs=0.1)
    assert precision[labels == 1].mean() == pytest.approx(0.5, abs=0.1)


def test_precision_is_the_share_of_neighbours_with_the_texts_own_label() -> None:
    near = np.array([[1, 2], [0, 3], [3, 1], [2, 0]])
    assert retrieval.precision_at_k(near, np.array(["a", "a", "b", "b"])).tolist() == [0.5, 0.5, 0.5, 0.5]
    assert retrieval.precision_at_k(near[:, :1], np.array([0, 0, 0, 1])).tolist() == [1, 1, 0, 0]
    assert retrieval.chance(np.array(["a", "b", "a", "a"])) == pytest.approx([2 / 3, 0, 2 / 3, 2 / 3])


def test_the_comparison_holds_every_k_and_chance() -> None:
    labels = np.repeat([0, 1, 2], 20)
    told = np.eye(3)[labels] + 0.01 * vectors()[:, :3]
    table = retrieval.compare({"told": told, "random": vectors()}, labels, (1, 5))
    assert table[["model", "k"]].to_numpy().tolist() == [[m, k] for m in ("told", "random", "chance") for k in (1, 5)]
    rows = table.set_index(["model", "k"])
    assert (rows.loc["told", "mean"] == 1).all() and (rows["n"] == 60).all()
    assert (
        rows.loc["chance", "mean"].tolist() == pytest.approx([19 / 59] * 2) and rows.loc["chance", "low"].isna().all()
    )
    at_one = retrieval.precision_at_k(retrieval.neighbours(vectors(), 1), labels)
    assert rows.loc[("random", 1), "mean"] == pytest.approx(at_one.mean())
    assert rows.loc[("random", 1), "low"] < at_one.mean() < rows.loc[("random", 1), "high"]


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: retrieval.neighbours(vectors(), 60), "between 1 and that, not be 60"),
        (lambda: retrieval.neighbours(vectors(), 0), "not be 0"),
        (lambda: retrieval.precision_at_k(np.zeros((3, 1), int), np.zeros(2)), "3 texts but 2 labels"),
        (lambda: retrieval.chance(np.array([1])), "at least two"),
    ],
)
def test_neighbours_that_do_not_exist_are_refused(call, says: str) -> None:
    with pytest.raises(InputError, match=says):
        call()
