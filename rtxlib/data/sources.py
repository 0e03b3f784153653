"""Where rows come from: data sets of the Hugging Face Hub, the user's own file, the embedded generator.

To add a data set of the Hub, add a line to ``HUB``. Its label column must be called "label". Its rows are pooled and split
here, unless ``test`` names a published split that serves as test set, or a spec asks for the publisher's test split
(``official_test``).

To add another kind of source, write a function that returns ``Rows``, call it in ``read``, return the source's version from
``revisions``, and add its name to ``NAMES`` and its tasks to ``TASKS``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data import compose, files, synthetic
from rtxlib.data.rows import PAIR, Rows, labelled
from rtxlib.errors import InputError
from rtxlib.hub import require_intact, revision, unreachable

if TYPE_CHECKING:
    from rtxlib.data.spec import DataSpec

POLARITY = {"0": "negative", "1": "positive"}
AMAZON_STARS = {"1": "negative", "2": "", "3": "", "4": "positive", "5": "positive"}  # "" drops the row
HAM_SPAM = {"0": "ham", "1": "spam"}
FIVE_STARS = {str(stars): str(stars) for stars in range(1, 6)}
INFERENCE = {"0": "entailment", "1": "neutral", "2": "contradiction", "-1": ""}  # −1: the annotators did not agree
ACCEPTABLE = {"0": "unacceptable", "1": "acceptable"}
SENTIMENTS, DOMAINS = ["negative", "positive"], ["movies", "local business", "online shopping"]
EMBEDDED_ROWS = 6000  # unless a spec says how many
COMPOSED_ROWS = 20_000  # likewise
POOLED_ROWS = 67_000  # of the Hub's pooled sources, unless a spec says how many: about the size of SST-2
INSTEAD = "use your own file (source='file') or the embedded data (source='embedded')"


@dataclass(frozen=True)
class HubSource:
    """A data set of the Hub: where it lies, which columns it has, and what its labels mean."""

    repo: str
    text: str  # column of the text; the column of the label is always "label"
    labels: Mapping[str, str]  # value in the file, as text -> label name; "" drops the row
    task: str = "sentiment"
    domain: str = ""
    pair: str | None = None  # column of the second text, where a row is a pair of texts
    config: str | None = None  # the name of the configuration, where the repo holds several data sets
    test: str | None = None  # the published split that serves as test set; None: all rows are pooled and split here
    stars: bool = False  # label = stars − 1
    escaped: bool = False  # line breaks are written as backslash-n, quotes are doubled or have a backslash
    phrases: bool = False  # the training rows are phrases of sentences
    proportions: bool = False  # the classes keep their natural shares; otherwise they are balanced
    splits: tuple[str, ...] = ("train", "test")  # splits to read, if present


_MOVIES, _BUSINESS, _SHOPPING = DOMAINS
HUB: dict[str, HubSource] = {
    "sst2": HubSource(
        "stanfordnlp/sst2", "sentence", POLARITY, domain=_MOVIES, test="validation", phrases=True, splits=("train", "validation")
    ),
    "yelp_polarity": HubSource("fancyzhx/yelp_polarity", "text", POLARITY, domain=_BUSINESS, escaped=True),
    "yelp_review_full": HubSource(
        "Yelp/yelp_review_full", "text", files.STARS, domain=_BUSINESS, stars=True, escaped=True
    ),
    "yelp_five_stars": HubSource(
        "Yelp/yelp_review_full", "text", FIVE_STARS, task="stars", domain=_BUSINESS, stars=True, escaped=True
    ),
    "amazon_polarity": HubSource("mteb/amazon_polarity", "text", POLARITY, domain=_SHOPPING),
    "amazon_reviews_multi_en": HubSource(
        "SetFit/amazon_reviews_multi_en", "text", AMAZON_STARS, domain=_SHOPPING, stars=True,
        splits=("train", "validation", "test"),
    ),
    "sms_spam": HubSource(
        "ucirvine/sms_spam", "sms", HAM_SPAM, task="spam", domain="messages", proportions=True, splits=("train",)
    ),
    "multi_nli": HubSource(
        "nyu-mll/multi_nli", "premise", INFERENCE, task="inference", pair="hypothesis", test="validation_matched",
        splits=("train", "validation_matched"),
    ),
    "snli": HubSource(
        "stanfordnlp/snli", "premise", INFERENCE, task="inference", pair="hypothesis", test="test", splits=("train", "test")
    ),
    "cola": HubSource(
        "nyu-mll/glue", "sentence", ACCEPTABLE, task="acceptability", config="cola", test="validation",
        splits=("train", "validation"),
    ),
}  # fmt: skip
# Pairs of six public sets in one file, which is not part of the repository: data/README.md says what it holds.
MIX, MIX_FILE = "inference_mix", Path("data") / "inference_mix.parquet"
MIX_TESTS = ("multi_nli", "snli")  # whose published test pairs are its test set
PHRASES = "sst2"  # what source="composed" takes its phrases from
THREE_DOMAINS = ("sst2", "yelp_polarity", "amazon_polarity")  # what source="domains" pools
NAMES = ("embedded", "file", "domains", "composed", MIX, *HUB)
# The first task is the default. 'file' has no entry because the user names its labels.
TASKS: dict[str, tuple[str, ...]] = {
    "embedded": ("sentiment", "domain", "spam"),
    "domains": ("domain", "sentiment"),
    "composed": ("same", "pointer"),
    MIX: ("inference",),
    **{name: (source.task,) for name, source in HUB.items()},
}
ALL_TASKS = tuple(dict.fromkeys(task for tasks in TASKS.values() for task in tasks))


def hub_names(spec: DataSpec) -> tuple[str, ...]:
    """The keys of ``HUB`` that a spec reads; empty where it reads nothing from the Hub."""
    if spec.source == "domains":
        return tuple(name for name in THREE_DOMAINS if spec.domain in (None, HUB[name].domain))
    if spec.source == "composed":
        return (PHRASES,)
    if spec.source == MIX:
        return MIX_TESTS
    return (spec.source,) if spec.source in HUB else ()


def can_keep_test(name: str) -> bool:
    """Whether ``official_test`` has a meaning for a source: it is pooled, and one of its published splits is called "test"."""
    return name in HUB and HUB[name].test is None and "test" in HUB[name].splits


def published_test(spec: DataSpec) -> str | None:
    """The published split that is the test set of a spec; None where all rows are pooled and split here."""
    if spec.source == MIX:
        return "test"
    if spec.source not in HUB:
        return None
    return HUB[spec.source].test or ("test" if spec.official_test else None)


def has_published_splits(spec: DataSpec) -> bool:
    """Whether a spec keeps the test set of its publisher; all other rows are pooled and split here."""
    return published_test(spec) is not None


def has_pairs(spec: DataSpec) -> bool:
    """Whether the rows of a spec are pairs of texts."""
    of_source = spec.source in ("composed", MIX) or (spec.source in HUB and HUB[spec.source].pair is not None)
    return of_source or spec.text_pair_column is not None


def revisions(spec: DataSpec) -> dict[str, str]:
    """What a spec is read from, and in which state: a commit of the Hub, a hash of the file, the generator's version.

    Raises InputError as ``read``, where the state cannot be found out.
    """
    if spec.source == "embedded":
        return {"embedded generator": synthetic.VERSION}
    if spec.source == "file":
        path = Path(spec.path or "").expanduser()
        return {path.name: "sha256:" + files.sha256(path)}
    wanted = {HUB[name].repo: HUB[name].config for name in hub_names(spec)}
    commits = {repo: revision(repo) or _load(repo, config)[1] for repo, config in wanted.items()}
    if spec.source == MIX:
        return {MIX_FILE.name: "sha256:" + files.sha256(_mix_file())} | commits
    return commits | ({"composition": compose.VERSION} if spec.source == "composed" else {})


def read(spec: DataSpec) -> Rows:
    """The rows of a spec as its source has them. A large Hub data set is sampled to four times the requested rows.

    Raises:
        InputError: the Hub and its cache are out of reach, a data set has changed, or a file cannot be read.
    """
    if spec.source == "embedded":
        return read_embedded(spec)
    if spec.source == "file":
        path = Path(spec.path or "").expanduser()
        return files.read_file(
            path, spec.text_column, spec.label_column, spec.labels, spec.stars, spec.text_pair_column
        )
    if spec.source == "composed":
        return read_composed(spec)
    if spec.source == MIX:
        return read_inference_mix(spec)
    parts = []
    for name in hub_names(spec):
        most = None if HUB[name].test else 4 * (spec.rows or POOLED_ROWS)  # leaves room for balancing
        parts.append(read_hub(name, most, spec.seed, published_test(spec)))
    if spec.source != "domains":
        return parts[0]
    for name, part in zip(hub_names(spec), parts, strict=True):
        if HUB[name].phrases:  # the published test sentences stay out of every training set
            part.table = part.part("train")
    table = pd.concat([part.table for part in parts], ignore_index=True)
    if len(parts) == 1:
        return Rows(table, parts[0].label_names, parts[0].steps, parts[0].notes)
    rows = Rows(table, SENTIMENTS, notes=[note for part in parts for note in part.notes])
    rows.changed(f"read from {', '.join(HUB[name].repo for name in hub_names(spec))}", 0)
    for part in parts:  # reading drops no row, so only changes are recorded
        for step, _, changed, _ in part.steps[1:]:
            rows.changed(step, changed)
    return rows


def read_embedded(spec: DataSpec) -> Rows:
    """Generated rows (``rtxlib.data.synthetic``); with a domain, the asked number of rows of that domain alone."""
    count = EMBEDDED_ROWS if spec.rows is None else spec.rows
    if spec.domain is not None:
        count *= len(DOMAINS)
    table = synthetic.generate(count, spec.seed, spec.depth, spec.noise, spec.task)
    if spec.domain is not None:
        table = table[table["domain"] == spec.domain].reset_index(drop=True)
    rows = Rows(table[["text", "domain", "label", "depth"]].assign(split=""), list(synthetic.LABELS[spec.task]))
    rows.changed("generated", 0)
    return rows


def read_phrases(seed: int) -> tuple[pd.DataFrame, list[str]]:
    """The short phrases of which rows are composed, as :func:`compose.phrase_pool` gives them, and notes on their source.

    Raises InputError as ``read_hub``.
    """
    return _phrases(seed, revision(HUB[PHRASES].repo))


@cache
def _phrases(seed: int, revision: str | None) -> tuple[pd.DataFrame, list[str]]:
    """:func:`read_phrases` of one revision, once: each composed data set of a study needs the same phrases."""
    phrases = read_hub(PHRASES, None, seed)
    training = phrases.part("train")
    return compose.phrase_pool(training["text"], training["label"], seed), phrases.notes


def read_composed(spec: DataSpec) -> Rows:
    """Rows composed of SST-2's training phrases (``rtxlib.data.compose``), split already. Raises InputError as ``read_hub``."""
    pool, notes = read_phrases(spec.seed)
    rows = COMPOSED_ROWS if spec.rows is None else spec.rows
    table = compose.compose(spec.task, pool, rows, spec.depth if spec.task == "pointer" else 0, spec.seed, spec.items)
    composed = Rows(table, list(compose.LABELS[spec.task]), notes=list(notes))  # the phrases are kept for others
    composed.changed(f"composed of {len(pool):,} phrases of {HUB[PHRASES].repo}", 0)
    return composed


def _mix_file() -> Path:
    """The file of the mixed inference pairs. Raises InputError where it is missing."""
    path = paths.root() / MIX_FILE
    if not path.is_file():
        raise InputError(f"The source '{MIX}' needs the file {path}, which you have to make; data/README.md says what it holds.")
    return path


def read_inference_mix(spec: DataSpec) -> Rows:
    """Training pairs of six inference sets, with their set as the domain, and the published test pairs of MultiNLI and SNLI.

    Raises InputError where the file is missing or broken, and as ``read_hub``.
    """
    names = [name for name in INFERENCE.values() if name]
    rows = files.read_file(_mix_file(), "premise", "label", dict(zip(names, names, strict=True)), False, "hypothesis")
    rows.table = rows.table.assign(split="train", domain="mixed")
    for name in MIX_TESTS:
        test = read_hub(name, None, spec.seed)
        pairs = test.part(HUB[name].test).assign(split="test", domain=name)
        rows.table = pd.concat([rows.table, pairs], ignore_index=True)
        rows.notes += test.notes
        rows.changed(f"test pairs of {HUB[name].repo} added", 0)
    rows.label_names = names
    return rows


def read_hub(name: str, most: int | None, seed: int, whole: str | None = None) -> Rows:
    """The labelled rows of a Hub data set.

    Args:
        name: a key of ``HUB``
        most: the largest number of rows. A larger data set is sampled with the seed. None: all rows
        seed: of the sample
        whole: a published split of which every row is read, beside the others' sample

    Raises:
        InputError: neither the Hub nor its cache has the data set, or its columns or labels have changed.
    """
    source = HUB[name]
    loaded, _, answered = _load(source.repo, source.config)
    parts = {split: loaded[split] for split in source.splits if split in loaded}
    columns = next(iter(loaded.values())).column_names
    named = {source.text: "text", **({source.pair: PAIR} if source.pair else {}), "label": "label"}
    if not parts or not set(named) <= set(columns) or not {source.test, whole} <= {None, *parts}:
        raise InputError(
            f"{source.repo} is not as it was: it has the splits {', '.join(loaded)} with {', '.join(columns)}, "
            f"where {', '.join(source.splits)} with {', '.join(map(repr, named))} were expected."
        )
    total = sum(map(len, parts.values()))
    sampled = total - (len(parts[whole]) if whole else 0)
    tables = []
    for split, part in parts.items():
        if most is not None and sampled > most and split != whole:
            share = round(most * len(part) / sampled)
            part = part.select(np.sort(np.random.default_rng((seed, len(tables))).permutation(len(part))[:share]))
        table = part.select_columns(list(named)).to_pandas().rename(columns=named)
        tables.append(table.astype({column: object for column in table if column != "label"}).assign(split=split))
    table = pd.concat(tables, ignore_index=True).assign(domain=source.domain)
    steps = [(f"read from {source.repo}", total, 0, len(table))]
    if source.escaped:
        lines = table["text"].str.replace("\\n", "\n", regex=False)
        decoded = [re.sub(r'\\"+|""+', '"', text) for text in lines]
        changed = sum(a != b for a, b in zip(table["text"], decoded, strict=True))
        table["text"] = decoded
        steps.append(("escaped line breaks and quotes decoded", len(table), changed, len(table)))
    rows = labelled(table, table.pop("label") + (1 if source.stars else 0), source.labels, source.repo)
    rows.steps = steps + rows.steps
    if not answered:
        rows.notes.append(f"The Hub did not answer; {source.repo} was read from its cache on this machine.")
    return rows


@cache
def _load(repo: str, config: str | None) -> tuple[Any, str, bool]:
    """The data set (memory-mapped), its commit, and whether the Hub answered; read once per process."""
    import datasets
    from datasets.packaged_modules.cache.cache import Cache

    commit = revision(repo)
    verbosity, bars = datasets.utils.logging.get_verbosity(), datasets.is_progress_bar_enabled()
    datasets.utils.logging.set_verbosity_error()
    datasets.disable_progress_bars()
    try:
        if commit is not None:
            loaded = datasets.load_dataset(repo, config, revision=commit)
        else:
            # Offline, load_dataset calls the Hub for half a minute. This reads the cache directly.
            name = repo.rsplit("/", 1)[-1]
            loaded = Cache(repo_id=repo, dataset_name=name, config_name=config, version="auto", hash="auto").as_dataset()
    except Exception as error:
        reason = ConnectionError("The Hub does not answer.") if commit is None else error
        raise unreachable(repo, reason, INSTEAD) from error
    finally:
        datasets.utils.logging.set_verbosity(verbosity)
        if bars:
            datasets.enable_progress_bars()
    stored = next(iter(loaded.values())).cache_files  # in a folder named by the commit
    made = [Path(file["filename"]).parent for file in stored[:1]]
    require_intact(repo, "dataset", lambda: [shutil.rmtree(folder, ignore_errors=True) for folder in made])
    return loaded, commit or (Path(stored[0]["filename"]).parent.name if stored else "unknown"), commit is not None
