"""The models that are compared, as a table: what each is, in words, and how it is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rtx.training import fitting
from rtxlib.models.presets import CHECKPOINTS
from rtxlib.training.recipe import Recipe
from rtxlib.training.recipe import recipe as named_recipe

MINILM = CHECKPOINTS["minilm-l6"]
MAX_LENGTH = 256  # tokens of a text that an encoder reads, at most
BALANCE = 0.5  # Recipe.balance of networks on unbalanced labels: between the best accuracy (0) and the best mean recall (1)
LEAST_STEPS, BATCH_ROWS = 150, 32  # of a whole fine-tuning; few rows are read in more epochs
PATIENCE = 3  # evaluations without a lower validation loss after which a network from scratch stops

MAJORITY, WORDS, STATIC, FROZEN = "majority class", "counting words", "static word vectors", "MiniLM frozen"
TUNED, FINE_TUNED, LOOP, CASCADE = "MiniLM tuned by pairs", "MiniLM fine-tuned", "MiniLM as a loop", "cascade"


@dataclass(frozen=True)
class Plan:
    """What a candidate reads in its training.

    Attributes:
        rows: training rows, the first of :attr:`rtxstudy.questions.your_texts.state.Race.train`
        max_length: tokens of a text, at most
        epochs: of fine-tuning; a network from scratch takes those of its recipe
        threads: that the training of a network begins with; 0 where that is no part of it
    """

    rows: int
    max_length: int = MAX_LENGTH
    epochs: float = 1.0
    threads: int = 0


@dataclass(frozen=True)
class Candidate:
    """One way to a classifier.

    Attributes:
        name: in tables and sentences
        what: what it is, for a person who knows no transformers
        kind: "majority", "words", "vectors" (a linear model on vectors of texts), "tuned" (the same, after the encoder has
            learned from pairs of texts) or "network"
        pretrained: whether it needs MiniLM
        model: of a network: a preset or a pretrained model
        conversion: of a network: how MiniLM is made into a loop
    """

    name: str
    what: str
    kind: str
    pretrained: bool = False
    model: str = ""
    conversion: dict[str, Any] = field(default_factory=dict, hash=False)

    def recipe(self, plan: Plan, unbalanced: bool = False) -> Recipe:
        """How the network is trained. unbalanced: whether rare labels count more, see :data:`BALANCE`."""
        balance = BALANCE if unbalanced else 0.0
        if not self.pretrained:
            return named_recipe(fitting(plan.rows, pretrained=False), balance=balance, patience=PATIENCE)
        short = plan.rows * plan.epochs < LEAST_STEPS * BATCH_ROWS
        rows = BATCH_ROWS // 2 if short else BATCH_ROWS  # of a step; a short training gains more from more steps (LOG.md)
        return named_recipe("finetune", epochs=plan.epochs, batch_rows=rows, evaluations_per_epoch=1, balance=balance)


CANDIDATES = (  # the cheapest first
    Candidate(MAJORITY, "gives every text the most frequent label", "majority"),
    Candidate(WORDS, "counts words and word pairs (TF-IDF), and learns a weight for each (logistic regression)", "words"),
    Candidate(
        STATIC,
        "looks up a ready-made vector for each word piece (MiniLM's) and averages them, so the order of words is lost",
        "vectors",
        True,
    ),
    Candidate(
        FROZEN,
        "lets MiniLM, unchanged, turn each text into numbers, and learns only the last step from these labels",
        "vectors",
        True,
    ),
    Candidate(
        TUNED,
        "is MiniLM, taught which of these texts have the same label, with a last step learned from these labels",
        "tuned",
        True,
    ),
    Candidate(FINE_TUNED, "is MiniLM, all of its layers trained on these texts", "network", True, MINILM),
    Candidate(
        LOOP,
        "is the lower half of MiniLM, passed twice, and trained on these texts",
        "network",
        True,
        MINILM,
        {"layers": 3, "passes": 2},
    ),
    Candidate(
        "standard-2x128",
        "is a small transformer, trained from scratch on these texts",
        "network",
        model="standard-2x128",
    ),
    Candidate(
        "standard-3x256", "is a transformer of three layers, trained from scratch", "network", model="standard-3x256"
    ),
    Candidate(
        "recurrent-3x2x256",
        "is a transformer of three layers that are passed twice, trained from scratch",
        "network",
        model="recurrent-3x2x256",
    ),
)
NAMED = {candidate.name: candidate for candidate in CANDIDATES}
FROM_SCRATCH = tuple(candidate.name for candidate in CANDIDATES if candidate.kind == "network" and not candidate.pretrained)
WHAT = {candidate.name: candidate.what for candidate in CANDIDATES} | {
    CASCADE: "lets a cheap model answer where it is sure, and a better one elsewhere"
}
