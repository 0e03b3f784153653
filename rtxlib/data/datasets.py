"""Where rows come from: data sets of the Hugging Face Hub, the user's own file, the embedded generator.

To add a data set of the Hub, add a line to ``HUB``, and its name in tables to :data:`rtxstudy.names.SOURCES`. Its label column
must be "label". Its rows are pooled and split here, unless ``test`` names a published split that serves as test set, or the
publisher's test split is asked for (``official_test``).

To add another kind of data, write a subclass of :class:`DataSpec` and add it to ``KINDS``.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from rtxlib import paths
from rtxlib.data import compose, files, synthetic
from rtxlib.data.rows import PAIR, Rows, labelled
from rtxlib.data.spec import DOMAINS, DataSpec
from rtxlib.errors import InputError, nearest
from rtxlib.hub import require_intact, revision, unreachable

POLARITY = {"0": "negative", "1": "positive"}
AMAZON_STARS = {"1": "negative", "2": "", "3": "", "4": "positive", "5": "positive"}  # "" drops the row
HAM_SPAM = {"0": "ham", "1": "spam"}
FIVE_STARS = {str(stars): str(stars) for stars in range(1, 6)}
INFERENCE = {"0": "entailment", "1": "neutral", "2": "contradiction", "-1": ""}  # −1: the annotators did not agree
ACCEPTABLE = {"0": "unacceptable", "1": "acceptable"}
SENTIMENTS = ["negative", "positive"]
EMBEDDED_ROWS = 6000  # unless a spec says how many
COMPOSED_ROWS = 20_000  # likewise
POOLED_ROWS = 67_000  # of the Hub's pooled sources, unless a spec says how many: about the size of SST-2
INSTEAD = "use your own file (source='file') or the embedded data (source='embedded')"


@dataclass(frozen=True)
class HubDataset:
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
    proportions: bool = False  # of a pooled source: the classes keep their natural shares; otherwise they are balanced
    splits: tuple[str, ...] = ("train", "test")  # splits to read, if present


_MOVIES, _BUSINESS, _SHOPPING = DOMAINS
HUB: dict[str, HubDataset] = {
    "sst2": HubDataset(
        "stanfordnlp/sst2", "sentence", POLARITY, domain=_MOVIES, test="validation", phrases=True, splits=("train", "validation")
    ),
    "yelp_polarity": HubDataset("fancyzhx/yelp_polarity", "text", POLARITY, domain=_BUSINESS, escaped=True),
    "yelp_review_full": HubDataset(
        "Yelp/yelp_review_full", "text", files.STARS, domain=_BUSINESS, stars=True, escaped=True
    ),
    "yelp_five_stars": HubDataset(
        "Yelp/yelp_review_full", "text", FIVE_STARS, task="stars", domain=_BUSINESS, stars=True, escaped=True
    ),
    "amazon_polarity": HubDataset("mteb/amazon_polarity", "text", POLARITY, domain=_SHOPPING),
    "amazon_reviews_multi_en": HubDataset(
        "SetFit/amazon_reviews_multi_en", "text", AMAZON_STARS, domain=_SHOPPING, stars=True,
        splits=("train", "validation", "test"),
    ),
    "sms_spam": HubDataset(
        "ucirvine/sms_spam", "sms", HAM_SPAM, task="spam", domain="messages", proportions=True, splits=("train",)
    ),
    "multi_nli": HubDataset(
        "nyu-mll/multi_nli", "premise", INFERENCE, task="inference", pair="hypothesis", test="validation_matched",
        splits=("train", "validation_matched"),
    ),
    "snli": HubDataset(
        "stanfordnlp/snli", "premise", INFERENCE, task="inference", pair="hypothesis", test="test", splits=("train", "test")
    ),
    "cola": HubDataset(
        "nyu-mll/glue", "sentence", ACCEPTABLE, task="acceptability", config="cola", test="validation",
        splits=("train", "validation"),
    ),
}  # fmt: skip
# Pairs of six public sets in one file, which is not part of the repository: data/README.md says what it holds.
MIX, MIX_FILE = "inference_mix", Path("data") / "inference_mix.parquet"
MIX_TESTS = ("multi_nli", "snli")  # whose published test pairs are its test set
PHRASES = "sst2"  # what composed data take their phrases from
THREE_DOMAINS = ("sst2", "yelp_polarity", "amazon_polarity")  # what is pooled as "domains"
IN_KEY = {"in_key": True}  # a run's key names the source, although its kind has one source only (runs/store.py)


@dataclass(frozen=True)
class Hub(DataSpec):
    """One data set of the Hub, a key of :data:`HUB`."""

    # where the test set is published: the share of the other rows (sst2: of its sentences) in validation; None: splits.py's own
    validation_share: float | None = None
    official_test: bool = False  # where the rows are pooled otherwise: keep the publisher's test split, whole

    @property
    def hub(self) -> tuple[str, ...]:
        return (self.source,)

    @property
    def tasks(self) -> tuple[str, ...]:
        return (HUB[self.source].task,)

    @property
    def published_test(self) -> str | None:
        return HUB[self.source].test or ("test" if self.official_test else None)

    @property
    def pairs(self) -> bool:
        return HUB[self.source].pair is not None

    @property
    def phrases(self) -> bool:
        return HUB[self.source].phrases

    @property
    def balanced(self) -> bool:
        return not HUB[self.source].proportions

    def revisions(self) -> dict[str, str]:
        return commits(self.hub)

    def read(self) -> Rows:
        most = None if HUB[self.source].test else 4 * (self.rows or POOLED_ROWS)  # leaves room for balancing
        return read_hub(self.source, most, self.seed, self.published_test)

    def check(self) -> None:
        super().check()
        if self.official_test and (HUB[self.source].test is not None or "test" not in HUB[self.source].splits):
            raise InputError(
                f"official_test is for sources that are pooled although they have a test split; '{self.source}' is none of them."
            )
        if self.validation_share is not None and self.published_test is None:
            raise InputError(f"validation_share belongs to sources with a published test set; '{self.source}' has none.")


@dataclass(frozen=True)
class Pooled(DataSpec):
    """Reviews of three domains in one data set, each domain from a data set of the Hub."""

    source: str = field(default="domains", metadata=IN_KEY)
    domain: str | None = None
    tasks = ("domain", "sentiment")
    balanced = True

    @property
    def hub(self) -> tuple[str, ...]:
        return tuple(name for name in THREE_DOMAINS if self.domain in (None, HUB[name].domain))

    def revisions(self) -> dict[str, str]:
        return commits(self.hub)

    def read(self) -> Rows:
        parts = [read_hub(name, None if HUB[name].test else 4 * (self.rows or POOLED_ROWS), self.seed) for name in self.hub]
        for name, part in zip(self.hub, parts, strict=True):
            if HUB[name].phrases:  # the published test sentences stay out of every training set
                part.table = part.part("train")
        table = pd.concat([part.table for part in parts], ignore_index=True)
        if len(parts) == 1:
            return Rows(table, parts[0].label_names, parts[0].steps, parts[0].notes)
        rows = Rows(table, SENTIMENTS, notes=[note for part in parts for note in part.notes])
        rows.changed(f"read from {', '.join(HUB[name].repo for name in self.hub)}", 0)
        for part in parts:  # reading drops no row, so only changes are recorded
            for step, _, changed, _ in part.steps[1:]:
                rows.changed(step, changed)
        return rows

    def check(self) -> None:
        super().check()
        _require_other_task(self)


@dataclass(frozen=True)
class InferenceMix(DataSpec):
    """Training pairs of six inference sets from one file, and the published test pairs of MultiNLI and SNLI."""

    source: str = field(default="inference_mix", metadata=IN_KEY)
    validation_share: float | None = None
    hub = MIX_TESTS
    tasks = ("inference",)
    published_test = "test"
    pairs = True

    def revisions(self) -> dict[str, str]:
        return {MIX_FILE.name: "sha256:" + files.sha256(mix_file())} | commits(self.hub)

    def read(self) -> Rows:
        """The training pairs with their set as the domain. Raises InputError where the file is missing, and as the Hub's data."""
        names = [name for name in INFERENCE.values() if name]
        rows = files.read_file(mix_file(), "premise", "label", dict(zip(names, names, strict=True)), False, "hypothesis")
        rows.table = rows.table.assign(split="train", domain="mixed")
        for name in MIX_TESTS:
            test = read_hub(name, None, self.seed)
            pairs = test.part(HUB[name].test).assign(split="test", domain=name)
            rows.table = pd.concat([rows.table, pairs], ignore_index=True)
            rows.notes += test.notes
            rows.changed(f"test pairs of {HUB[name].repo} added", 0)
        rows.label_names = names
        return rows


@dataclass(frozen=True)
class File(DataSpec):
    """The user's own file."""

    source: str = field(default="file", metadata=IN_KEY)
    path: str | None = None
    text_column: str | None = None  # None: "text"
    text_pair_column: str | None = None  # of the second text, where a row is a pair of texts; None: it is a single text
    label_column: str | None = None  # None: "label"
    labels: dict[str, str] | None = field(default=None, hash=False)  # value in the file -> label name; "" drops the row
    stars: bool = False  # the labels are 1 to 5 stars: 1–2 negative, 3 dropped, 4–5 positive

    @property
    def tasks(self) -> tuple[str, ...]:
        return ALL_TASKS  # the user names the labels

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1] if self.path else self.source

    @property
    def pairs(self) -> bool:
        return self.text_pair_column is not None

    def revisions(self) -> dict[str, str]:
        path = Path(self.path or "").expanduser()
        return {path.name: "sha256:" + files.sha256(path)}

    def read(self) -> Rows:
        path = Path(self.path or "").expanduser()
        return files.read_file(path, self.text_column, self.label_column, self.labels, self.stars, self.text_pair_column)

    def check(self) -> None:
        super().check()
        if not self.path:
            raise InputError("source='file' needs path, the file to read.")


@dataclass(frozen=True)
class Generated(DataSpec):
    """Texts of the embedded generator (:mod:`rtxlib.data.synthetic`); made in memory."""

    source: str = "embedded"
    domain: str | None = None
    depth: int = 3  # composition depth
    noise: float = 0.02  # share of wrong labels
    tasks = ("sentiment", "domain", "spam")
    most_rows = 10**7

    def revisions(self) -> dict[str, str]:
        return {"embedded generator": synthetic.VERSION}

    def read(self) -> Rows:
        """The generated rows; with a domain, the number of rows asked for of that domain alone."""
        count = EMBEDDED_ROWS if self.rows is None else self.rows
        if self.domain is not None:
            count *= len(DOMAINS)
        table = synthetic.generate(count, self.seed, self.depth, self.noise, self.task)
        if self.domain is not None:
            table = table[table["domain"] == self.domain].reset_index(drop=True)
        rows = Rows(table[["text", "domain", "label", "depth"]].assign(split=""), list(synthetic.LABELS[self.task]))
        rows.changed("generated", 0)
        return rows

    def check(self) -> None:
        super().check()
        _require_other_task(self)


@dataclass(frozen=True)
class Composed(DataSpec):
    """Pairs of texts composed of SST-2's training phrases (:mod:`rtxlib.data.compose`), split already; made in memory."""

    source: str = field(default="composed", metadata=IN_KEY)
    depth: int = 3  # the most steps of a pointer
    items: int = 10  # phrases of a pointer text, an even number
    hub = (PHRASES,)
    tasks = ("same", "pointer")
    pairs = True
    most_rows = 10**6

    def revisions(self) -> dict[str, str]:
        return commits(self.hub) | {"composition": compose.VERSION}

    def read(self) -> Rows:
        pool, notes = read_phrases(self.seed)
        rows = COMPOSED_ROWS if self.rows is None else self.rows
        table = compose.compose(self.task, pool, rows, self.depth if self.task == "pointer" else 0, self.seed, self.items)
        composed = Rows(table, list(compose.LABELS[self.task]), notes=list(notes))  # the phrases are kept for others
        composed.changed(f"composed of {len(pool):,} phrases of {HUB[PHRASES].repo}", 0)
        return composed


def _require_other_task(spec: Generated | Pooled) -> None:
    """Raise InputError where one domain is asked for and the task needs all of them, or none."""
    if spec.domain is not None and spec.task == "domain":
        raise InputError("task='domain' tells the domains apart, so domain must not pick one of them.")
    if spec.domain is not None and spec.task == "spam":
        raise InputError("task='spam' writes messages, which have no domain; leave domain out.")


KINDS: dict[str, type[DataSpec]] = {
    kind.source: kind for kind in (Generated, File, Pooled, Composed, InferenceMix)
} | dict.fromkeys(HUB, Hub)
NAMES = tuple(KINDS)
ALL_TASKS = tuple(dict.fromkeys([*Generated.tasks, *Composed.tasks, *(entry.task for entry in HUB.values())]))


def data_spec(source: str = "embedded", **fields: Any) -> DataSpec:
    """The description of a source's data, with its own task. Spam keeps its links, because they tell. ``fields`` override both.

    Raises InputError for an unknown source, and for a field that its kind of data has no use for.
    """
    if source not in KINDS:
        raise InputError(f"No source '{source}'; there are {', '.join(NAMES)}.{nearest(str(source), NAMES)}")
    kind = KINDS[source]
    known = _fields(kind)
    for name in fields.keys() - known:
        kinds = [other for other in dict.fromkeys(KINDS.values()) if name in _fields(other)]
        if not kinds:
            raise InputError(f"Data have no field '{name}'.{nearest(name, known)}")
        owners = " or ".join("a data set of the Hub" if other is Hub else f"source='{other.source}'" for other in kinds)
        raise InputError(f"{name} is for {owners}; '{source}' has no use for it.")
    task = fields.get("task", HUB[source].task if kind is Hub else "sentiment" if kind is File else kind.tasks[0])
    settings = {"task": task} | ({"strip_urls": False} if task == "spam" else {})
    return kind(source=source, **(settings | fields))


def from_record(record: Mapping[str, Any]) -> DataSpec:
    """The description of which a run keeps this record. Records of earlier versions have the fields of all kinds."""
    kind = KINDS[record["source"]]
    return kind(**{name: value for name, value in record.items() if name in _fields(kind)})


def label_values(spec: DataSpec) -> Mapping[str, str] | None:
    """Value in the data → label name, or "" for a value whose rows are dropped; None where the data hold the names themselves."""
    if isinstance(spec, File):
        return files.STARS if spec.stars else spec.labels
    return HUB[spec.source].labels if spec.source in HUB else None


def _fields(kind: type[DataSpec]) -> set[str]:
    return {each.name for each in dataclasses.fields(kind)}


def commits(names: tuple[str, ...]) -> dict[str, str]:
    """Repository → commit of data sets of the Hub. Raises InputError where neither the Hub nor its cache has one."""
    configs = {HUB[name].repo: HUB[name].config for name in names}
    return {repo: revision(repo) or _load(repo, config)[1] for repo, config in configs.items()}


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


def mix_file() -> Path:
    """The file of the mixed inference pairs. Raises InputError where it is missing."""
    path = paths.root() / MIX_FILE
    if not path.is_file():
        raise InputError(f"The source '{MIX}' needs the file {path}, which you have to make; data/README.md says what it holds.")
    return path


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
