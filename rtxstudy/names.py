"""The names that a reader sees: of data sets, of models, of baselines and of columns.

Tables and file names hold ids such as ``sst2`` and ``recurrent-3x2x256``, because a program looks them up. A reader sees
"SST-2" and "Recurrent, 3 layers × 2 passes, 256 wide". :func:`spans` finds every id in a text. The report and the figures take
all of their names from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

DATA = {  # the source of a data set → its name
    "sst2": "SST-2",
    "multi_nli": "MultiNLI",
    "cola": "CoLA",
    "snli": "SNLI",
    "yelp_polarity": "Yelp",
    "yelp_review_full": "Yelp, five stars",
    "yelp_five_stars": "Yelp, five stars",
    "amazon_polarity": "Amazon",
    "amazon_reviews_multi_en": "Amazon, five stars",
    "sms_spam": "SMS spam",
}
PLAIN = {"embedded": "Generated texts", "domains": "Domains"}  # ids that are English words, too
ALONE = {"majority class": "Most frequent label", "bag of embeddings": "Bag of embeddings"}  # names only alone
BASELINES = {
    "tf-idf + logistic regression, second text alone": "Counting words (second text alone)",
    "tf-idf + logistic regression": "Counting words (TF-IDF)",
    "nb-svm": "NB-SVM on word counts",
}
COLUMNS = {
    "f1": "F1",
    "n_test": "test texts",
    "ms_median": "one text (ms)",
    "ms_per_text": "in batches (ms a text)",
    "hidden_size": "width",
    "num_hidden_layers": "layers",
    "recurrent_depth": "passes",
    "effective_depth": "layers × passes",
}
TIMES = {1: "once", 2: "twice"}

FORMS = {  # a setting in a model's id → what it says; of settings with a value, {} is the value
    "none": "no residual across passes",
    "every": "residual on every pass",
    "from_second": "residual from the second pass",
    "learned": "learned residual",
    "damped": "damped residual",
    "gated": "gated residual",
    "sandwich": "norms around each layer",
    "uniform": "random number of passes",
    "random_depth": "random number of passes",
    "unshared": "own layers for each pass",
    "frozen": "frozen weights",
    "distilled": "distilled",
    "pretrained here": "own text first",
    "no positions": "no positions",
    "conditioning_size": "a light layer of {} before each later pass",
    "embedding_size": "token table {} wide",
    "input_injection": "input added in every pass",
    "iteration_embedding": "an embedding of the pass",
    "loop_norm": "a norm in the loop",
    "prelude_layers": "{} layer before the loop",
    "coda_layers": "{} layer after the loop",
}
BRIEF = {  # the same where a figure has little room
    "none": "no residual",
    "every": "every pass",
    "from_second": "from 2nd pass",
    "learned": "learned",
    "damped": "damped",
    "gated": "gated",
    "sandwich": "sandwich norms",
    "uniform": "random passes",
    "random_depth": "random passes",
    "unshared": "unshared",
    "frozen": "frozen",
    "pretrained here": "own text first",
    "conditioning_size": "conditioned",
    "embedding_size": "tokens {} wide",
    "input_injection": "input injection",
    "iteration_embedding": "pass embedding",
    "loop_norm": "loop norm",
    "prelude_layers": "+{} before",
    "coda_layers": "+{} after",
}
_ONLY_AFTER_A_MODEL = (
    "none",
    "every",
    "learned",
    "damped",
    "gated",
    "sandwich",
    "uniform",
    "unshared",
    "frozen",
    "distilled",
)
_ONLY_AFTER_A_MODEL += ("from_second", "random_depth", "pretrained here", "no positions")
_LOOSE = ("from_second", "random_depth", "input_injection", "iteration_embedding", "loop_norm", "conditioning_size")
_LOOSE += ("embedding_size", "prelude_layers", "coda_layers", "prelude_and_coda")

_SETTING = (
    rf"(?: (?:{'|'.join(_ONLY_AFTER_A_MODEL)})(?![\w=-])| \w+=[\w.]+| (?:rotary|learned|sinusoidal|alibi) positions)*"
)
_PARTS = r"with \d+% held out|\d+(?:\.\d+)?%|shortest|longest|official test|[\d,]+ rows|at \d+ tokens|uniform"
_HOW = r"(?: (?:lower|spread|average|rank \d+|own norms|between edges|random depth))*"
_PATTERNS: dict[str, str] = {
    "plain": r"(?:^|(?<=\b[Oo]n )|(?<=\btexts of )|(?<=, )|(?<=: ))(?:embedded|domains)"
    r"(?: (?:spam|domain|sentiment))?(?=$|[,.:;)]| [(−φ·]| ×)",
    "alone": rf"^(?:{'|'.join(ALONE)})$",
    "composed": r"\bcomposed (?:same|pointer(?: \d+ steps among \d+)?)\b",
    "data": rf"(?<![\w/-])(?:{'|'.join(DATA)})(?![\w/-])(?: (?:{_PARTS}))*",
    "loop": rf"\brecurrent-(\d+)x(\d+)x(\d+)\b{_SETTING}",
    "stack": rf"\bstandard-(\d+)x(\d+)\b{_SETTING}",
    "mini": rf"(?<![\w/])all-MiniLM-(L\d+)-v2\b(?: (\d+)×(\d+)({_HOW}))?{_SETTING}",
    "bert": rf"(?<![\w/-])bert-(mini|base|tiny|small|medium)\b(?!-){_SETTING}",
    "baseline": "|".join(re.escape(name) for name in BASELINES),
    "plural": r"\b([\d,]+) ([a-z]+)\(s\)",
    "loose": rf"\b(?:{'|'.join(_LOOSE)})\b",
}
_UNNAMED = {kind: re.sub(r"(?<!\\)\((?!\?)", "(?:", pattern) for kind, pattern in _PATTERNS.items()}
_ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _UNNAMED.items()))


class Span(NamedTuple):
    """An id in a text: where it stands, and its name."""

    start: int
    end: int
    name: str


def spans(text: str, brief: bool = False, prose: bool = False) -> Iterator[Span]:
    """Every id in a text, from left to right.

    ``brief``: names for figures, "Recurrent 3×2×256". ``prose``: a person wrote the text.

    In prose an English word such as "domains" is that word and no id.
    """
    for found in _ANY.finditer(text):
        kind = str(found.lastgroup)
        if not (prose and kind == "plain"):
            yield Span(found.start(), found.end(), _WRITERS[kind](found[0], brief))


def said(text: str, brief: bool = False, prose: bool = False) -> str:
    """The text with the name of each id in its place."""
    parts, last = [], 0
    for start, end, name in spans(text, brief, prose):
        parts += [text[last:start], name]
        last = end
    return "".join([*parts, text[last:]])


def column(name: str) -> str:
    """The name of a column of a table: ``n_test`` → "test texts", ``rows_in`` → "rows in"."""
    return COLUMNS.get(name, said(name, brief=True).replace("_", " "))


def _data(text: str, brief: bool) -> str:
    name, _, rest = text.partition(" ")
    parts = [part.replace("%", "\N{NO-BREAK SPACE}%") for part in re.findall(_PARTS, rest)]
    parts = [part for part in parts if not brief or part != "official test"]
    if len(parts) == 1:
        parts = [re.sub(r"^([\d.]+\s%)$", r"\1 of the texts", re.sub(r"^(shortest|longest)$", r"\1 texts", parts[0]))]
    return f"{DATA[name]} ({', '.join(parts)})" if parts else DATA[name]


def _plain(text: str, brief: bool) -> str:
    name, _, task = text.partition(" ")
    return f"{PLAIN[name]} ({task})" if task else PLAIN[name]


def _composed(text: str, brief: bool) -> str:
    steps = re.search(r"(\d+) steps among (\d+)", text)
    if "same" in text:
        return "Same sentiment"
    return f"Pointers, {steps[1]} steps among {steps[2]}" if steps else "Pointers"


def _counted(n: str, noun: str, plural: str | None = None) -> str:
    return f"{n} {noun if n == '1' else plural or noun + 's'}"


def _settings(words: str, brief: bool) -> str:
    """What stands behind a model's id: " none loop_norm=True" → ", no residual across passes, a norm in the loop"."""
    table = FORMS | BRIEF if brief else FORMS
    found = re.findall(r"pretrained here|\w+ positions|\w+=[\w.]+|[\w-]+", words)
    told = []
    for word in found:
        name, _, value = word.partition("=")
        told.append(table.get(name, f"{name.replace('_', ' ')} {value}".strip()).format(value))
    return "".join(f", {word}" for word in told)


def _loop(text: str, brief: bool) -> str:
    layers, passes, width, rest = re.fullmatch(r"recurrent-(\d+)x(\d+)x(\d+)(.*)", text).groups()
    if brief:
        return f"Recurrent {layers}×{passes}×{width}{_settings(rest, brief)}"
    return f"Recurrent, {_counted(layers, 'layer')} × {_counted(passes, 'pass', 'passes')}, {width} wide{_settings(rest, brief)}"


def _stack(text: str, brief: bool) -> str:
    layers, width, rest = re.fullmatch(r"standard-(\d+)x(\d+)(.*)", text).groups()
    if brief:
        return f"Standard {layers}×{width}{_settings(rest, brief)}"
    return f"Standard, {_counted(layers, 'layer')}, {width} wide{_settings(rest, brief)}"


def _mini(text: str, brief: bool) -> str:
    pattern = rf"all-MiniLM-(L\d+)-v2(?: (\d+)×(\d+)({_HOW}))?(.*)"
    size, layers, passes, how, rest = re.fullmatch(pattern, text).groups()
    name = f"MiniLM-{size}"
    if layers is None:
        return name + _settings(rest, brief)
    edges, n, r = "between edges" in how, int(layers), int(passes)
    others = [word for word in re.findall(r"rank \d+|own norms|random depth", how)]
    times = TIMES.get(r, f"{r} times")
    if brief:
        made = f"{n}×{r}{' between edges' if edges else ''}{' spread' * ('spread' in how)}{' averaged' * ('average' in how)}"
        return ", ".join([f"{name} {made}", *others]) + _settings(rest, brief)
    if "spread" in how:
        which = f"{n} layers at even distances"
    elif "average" in how:
        which = f"{n} averaged layers"
    else:
        first = 2 if edges else 1
        last = first + n - 1
        which = f"layer {first}" if n == 1 else f"layers {first} {'and' if n == 2 else 'to'} {last}"
    made = f"{which} passed {times}{' between the first and the last' if edges else ''}"
    return ", ".join([name, made, *others]) + _settings(rest, brief)


def _bert(text: str, brief: bool) -> str:
    name, _, rest = text.partition(" ")
    return f"BERT {name.removeprefix('bert-')}{_settings(rest, brief)}"


def _plural(text: str, brief: bool) -> str:
    n, noun = re.fullmatch(r"([\d,]+) ([a-z]+)\(s\)", text).groups()
    return _counted(n, noun)


def _loose(text: str, brief: bool) -> str:
    return "a layer before and after the loop" if text == "prelude_and_coda" else BRIEF[text].format("").strip()


_WRITERS: dict[str, Callable[[str, bool], str]] = {
    "plain": _plain,
    "alone": lambda text, brief: ALONE[text],
    "composed": _composed,
    "data": _data,
    "loop": _loop,
    "stack": _stack,
    "mini": _mini,
    "bert": _bert,
    "baseline": lambda text, brief: "Counting words" if brief and text.endswith("regression") else BASELINES[text],
    "plural": _plural,
    "loose": _loose,
}
