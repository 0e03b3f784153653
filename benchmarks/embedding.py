"""Sentence embeddings: texts per second of ``rtx.embedding`` and of sentence-transformers.

Both read the same files of all-MiniLM-L6-v2 and the same texts, tokenise them, compute in float32, and must agree within 1e-5.
The peer runs with its default batches of 32 and with the batch size that is fastest for it here. It sorts texts by length itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from benchmarks.measure import Row, fastest, not_measured, row, seconds, take_turns
from benchmarks.peers import Peer
from benchmarks.texts import texts
from rtx.embedding import embed
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.errors import InputError
from rtxlib.models import Encoder, pretrained

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SIZES = (32, 8, 16, 64, 128)  # batch sizes of the peer; the first is its default
AIM = 1.2  # but none for long texts beside the peer's best batches: nine tenths of the time are products (docs/speed.md)


def rows(rounds: int, short: bool) -> Iterator[Row]:
    try:
        folder = pretrained.find(MODEL)
    except InputError as error:
        yield not_measured("embedding, MiniLM-L6", "texts/s", AIM, str(error))
        return
    encoder, tokenizer = pretrained.load(MODEL), pretrained_tokenizer(folder)
    with Peer() as peer:
        yield from _beside(peer, folder, encoder, tokenizer, rounds, short)


def _beside(
    peer: Peer, folder: Path, encoder: Encoder, tokenizer: PreTrainedTokenizerBase, rounds: int, short: bool
) -> Iterator[Row]:
    for source, count in (("sst2", 450), ("yelp_polarity", 50)):
        name, some = texts(source, count // 8 if short else count)
        outputs = embed(some, encoder, tokenizer)
        best = fastest(lambda size, some=some: peer("sentences", folder, some, size), SIZES, outputs, 1e-5, name)
        words = {SIZES[0]: "default", best: "best"} if best != SIZES[0] else {best: "default and best"}
        for size, word in words.items():
            taken = take_turns(
                {
                    "ours": lambda some=some: len(some) / seconds(lambda: embed(some, encoder, tokenizer)),
                    "peer": lambda some=some, size=size: len(some) / peer("sentences", folder, some, size)[0],
                },
                rounds,
                peer.pid,
            )
            yield row(
                f"embedding, {len(some)} {name}, beside SentenceTransformer's {word} batches of {size}",
                taken["ours"],
                taken["peer"],
                "texts/s",
                None if word == "best" and source == "yelp_polarity" else AIM,
                ("sentence-transformers", "transformers", "tokenizers"),
                f"{MODEL}, float32, the same outputs within 1e-5, {torch.get_num_threads()} threads",
            )
