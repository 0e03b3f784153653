"""Training: rows per second beside Hugging Face's Trainer, and the share of the machine's peak in matrix products."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import BertConfig, ModernBertConfig, PreTrainedConfig, PreTrainedModel

from benchmarks.measure import Row, Taken, apart, row, seconds, take_turns
from benchmarks.peers import Peer, save_rows
from benchmarks.texts import prepared
from rtx.process import cores
from rtxlib.data.batching import Tokens
from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import special_ids
from rtxlib.models import build
from rtxlib.training.device import DTYPES, pick_device, pick_precision
from rtxlib.training.recipe import recipe
from rtxlib.training.trainer import Trainer

BATCH = 128
# The Trainer sorts fifty batches at a time by length, longest first, so fewer steps would see longer texts than the data have.
# It warms up for fifty steps and is timed over the next fifty.
STEPS = 50
PUBLISHED_BATCH, PUBLISHED_LENGTH, PUBLISHED_STEPS = 16, 128, 6
_SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 6, "intermediate_size": 1536}
PEAK_SIZES = (1024, 2048, 4096)  # square matrices; the fastest counts as the peak


def subset(tokens: Tokens, rows: int) -> Tokens:
    """``rows`` rows drawn at random."""
    index = np.random.default_rng(0).permutation(len(tokens))[:rows]
    ids = [tokens.row(i) for i in index]
    return Tokens(np.concatenate(ids), np.cumsum([0, *map(len, ids)]), tokens.labels[index])


def ours(model: PreTrainedModel, tokens: Tokens, data: Prepared, precision: str) -> float:
    """Rows per second of our training loop over ``tokens`` once, in batches of similar length."""
    plan = dataclasses.replace(recipe("default"), precision=precision, evaluations_per_epoch=1)
    trained = Trainer(model, tokens, subset(tokens, 1), plan, 0, special_ids(data.tokenizer), pick_device()).run()
    return trained.rows_per_second


def peers(vocab: int) -> dict[str, tuple[PreTrainedConfig, Callable[[], PreTrainedModel]]]:
    """Name -> a configuration of transformers, and a function that builds our model with the same matrices."""
    return {
        "BERT": (BertConfig(vocab_size=vocab, **_SIZES), lambda: build("bert-tiny", vocab_size=vocab, **_SIZES)),
        "standard": (
            ModernBertConfig(
                vocab_size=vocab,
                pad_token_id=0,
                hidden_activation="silu",
                attention_dropout=0.1,  # the same rate as ours, after embedding, attention and feed-forward
                embedding_dropout=0.1,
                mlp_dropout=0.1,
                max_position_embeddings=512,
                global_attn_every_n_layers=1,
                classifier_pooling="cls",
                **_SIZES,
            ),
            lambda: build("standard-6x384", vocab_size=vocab),
        ),
    }


def peak(device: torch.device, dtype: torch.dtype) -> float:
    """GFLOP/s of matrix products on the device in this format: the fastest of a few sizes, each the median of five."""
    rates = []
    for n in PEAK_SIZES:
        a = torch.randn(n, n, device=device).to(dtype)
        a @ a
        rates.append(2 * n**3 / median(seconds(lambda a=a: a @ a) for _ in range(5)) / 1e9)
    return max(rates)


def counted_flops(model: PreTrainedModel, tokens: Tokens, data: Prepared, precision: str) -> float:
    """Floating-point operations per training row, which torch counts while they run."""
    with FlopCounterMode(display=False) as counter:
        ours(model, tokens, data, precision)
    return counter.get_total_flops() / len(tokens)


# The share of the peak has no aim, because it depends on the processor: a fifth with AMX, two thirds without (docs/speed.md).
AIM = 1.3
SOURCES = {"cpu": ("sst2",), "cuda": ("sst2", "yelp_polarity")}


def thread_counts() -> list[int]:
    """The numbers of threads to measure with: one and all. On a GPU they make no difference, so one."""
    return sorted({1, cores()} if pick_device().type == "cpu" else {1})


def rows(rounds: int, short: bool) -> Iterator[Row]:
    device, steps = pick_device(), 4 if short else STEPS
    for source in SOURCES[device.type]:
        for shape in ("BERT", "standard"):
            yield apart(_beside_trainer, source, shape, rounds, steps)
        for threads in thread_counts():
            yield apart(_beside_peak, source, threads, rounds, steps)
    if device.type == "cpu":
        yield apart(_beside_published, rounds, steps)


def _turns(source: str, shape: str, rounds: int, steps: int, *protocol: Any) -> tuple[str, PreTrainedConfig, dict[str, Taken]]:
    """Rows a second of our loop over ``steps`` batches, and of the Trainer by a protocol (:func:`benchmarks.peers.trainer`).

    Returns the name of the texts, the peer's configuration, and the rates.
    """
    precision = pick_precision("auto", pick_device())
    name, data = prepared(source)
    tokens = subset(data.splits["train"], BATCH * steps)
    config, make = peers(len(data.tokenizer))[shape]
    with Peer() as peer, tempfile.TemporaryDirectory() as folder:
        run = partial(peer, "trainer", config, save_rows(Path(folder), data.tokenizer, data.splits["train"]), *protocol)
        return name, config, take_turns({"ours": lambda: ours(make(), tokens, data, precision), "peer": run}, rounds, peer.pid)


def _beside_trainer(source: str, shape: str, rounds: int, steps: int) -> Row:
    """A shape beside the Trainer at its best settings."""
    device = pick_device()
    precision = pick_precision("auto", device)
    best = {
        "bf16": precision == "bf16",
        "fp16": precision == "fp16",
        "train_sampling_strategy": "group_by_length",
        "torch_compile": device.type == "cuda",  # on a CPU compiling makes a step slower (LOG.md)
    }
    name, config, rates = _turns(source, shape, rounds, steps, BATCH, steps, steps, None, best)
    return row(
        f"training, {name}, {shape} 6×384",
        rates["ours"],
        rates["peer"],
        "rows/s",
        AIM,
        ("transformers", "accelerate"),
        f"our loop and Trainer with {type(config).__name__} of the same sizes; {precision}, batches of {BATCH}, grouped "
        f"by length, dynamic padding, fused AdamW, {steps} steps a round (the Trainer's after as many untimed), "
        f"{torch.get_num_threads()} threads",
    )


def _beside_peak(source: str, threads: int, rounds: int, steps: int) -> Row:
    """The study's own shape beside the peak of the machine's matrix products."""
    torch.set_num_threads(threads)
    device = pick_device()
    precision = pick_precision("auto", device)
    name, data = prepared(source)
    tokens = subset(data.splits["train"], BATCH * steps)
    _, make = peers(len(data.tokenizer))["standard"]
    flops = counted_flops(make(), tokens, data, precision)
    rates = take_turns(
        {
            "ours": lambda: ours(make(), tokens, data, precision) * flops / 1e9,
            "peak": lambda: peak(device, DTYPES[precision]),
        },
        rounds,
    )
    return row(
        f"share of the {precision} peak that training reaches, {name}, {threads} thread{'s' * (threads > 1)}",
        rates["ours"],
        rates["peak"],
        "GFLOP/s",
        None,
        (),
        "standard-6x384, FLOPs counted by torch in a training on the same rows; peak: the fastest product of square "
        f"matrices of {', '.join(map(str, PEAK_SIZES))}",
    )


def _beside_published(rounds: int, steps: int) -> Row:
    """The study's own shape beside the training protocol of the published study that this one is to surpass."""
    protocol = PUBLISHED_BATCH, 2, PUBLISHED_STEPS, PUBLISHED_LENGTH, {}
    name, _, rates = _turns("sst2", "standard", rounds, steps, *protocol)
    return row(
        f"training, {name}, beside the published protocol",
        rates["ours"],
        rates["peer"],
        "rows/s",
        None,
        ("transformers", "accelerate"),
        f"our loop as above, and Trainer with ModernBertConfig of the same sizes in fp32, batches of {PUBLISHED_BATCH} padded "
        f"to {PUBLISHED_LENGTH} tokens, {torch.get_num_threads()} threads",
    )
