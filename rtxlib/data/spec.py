"""What data a run is made of, in one frozen record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rtxlib.data import sources
from rtxlib.errors import InputError, nearest

FEWEST = 20  # rows that can be split three ways


@dataclass(frozen=True)
class DataSpec:
    """Everything that determines the data of a run."""

    source: str = "embedded"  # "embedded", "file", "domains" (three sources pooled) or a key of sources.HUB
    task: str = "sentiment"  # "sentiment", "domain" or "spam"
    rows: int | None = None  # at most so many, balanced first and sized second; of sst2, beside its official test set
    domain: str | None = None  # embedded and domains only: rows of this domain alone
    train_fraction: float = 1.0  # share of the training rows kept; the smaller lies inside the larger
    lengths: str = "all"  # "all", or the "shortest" or "longest" 30 % by tokens of every split
    max_length: int = 256  # tokens of a text, [CLS] and [SEP] included; 8 to 512
    lowercase: bool = True
    strip_html: bool = True
    strip_urls: bool = True
    squeeze_whitespace: bool = True
    # "bert", "wordpiece", "unigram", or a model's folder or Hub id; auto: bert for the Hub's data, else wordpiece
    tokenizer: str = "auto"
    vocab_size: int = 8000  # of a trained tokenizer, at most
    seed: int = 0  # of sampling, splits and the generator, not of training
    depth: int = 3  # embedded only: composition depth
    noise: float = 0.02  # embedded only: share of wrong labels
    path: str | None = None  # file only, and so are the next four
    text_column: str | None = None  # None: "text"
    label_column: str | None = None  # None: "label"
    labels: dict[str, str] | None = field(default=None, hash=False)  # value in the file -> label name; "" drops the row
    stars: bool = False  # the labels are 1 to 5 stars: 1–2 negative, 3 dropped, 4–5 positive
    leak_words: int = 3  # a text of more words that stands on both sides of a split is a leak …
    allow_leaks: bool = False  # … which stops the run unless this is set


def of_source(source: str, **fields: Any) -> DataSpec:
    """A source with its own task, and with what its texts need: in spam a link tells, so it stays. ``fields`` go first."""
    own: dict[str, Any] = {"task": sources.TASKS.get(source, ("sentiment",))[0]}
    if own["task"] == "spam":
        own["strip_urls"] = False
    return DataSpec(source=source, **(own | fields))


# fields that mean nothing to any other source; given there, they are a mistake
_ONLY = {
    "file": ("path", "text_column", "label_column", "labels", "stars"),
    "embedded": ("depth", "noise"),
    "embedded domains": ("domain",),
}


def check(spec: DataSpec) -> None:
    """Raises InputError for a field that is out of range, misspelt, or of no meaning for the source."""
    known = ("embedded", "file", "domains", *sources.HUB)
    if spec.source not in known:
        raise InputError(f"No source '{spec.source}'; there are {', '.join(known)}.{nearest(str(spec.source), known)}")
    choices = {"lengths": ("all", "shortest", "longest")}
    if "/" not in spec.tokenizer:
        choices["tokenizer"] = ("auto", "bert", "wordpiece", "unigram")
    choices["task"] = sources.TASKS.get(spec.source, ("sentiment", "domain", "spam"))
    if spec.domain is not None:
        choices["domain"] = tuple(sources.DOMAINS)
    for name, allowed in choices.items():
        value = getattr(spec, name)
        if value not in allowed:
            of = f" of the source '{spec.source}'" if name == "task" else ""
            raise InputError(f"{name}{of} is one of {', '.join(allowed)}, not '{value}'.{nearest(str(value), allowed)}")
    ranges = {
        "rows": (FEWEST, 10**7 if spec.source == "embedded" else 10**9),  # the embedded texts are written in memory
        "max_length": (8, 512), "vocab_size": (64, 10**6), "leak_words": (1, 10**6),
        "seed": (0, 2**63 - 1),
    }  # fmt: skip
    for name, (low, high) in ranges.items():
        value = getattr(spec, name)
        if name == "rows" and value is None:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InputError(f"{name} is a whole number from {low:,} to {high:,}, not {value!r}.")
    if not 0 < spec.train_fraction <= 1:
        raise InputError(f"train_fraction is above 0 and at most 1, not {spec.train_fraction}.")
    for owners, names in _ONLY.items():
        for name in names if spec.source not in owners.split() else ():
            if getattr(spec, name) != DataSpec.__dataclass_fields__[name].default:
                raise InputError(f"{name} belongs to source='{owners.split()[0]}'; '{spec.source}' has no use for it.")
    if spec.source == "file" and not spec.path:
        raise InputError("source='file' needs path, the file to read.")
    if spec.domain is not None and spec.task == "domain":
        raise InputError("task='domain' tells the domains apart, so domain must not pick one of them.")
    if spec.domain is not None and spec.task == "spam":
        raise InputError("task='spam' writes messages, which have no domain; leave domain out.")


def is_hub(spec: DataSpec) -> bool:
    """Whether the rows come from the Hub."""
    return spec.source in (*sources.HUB, "domains")


def hub_names(spec: DataSpec) -> tuple[str, ...]:
    """The keys of ``sources.HUB`` that a spec reads; none where it reads no Hub data."""
    if spec.source == "domains":
        return tuple(name for name in sources.THREE_DOMAINS if spec.domain in (None, sources.HUB[name].domain))
    return (spec.source,) if spec.source in sources.HUB else ()


def wanted_tokenizer(spec: DataSpec) -> str | None:
    """The model whose tokenizer a spec asks for, a folder or a Hub id; None where a vocabulary is to be trained."""
    if spec.tokenizer == "bert" or (spec.tokenizer == "auto" and is_hub(spec)):
        return sources.BERT
    return spec.tokenizer if "/" in spec.tokenizer else None
