"""Where rows come from: data sets of the Hugging Face Hub, the user's own file, the embedded generator."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

from rtxlib.errors import InputError, disk_full
from rtxlib.hub import revision, unreachable

POLARITY = {"0": "negative", "1": "positive"}
YELP_STARS = {"1": "negative", "2": "negative", "3": "", "4": "positive", "5": "positive"}  # "" drops the row
AMAZON_STARS = {"1": "negative", "2": "", "3": "", "4": "positive", "5": "positive"}
HAM_SPAM = {"0": "ham", "1": "spam"}
SENTIMENTS, DOMAINS = ["negative", "positive"], ["movies", "local business", "online shopping"]
GENERATOR = ("lexicon.py", "synthetic.py")  # the files that write the embedded data
BERT = "google-bert/bert-base-uncased"


@dataclass(frozen=True)
class HubSource:
    """A data set of the Hub: where it lies, which columns it has, and what its labels mean."""

    repo: str
    text: str  # column of the text; that of the label is always "label"
    labels: Mapping[str, str]  # value in the file, as text -> label name; "" drops the row
    task: str = "sentiment"
    domain: str = ""
    stars: bool = False  # the file's label is the number of stars less one
    escaped: bool = False  # the text holds its line breaks as backslash-n and its quotes doubled or with a backslash
    proportions: bool = False  # classes keep their natural shares; else they are balanced
    splits: tuple[str, ...] = ("train", "test")  # those that are read, where the data set has them


_MOVIES, _BUSINESS, _SHOPPING = DOMAINS
HUB: dict[str, HubSource] = {
    "sst2": HubSource("stanfordnlp/sst2", "sentence", POLARITY, domain=_MOVIES, splits=("train", "validation")),
    "yelp_polarity": HubSource("fancyzhx/yelp_polarity", "text", POLARITY, domain=_BUSINESS, escaped=True),
    "yelp_review_full": HubSource(
        "Yelp/yelp_review_full", "text", YELP_STARS, domain=_BUSINESS, stars=True, escaped=True
    ),
    "amazon_polarity": HubSource("mteb/amazon_polarity", "text", POLARITY, domain=_SHOPPING),
    "amazon_reviews_multi_en": HubSource(
        "SetFit/amazon_reviews_multi_en",
        "text",
        AMAZON_STARS,
        domain=_SHOPPING,
        stars=True,
        splits=("train", "validation", "test"),
    ),
    "sms_spam": HubSource(
        "ucirvine/sms_spam", "sms", HAM_SPAM, task="spam", domain="messages", proportions=True, splits=("train",)
    ),
}
THREE_DOMAINS = ("sst2", "yelp_polarity", "amazon_polarity")
TASKS: dict[str, tuple[str, ...]] = {
    "embedded": ("sentiment", "domain", "spam"),
    "domains": ("domain", "sentiment"),
    **{name: (source.task,) for name, source in HUB.items()},
}  # a file's labels are its own, whatever the task is called


@dataclass
class Raw:
    """Rows as they were read, before cleaning.

    Attributes:
        rows: columns text, label (its name), domain, and split: the source's own name for where the row stood
        label_names: in the order of the label numbers
        counts: what was left out on the way: (step, rows in, rows changed, rows out)
        notes: plain sentences for the report
    """

    rows: pd.DataFrame
    label_names: list[str]
    counts: list[tuple[str, int, int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


# ---------------------------------------- the Hub


@contextmanager
def _cache_only() -> Iterator[None]:
    """The Hub's libraries look at their cache alone; else each of their calls tries again for half a minute."""
    import datasets
    import huggingface_hub

    with (
        mock.patch.object(huggingface_hub.constants, "HF_HUB_OFFLINE", True),
        mock.patch.object(datasets.config, "HF_HUB_OFFLINE", True),
    ):
        yield


INSTEAD = "use your own file (source='file') or the embedded data (source='embedded')"


@cache
def _load(repo: str) -> tuple[Any, str, bool]:
    """The data set (memory-mapped), its commit, and whether the Hub answered; kept for the life of the process."""
    import datasets

    commit = revision(repo)
    verbosity, bars = datasets.utils.logging.get_verbosity(), datasets.is_progress_bar_enabled()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    try:
        with _cache_only() if commit is None else nullcontext():
            loaded = datasets.load_dataset(repo, revision=commit)
    except Exception as error:
        raise unreachable(repo, error, INSTEAD) from error
    finally:
        datasets.utils.logging.set_verbosity(verbosity)
        if bars:
            datasets.enable_progress_bars()
    files = next(iter(loaded.values())).cache_files  # in a folder named by the commit
    return loaded, commit or (Path(files[0]["filename"]).parent.name if files else "unknown"), commit is not None


def hub_revision(name: str) -> str:
    """The commit of a Hub data set: the Hub's, or where that does not answer, its cache's. Raises as ``read_hub``."""
    repo = HUB[name].repo
    return revision(repo) or _load(repo)[1]


def read_hub(name: str, most: int | None, seed: int) -> Raw:
    """The labelled rows of a Hub data set.

    Args:
        name: a key of ``HUB``
        most: of a data set with more than this many rows, a seeded draw of so many is read; None: all
        seed: of that draw

    Raises:
        InputError: neither the Hub nor its cache has the data set, or its columns or labels are not the known ones.
    """
    source = HUB[name]
    loaded, _, answered = _load(source.repo)
    parts = {split: loaded[split] for split in source.splits if split in loaded}
    columns = next(iter(loaded.values())).column_names
    if not parts or not {source.text, "label"} <= set(columns):
        raise InputError(
            f"{source.repo} is not as it was: it has the splits {', '.join(loaded)} with {', '.join(columns)}, "
            f"where one of {', '.join(source.splits)} with '{source.text}' and 'label' was expected."
        )
    notes = [] if answered else [f"The Hub did not answer; {source.repo} was read from its cache on this machine."]
    total = sum(map(len, parts.values()))
    tables = []
    for split, part in parts.items():
        if most is not None and total > most:
            share = round(most * len(part) / total)
            part = part.select(np.sort(np.random.default_rng((seed, len(tables))).permutation(len(part))[:share]))
        table = part.select_columns([source.text, "label"]).to_pandas().rename(columns={source.text: "text"})
        tables.append(table.astype({"text": object}).assign(split=split))
    rows = pd.concat(tables, ignore_index=True).assign(domain=source.domain)
    counts = [(f"read from {source.repo}", total, 0, len(rows))]
    if source.escaped:
        decoded = [_decode_escapes(text) for text in rows["text"]]
        changed = sum(a != b for a, b in zip(rows["text"], decoded, strict=True))
        rows["text"] = decoded
        counts.append(("escaped line breaks and quotes decoded", len(rows), changed, len(rows)))
    raw = named(rows, rows.pop("label") + (1 if source.stars else 0), source.labels, source.repo)
    return Raw(raw.rows, raw.label_names, counts + raw.counts, notes)


def _decode_escapes(text: str) -> str:
    return re.sub(r'\\"+|""+', '"', text.replace("\\n", "\n")) if "\\" in text or '""' in text else text


def tokenizer_file(source: str) -> tuple[Path, str] | None:
    """``tokenizer.json`` of a model, from a folder or the Hub, and its version: a commit, or a hash of the file.

    None where neither the Hub nor its cache has it. Raises InputError when a folder holds none.
    """
    from huggingface_hub import hf_hub_download

    if (folder := Path(source).expanduser()).is_dir():
        path = folder / "tokenizer.json"
        if not path.is_file():
            raise InputError(f"{folder} holds no tokenizer.json.")
        return path, "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    try:
        answers = revision(source, "model") is not None
        path = Path(hf_hub_download(source, "tokenizer.json", local_files_only=not answers))
    except Exception as error:  # no such repo on this Hub, or no way to it; the caller says so
        if disk_full(error):
            raise unreachable(source, error, INSTEAD) from error
        return None
    return path, path.parent.name  # the cache names the folder by the commit


# ---------------------------------------- what all sources share


def as_text(value: object) -> str:
    """A value of a file as text: 1 and 1.0 are "1", true is "true", nothing (None, NaN) is ""."""
    if value is None or (isinstance(value, float) and np.isnan(value)) or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, bool | np.bool_):
        return str(value).lower()
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def label_text(value: object) -> str:
    """As ``as_text``, and "1.0" is "1"."""
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", as_text(value).strip())


def named(rows: pd.DataFrame, values: pd.Series, mapping: Mapping[str, str], where: str) -> Raw:
    """Values to label names; those that map to "" dropped, those outside the mapping refused."""
    values = values.map({value: label_text(value) for value in values.unique()})
    unknown = values[~values.isin(list(mapping))].value_counts()
    if len(unknown):
        found = ", ".join(f"'{value}' ({n:,} rows)" for value, n in unknown.head(5).items())
        raise InputError(
            f"Labels outside the mapping in {where}: {found}{' and more' if len(unknown) > 5 else ''}; the mapping has "
            f"{', '.join(map(repr, mapping))}. Map every value, to '' those to drop."
        )
    names = values.map(mapping)
    kept = names != ""
    counts = [] if kept.all() else [("rows whose label is mapped to nothing dropped", len(rows), 0, int(kept.sum()))]
    rows = rows[kept].assign(label=names[kept]).reset_index(drop=True)
    label_names = sorted(rows["label"].unique(), key=_natural)
    if len(label_names) < 2:
        raise InputError(
            f"There must be at least two classes to tell apart; {where} gives "
            f"{f'only {label_names[0]!r}' if label_names else 'none'}."
        )
    return Raw(rows, label_names, counts)


def _natural(name: str) -> tuple[bool, float, str]:
    number = re.fullmatch(r"[+-]?\d+(?:\.\d+)?", name)
    return (not number, float(name) if number else 0.0, name)


# ---------------------------------------- the generator


def read_embedded(rows: int, seed: int, depth: int, noise: float, task: str, domain: str | None) -> Raw:
    """Generated rows (``rtxlib.data.synthetic``); with a domain, ``rows`` of that domain alone."""
    from rtxlib.data.synthetic import generate

    table = generate(rows if domain is None else rows * len(DOMAINS), seed, depth, noise, task)
    if domain is not None:
        table = table[table["domain"] == domain].reset_index(drop=True)
    names = {"sentiment": SENTIMENTS, "domain": DOMAINS, "spam": ["ham", "spam"]}[task]
    rows = table[["text", "domain", "label", "depth"]].assign(split="")
    return Raw(rows, names, [("generated", len(rows), 0, len(rows))])


def generator_version() -> str:
    """A hash of the generator's code: other code, other data."""
    folder = Path(__file__).parent
    code = b"".join((folder / name).read_bytes() for name in GENERATOR)
    return hashlib.sha256(code).hexdigest()[:16]
