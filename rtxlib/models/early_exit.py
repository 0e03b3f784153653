"""Early exit: a text leaves the loop when its label is settled, and the batch goes on without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from rtxlib.errors import InputError, nearest
from rtxlib.models.encoder import Encoder
from rtxlib.models.layers import Context

CRITERIA = {
    "confidence": "the largest probability",  # Schwartz et al. 2020
    "agreement": "passes in a row with the same label, over the most passes",  # patience, Zhou et al. 2020
    "change": "1 − ‖h_t − h_(t−1)‖ / (‖h_t‖ + ‖h_(t−1)‖) of the pooled state",  # how small the step was
}


@dataclass(frozen=True)
class EarlyExit:
    """Leave after the first pass whose score is above ``threshold``; scores lie between 0 and 1 (see :data:`CRITERIA`).

    With threshold 1 every text takes all passes. With threshold 0 every text leaves after one pass, except under "change" if its
    state became its exact opposite. Raises InputError for an unknown criterion, or a threshold outside 0 to 1.
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


class Settling:
    """The score of each text after each pass, as :data:`CRITERIA` defines it, from logits and pooled states."""

    def __init__(self, criterion: str, passes: int, entered: Tensor) -> None:
        """passes: the most that a text can take. entered: (batch, hidden), the pooled state that entered the loop."""
        self.criterion, self.passes, self.state = criterion, passes, entered
        self.label = entered.new_full((len(entered),), -1, dtype=torch.long)
        self.streak = torch.zeros_like(self.label)

    def score(self, logits: Tensor, state: Tensor) -> Tensor:
        """The scores (batch,) after a pass, from its logits (batch, labels) and pooled states (batch, hidden).

        To be called once per pass, in order.
        """
        label = logits.argmax(dim=-1)
        self.streak = torch.where(label == self.label, self.streak + 1, 1)
        before, self.label, self.state = self.state, label, state
        if self.criterion == "agreement":
            return self.streak / self.passes
        if self.criterion == "confidence":
            return logits.float().softmax(dim=-1).amax(dim=-1)
        step, sizes = (state - before).float().norm(dim=-1), state.float().norm(dim=-1) + before.float().norm(dim=-1)
        return 1 - step / sizes

    def keep(self, rows: Tensor) -> None:
        """Forget all texts but these; rows: int64 (texts that stay,)."""
        self.state, self.label, self.streak = self.state[rows], self.label[rows], self.streak[rows]


@torch.no_grad()
def classify_with_exits(
    encoder: Encoder,
    decode: Callable[[Tensor, Tensor | None, Context], Tensor],
    input_ids: Tensor,
    attention_mask: Tensor | None,
    rule: EarlyExit,
    passes: int | None = None,
    token_type_ids: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Classify a batch (batch, length), each text with as many passes as ``rule`` lets it take, at most ``passes`` (R).

    decode: the logits of a state, :meth:`EncoderForSequenceClassification.decode`. Returns logits (batch, labels), and
    after how many passes each text left (batch,). The logits of a text equal those of the same model with
    ``recurrent_depth`` set to its passes. Raises InputError as :meth:`RecurrentStack.check_passes` does.

    A text that leaves is removed, and the batch is cut to the longest text that stays, which is what saves time. If the
    model reads [CLS] alone, the block's last layer runs for [CLS] first, and for the other positions only of texts that
    stay. So a text that leaves after pass t computes that layer twice for [CLS] in the t − 1 earlier passes.
    """
    stack = encoder.stack
    passes = stack.check_passes(passes)
    cls_first = encoder.config.reads_cls and not stack.coda
    context = encoder.context(input_ids.shape[1], attention_mask, input_ids.device)
    h = entered = stack.through(stack.prelude, encoder.embeddings(input_ids, token_type_ids), context)
    place = torch.arange(len(h), device=h.device)  # in the batch, of each text that is still in the loop
    logits, taken = None, torch.full_like(place, passes)
    settling = Settling(rule.criterion, passes, encoder.summary(h, attention_mask))
    for pass_index in range(passes):
        before, x = h, stack.begin(h, entered, pass_index, context)
        h = stack.finish(before, x, pass_index, context._replace(queries=1 if cls_first else None))
        scores = decode(h, attention_mask, context)
        if logits is None:
            logits = scores.new_empty(len(place), scores.shape[1])
        logits[place] = scores
        if pass_index == passes - 1:
            break
        stay = settling.score(scores, encoder.summary(h, attention_mask)) <= rule.threshold
        taken[place] = taken[place].where(stay, pass_index + 1)
        rows = stay.nonzero().squeeze(1)  # the one point of a pass at which the host waits for a GPU
        if not len(rows):
            break
        if len(rows) < len(stay):
            length = x.shape[1]
            if attention_mask is not None:
                attention_mask = attention_mask[rows]
                length = int(attention_mask.any(dim=0).nonzero()[-1]) + 1  # beyond it, every row that stays is padding
                attention_mask = None if attention_mask[:, :length].all() else attention_mask[:, :length]
            place, entered, before, x, h = place[rows], *(state[rows, :length] for state in (entered, before, x, h))
            settling.keep(rows)
            context = encoder.context(length, attention_mask, h.device)
        if cls_first:
            h = stack.finish(before, x, pass_index, context)
    return logits, taken
