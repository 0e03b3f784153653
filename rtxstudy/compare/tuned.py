"""The candidate for few labels: MiniLM tuned by pairs of labelled texts, under a logistic regression."""

from __future__ import annotations

import copy

import numpy as np

from rtxlib.classifiers import linear
from rtxlib.classifiers.encoders import Frozen
from rtxlib.data.batching import Tokens
from rtxlib.data.tokenization import encode
from rtxlib.runs import cost
from rtxlib.training.contrastive import TUNING, tune
from rtxlib.training.device import pick_device
from rtxstudy.compare.candidates import MAX_LENGTH, NAMED, TUNED
from rtxstudy.compare.estimate import Estimate, minutes_needed
from rtxstudy.compare.fitted import fitted
from rtxstudy.compare.state import Race

MOST_EACH = 64  # training texts of a label, on average; with more, fine-tuning has enough
STRENGTHS = (1.0,)  # C of the logistic regression; held-out rows cannot choose it, because the tuning has seen them


def with_pairs(race: Race, estimate: Estimate, frozen: Frozen) -> None:
    """Tune MiniLM where the labelled texts are few, in cross-validation once for each fold and once on all."""
    texts, candidate, labels = race.texts, NAMED[TUNED], len(race.texts.label_names)
    if texts.pairs or len(race.train) > MOST_EACH * labels:
        why = "these are pairs" if texts.pairs else f"there are more than {MOST_EACH} training texts a label"
        race.left_out[TUNED] = f"It is for few single texts, and {why}."
        return
    many = 1 + (len(np.unique(race.fold[race.train])) if texts.cross_validated else 0)
    if race.find(candidate, len(race.train)) is None and not _fits(race, estimate, frozen, many):
        return

    def fit(rows: np.ndarray) -> Frozen:
        ids, offsets = encode(texts.texts(rows), frozen.tokenizer, MAX_LENGTH)
        tokens = Tokens(ids, offsets, texts.numbers(rows))
        encoder = copy.deepcopy(frozen.encoder)

        def report(step: int, steps: int) -> None:
            race.clock.progress(TUNED, f"step {step} of {steps}")
            race.clock.check()

        tune(encoder, tokens, frozen.tokenizer.pad_token_id, TUNING, pick_device(), report=report)
        tuned = Frozen(encoder, frozen.tokenizer, frozen.linear, MAX_LENGTH)
        vectors = tuned.vectors(texts.texts(rows))
        return tuned.with_linear(linear.fit(vectors, tokens.labels, labels, texts.unbalanced, STRENGTHS))

    fitted(race, candidate, fit)


def _fits(race: Race, estimate: Estimate, frozen: Frozen, many: int) -> bool:
    """Whether so many tunings fit into the time that is left. If not, the reason is noted."""
    flops = 3 * cost.forward_flops(frozen.encoder.config, max(1, round(estimate.tokens)))
    seconds = many * TUNING.steps * TUNING.recipe.batch_rows * flops / estimate.speed
    if seconds > race.clock.left:
        race.left_out[TUNED] = minutes_needed(seconds)
        race.late.add(TUNED)
    return seconds <= race.clock.left
