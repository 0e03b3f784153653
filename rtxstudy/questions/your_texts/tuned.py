"""The candidate for few labels: MiniLM tuned by pairs of labelled texts, under a logistic regression."""

from __future__ import annotations

import copy

import numpy as np

from rtx.classifiers import linear
from rtx.classifiers.encoders import Frozen
from rtxlib.data.batching import Tokens
from rtxlib.data.tokenization import encode, special_ids
from rtxlib.training.device import pick_device
from rtxstudy.questions.your_texts.candidates import NAMED, TUNED, Plan
from rtxstudy.questions.your_texts.contrastive import TUNING, tune
from rtxstudy.questions.your_texts.fitted import fitted, minilm
from rtxstudy.questions.your_texts.state import Race

MOST_EACH = 64  # training texts of a label, on average; with more, fine-tuning has enough
STRENGTHS = (1.0,)  # C of the logistic regression; held-out rows cannot choose it, because the tuning has seen them


def unfit(race: Race) -> str:
    """Why the texts are not for this candidate, in a sentence; "" where they are."""
    if race.texts.pairs:
        return "It is for few single texts, and these are pairs."
    if len(race.train) > MOST_EACH * len(race.texts.label_names):
        return f"It is for few single texts, and there are more than {MOST_EACH} training texts a label."
    return ""


def with_pairs(race: Race, plan: Plan) -> None:
    """Tune MiniLM where the labelled texts are few, in cross-validation once for each fold and once on all."""
    texts, labels = race.texts, len(race.texts.label_names)
    encoder, tokenizer, nothing = minilm()

    def report(step: int, steps: int) -> None:
        race.clock.progress(TUNED, f"step {step} of {steps}")
        race.clock.check()

    def fit(rows: np.ndarray) -> Frozen:
        ids, offsets = encode(texts.texts(rows), tokenizer, plan.max_length)
        tokens, own_encoder = Tokens(ids, offsets, texts.numbers(rows)), copy.deepcopy(encoder)
        tune(own_encoder, tokens, special_ids(tokenizer), TUNING, pick_device(), report=report)
        tuned = Frozen(own_encoder, tokenizer, nothing, plan.max_length)
        vectors = tuned.vectors(texts.texts(rows))
        return tuned.with_linear(linear.fit(vectors, tokens.labels, labels, texts.unbalanced, STRENGTHS))

    fitted(race, NAMED[TUNED], fit, max_length=plan.max_length)
