"""Early exit: a text leaves the loop as soon as its label is settled, and the batch goes on without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from rtxlib.errors import InputError, nearest

if TYPE_CHECKING:
    from rtxlib.models.heads import EncoderForSequenceClassification

CRITERIA = {
    "confidence": "the largest probability",  # Graves 2016; Schwartz et al. 2020
    "agreement": "passes in a row with the same label, over R",  # patience, Zhou et al. 2020
    "change": "1 − ‖h_t − h_(t−1)‖ / (‖h_t‖ + ‖h_(t−1)‖) of the pooled state",  # a small step ends it, Geiping et al. 2025
}


@dataclass(frozen=True)
class EarlyExit:
    """Leave after the first pass whose score is above ``threshold``; scores lie between 0 and 1 (see :data:`CRITERIA`).

    Threshold 1 is never passed: every text takes all passes. Threshold 0 is always passed, after one pass (a state that
    turned into its exact opposite apart). Raises InputError for another criterion, or a threshold outside 0 to 1.
    """

    criterion: str
    threshold: float

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise InputError(
                f"A text can leave on {', '.join(CRITERIA)}, not on '{self.criterion}'."
                f"{nearest(str(self.criterion), CRITERIA)}"
            )
        if not 0 <= self.threshold <= 1:
            raise InputError(f"The threshold of an early exit lies between 0 and 1, not at {self.threshold!r}.")


class Left(NamedTuple):
    """What a batch with early exits gave: logits (batch, labels), and after how many passes each text left (batch,)."""

    logits: Tensor
    passes: Tensor


class Settling:
    """The score of each text after each pass, as :data:`CRITERIA` defines it, from logits and pooled states alone."""

    def __init__(self, criterion: str, depth: int, entered: Tensor) -> None:
        """depth: the passes a text takes at most; entered: (batch, hidden), the pooled state that entered the loop."""
        self.criterion, self.depth, self.state = criterion, depth, entered
        self.label = entered.new_full((len(entered),), -1, dtype=torch.long)
        self.streak = torch.zeros_like(self.label)

    def score(self, logits: Tensor, state: Tensor) -> Tensor:
        """(batch,) from this pass' logits (batch, labels) and pooled states (batch, hidden); called once a pass."""
        label = logits.argmax(dim=-1)
        self.streak = torch.where(label == self.label, self.streak + 1, 1)
        before, self.label, self.state = self.state, label, state
        if self.criterion == "agreement":
            return self.streak / self.depth
        if self.criterion == "confidence":
            return logits.float().softmax(dim=-1).amax(dim=-1)
        step, sizes = (state - before).float().norm(dim=-1), state.float().norm(dim=-1) + before.float().norm(dim=-1)
        return 1 - step / sizes

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows alone; rows: (texts that stay,) int64."""
        self.state, self.label, self.streak = self.state[rows], self.label[rows], self.streak[rows]


@torch.no_grad()
def classify(
    model: EncoderForSequenceClassification,
    input_ids: Tensor,
    attention_mask: Tensor | None,
    rule: EarlyExit,
    depth: int | None = None,
) -> Left:
    """Classify a batch (batch, length), each text with as many passes as ``rule`` lets it take, ``depth`` (R) at most.

    A text that leaves is removed from the batch, and the batch is cut to its longest text left, so what is saved is time.
    The logits are those of the same model run with ``recurrent_depth`` = the passes of that text. Where [CLS] alone is
    read, the block's last layer is computed for [CLS] first and for the rest only of texts that go on: leaving after pass
    t costs what a model of t passes costs.

    Raises InputError in training mode, which has no early exit.
    """
    if model.training:
        raise InputError("Early exit is for a trained model; call model.eval() first, or train with depth_sampling.")
    encoder, stack = model.encoder, model.encoder.stack
    depth = stack.check_depth(depth)
    only_cls = 1 if model.config.reads_cls and not stack.coda else None
    walk = encoder.views(input_ids.shape[1], attention_mask, input_ids.device)
    h = entered = walk.through(stack.prelude, encoder.embeddings(input_ids))
    place = torch.arange(len(h), device=h.device)  # in the batch, of each text still in the loop
    logits, passes = None, torch.full_like(place, depth)
    settling = Settling(rule.criterion, depth, encoder.summary(h, attention_mask))
    for iteration in range(depth):
        before, x = stack.begin(h, entered, iteration, walk)
        h = stack.finish(before, x, iteration, walk, only_cls)
        found = model.decode(h, attention_mask, walk)
        if logits is None:
            logits = found.new_empty(len(place), found.shape[1])
        logits[place] = found
        if iteration == depth - 1:
            break
        stay = settling.score(found, encoder.summary(h, attention_mask)) <= rule.threshold
        passes[place] = passes[place].where(stay, iteration + 1)
        rows = stay.nonzero().squeeze(1)  # for this a GPU has to be waited for, once a pass
        if not len(rows):
            break
        walk.layers.clear()  # states that nobody will ask for
        if len(rows) < len(stay):
            length = x.shape[1]
            if attention_mask is not None:
                attention_mask = attention_mask[rows]
                length = int(attention_mask.any(dim=0).nonzero()[-1]) + 1  # behind it every row left is padding
                attention_mask = None if attention_mask[:, :length].all() else attention_mask[:, :length]
            place, entered, before, x, h = place[rows], *(state[rows, :length] for state in (entered, before, x, h))
            settling.keep(rows)
            walk = encoder.views(length, attention_mask, h.device)
        if only_cls is not None:
            h = stack.finish(before, x, iteration, walk)
    return Left(logits, passes)
