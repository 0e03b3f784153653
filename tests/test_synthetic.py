"""The embedded generator: its labels are true, its texts have one reading, and counting words does not find them."""

from __future__ import annotations

import functools
import hashlib
import re
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from rtxlib.data.audit import LEAK, overlaps
from rtxlib.data.synthetic import INSIDE, LABELS, OPERATORS, VERSION, WORDS, Node, generate, polarity
from rtxlib.errors import InputError

TASKS = list(LABELS)


# ---------------------------------------- the label


def test_polarity_is_composed_from_the_phrase_upwards():
    dull = Node("{was} {main}", +1, Node("dull", -1))
    superb = Node("{was} {main}", +1, Node("superb", +1))
    never = Node("it is not true that {main}", -1, dull)
    assert polarity(dull) == -1
    assert polarity(never) == +1
    assert polarity(Node("nobody can claim that {main}", -1, never)) == -1
    assert polarity(Node("{side}, but {main}", +1, main=superb, side=dull)) == +1
    assert polarity(Node("{main}, although {side}", +1, main=dull, side=superb)) == -1
    assert polarity(Node("{her} said that {main}, and she was wrong", -1, Node("{side}, but {main}", +1, superb, dull))) == -1


@functools.cache
def regex(pattern: str, domain: str) -> str:
    """A pattern as a regular expression: a slot matches any of its entries, ``{main}`` any polar phrase."""
    literal, *rest = re.split(r"\{([^}]+)\}", pattern)
    parts = [re.escape(literal)]
    for slot, text in zip(rest[::2], rest[1::2], strict=True):
        parts += [f"(?:{'|'.join(dict.fromkeys(regex(entry, domain) for entry in WORDS[domain][slot]))})", re.escape(text)]
    return "".join(parts)


@functools.cache
def clauses(domain: str, kind: str) -> list[tuple[re.Pattern, int]]:
    """Every clause of a kind with a phrase of either polarity, and the polarity of the whole."""
    words = WORDS[domain]
    return [
        (re.compile(regex(pattern.replace("{main}", "{" + phrases + mark + "}"), domain)), sign * value)
        for sign, phrases, pattern in words[kind]
        for mark, value in (("+", +1), ("-", -1))
    ]


@functools.cache
def readings(text: str, inside: str, domain: str) -> frozenset[int]:
    """Every polarity that the grammar allows for this text: a reader that knows the rules but not the drawn tree."""
    found = {
        value
        for kind in {"plain", *INSIDE[inside]} - set(OPERATORS)
        for clause, value in clauses(domain, kind)
        if clause.fullmatch(text)
    }
    for kind in set(INSIDE[inside]) & set(OPERATORS):
        for sign, _, pattern in OPERATORS[kind]:
            before, *slots = re.split(r"\{(main|side)\}", pattern)
            opening = re.match(regex(before, domain), text)
            after = slots[-1]
            if not opening or not text.endswith(after):
                continue
            body = text[opening.end() : len(text) - len(after)]
            if len(slots) == 2:
                found |= {sign * value for value in readings(body, kind, domain)}
                continue
            for middle in re.finditer(re.escape(slots[1]), body):
                parts = {slots[0]: body[: middle.start()], slots[2]: body[middle.end() :]}
                if readings(parts["side"], "side", domain):
                    found |= {sign * value for value in readings(parts["main"], kind, domain)}
    return frozenset(found)


def verdicts(text: str, domain: str) -> list[frozenset[int]]:
    """The readings of each sentence that has a reading; a sentence may begin with an opening."""
    openings = re.compile("|".join(regex(entry, domain) for entry in WORDS[domain]["opening"] if entry))
    found = []
    for sentence in re.split(r"(?<=[.!]) ", text):
        sentence = sentence.rstrip(".!")
        for start in (sentence, sentence[0].lower() + sentence[1:]):
            opening = openings.match(start)
            for rest in {start, start[opening.end() :] if opening else start}:
                found.append(readings(rest, "verdict", domain))
    return [reading for reading in found if reading]


@pytest.mark.parametrize("task", ["sentiment", "spam"])
def test_every_text_has_one_reading_and_it_is_its_label(task):
    table = generate(300, seed=3, depth=4, noise=0, typos=0, task=task)
    for row in table.itertuples():
        found = verdicts(row.text, row.domain)
        assert found, row.text
        assert {frozenset({2 * LABELS[task].index(row.label) - 1})} == set(found), row.text


def test_no_phrase_is_both_positive_and_negative():
    for words in WORDS.values():
        phrases = [{entry for slot in words if slot.endswith(mark) for entry in words[slot]} for mark in "+-"]
        assert min(map(len, phrases)) >= 20
        assert not phrases[0] & phrases[1]


def test_noise_changes_its_share_of_the_labels_and_no_text():
    true, noisy = (generate(3000, seed=1, noise=noise) for noise in (0, 0.1))
    pd.testing.assert_frame_equal(true.drop(columns="label"), noisy.drop(columns="label"))
    assert (true["label"] != noisy["label"]).mean() == pytest.approx(0.1, abs=0.001)
    domain = generate(3000, seed=1, noise=0.1, task="domain")
    assert (domain["label"] != domain["domain"]).mean() == pytest.approx(0.1, abs=0.001)


# ---------------------------------------- the table


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("rows", [1, 2, 7, 100, 605])
def test_labels_and_domains_are_balanced_to_within_one_row(task, rows):
    table = generate(rows, seed=rows, task=task, noise=0.2)
    domains = LABELS["domain"] if task != "spam" else ("messages",)
    assert list(table.columns) == ["text", "label", "domain", "depth"] and len(table) == rows
    for column, names in {"label": LABELS[task], "domain": domains}.items():
        counts = [int((table[column] == name).sum()) for name in names]
        assert sum(counts) == rows and max(counts) - min(counts) <= 1
    if task == "sentiment":
        cells = [len(table[(table["label"] == a) & (table["domain"] == b)]) for a in LABELS[task] for b in domains]
        assert max(cells) - min(cells) <= 1


def test_depths_come_in_equal_parts():
    counts = generate(700, seed=0, depth=6)["depth"].value_counts()
    assert sorted(counts.index) == list(range(7)) and counts.max() - counts.min() <= 6


def test_a_seed_gives_the_same_table_in_every_process():
    code = "from rtxlib.data.synthetic import generate; print(generate(50, seed=7).to_csv())"
    outputs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                       env={"PYTHONHASHSEED": salt}).stdout
        for salt in ("1", "2")
    }
    assert len(outputs) == 1 and outputs.pop().strip() == generate(50, seed=7).to_csv().strip()
    assert not set(generate(50, seed=7)["text"]) & set(generate(50, seed=8)["text"])


def test_other_texts_need_another_version():
    """Whoever changes what the generator writes gives VERSION another value and records the new hash here."""
    digest = hashlib.sha256()
    for task in TASKS:
        for depth in (0, 6):
            table = generate(300, seed=0, depth=depth, noise=0.1, task=task, typos=0.05)
            digest.update(table.to_csv(index=False).encode())
    recorded = ("bf91f756cdfe123c", "7889de008c19702ca261857486282d59b8a4ed15a75387fbfd133a99a633e5e2")
    assert (VERSION, digest.hexdigest()) == recorded


def test_typing_slips_touch_their_share_of_the_words_and_add_none():
    clean, slipped = (generate(600, seed=2, typos=typos)["text"] for typos in (0, 0.2))
    pairs = [(a, b) for left, right in zip(clean, slipped, strict=True) for a, b in zip(left.split(), right.split(), strict=True)]
    long = [(a, b) for a, b in pairs if len(a) > 3 and a.isalpha()]
    assert all(a == b for a, b in pairs if len(a) <= 3)
    # swapping two equal letters changes nothing, so slightly less than the share is visible
    assert 0.17 < np.mean([a != b for a, b in long]) < 0.2


@pytest.mark.parametrize(
    ("depth", "words", "task"),
    [(0, (1, 8), "sentiment"), (0, (12, 12), "spam"), (1, (5, 16), "domain"), (3, (10, 32), "sentiment"),
     (3, (60, 61), "spam"), (6, (20, 56), "sentiment"), (6, (56, 56), "spam"), (2, (400, 600), "sentiment")],
)
def test_texts_keep_to_the_words_that_are_asked(depth, words, task):
    lengths = generate(60, seed=4, depth=depth, words=words, task=task)["text"].str.split().str.len()
    assert words[0] <= lengths.min() and lengths.max() <= words[1]
    if words[1] - words[0] > 50:
        assert lengths.std() > 20


def test_natural_texts_are_never_a_mere_phrase():
    assert generate(3000, seed=0)["text"].str.split().str.len().min() >= 8


@pytest.mark.parametrize(
    "wrong",
    [{"rows": 0}, {"seed": -1}, {"depth": -1}, {"depth": 7}, {"noise": -0.1}, {"noise": 0.5}, {"typos": 1.5},
     {"task": "sentimant"}, {"words": (0, 90)}, {"words": (90, 80)}, {"words": (3, 20)}, {"depth": 0, "words": (1, 3)}],
)
def test_what_cannot_be_made_is_refused_in_one_sentence(wrong):
    with pytest.raises(InputError, match=r"^[^\n]+\.( Did you mean 'sentiment'\?)?$"):
        generate(**({"rows": 10, "seed": 0} | wrong))


def test_running_out_of_new_texts_is_an_error_and_no_text_repeats(monkeypatch):
    monkeypatch.setattr("rtxlib.data.synthetic.TRIES", 2)
    with pytest.raises(InputError, match=r"Only [\d,]+ different texts of depth 0 were found"):
        generate(5000, seed=0, depth=0, words=(1, 8))


def test_no_text_repeats_and_no_text_lies_inside_another_across_a_split():
    table = generate(20_000, seed=5)
    heard = table["text"].map(lambda text: hashlib.sha256(re.sub(r"\W+", " ", text.lower()).encode()).digest())
    assert heard.duplicated().mean() < 0.0001
    cleaned = table["text"].str.lower()
    found = overlaps({"train": cleaned[:16_000], "test": cleaned[16_000:]}, leak_words=3)
    assert found.loc[found["check"] == LEAK, "rows"].sum() == 0


# ---------------------------------------- how hard the task is


def bigrams(depth: int, task: str = "sentiment", train: int = 5000, test: int = 3000) -> float:
    """Test accuracy of a bigram logistic regression."""
    table = generate(train + test, seed=11, depth=depth, task=task)
    features = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    model = LogisticRegression(C=10, max_iter=300)
    model.fit(features.fit_transform(table["text"][:train]), table["label"][:train])
    return model.score(features.transform(table["text"][train:]), table["label"][train:])


def test_counting_pairs_of_words_fails_more_with_every_level_of_depth():
    accuracy = [bigrams(depth) for depth in (0, 1, 2, 3, 5)]
    assert accuracy[0] > 0.95
    assert 0.6 < accuracy[3] < 0.75
    assert all(np.diff(accuracy) < -0.005), accuracy


def test_counting_pairs_of_words_fails_on_deep_messages_too():
    assert bigrams(0, "spam") > 0.95
    assert bigrams(3, "spam") < 0.85


def test_a_vote_of_the_polar_words_knows_flat_texts_and_not_deep_ones():
    table = generate(3000, seed=6, noise=0, typos=0)
    score = np.zeros(len(table))
    for mark, value in (("+", 1), ("-", -1)):
        lists = [WORDS[domain] for domain in LABELS["domain"]]
        phrases = {entry for words in lists for slot in words if slot.endswith(mark) for entry in words[slot]}
        pattern = "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))
        score += value * table["text"].str.count(rf"\b(?:{pattern})\b")
    sign = np.where(table["label"] == "positive", 1, -1)
    right = (np.sign(score) == sign) + 0.5 * (score == 0)
    assert right[table["depth"] == 0].mean() > 0.98
    assert right[table["depth"] == 3].mean() < 0.75


def test_the_domain_is_in_the_text_but_not_in_any_one_word():
    table = generate(4000, seed=8, task="domain")
    assert bigrams(3, "domain", 3000, 1000) > 0.93
    sets = table["text"].str.lower().str.findall(r"\w+").map(set)
    best = 0.0
    counts = {name: Counter(word for words in sets[table["domain"] == name] for word in words) for name in LABELS["domain"]}
    total = sum(counts.values(), Counter())
    for word, seen in total.items():  # guess one domain where the word occurs, and the likeliest other one elsewhere
        here = max(count[word] for count in counts.values())
        rest = max(len(table) / 3 - count[word] for count in counts.values())
        best = max(best, (here + rest) / len(table)) if seen > 20 else best
    assert best < 0.5


def test_the_vocabulary_is_that_of_many_writers():
    counts = Counter(re.findall(r"[a-z]{3,}", " ".join(generate(5000, seed=9, typos=0)["text"]).lower()))
    assert sum(count > 4 for count in counts.values()) > 600
