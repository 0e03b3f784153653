"""How long a network's training will take on this machine."""

from __future__ import annotations

import time
from functools import cached_property

import numpy as np
import torch

from rtxlib.classifiers.encoders import Frozen
from rtxlib.classifiers.words import UNSPACED
from rtxlib.data.tokenization import encode
from rtxlib.runs import cost
from rtxstudy.compare import networks
from rtxstudy.compare.candidates import MAX_LENGTH, Candidate
from rtxstudy.compare.texts import Texts

GUESSED_SPEED = 2e10  # floating-point operations a second and thread
START_SECONDS = 3  # of a training, whatever its size
TIMED = 32  # texts by which the speed of this machine is measured
SHORTEST = 5  # seconds of a training from which a speed is learnt; a shorter one was found, not trained


def minutes_needed(seconds: float) -> str:
    """Why a candidate of so many seconds is left out."""
    minutes = max(1, round(seconds / 60))
    return f"It needs about {minutes:,} minute{'s' * (minutes > 1)}, and less time was left; give more with --minutes."


class Estimate:
    """Floating-point operations a second: first a guess, then MiniLM's measured speed, then each network's own."""

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.speed = GUESSED_SPEED * torch.get_num_threads()
        self.speeds: dict[str, float] = {}  # of each network that was trained

    def measure(self, embedder: Frozen, rows: np.ndarray) -> None:
        """Measure MiniLM's speed on some of the rows."""
        sample = self.texts.texts(rows[:TIMED])
        tokens = np.diff(encode(sample, embedder.tokenizer, MAX_LENGTH)[1]).mean()
        begun = time.monotonic()
        embedder.vectors(sample)
        each = cost.forward_flops(embedder.encoder.config, max(1, round(tokens)))
        self.speed = each * len(sample) / max(1e-3, time.monotonic() - begun)

    @cached_property
    def tokens(self) -> float:
        """About how many tokens an encoder reads of a text, on average. A sign of a script without spaces is a token."""
        signs = sum(self.texts.table[column].str.count(f"[{UNSPACED}]") for column in self.texts.text_columns)
        return float(np.minimum(MAX_LENGTH, 1.3 * self.texts.words + signs + 3).mean())

    def seconds(self, candidate: Candidate, rows: int) -> float:
        """Estimated seconds of a training on so many rows."""
        return networks.flops(candidate, self.tokens, rows) / self.speeds.get(candidate.name, self.speed) + START_SECONDS

    def learn(self, candidate: Candidate, rows: int, spent: float) -> None:
        """Correct the speed of a network after a training of so many seconds."""
        if spent > SHORTEST:
            scale = self.speeds.get(candidate.name, self.speed)
            self.speeds[candidate.name] = scale * self.seconds(candidate, rows) / spent
