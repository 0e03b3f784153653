"""Tasks composed of real phrases: the words and their sentiment are people's, but the answer has to be computed.

- *same*: do two phrases of different sentences share their sentiment? It is an exclusive or: each phrase occurs as often with
  either answer, so counting words stays at chance.
- *pointer*: numbered phrases, half of them positive, each pointing to the next in one cycle; one of them is the start. What is
  the sentiment of the phrase that is k steps from the start? The second text says "next" k times. At k = 0 a phrase has to be
  found and judged; each step is one more look-up.

The phrases are short ones of SST-2's training set. Its sentences are split first, and a phrase that occurs in sentences of two
splits is left out, so no phrase is on both sides.

Full rows give small encoders little to begin with, so a part of the training rows is easier. A training row of *pointer* has
only one phrase, which points to itself and has only to be judged, or any number from two on, as even as it can be between the
sentiments. A part of the training rows of *same* compares a phrase with the word "positive" or "negative". Validation and test
rows are all of full size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from rtxlib.data.containment import occurrences, words_key
from rtxlib.data.rows import PAIR, SPLITS
from rtxlib.errors import InputError

VERSION = "2"  # of the composition; part of the name of prepared data
LABELS = {"same": ["different", "same"], "pointer": ["negative", "positive"]}
SHARES = (0.8, 0.1, 0.1)  # of the sentences, and of the rows, in each of SPLITS
SHORT = (2, 5)  # words of a phrase
ITEMS = 10  # phrases of a pointer text, unless a spec says how many
MOST_STEPS = 8
EASED = 0.5  # share of the training rows of "same" with one phrase, and of those of "pointer"


def phrase_pool(texts: Sequence[str], labels: Sequence[str], seed: int) -> pd.DataFrame:
    """Short phrases by split: columns text, label, split, and sentence, the number of a sentence that holds the phrase.

    texts, labels: (n,) phrases of sentences and their sentiments. A phrase that lies in no other counts as a sentence. Phrases
    with conflicting labels, and phrases in sentences of two splits, are left out. Case and punctuation do not count.
    """
    table = pd.DataFrame({"text": [" ".join(text.split()) for text in texts], "label": list(labels)})
    table["key"] = [words_key(text) for text in table["text"]]
    one_label = table.groupby("key")["label"].transform("nunique") == 1
    table = table[one_label].drop_duplicates("key").reset_index(drop=True)
    pairs = occurrences(table["key"].to_numpy(), table["key"].to_numpy())
    inner, outer = (np.concatenate(side) for side in zip(*pairs, strict=True))
    inside = np.zeros(len(table), bool)
    inside[inner[inner != outer]] = True
    sentences = np.flatnonzero(~inside)
    drawn = np.random.default_rng(seed).choice(len(SPLITS), len(sentences), p=SHARES)
    split = np.full(len(table), -1)
    split[sentences] = drawn
    whole = ~inside[outer]  # of each pair: the text that holds the other is a sentence
    held = pd.DataFrame({"phrase": inner[whole], "sentence": outer[whole], "split": split[outer[whole]]})
    of_phrase = held.groupby("phrase").agg(splits=("split", "nunique"), split=("split", "first"), sentence=("sentence", "first"))
    words = table["text"].str.split().str.len()
    table = table.join(of_phrase)
    table = table[words.between(*SHORT) & (table["splits"] == 1)].drop(columns=["splits", "key"])
    return table.assign(split=[SPLITS[int(number)] for number in table["split"]]).reset_index(drop=True)


def compose(task: str, pool: pd.DataFrame, rows: int, steps: int, seed: int, items: int = ITEMS) -> pd.DataFrame:
    """Composed rows: columns text, text_pair, label, split, domain, depth (the steps k; 0 for "same"), and sentence.

    Args:
        task: "same" or "pointer"
        pool: of :func:`phrase_pool`
        rows: of all splits together
        steps: the largest k of "pointer"; each from 0 on is equally frequent
        seed: of the draws
        items: phrases of a pointer text, an even number; a way of more steps goes round the cycle again

    ``sentence`` is the number of the sentence that the deciding phrase comes from ("same": the first phrase).

    Raises InputError when a split has too few phrases, for more than ``MOST_STEPS`` steps, or for an odd number of items.
    """
    if not 0 <= steps <= MOST_STEPS:
        raise InputError(f"A pointer text asks for 0 to {MOST_STEPS} steps, not {steps}.")
    if items % 2:
        raise InputError(f"Half of the phrases of a pointer text are positive, so their number is even, not {items}.")
    rng, parts = np.random.default_rng((seed, rows)), []
    for split, share in zip(SPLITS, SHARES, strict=True):
        groups = pool[pool["split"] == split].groupby("label")
        by_label = {label: (part["text"].to_numpy(), part["sentence"].to_numpy()) for label, part in groups}
        if len(by_label) < 2 or min(len(set(sentences)) for _, sentences in by_label.values()) < items:
            raise InputError(f"The {split} sentences hold too few short phrases to compose texts of.")
        eased, count = split == "train", round(rows * share)
        if task == "same":
            made = [_same(by_label, rng, eased and rng.random() < EASED) for number in range(count)]
        else:
            made = [_pointer(by_label, rng, number % (steps + 1), items, eased) for number in range(count)]
        parts.append(pd.DataFrame(made, columns=["text", PAIR, "label", "depth", "sentence"]).assign(split=split, domain=""))
    return pd.concat(parts, ignore_index=True)


Phrases = dict[str, tuple[np.ndarray, np.ndarray]]  # label -> texts and sentences of its phrases, each (phrases,)


def _pick(phrases: tuple[np.ndarray, np.ndarray], rng: np.random.Generator, count: int) -> list[tuple[str, int]]:
    """Phrases of different sentences: (text, sentence)."""
    picked: dict[int, str] = {}
    while len(picked) < count:
        row = rng.integers(len(phrases[0]))
        picked.setdefault(int(phrases[1][row]), phrases[0][row])
    return [(text, sentence) for sentence, text in picked.items()]


Row = tuple[str, str, str, int, int]  # text, text_pair, label, depth, sentence


def _same(by_label: Phrases, rng: np.random.Generator, eased: bool) -> Row:
    names = list(by_label)
    first, second = (names[int(rng.integers(2))] for _ in range(2))
    label = LABELS["same"][first == second]
    while True:
        (a, of_a), (b, of_b) = _pick(by_label[first], rng, 1)[0], _pick(by_label[second], rng, 1)[0]
        if of_a != of_b:
            return a, second if eased else b, label, 0, of_a


def _pointer(by_label: Phrases, rng: np.random.Generator, k: int, items: int, eased: bool) -> Row:
    names, numbers = list(by_label), np.arange(items) + 1
    if eased:
        items = 1 if rng.random() < EASED else int(rng.integers(2, items + 1))
        numbers = np.sort(rng.choice(numbers, items, replace=False))
    more = int(rng.integers(2))  # of an odd number of phrases, one sentiment has one more
    labels = [names[(place + more) % 2] for place in rng.permutation(items)]
    drawn = {label: _pick(by_label[label], rng, labels.count(label)) for label in names}
    phrases = [(label, *drawn[label].pop()) for label in labels]  # sentiment, text, sentence
    cycle = rng.permutation(items)  # the order in which the pointers visit the phrases
    follows = {int(item): int(cycle[(place + 1) % items]) for place, item in enumerate(cycle)}
    start = item = int(rng.integers(items))
    for _ in range(k):
        item = follows[item]
    label, _, sentence = phrases[item]
    parts = [f"{numbers[n]} : {phrase} → {numbers[follows[n]]}" for n, (_, phrase, _) in enumerate(phrases)]
    parts[start] = f"start {parts[start]}"
    return " ".join(parts), " ".join(["start", *["next"] * k]), label, k, sentence
