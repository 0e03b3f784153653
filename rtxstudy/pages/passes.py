"""What the small classifier of the transformer page answers after each pass, and what it looks at, as a table."""

from __future__ import annotations

import pandas as pd
import torch

from rtxlib.errors import InputError
from rtxstudy.pages import train_weights


def answers(sentence: str) -> pd.DataFrame:
    """One row for each pass and word of ``sentence``, computed from the trained weights in the page.

    Columns: ``pass`` (1, 2, …); ``positive``, the probability of the label "positive" after this pass; ``place`` and
    ``word``, a word of the sentence; ``attention``, the share of its attention that [CLS] gives to this word in this pass,
    as the mean of the heads. The shares of [CLS] and [SEP] themselves have no row, so those of the words add up to less
    than one. Raises ``InputError`` for a sentence without words or with a word that the model does not know.
    """
    model, record = train_weights.shipped("sentiment")
    words = train_weights.words(sentence)
    if not words:
        raise InputError("The sentence has no words; give one about a film, such as “the film was not dull”.")
    if unknown := [word for word in words if word not in record["words"]]:
        raise InputError(f"The page's model does not know “{unknown[0]}”; write a sentence with words that it knows.")
    ids = train_weights.numbered([" ".join(words)], record["words"])
    positive = record["labels"].index("positive")
    with torch.no_grad():
        logits = train_weights.after_each_pass(model, ids)
        attentions = model.encoder(ids, output_attentions=True).attentions  # one for each pass: (1, heads, tokens, tokens)
    return pd.DataFrame(
        [
            (number, after[0].softmax(-1)[positive].item(), place, word, share)
            for number, (after, attention) in enumerate(zip(logits, attentions, strict=True), 1)
            for place, (word, share) in enumerate(zip(words, attention[0, :, 0, 1:-1].mean(0).tolist(), strict=True), 1)
        ],
        columns=["pass", "positive", "place", "word", "attention"],
    )
