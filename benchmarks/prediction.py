"""Prediction: texts per second beside ``pipeline`` and a plain loop over transformers, and the latency of one text."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerBase

from benchmarks.measure import Row, fastest, row, seconds, take_turns
from benchmarks.peers import Peer
from benchmarks.texts import prepared, texts
from rtxlib.data.batching import Tokens
from rtxlib.data.tokenization import encode
from rtxlib.models import EncoderForSequenceClassification, pretrained
from rtxlib.models.kernels import prepacked
from rtxlib.training.device import DTYPES, autocast, pick_device, pick_precision
from rtxlib.training.predict import predict_logits

AIM = 2.0  # but none for long texts in fp32 on a CPU, where the products alone take too long for it (docs/speed.md)
SIZES = (1, 8, 32, 128)  # batch sizes of the peers; the fastest is taken
SINGLE = 40  # texts timed alone
LENGTH = 256


class Same(NamedTuple):
    """One BERT of 6 layers × 384 with random weights: ours, and the folder from which the peer reads the same weights."""

    model: EncoderForSequenceClassification
    tokenizer: PreTrainedTokenizerBase
    folder: Path
    peer: Peer


def same_models(tokenizer: PreTrainedTokenizerBase, folder: Path, peer: Peer) -> Same:
    """Our model is on the device that this machine has, in evaluation mode."""
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=384,
        num_hidden_layers=6,
        num_attention_heads=6,
        intermediate_size=1536,
        pad_token_id=tokenizer.pad_token_id,
    )
    theirs = BertForSequenceClassification(config)
    theirs.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    ours = pretrained.with_head(pretrained.load(folder, config=pretrained.read_config(folder, pooling="pooler")))
    ours.classifier.load_state_dict(theirs.classifier.state_dict())
    return Same(ours.eval().to(pick_device()), tokenizer, folder, peer)


def rows(rounds: int, short: bool) -> Iterator[Row]:
    device = pick_device()
    with tempfile.TemporaryDirectory() as folder, Peer() as peer:
        same = same_models(prepared("sst2")[1].tokenizer, Path(folder), peer)
        precisions = dict.fromkeys(("fp32", pick_precision("auto", device)))
        for source, count in (("sst2", 400), ("yelp_polarity", 60)):
            name, some = texts(source, count // 8 if short else count)
            for precision in precisions:
                aim = None if (source, precision, device.type) == ("yelp_polarity", "fp32", "cpu") else AIM
                yield from _throughput(name, some, same, precision, rounds, aim)
        name, some = texts("sst2", SINGLE)
        for precision in precisions:
            theirs = partial(peer, "alone", same.folder, DTYPES[precision], some, LENGTH)
            yield alone(f"{name}, {precision}", some, same, precision, rounds, theirs, 1.0, "transformers")


def predicted(some: list[str], same: Same, precision: str) -> np.ndarray:
    """Our logits of the texts, tokenising included."""
    ids, offsets = encode(some, same.tokenizer, LENGTH)
    tokens = Tokens(ids, offsets, np.zeros(len(some), dtype=np.int64))
    return predict_logits(same.model, tokens, same.tokenizer.pad_token_id, pick_device(), precision)


def _throughput(
    name: str, some: list[str], same: Same, precision: str, rounds: int, aim: float | None
) -> Iterator[Row]:
    predict = partial(predicted, some, same, precision)
    logits = predict()
    loops = {
        "a plain loop over transformers": ("plain_loop", logits),
        "pipeline": ("text_pipeline", softmax(logits, axis=1)),
    }
    for what, (function, expected) in loops.items():

        def run(size: int, function: str = function) -> tuple[float, np.ndarray]:
            return same.peer(function, same.folder, DTYPES[precision], some, size, LENGTH)

        named = f"prediction, {len(some)} {name}, {precision}, beside {what}"
        yield in_batches(named, predict, run, expected, precision, rounds, same.peer, aim, ("transformers", "tokenizers"))


def in_batches(
    name: str,
    ours: Callable[[], np.ndarray],
    theirs: Callable[[int], tuple[float, np.ndarray]],
    expected: np.ndarray,
    precision: str,
    rounds: int,
    peer: Peer,
    aim: float | None,
    packages: tuple[str, ...],
    how: str = "",
) -> Row:
    """A row of texts a second. The peer reads in its fastest batches.

    theirs: batch size -> seconds and outputs. expected: what the peer's outputs must be, one row a text. how: more words on what
    is compared.
    """
    size = fastest(theirs, SIZES, expected, 1e-4 if precision == "fp32" else 0.2, name)
    ways = {"ours": lambda: len(expected) / seconds(ours), "peer": lambda: len(expected) / theirs(size)[0]}
    rates = take_turns(ways, rounds, peer.pid)
    settings = (
        f"BERT 6×384 with the same weights and outputs, tokenising included, {how}at most {LENGTH} tokens; the peer in its "
        f"fastest batches of {SIZES[0]} to {SIZES[-1]} ({size}); {torch.get_num_threads()} threads"
    )
    return row(name, rates["ours"], rates["peer"], "texts/s", aim, packages, settings)


def alone(
    name: str,
    some: list[str],
    same: Same,
    precision: str,
    rounds: int,
    theirs: Callable[[], list[float]],
    aim: float | None,
    package: str,
    how: str = "",
) -> Row:
    """Milliseconds of a forward pass over one text: the median over all texts in each round.

    theirs: the peer's milliseconds of each text. how: more words on what is compared.
    """
    device = pick_device()
    batches = [same.tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt").to(device) for text in some]

    def ours() -> float:
        with torch.inference_mode(), autocast(precision, device), prepacked(same.model):
            return 1000 * median(seconds(lambda batch=batch: same.model(batch["input_ids"])) for batch in batches)

    how = f"forward pass over {len(some)} texts one by one, the median of each round; BERT 6×384 with the same weights{how}"
    return one_by_one(f"latency of one text, {name}", ours, lambda: median(theirs()), rounds, same.peer.pid, aim, package, how)


def one_by_one(
    name: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    rounds: int,
    peer: int,
    aim: float | None,
    package: str,
    how: str,
) -> Row:
    """A row of milliseconds. ours, theirs: the median over some texts, computed one by one in a call. peer: its process."""
    ways = {"ours": ours, "peer": theirs}
    for way in ways.values():
        way()  # the first call compiles the shapes
    times = take_turns(ways, rounds, peer)
    settings = f"{how}; {torch.get_num_threads()} threads"
    return row(name, times["ours"], times["peer"], "ms", aim, (package,), settings, less_is_better=True)
