"""Pretraining: tokens per second beside Hugging Face's Trainer with BertForMaskedLM, on the same packed rows."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from transformers import BertConfig, PreTrainedTokenizerFast

from benchmarks.measure import Row, Taken, row, take_turns
from benchmarks.peers import Peer, save_rows
from benchmarks.texts import prepared
from benchmarks.training import subset
from rtxlib.data.batching import Tokens
from rtxlib.data.corpus import packed
from rtxlib.data.tokenization import special_ids
from rtxlib.models import preset
from rtxlib.models.heads import EncoderForMaskedLM
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.pretrainer import Pretrainer
from rtxlib.training.recipe import recipe

LENGTH, SHARE = 128, 0.15  # tokens of a row, and the share of them that is hidden
BATCH, STEPS = 32, 20
AIM = 1.5
_SIZES = {"hidden_size": 256, "num_hidden_layers": 6, "num_attention_heads": 4, "intermediate_size": 1024}


def ours(vocab: int, rows: Tokens, tokenizer: PreTrainedTokenizerFast, precision: str) -> float:
    """Tokens per second of our pretraining of a new model, over ``rows`` once."""
    plan = recipe("pretrain", epochs=1, batch_rows=BATCH, precision=precision)
    model = EncoderForMaskedLM(preset("bert-tiny", vocab_size=vocab, **_SIZES))
    arguments = (model, rows, subset(rows, 1), plan, 0, special_ids(tokenizer), pick_device())
    return LENGTH * Pretrainer(*arguments, share=SHARE).run().rows_per_second


def rows(rounds: int, short: bool) -> Iterator[Row]:
    device, steps = pick_device(), 2 if short else STEPS
    precision = pick_precision("auto", device)
    name, data = prepared("sst2")
    vocab = len(data.tokenizer)
    whole, _ = packed(data.texts("train"), data.tokenizer, LENGTH, seed=0)
    tokens = subset(whole, BATCH * steps)
    formats = {"bf16": precision == "bf16", "fp16": precision == "fp16", "torch_compile": device.type == "cuda"}
    with Peer() as peer, tempfile.TemporaryDirectory() as folder:
        settings = (save_rows(Path(folder), data.tokenizer, tokens), BATCH, steps, steps, SHARE, formats)
        run = partial(peer, "masked_trainer", BertConfig(vocab_size=vocab, **_SIZES), *settings)
        rates = take_turns({"ours": lambda: ours(vocab, tokens, data.tokenizer, precision), "peer": run}, rounds, peer.pid)
    yield row(
        f"pretraining, {name} in rows of {LENGTH} tokens, BERT 6×256",
        rates["ours"],
        Taken.of([LENGTH * rate for rate in rates["peer"]], rates["peer"].mb),
        "tokens/s",
        AIM,
        ("transformers", "accelerate"),
        f"our loop and Trainer with BertForMaskedLM of the same sizes and {vocab:,} tokens; {precision}, batches of {BATCH} rows "
        f"without padding, {SHARE:.0%} of the tokens hidden and predicted, by ours with products of the vocabulary at these "
        f"alone; fused AdamW, {steps} steps a round (the Trainer's after as many untimed), {torch.get_num_threads()} threads",
    )
