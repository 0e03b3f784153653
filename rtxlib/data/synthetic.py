"""The embedded generator: reviews and messages whose label has to be read and cannot be counted.

Every text has one verdict: a small tree of operators over polar phrases ("dull", "won me over"). An operator is a
pattern with a sign. Its ``{main}`` part decides its polarity; its ``{side}`` part has no influence:

    polarity(phrase) = +1 or −1            polarity(operator) = sign · polarity(main)

So "the plot was dull" is −1, "nothing about the plot was dull" is −1 · −1 = +1, and "although the plot was dull, the
cast won me over" has the polarity of its second half. Neutral facts surround the verdict. Operators that turn a
polarity share their words with operators that keep it, and a contrast holds a phrase of either polarity. So the words
and word pairs of a deep tree say little about its label.

The vocabulary is in lexicon.json: slots with their fillers, the clauses of every domain, and the operators over clauses.

A slot ``{name}`` in a string is filled with an entry of the list of that name, which may hold slots in turn. A domain uses the
general lists and its own. Lists that end in ``+`` and ``-`` hold the polar phrases, the frequent ones first. All other lists are
neutral, so that only the polar phrases and the grammar around them decide a label. The generator uses every line that is added to
a list.

A clause is (sign, class of the polar phrase, pattern), the frequent ones first. A "plain" clause has the polarity of its
phrase. A "turned" clause is one level deep: it reverses the polarity (−1), or only sounds as if it did (+1).

An operator is (sign, polarity of the side relative to the whole or 0 without a side, pattern), the frequent ones first. The scope
of a "wrapped" operator ends with its clause, the scope of a "reported" one with its own closing words. So a reader can tell both
scopes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from rtxlib import memory
from rtxlib.errors import InputError, nearest

# The revision of the embedded data, in provenance and in committed tables. Change it when the generator writes other
# texts; a test notices that.
VERSION = "bf91f756cdfe123c"
LABELS = {  # task -> its classes; for sentiment and spam in the order −1, +1
    "sentiment": ("negative", "positive"),
    "domain": ("movies", "local business", "online shopping"),
    "spam": ("ham", "spam"),
}
DEEPEST = 6  # levels of composition
ROOM, ROOM_PER_LEVEL = 8, 8  # words that a plain clause needs, and each operator on top of it
TRIES = 2000  # draws of one text before the generator gives up


def _tuples(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _tuples(inside) for name, inside in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


_LISTS = _tuples(json.loads(Path(__file__).with_name("lexicon.json").read_text(encoding="utf-8")))
DOMAINS: dict[str, dict[str, tuple]] = _LISTS["domains"]
GENERAL: dict[str, tuple] = _LISTS["general"] | {
    "year": tuple(str(year) for year in range(1991, 2025)),
    "clock": tuple(f"{hour}:{minute}" for hour in range(1, 12) for minute in ("00", "15", "30", "45")),
    "number": tuple(str(number) for number in range(13, 240)),
    "digits": tuple(str(number) for number in range(10007, 99991, 137)),
    "money": tuple(f"{euros}.{cents} euros" for euros in range(2, 70, 3) for cents in ("49", "50", "95", "99")),
}
OPERATORS: dict[str, tuple] = _LISTS["operators"]


def table(domain: str) -> dict[str, tuple]:
    """Every list of a domain. The lists that all reviews share are interleaved with the domain's own."""
    words = DOMAINS[domain]
    if domain == "messages":
        return GENERAL | words | _LISTS["message_clauses"]
    woven = {
        slot: tuple(entry for pair in zip_longest(shared, words[slot]) for entry in pair if entry)
        for slot, shared in _LISTS["reviews"].items()
    }
    return GENERAL | words | _LISTS["review_clauses"] | woven


# Which kinds may stand inside a kind, and how many levels deep a kind may be. "It is not true that A, but B" has two
# readings, so neither a wrapped operator nor a side holds an operator of two parts: every verdict has one reading. The
# repeats are weights. Counting words does better with more joins, and worse with more turns; so does a small model.
ANY = (*["turned"] * 2, "wrapped", *["reported"] * 2, *["contrasted"] * 5, *["joined"] * 4)
INSIDE = {
    "verdict": ANY,
    "contrasted": ANY,
    "joined": ANY,
    "reported": tuple(kind for kind in ANY if kind != "reported"),
    "wrapped": ("turned", "turned", "turned", "wrapped"),
    "side": ("turned",),
}
TALLEST = {"turned": 1, "wrapped": 2}
WORDS = {domain: table(domain) for domain in DOMAINS}


class Node(NamedTuple):
    """An operator or a clause over its parts; without ``main``, a polar phrase, whose ``sign`` is its polarity."""

    pattern: str
    sign: int
    main: Node | None = None
    side: Node | None = None


def polarity(node: Node) -> int:
    """+1 or −1: the true label of a text, composed from the polar phrase upwards."""
    return node.sign * (polarity(node.main) if node.main else 1)


def often(items: Sequence, pick: Callable, times: int = 1):
    """One of ``items``. Earlier items are likelier, and more so with more ``times``: words of a language are uneven."""
    for _ in range(times):
        items = items[: 1 + pick(range(len(items)))]
    return pick(items)


def grow(wanted: int, depth: int, inside: str, words: dict, pick: Callable) -> Node:
    """A tree of ``depth`` operators over a plain clause, of polarity ``wanted``, for a place ``inside`` an operator.

    The tree is drawn from the top. The main part of an operator has the polarity ``sign · wanted`` and the rest of the
    depth.
    """
    kind = "plain" if depth == 0 else pick([kind for kind in INSIDE[inside] if depth <= TALLEST.get(kind, DEEPEST)])
    if kind in OPERATORS:
        sign, beside, pattern = often(OPERATORS[kind], pick, times=2)
        main = grow(sign * wanted, depth - 1, kind, words, pick)
        side = grow(beside * wanted, min(depth - 1, pick((0, 0, 1))), "side", words, pick) if beside else None
        return Node(pattern, sign, main, side)
    sign, phrases, pattern = often(words[kind], pick, times=2)
    phrase = often(words[phrases + ("+" if sign * wanted > 0 else "-")], pick)
    return Node(pattern, sign, Node(phrase, sign * wanted))


SLOT = re.compile(r"\{([^}]+)\}")
UNSPOKEN = re.compile(r"\W+")
PIECES: dict[str, list[str]] = {}  # pattern -> [text, slot, text, ...]: each pattern is split once


def fill(pattern: str, words: dict, pick: Callable, node: Node | None = None) -> str:
    """The pattern with every slot filled: ``{main}`` and ``{side}`` from ``node``, the others drawn from ``words``."""
    pieces = PIECES.get(pattern) or PIECES.setdefault(pattern, SLOT.split(pattern))
    if len(pieces) == 1:
        return pattern
    parts = pieces.copy()
    for i in range(1, len(parts), 2):
        inner = getattr(node, parts[i]) if parts[i] in ("main", "side") else None
        parts[i] = fill(inner.pattern if inner else pick(words[parts[i]]), words, pick, inner)
    return "".join(parts)


def sentence(pattern: str, words: dict, pick: Callable, node: Node | None = None) -> str:
    """The filled pattern with a capital letter and a final mark."""
    text = fill(pattern, words, pick, node)
    return text[0].upper() + text[1:] + pick((".", ".", ".", ".", "!", "..."))


def write(tree: Node, words: dict, pick: Callable, bounds: tuple[int, int] | None) -> str:
    """One text: the verdict among neutral facts, within ``bounds`` words, unless the verdict alone is longer."""
    verdict = sentence(pick(words["opening"]) + tree.pattern, words, pick, tree)
    low, high = bounds or (0, 0)
    facts = [] if bounds else [sentence(pick(words["fact"]), words, pick) for _ in range(pick((1, 1, 1, 2, 2)))]
    length, aim = len(verdict.split()), low + pick(range(high - low + 1))
    while length < aim:
        drawn = (sentence(pick(words["fact"]), words, pick) for _ in range(8))
        fact = next((fact for fact in drawn if length + len(fact.split()) <= aim), None)
        if fact is None:
            break
        facts.append(fact)
        length += len(fact.split())
    facts.insert(pick(range(len(facts) + 1)), verdict)
    while length < low:  # a fact would be too long
        tag = pick([tag for tag in words["tag"] if length + len(tag.split()) <= low])
        facts.append(fill(tag, words, pick))
        length += len(tag.split())
    return " ".join(facts)


SLIPS = (
    lambda word, i: word[:i] + word[i + 1] + word[i] + word[i + 2 :],  # two letters change places
    lambda word, i: word[:i] + word[i + 1 :],  # a letter is left out
    lambda word, i: word[:i] + word[i] + word[i:],  # a letter is struck twice
)


def slip(text: str, share: float, draw: Callable, pick: Callable) -> str:
    """The text with a typing slip inside this share of its words of four letters and more."""
    words = text.split(" ")
    for i, word in enumerate(words):
        if draw() < share and len(word) > 3 and word.isalpha():
            words[i] = pick(SLIPS)(word, pick(range(1, len(word) - 2)))
    return " ".join(words)


def stream(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """``draw()`` in [0, 1) and ``pick(sequence)``. Random numbers are drawn in bulk, because single draws are slow."""

    def numbers() -> Iterator[float]:
        while True:
            yield from rng.random(8192).tolist()

    draw = numbers().__next__
    return draw, lambda items: items[int(draw() * len(items))]


def mislabel(labels: np.ndarray, cells: np.ndarray, noise: float, classes: int, rng: np.random.Generator) -> np.ndarray:
    """Labels (rows,) with a share of wrong ones. In every cell equally many of each class become the next class, so the
    classes stay balanced.
    """
    noisy = labels.copy()
    for cell in np.unique(cells):
        members = [np.flatnonzero((cells == cell) & (labels == label)) for label in range(classes)]
        wrong = round(noise * min(len(rows) for rows in members))
        for label, rows in enumerate(members):
            noisy[rng.permutation(rows)[:wrong]] = (label + 1) % classes
    return noisy


def check(
    rows: int, seed: int, depth: int, noise: float, task: str, words: tuple[int, int] | None, typos: float
) -> None:
    """Raises InputError for an argument of `generate` that is out of range."""
    room = ROOM + ROOM_PER_LEVEL * depth
    if rows < 1:
        raise InputError(f"rows is {rows}, but a data set has at least 1 row.")
    fits = memory.available_memory() // memory.GENERATED
    memory.require_memory(rows * memory.GENERATED, f"Generating {rows:,} rows", f"ask for {fits:,} at most")
    if seed < 0:
        raise InputError(f"seed is {seed}; give 0 or a positive whole number.")
    if not 0 <= depth <= DEEPEST:
        raise InputError(f"depth is {depth}; give a composition depth from 0 to {DEEPEST}.")
    if not 0 <= noise < 0.5:
        raise InputError(f"noise is {noise}; give a share of wrong labels of at least 0 and below 0.5.")
    if not 0 <= typos <= 1:
        raise InputError(f"typos is {typos}; give a share of words from 0 to 1.")
    if task not in LABELS:
        raise InputError(f"There is no task '{task}'; give one of {', '.join(LABELS)}.{nearest(task, LABELS)}")
    if words is not None and not (1 <= words[0] <= words[1] and room <= words[1]):
        raise InputError(
            f"words is {words}; give (fewest, most) with 1 <= fewest <= most and, at depth {depth}, most >= {room}."
        )


def generate(
    rows: int,
    seed: int,
    depth: int = 3,
    noise: float = 0.02,
    task: str = "sentiment",
    words: tuple[int, int] | None = None,
    typos: float = 0.01,
) -> pd.DataFrame:
    """A generated data set of distinct texts, balanced in label and in domain to within one row.

    Args:
        rows: how many texts, at least 1.
        seed: of everything; the same seed gives the same table on every machine. Labels and typing slips have random
            streams of their own, so ``noise`` and ``typos`` do not change the texts beneath them.
        depth: most operators on top of a plain clause, 0 to 6; the rows have 0, 1, ..., depth operators in equal parts.
        noise: share of wrong labels, at least 0 and below 0.5; with 0 every label is true.
        task: "sentiment" (reviews, negative or positive), "domain" (the same reviews, by domain) or "spam" (messages).
        words: (fewest, most) words of a text; None leaves their natural length, about 10 to 90.
        typos: share of the words of four letters and more that carry a typing slip.

    Returns:
        Columns text and label (str), domain ("movies", "local business", "online shopping"; "messages" for spam) and
        depth (int, the operators of this row), in random order.

    Raises:
        InputError: an argument is out of range, or no new text of so few words can be written.
    """
    check(rows, seed, depth, noise, task, words, typos)
    classes, domains = LABELS[task], ("messages",) if task == "spam" else LABELS["domain"]
    ordering, writing, labelling, typing = (
        np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(4)
    )
    index = ordering.permutation(rows)
    wanted, domain, level = index % 2 * 2 - 1, index % len(domains), index // 6 % (depth + 1)
    _, pick = stream(writing)
    texts, truth, seen = [], [], set()
    for polar, place, operators in zip(wanted.tolist(), domain.tolist(), level.tolist(), strict=True):
        lists = WORDS[domains[place]]
        for _ in range(TRIES):
            tree = grow(polar, operators, "verdict", lists, pick)
            text = write(tree, lists, pick, words)
            key = UNSPOKEN.sub(" ", text.lower())  # texts that differ only in punctuation are one text
            if key not in seen and (words is None or len(text.split()) <= words[1]):
                break
        else:
            raise InputError(
                f"Only {len(texts):,} different texts of depth {operators} were found; ask for fewer rows or a greater depth."
            )
        texts.append(text)
        truth.append(polarity(tree))
        seen.add(key)
    labels, cells = (np.array(truth) + 1) // 2, domain
    if task == "domain":
        labels, cells = domain, np.zeros(rows)
    labels = mislabel(labels, cells, noise, len(classes), labelling)
    draw, pick = stream(typing)
    return pd.DataFrame(
        {
            "text": [slip(text, typos, draw, pick) for text in texts],
            "label": [classes[label] for label in labels],
            "domain": [domains[place] for place in domain],
            "depth": level,
        }
    )
