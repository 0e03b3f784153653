"""What data a run is made of, in one frozen record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rtxlib.data import sources
from rtxlib.data.rows import FEWEST
from rtxlib.errors import InputError, nearest


@dataclass(frozen=True)
class DataSpec:
    """Everything that determines the data of a run."""

    source: str = "embedded"  # "embedded", "file", "domains" (three sources pooled), "composed" or a key of sources.HUB
    task: str = "sentiment"  # "sentiment", "domain", "spam", … see sources.TASKS
    rows: int | None = None  # at most this many, balanced first, sized second; sst2 has its official test set besides
    domain: str | None = None  # embedded and domains only: rows of this domain alone
    train_fraction: float = 1.0  # share of the training rows kept; a smaller share lies inside a larger one
    # where the test set is published: the share of the other rows (sst2: of its sentences) in validation; None: splits.py's own
    validation_share: float | None = None
    official_test: bool = False  # sources of the Hub that are pooled otherwise: keep the publisher's test split, whole
    lengths: str = "all"  # "all", or the "shortest" or "longest" 30 % of every split, by tokens
    max_length: int = 256  # tokens of a text, [CLS] and [SEP] included; 8 to 512
    lowercase: bool = True
    strip_html: bool = True
    strip_urls: bool = True
    squeeze_whitespace: bool = True
    uniform: bool = False  # leave a few lower-case words of each text, without punctuation or digits (clean.uniform)
    # "bert", "wordpiece", or a model's folder or Hub id; auto: bert for the Hub's data, else wordpiece
    tokenizer: str = "auto"
    vocab_size: int = 8000  # of a trained tokenizer, at most
    seed: int = 0  # of sampling, splits and the generator, not of training
    depth: int = 3  # embedded: composition depth; composed: the most steps of a pointer
    items: int = 10  # composed only: phrases of a pointer text, an even number
    noise: float = 0.02  # embedded only: share of wrong labels
    path: str | None = None  # file only, and so are the next five
    text_column: str | None = None  # None: "text"
    text_pair_column: str | None = None  # of the second text, where a row is a pair of texts; None: it is a single text
    label_column: str | None = None  # None: "label"
    labels: dict[str, str] | None = field(default=None, hash=False)  # value in the file -> label name; "" drops the row
    stars: bool = False  # the labels are 1 to 5 stars: 1–2 negative, 3 dropped, 4–5 positive
    leak_words: int = 3  # a longer text that occurs on both sides of a split is a leak …
    allow_leaks: bool = False  # … which stops the run unless this is set


def of_source(source: str, **fields: Any) -> DataSpec:
    """The spec of a source with its own task. Spam keeps its links, because they tell. ``fields`` override both."""
    settings: dict[str, Any] = {"task": sources.TASKS.get(source, ("sentiment",))[0]}
    if settings["task"] == "spam":
        settings["strip_urls"] = False
    return DataSpec(source=source, **(settings | fields))


_RANGES = {
    "rows": (FEWEST, 10**9), "max_length": (8, 512), "vocab_size": (64, 10**6), "leak_words": (1, 10**6),
    "seed": (0, 2**63 - 1), "items": (2, 20),
}  # fmt: skip
_MOST_MADE = {"embedded": 10**7, "composed": 10**6}  # rows, because they are made in memory
# the sources that use a field; for any other source it is a mistake
_ONLY = {
    "path": ("file",), "text_column": ("file",), "text_pair_column": ("file",), "label_column": ("file",),
    "labels": ("file",), "stars": ("file",),
    "depth": ("embedded", "composed"), "noise": ("embedded",), "items": ("composed",), "domain": ("embedded", "domains"),
}  # fmt: skip


def check(spec: DataSpec) -> None:
    """Raises InputError for a field that is out of range, misspelt, or without a meaning for the source."""
    if spec.source not in sources.NAMES:
        known = ", ".join(sources.NAMES)
        raise InputError(f"No source '{spec.source}'; there are {known}.{nearest(str(spec.source), sources.NAMES)}")
    choices = {
        "lengths": ("all", "shortest", "longest"),
        "tokenizer": ("auto", "bert", "wordpiece", *([spec.tokenizer] if "/" in spec.tokenizer else [])),
        "task": sources.TASKS.get(spec.source, sources.ALL_TASKS),
        "domain": (None, *sources.DOMAINS),
    }
    for name, allowed in choices.items():
        value = getattr(spec, name)
        if value not in allowed:
            which_source = f" of the source '{spec.source}'" if name == "task" else ""
            words = [word for word in allowed if word]
            raise InputError(f"{name}{which_source} is one of {', '.join(words)}, not '{value}'.{nearest(str(value), words)}")
    for name, (low, high) in _RANGES.items():
        value = getattr(spec, name)
        if name == "rows" and value is None:
            continue
        if name == "rows":
            high = _MOST_MADE.get(spec.source, high)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InputError(f"{name} is a whole number from {low:,} to {high:,}, not {value!r}.")
    if not 0 < spec.train_fraction <= 1:
        raise InputError(f"train_fraction is above 0 and at most 1, not {spec.train_fraction}.")
    if spec.official_test and not sources.can_keep_test(spec.source):
        raise InputError(
            f"official_test is for sources that are pooled although they have a test split; '{spec.source}' is none of them."
        )
    share = spec.validation_share
    if share is not None and not 0 < share <= 0.5:
        raise InputError(f"validation_share is above 0 and at most 0.5, not {share}.")
    if share is not None and not sources.has_published_splits(spec):
        raise InputError(f"validation_share belongs to sources with a published test set; '{spec.source}' has none.")
    for name, owners in _ONLY.items():
        if spec.source not in owners and getattr(spec, name) != DataSpec.__dataclass_fields__[name].default:
            which = " or ".join(f"'{owner}'" for owner in owners)
            raise InputError(f"{name} is for source={which}; '{spec.source}' has no use for it.")
    one_domain = spec.domain is not None
    for wrong, sentence in (
        (spec.source == "file" and not spec.path, "source='file' needs path, the file to read."),
        (
            one_domain and spec.task == "domain",
            "task='domain' tells the domains apart, so domain must not pick one of them.",
        ),
        (one_domain and spec.task == "spam", "task='spam' writes messages, which have no domain; leave domain out."),
    ):
        if wrong:
            raise InputError(sentence)
