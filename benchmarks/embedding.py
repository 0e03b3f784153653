"""Sentence embeddings: texts a second of ``rtxlib.training.embed`` and of sentence-transformers, side by side.

    python benchmarks/embedding.py [--texts 1000] [--rounds 5] [--threads 2]

Both read the same files of all-MiniLM-L6-v2 and the same texts, tokenise them, work in float32 on the same device with
the same number of threads, and must agree within 1e-5. They take turns in one process; times are medians of the rounds,
and the ratio is the median of each round's own ratio, so that a machine that slows down for a while slows both. The peer
runs as it comes (batches of 32) and with the batch size that is fastest for it here; it sorts texts by length itself.
About two minutes on two free cores.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

MODEL = "sentence-transformers/all-MiniLM-L6-v2"
SIZES = (32, 8, 16, 64, 128)  # batch sizes of the peer; the first is its default
FILES = {  # name -> data set, file, column, share of the texts
    "SST-2 phrases": ("stanfordnlp/sst2", "data/train-00000-of-00001.parquet", "sentence", 0.9),
    "Yelp reviews": ("fancyzhx/yelp_polarity", "plain_text/test-00000-of-00001.parquet", "text", 0.1),
}


def workloads(count: int) -> dict[str, list[str]]:
    """Real texts of the Hub where it answers, ours of the embedded generator otherwise."""
    import pandas as pd
    from huggingface_hub import hf_hub_download

    from rtxlib.data.synthetic import generate

    try:
        found = {}
        for name, (repo, file, column, share) in FILES.items():
            texts = pd.read_parquet(hf_hub_download(repo, file, repo_type="dataset"), columns=[column])[column]
            found[name] = texts.sample(min(len(texts), round(count * share)), random_state=0).tolist()
        return found
    except Exception as error:  # each way of not answering has an exception of its own
        print(f"The Hub's texts could not be had ({type(error).__name__}); the embedded generator's are used.")
        return {"generated reviews": generate(count, 0)["text"].tolist()}


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that a call took, and what it gave."""
    started = time.perf_counter()
    result = run()
    return time.perf_counter() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["RAYON_NUM_THREADS"] = str(given.threads)  # those of the tokenizers, read when they are loaded

    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer

    from rtxlib.data.tokenization import pretrained_tokenizer
    from rtxlib.models.pretrained import find, load
    from rtxlib.training.device import device_name, pick_device
    from rtxlib.training.embed import embed

    torch.set_num_threads(given.threads)
    device = pick_device()
    encoder, tokenizer = load(MODEL), pretrained_tokenizer(find(MODEL))
    peer = SentenceTransformer(str(find(MODEL)), device=device.type)

    rows = []
    for name, texts in workloads(given.texts).items():
        runs: dict[object, Callable[[], np.ndarray]] = {"ours": lambda texts=texts: embed(texts, encoder, tokenizer)}
        runs |= {size: lambda texts=texts, size=size: peer.encode(texts, batch_size=size) for size in SIZES}
        ours, first = runs["ours"](), {}
        for size in SIZES:  # warms up, checks, and finds the peer's best
            first[size], theirs = timed(runs[size])
            difference = np.abs(theirs - ours).max()
            assert difference <= 1e-5, f"the embeddings differ by {difference:.1e}"
        best = min(first, key=first.get)
        turns = ["ours", *dict.fromkeys((SIZES[0], best))]
        times: dict[object, list[float]] = {turn: [] for turn in turns}
        for number in range(given.rounds):
            for turn in turns if number % 2 else reversed(turns):
                times[turn].append(timed(runs[turn])[0])
        for size in turns[1:]:
            label = " and ".join(
                word for word, holds in (("default", size == SIZES[0]), ("best", size == best)) if holds
            )
            speeds = [len(texts) / np.median(times[turn]) for turn in ("ours", size)]
            ratio = np.median(np.divide(times[size], times["ours"]))
            rows.append((f"{len(texts):,} {name}; peer's {label}, batches of {size}", *speeds, ratio))

    print(f"{'name':58} {'ours':>8} {'peer':>8}  {'unit':8} {'ratio':>6} {'n':>3}")
    for name, ours, theirs, ratio in rows:
        print(f"{name:58} {ours:8.1f} {theirs:8.1f}  {'texts/s':8} {ratio:6.2f} {given.rounds:3}")
    packages = ("torch", "transformers", "tokenizers", "sentence-transformers")
    print(
        f"device: {device_name(device)} · threads: {given.threads} · float32 · "
        + " · ".join(f"{p} {version(p)}" for p in packages)
    )


if __name__ == "__main__":
    from rtxlib.errors import InputError

    try:
        main()
    except InputError as error:  # the model could not be had
        sys.exit(str(error))
