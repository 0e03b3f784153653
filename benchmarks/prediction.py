"""Prediction: texts a second beside ``pipeline`` and a plain loop over transformers, and the time of one text alone."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerBase, pipeline

from benchmarks.measure import Row, fastest, not_measured, row, seconds, throughput
from benchmarks.texts import prepared, texts
from rtxlib.data.batching import Tokens
from rtxlib.data.tokenization import encode
from rtxlib.experiments.execute import softmax
from rtxlib.models import EncoderForSequenceClassification, pretrained
from rtxlib.training.device import autocast, pick_device, pick_precision
from rtxlib.training.predict import predict_logits

SIZES = (1, 8, 32, 128)  # batch sizes of the peers; the fastest is taken
SINGLE = 40  # texts timed alone
LENGTH = 256


class Same(NamedTuple):
    """One BERT of 6 layers × 384 with random weights, in ours and in transformers, and the tokenizer of both."""

    ours: EncoderForSequenceClassification
    theirs: BertForSequenceClassification
    tokenizer: PreTrainedTokenizerBase


def same_models(tokenizer: PreTrainedTokenizerBase) -> Same:
    """On the device at hand, in evaluation mode."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=1536,
        initializer_range=0.1,  # wide enough that texts get different logits
    )
    theirs = BertForSequenceClassification(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        ours = pretrained.load_classifier(folder, pretrained.read_config(folder, pooling="pooler"))
    ours.classifier.load_state_dict(theirs.classifier.state_dict())
    device = pick_device()
    return Same(ours.eval().to(device), theirs.to(device), tokenizer)


@torch.inference_mode()
def plain_loop(same: Same, given: list[str], size: int, precision: str) -> np.ndarray:
    """What a person writes: batches in the order of the texts, padded to the longest of each."""
    device = pick_device()
    found = []
    for start in range(0, len(given), size):
        batch = same.tokenizer(
            given[start : start + size], padding=True, truncation=True, max_length=LENGTH, return_tensors="pt"
        )
        with autocast(precision, device):
            found.append(same.theirs(**batch.to(device)).logits.float().cpu().numpy())
    return np.concatenate(found)


def through_pipeline(same: Same, given: list[str], size: int, precision: str) -> np.ndarray:
    """Probabilities as ``pipeline`` gives them."""
    device = pick_device()
    classify = pipeline("text-classification", model=same.theirs, tokenizer=same.tokenizer, device=device, top_k=None)
    with autocast(precision, device):
        answers = classify(given, batch_size=size, truncation=True, max_length=LENGTH)
    return np.array(
        [
            [{one["label"]: one["score"] for one in answer}[name] for name in ("LABEL_0", "LABEL_1")]
            for answer in answers
        ]
    )


def rows(rounds: int, short: bool) -> Iterator[Row]:
    device = pick_device()
    same = same_models(prepared("sst2")[1].tokenizer)
    for source, count in (("sst2", 400), ("yelp_polarity", 60)):
        name, given = texts(source, count // 8 if short else count)
        for precision in dict.fromkeys(("fp32", pick_precision("auto", device))):
            yield from _throughput(name, given, same, precision, rounds)
    name, given = texts("sst2", SINGLE)
    for precision in dict.fromkeys(("fp32", pick_precision("auto", device))):
        yield _alone(name, given, same, precision, rounds)
    if device.type == "cpu":
        for what, unit, aim in (("throughput", "texts/s", 2.0), ("latency of one text", "ms", 1.0)):
            yield not_measured(f"prediction on cuda, {what}", unit, aim, "no cuda device here")


def _throughput(
    name: str,
    given: list[str],
    same: Same,
    precision: str,
    rounds: int,
) -> Iterator[Row]:
    device = pick_device()

    def predict() -> np.ndarray:
        ids, offsets = encode(given, same.tokenizer, LENGTH)
        tokens = Tokens(ids, offsets, np.zeros(len(given), dtype=np.int64))
        return predict_logits(same.ours, tokens, same.tokenizer.pad_token_id, device, precision)

    logits = predict()
    loops: dict[str, tuple[Callable, np.ndarray]] = {
        "a plain loop over transformers": (plain_loop, logits),
        "pipeline": (through_pipeline, softmax(logits)),
    }
    for peer, (run, expected) in loops.items():
        tolerance = 1e-4 if precision == "fp32" else 0.2
        size = fastest(lambda size, run=run: run(same, given, size, precision), SIZES, expected, tolerance, peer)
        found = throughput(len(given), predict, lambda run=run, size=size: run(same, given, size, precision), rounds)
        yield row(
            f"prediction, {len(given)} {name}, {precision}, beside {peer}",
            found["ours"],
            found["peer"],
            "texts/s",
            2.0,
            ("transformers", "tokenizers"),
            f"BERT 6×384 with the same weights, from text to logits; the peer in batches of {size}, its fastest of "
            f"{', '.join(map(str, SIZES))}; {torch.get_num_threads()} threads",
        )


def _alone(
    name: str,
    given: list[str],
    same: Same,
    precision: str,
    rounds: int,
) -> Row:
    """Median milliseconds of a forward pass over one text, the two taking turns text by text."""
    device = pick_device()
    batches = [
        same.tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt").to(device) for text in given
    ]
    times: dict[str, list[float]] = {"ours": [], "peer": []}
    with torch.inference_mode(), autocast(precision, device):
        for _ in range(rounds + 1):
            alone: dict[str, list[float]] = {"ours": [], "peer": []}
            for batch in batches:
                alone["ours"].append(seconds(lambda batch=batch: same.ours(batch["input_ids"])))
                alone["peer"].append(seconds(lambda batch=batch: same.theirs(**batch)))
            for who, taken in alone.items():
                times[who].append(1000 * median(taken))
    return row(
        f"latency of one text, {name}, {precision}",
        times["ours"][1:],  # the first round warms up
        times["peer"][1:],
        "ms",
        1.0,
        ("transformers",),
        f"BERT 6×384 with the same weights, tokenised beforehand, {len(given)} texts a round, {torch.get_num_threads()} threads",
        less_is_better=True,
    )
