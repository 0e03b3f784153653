"""Fine-tuning a small encoder: rows per second beside the Trainer as it comes, and a mixed step beside an unmixed one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch

import torch
from transformers import BertConfig

from benchmarks.measure import Row, apart, row, seconds, take_turns
from benchmarks.peers import Peer, save_rows
from benchmarks.texts import prepared
from benchmarks.training import subset, thread_counts
from rtxlib.data.batching import Tokens
from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import special_ids
from rtxlib.models import build
from rtxlib.training import step_rows
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.recipe import recipe
from rtxlib.training.trainer import Trainer

STEPS = 30  # that are timed, after as many that warm up the Trainer
LENGTH = 128  # tokens at which longer texts are cut
SOURCES = ("sms_spam", "domains", "sst2", "yelp_polarity")  # in the first two, length tells the label
MIXED = "sms_spam"  # on which a step that mixes lengths stands beside one that does not
AIM, MIXED_AIM = 1.3, 1 / 1.15
_MINILM = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}


def _trainer(data: Prepared, rows: Tokens, precision: str) -> Trainer:
    """Our training of a MiniLM with random weights, which take as long as trained ones."""
    plan = recipe("finetune", epochs=1, evaluations_per_epoch=1, precision=precision)
    model = build("minilm-l6", vocab_size=len(data.tokenizer), num_labels=len(data.label_names))
    return Trainer(model, rows, subset(rows, 1), plan, 0, special_ids(data.tokenizer), pick_device())


def _rate(data: Prepared, rows: Tokens, precision: str, mixed: bool | None = None) -> float:
    """Rows per second of our training. mixed: whether its steps mix lengths; None: as the data ask for."""
    limit = {None: step_rows.MIXING_LIMIT, True: -1.0, False: 2.0}[mixed]
    with patch.object(step_rows, "MIXING_LIMIT", limit):
        return _trainer(data, rows, precision).run().rows_per_second


def _optimiser_share(data: Prepared, rows: Tokens, precision: str) -> float:
    """The share of a training's steps that AdamW's update takes: the median of the steps after the first."""
    trainer, shares = _trainer(data, rows, precision), []
    step, update = trainer.step, trainer.optimizer.step
    taken: list[float] = []
    trainer.optimizer.step = lambda *given: taken.append(seconds(lambda: update(*given)))

    def timed(pieces: list) -> None:
        whole = seconds(lambda: step(pieces))
        shares.append(taken[-1] / whole)

    trainer.step = timed
    trainer.run()
    return median(shares[1:])


def rows(rounds: int, short: bool) -> Iterator[Row]:
    for threads in thread_counts():
        for source in SOURCES:
            yield apart(_beside_trainer, source, threads, rounds, short)
            yield apart(_beside_trainer, source, threads, rounds, short, True)
            if source == MIXED:
                yield apart(_mixed, threads, rounds, short)


def _some(source: str, threads: int, short: bool) -> tuple[str, Prepared, Tokens, int]:
    """The name of the texts, their data, the rows of a round and its steps; from here on torch has ``threads`` threads."""
    torch.set_num_threads(threads)
    steps = 4 if short else STEPS
    name, data = prepared(source, LENGTH)
    where = f"{name}, {threads} thread{'s' * (threads > 1)}"
    return where, data, subset(data.splits["train"], recipe("finetune").batch_rows * steps), steps


def _beside_trainer(source: str, threads: int, rounds: int, short: bool, grouped: bool = False) -> Row:
    """grouped: the Trainer takes rows of like length together, as ours does where length does not tell the label."""
    precision, batch = pick_precision("auto", pick_device()), recipe("finetune").batch_rows
    where, data, some, steps = _some(source, threads, short)
    config = BertConfig(vocab_size=len(data.tokenizer), num_labels=len(data.label_names), **_MINILM)
    with Peer(threads) as peer, tempfile.TemporaryDirectory() as folder:
        saved = save_rows(Path(folder), data.tokenizer, data.splits["train"])
        settings: dict[str, object] = {"bf16": precision == "bf16", "fp16": precision == "fp16"}
        settings |= {"train_sampling_strategy": "group_by_length"} if grouped else {}
        theirs = partial(peer, "trainer", config, saved, batch, steps, steps, None, settings)
        rates = take_turns({"ours": partial(_rate, data, some, precision), "peer": theirs}, rounds, peer.pid)
    return row(
        f"fine-tuning MiniLM, {where}{', beside grouped lengths' * grouped}",
        rates["ours"],
        rates["peer"],
        "rows/s",
        None if grouped else AIM,
        ("transformers", "accelerate"),
        f"our loop and Trainer {'with rows of like length together' if grouped else 'as it comes (random order)'}, dynamic "
        f"padding, fused AdamW, {precision}, {batch} rows a "
        f"step, at most {LENGTH} tokens, {steps} steps a round (the Trainer's after as many untimed); AdamW's update is "
        f"{_optimiser_share(data, some, precision):.0%} of our step",
    )


def _mixed(threads: int, rounds: int, short: bool) -> Row:
    precision = pick_precision("auto", pick_device())
    where, data, some, steps = _some(MIXED, threads, short)
    ways = {"ours": True, "peer": False}
    rates = take_turns({name: partial(_rate, data, some, precision, mixed) for name, mixed in ways.items()}, rounds)
    return row(
        f"a step that mixes lengths beside one that does not, {where}",
        rates["ours"],
        rates["peer"],
        "rows/s",
        MIXED_AIM,
        (),
        f"the same rows and tokens, MiniLM, {precision}, {recipe('finetune').batch_rows} rows a step, {steps} steps a round",
    )
