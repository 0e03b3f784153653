"""Metrics, intervals, tests, frontiers, baselines and costs: each against a formula, another library, or a simulation."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.metrics import accuracy_score, confusion_matrix, precision_recall_fscore_support
from torch.utils.flop_counter import FlopCounterMode

from rtx import latency
from rtx.baselines import counting_words as classical
from rtxlib.errors import InputError
from rtxlib.models import size
from rtxlib.models.presets import build, preset
from rtxlib.runs import metrics
from rtxstudy import pareto, statistics
from rtxstudy.confusion import confusion_counts

# --- metrics


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_report_agrees_with_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    labels, predictions = rng.integers(0, classes, (2, 300))
    report = metrics.classification_report(labels, predictions, [f"class {i}" for i in range(classes)])
    average = {"average": "binary", "pos_label": 1} if classes == 2 else {"average": "macro"}
    precision, recall, f1, _ = precision_recall_fscore_support(labels, predictions, **average)
    assert report["accuracy"] == pytest.approx(accuracy_score(labels, predictions))
    assert (report["precision"], report["recall"], report["f1"]) == pytest.approx((precision, recall, f1))
    assert report["confusion"] == confusion_matrix(labels, predictions).tolist()


def test_a_class_never_predicted_and_one_never_true_count_as_zero_not_as_missing():
    report = metrics.classification_report(np.array([0, 0, 1]), np.array([0, 0, 2]), ["a", "b", "c"])
    assert report["f1"] == pytest.approx(1 / 3)  # 1 for a, 0 for b and for c
    assert report["confusion"] == [[2, 0, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    ("labels", "predictions", "words"),
    [([0, 1], [0], "shape"), ([], [], "no rows"), ([0, 2], [0, 1], "2 label names"), ([0, -1], [0, 1], "-1")],
)
def test_labels_that_cannot_be_compared_are_refused_in_words(labels, predictions, words):
    with pytest.raises(InputError, match=words):
        metrics.classification_report(np.array(labels), np.array(predictions), ["negative", "positive"])


def test_confusion_counts_pool_seeds_and_keep_models_apart():
    predictions = pd.DataFrame(
        {"model": ["a", "a", "b"], "seed": [0, 1, 0], "label": [0, 0, 1], "prediction": [1, 0, 1]}
    )
    counts = confusion_counts(predictions, ["no", "yes"]).set_index(["model", "truth", "prediction"])["rows"]
    assert counts.loc[("a", "no", "yes")] == 1 and counts.loc[("a", "no", "no")] == 1
    assert counts.loc[("b", "yes", "yes")] == 1 and counts.sum() == 3 and len(counts) == 8
    with pytest.raises(InputError, match="'prediction'"):
        confusion_counts(predictions.rename(columns={"prediction": "predicted"}), ["no", "yes"])


# --- statistics


def test_mean_interval_agrees_with_scipy_and_one_or_two_seeds_have_none():
    values = [0.81, 0.83, 0.80, 0.82]
    expected = stats.t.interval(0.95, 3, loc=np.mean(values), scale=stats.sem(values))
    assert statistics.mean_interval(values)[1:3] == pytest.approx(expected)
    single = statistics.mean_interval([0.8])
    assert single.mean == 0.8 and single.n == 1 and np.isnan([single.low, single.high]).all()
    pair = statistics.mean_interval([0.8, 0.9])  # its interval would reach from 0.21 to 1.49
    assert pair.mean == pytest.approx(0.85) and pair.n == 2 and np.isnan([pair.low, pair.high]).all()
    with pytest.raises(InputError, match="finite"):
        statistics.mean_interval([0.8, np.nan])


def test_with_one_seed_the_paired_difference_is_the_paired_t_interval_over_items():
    rng = np.random.default_rng(0)
    a, b = rng.random((2, 500)) < [[0.8], [0.7]]
    found = statistics.paired_difference(a, b)
    expected = stats.ttest_rel(a.astype(float), b.astype(float))
    interval = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p == pytest.approx(expected.pvalue) and (found.n_seeds, found.n_items) == (1, 500)


def test_where_only_seeds_vary_the_paired_difference_is_the_t_interval_over_seeds():
    # all items of a seed are equal, so only the seeds vary
    by_seed = np.array([0, 1, 1, 0, 1])
    a, b = np.repeat(by_seed[:, None], 40, axis=1), np.zeros((5, 40))
    found, expected = statistics.paired_difference(a, b), stats.ttest_1samp(by_seed, 0)
    interval = expected.confidence_interval()
    assert (found.low, found.high, found.p) == pytest.approx((interval.low, interval.high, expected.pvalue))


def test_a_difference_of_accuracies_alone_is_the_paired_t_interval_over_seeds_or_that_of_two_shares():
    """With items without end the seeds alone count; with seeds that agree, the items of two separate tests."""
    a, b = np.array([0.8, 0.82, 0.87]), np.array([0.79, 0.77, 0.8])
    found, expected = statistics.difference_of_accuracies(a, b, 10**12), stats.ttest_rel(a, b)
    interval = expected.confidence_interval()
    assert (found.low, found.high, found.p) == pytest.approx((interval.low, interval.high, expected.pvalue), rel=1e-4)
    found = statistics.difference_of_accuracies(np.full(3, 0.8), np.full(3, 0.75), 600)
    half = stats.norm.ppf(0.975) * np.sqrt((0.8 * 0.2 + 0.75 * 0.25) / 600)
    assert (found.low, found.high) == pytest.approx((0.05 - half, 0.05 + half)) and (found.n_seeds, found.n_items) == (3, 600)
    assert np.isnan(statistics.difference_of_accuracies(a[:2], b[:2], 600).low)


@pytest.mark.parametrize(
    ("seed_spread", "item_spread"), [(0.0, 1.0), (0.4, 0.5), (0.15, 0.0)], ids=["items", "seeds", "both little"]
)
def test_paired_interval_covers_the_true_difference_about_95_times_in_100(seed_spread, item_spread):
    rng = np.random.default_rng(1)

    def draw() -> np.ndarray:
        """Correctness (2, seeds, items) of two models; accuracy depends on the item, its bias, and the seed."""
        logit = (
            rng.normal(1.5, 1.5, 400) + rng.normal(0, item_spread, (2, 1, 400)) + rng.normal(0, seed_spread, (2, 4, 1))
        )
        return rng.random((2, 4, 400)) < 1 / (1 + np.exp(-logit))

    # both models are drawn from one distribution, so the true difference is zero
    found = [statistics.paired_difference(*draw()) for _ in range(1000)]
    covered = np.mean([d.low <= 0 <= d.high for d in found])
    assert 0.925 <= covered <= 0.98  # the standard error of a thousand draws is 0.007


def test_seeds_that_happen_to_agree_do_not_make_an_interval_narrow():
    """Where only items vary, three seeds may agree by chance; the interval must not become narrow for that."""
    rng = np.random.default_rng(4)
    draws = [(rng.random((2, 3, 400)) < 0.8) for _ in range(1500)]
    agreeing = [draw for draw in draws if (draw[0].mean(axis=1) - draw[1].mean(axis=1)).std(ddof=1) < 0.01]
    assert len(agreeing) > 100  # two accuracies of 400 texts differ by 0.028 on average
    found = [statistics.paired_difference(*draw) for draw in agreeing]
    assert np.mean([d.low <= 0 <= d.high for d in found]) > 0.9
    assert min(d.high - d.low for d in found) > 0.05  # the items alone: 2 · 1.96 · √(2 · 0.16 / 1200)


def test_p_value_is_no_smaller_than_a_uniform_one_when_the_models_are_equal():
    rng = np.random.default_rng(2)
    p = [statistics.paired_difference(*(rng.random((2, 5, 300)) < 0.8)).p for _ in range(400)]
    assert 0.01 < np.mean(np.array(p) < 0.05) < 0.085
    assert stats.kstest(p, "uniform", alternative="greater").pvalue > 0.001


def test_identical_models_differ_by_nothing_for_certain():
    correct = np.random.default_rng(3).random((3, 50)) < 0.8
    assert statistics.paired_difference(correct, correct)[:4] == (0, 0, 0, 1)
    # Each seed answers a class of its own: equally many correct answers, but not the same ones, so the difference is uncertain.
    one_class = np.stack([np.arange(24) < 8, np.arange(24) >= 16])
    found = statistics.paired_difference(one_class, np.tile(np.arange(24) % 6 > 0, (2, 1)))
    assert found.low < found.difference < found.high
    with pytest.raises(InputError, match="same seeds"):
        statistics.paired_difference(correct, correct[:2])


def test_summarise_gives_one_row_per_group_with_intervals_and_medians_of_costs():
    runs = pd.DataFrame(
        {
            "model": ["b", "b", "b", "a"],
            "seed": [0, 1, 2, 0],
            "accuracy": [0.80, 0.82, 0.84, 0.90],
            "ms_median": [1.0, 9.0, 2.0, 5.0],
        }
    )
    table = statistics.summarise(runs, ["model"], carry=["ms_median"])
    assert list(table.columns) == ["model", "mean", "low", "high", "sd", "n", "ms_median"]
    assert table["model"].tolist() == ["b", "a"]  # in order of first appearance
    low, high = stats.t.interval(0.95, 2, loc=0.82, scale=0.02 / np.sqrt(3))
    assert table.loc[0, ["mean", "low", "high", "sd", "n", "ms_median"]].tolist() == pytest.approx(
        [0.82, low, high, 0.02, 3, 2.0]
    )
    assert table.loc[1, ["low", "high", "sd"]].isna().all() and table.loc[1, "n"] == 1
    with pytest.raises(InputError, match="Did you mean 'accuracy'"):
        statistics.summarise(runs, ["model"], value="acuracy")
    with pytest.raises(InputError, match="twice"):
        statistics.summarise(runs.assign(seed=0), ["model"])
    with pytest.raises(InputError, match="empty"):
        statistics.summarise(runs.iloc[:0], ["model"])


# --- frontier


def test_frontier_holds_exactly_the_rows_that_none_dominates():
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.integers(0, 6, (60, 3)), columns=["ms", "size", "accuracy"], index=rng.permutation(60))
    mask = pareto.frontier(table, minimise=["ms", "size"], maximise=["accuracy"])
    for index, row in table.iterrows():
        dominated = any(
            o.ms <= row.ms and o["size"] <= row["size"] and o.accuracy >= row.accuracy and not o.equals(row)
            for _, o in table.iterrows()
        )
        assert mask[index] == (not dominated)


def test_ties_stay_on_the_frontier_together_and_missing_values_stay_off():
    table = pd.DataFrame({"ms": [1.0, 1.0, 1.0, np.nan], "accuracy": [0.8, 0.8, 0.7, 0.9]})
    assert pareto.frontier(table, minimise=["ms"], maximise=["accuracy"]).tolist() == [True, True, False, False]
    with pytest.raises(InputError, match="Did you mean 'accuracy'"):
        pareto.frontier(table, maximise=["acuracy"])
    with pytest.raises(InputError):
        pareto.frontier(table)


# --- classical baselines

GOOD, BAD = ["a fine film", "really good", "good food and fine service"], ["a dull film", "not good", "bad food"]


def test_the_baseline_reads_word_pairs_and_beats_the_majority():
    texts, labels = (GOOD + BAD) * 8, np.array(([1] * 3 + [0] * 3) * 8)
    names = ["negative", "positive"]
    found = classical.baseline(texts, labels, GOOD + BAD, labels[:6], GOOD + BAD, labels[:6], names)
    assert found["accuracy"] == 1 and found["predictions"].tolist() == [1, 1, 1, 0, 0, 0]  # "not good" as well
    assert found["C"] in classical.STRENGTHS and found["parameters"] == 11 + 11 + 1  # words, pairs, bias
    assert found["seconds"] > 0 and found["confusion"] == [[3, 0], [0, 3]]
    floor = classical.majority(np.array([0, 0, 1]), labels[:6], names)
    assert floor["accuracy"] == 0.5 and set(floor["predictions"]) == {0}


def test_the_strength_is_chosen_on_the_validation_rows_and_not_on_the_test_rows():
    texts, labels = (GOOD + BAD) * 4, np.array(([1] * 3 + [0] * 3) * 4)
    names = ["negative", "positive"]
    one = classical.baseline(texts, labels, GOOD, [1, 1, 1], GOOD + BAD, labels[:6], names)
    two = classical.baseline(texts, labels, GOOD, [0, 0, 0], GOOD + BAD, labels[:6], names)
    assert one["C"] == two["C"] == 1.0 and (one["predictions"] == two["predictions"]).all()


def test_a_baseline_takes_three_classes_and_refuses_one():
    texts, labels = ["red", "green", "blue"] * 5, np.array([0, 1, 2] * 5)
    found = classical.baseline(texts, labels, texts, labels, texts, labels, ["r", "g", "b"])
    assert found["accuracy"] == 1 and found["parameters"] == 3 * 3 + 3
    with pytest.raises(InputError, match="one class"):
        classical.baseline(texts, labels * 0, texts, labels, texts, labels, ["r", "g", "b"])
    with pytest.raises(InputError, match="14 texts"):
        classical.baseline(texts, labels, texts[1:], labels, texts, labels, ["r", "g", "b"])
    with pytest.raises(InputError, match="no rows"):
        classical.majority(np.array([]), labels, ["r", "g", "b"])


# --- cost

TINY = {"vocab_size": 50, "max_position_embeddings": 64}


def test_the_two_study_models_have_the_published_number_of_parameters():
    for name, total, embedding in (
        ("standard-6x384", 25_912_706, 11_720_448),
        ("recurrent-3x2x256", 10_972_162, 7_813_632),
    ):
        with torch.device("meta"):
            counted = size.parameters(build(name))
        assert counted == {"total": total, "embedding": embedding, "non_embedding": total - embedding}


def test_a_shared_block_counts_once_in_parameters_and_megabytes_and_fully_in_arithmetic():
    shared, unshared = (build("recurrent-1x3x64", block_sharing=word, **TINY) for word in ("shared", "unshared"))
    block = sum(p.numel() for p in shared.encoder.stack.parameters())
    assert size.parameters(unshared)["total"] - size.parameters(shared)["total"] == 2 * block
    assert size.size_mb(shared) == pytest.approx(4 * size.parameters(shared)["total"] / 1e6)
    assert size.size_mb(shared.bfloat16()) == pytest.approx(2 * size.parameters(shared)["total"] / 1e6)
    assert size.forward_flops(shared.config, 20) == size.forward_flops(unshared.config, 20)


@pytest.mark.parametrize("feedforward", ["swiglu", "geglu", "gelu", "relu"])
@pytest.mark.parametrize("name", ["standard-2x64", "recurrent-2x3x32"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("length", [1, 2, 17])
def test_flops_counted_by_hand_are_those_that_torch_counts(feedforward, name, pooling, length):
    model = build(name, feedforward=feedforward, pooling=pooling, num_labels=3, **TINY).eval()
    model.config._attn_implementation = "eager"  # the counter has no formula for the fused kernel of every device
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        model(input_ids=torch.ones(1, length, dtype=torch.long))
    assert size.forward_flops(model.config, length) == counter.get_total_flops()


def test_flops_refuse_an_empty_text():
    with pytest.raises(InputError, match="at least one token"):
        size.forward_flops(preset("standard-2x64"), 0)


class Clock(torch.nn.Module):
    """A stand-in for a model: it counts its calls and advances a clock by 2 ms per call and 1 ms per row."""

    def __init__(self):
        super().__init__()
        self.now, self.seen = 0.0, []

    def forward(self, input_ids, attention_mask=None):
        assert not self.training and torch.is_inference_mode_enabled()
        self.seen.append(len(input_ids))
        slow = 10 if int(input_ids[0, 0]) == 9 else 0
        self.now += (2 + len(input_ids) + slow) / 1000


def test_latency_is_median_and_p95_at_one_text_and_time_over_rows_in_full_batches(monkeypatch):
    model = Clock().train()
    monkeypatch.setattr(latency.time, "perf_counter", lambda: model.now)
    ones = [{"input_ids": torch.full((1, 4), 9 if i == 0 else 1), "attention_mask": None} for i in range(10)]
    full = [{"input_ids": torch.ones(rows, 4, dtype=torch.long), "labels": torch.zeros(rows)} for rows in (8, 4)]
    found = latency.latency(model, ones, full, "cpu", rounds=2)
    assert found["ms_median"] == pytest.approx(3) and 3 < found["ms_p95"] <= 13
    assert found["ms_p95"] == pytest.approx(np.quantile([13] * 2 + [3] * 18, 0.95))
    assert found["ms_per_text"] == pytest.approx((10 + 6) / 12)
    # each batch runs once untimed, three more warm up, then come two timed rounds
    assert len(model.seen) == (10 + 3 + 20) + (2 + 3 + 4) and model.training


def test_latency_of_a_real_model_is_positive_and_bad_batches_are_refused():
    model = build("standard-1x32", **TINY)
    one = {"input_ids": torch.ones(1, 5, dtype=torch.long), "attention_mask": None}
    many = {"input_ids": torch.ones(8, 5, dtype=torch.long), "attention_mask": torch.ones(8, 5, dtype=torch.long)}
    found = latency.latency(model, [one], [many], "cpu", rounds=3, precision="bf16")
    assert 0 < found["ms_median"] <= found["ms_p95"] and found["ms_per_text"] > 0
    with pytest.raises(InputError, match="one text each"):
        latency.latency(model, [many], [many], "cpu", rounds=3)
    with pytest.raises(InputError, match="at least one batch"):
        latency.latency(model, [], [many], "cpu", rounds=3)
