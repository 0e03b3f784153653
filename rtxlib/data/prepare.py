"""From a DataSpec to token ids on disk: read, clean, split, audit, tokenise, once for each content."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from filelock import FileLock
from huggingface_hub import constants
from transformers import PreTrainedTokenizerFast

from rtxlib.data import audit, clean, files, prepared, sources, splits, tokenization
from rtxlib.data.batching import Tokens
from rtxlib.data.prepared import SPLITS, Prepared
from rtxlib.data.spec import FEWEST, DataSpec, check, hub_names, is_hub, wanted_tokenizer
from rtxlib.errors import READ_ONLY, InputError, disk_full

__all__ = ["DataSpec", "Prepared", "Tokens", "prepare"]

PUBLISHERS = "https://huggingface.co"  # where publishers put their data; another HF_ENDPOINT is a mirror
CLEANING = tuple(clean.STEPS)
EMBEDDED_ROWS = 6000
POOLED_ROWS = 67_000  # as many as SST-2 has, where a pooled source is read without a number


def prepare(spec: DataSpec, cache: Path, progress: bool = True) -> Prepared:
    """The data of a spec, made once and kept under ``cache``.

    The folder is named by a hash of the spec, of the revisions read (of a file: its bytes), of the tokenizer and of the
    code that makes it. It is written aside and moved into place whole; a second process waits for the first.

    Args:
        spec: what is wanted
        cache: folder of prepared data
        progress: say on standard error what is being done

    Raises:
        InputError: whatever a user can mend: a field out of range, a source out of reach, a file that cannot be read, a
            leak across splits, a full disk.
    """
    check(spec)
    cache = Path(cache)
    wanted = wanted_tokenizer(spec)
    try:
        revisions = _revisions(spec)
    except InputError:
        if is_hub(spec) and (found := next(prepared.made_before(spec, cache), None)) is not None:
            return _noted(found, "The Hub and its cache were out of reach; the data were prepared earlier.")
        raise
    ready = wanted and sources.tokenizer_file(wanted)
    if wanted and ready is None:
        for found in prepared.made_before(spec, cache):
            if found.provenance["revisions"] == revisions and found.provenance["tokenizer"].startswith(wanted):
                return _noted(found, f"{wanted} was out of reach; the data were tokenised with it earlier.")
        if spec.tokenizer != "auto":
            raise InputError(
                f"The tokenizer of {wanted} could be had neither from the Hub nor from its cache here: set "
                "HF_ENDPOINT or HF_HOME, or ask for tokenizer='wordpiece'."
            )
    named_by = {
        "spec": {name: value for name, value in dataclasses.asdict(spec).items() if name != "path"},
        "revisions": revisions,
        "tokenizer": ready and ready[1],
        "code": prepared.code_version(),
    }
    folder = cache / hashlib.sha256(json.dumps(named_by, sort_keys=True).encode()).hexdigest()[:16]

    def say(line: str) -> None:
        if progress:
            print(f"data: {line}", file=sys.stderr, flush=True)

    if (found := prepared.read(folder, spec)) is not None:
        return found
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if (found := prepared.read(folder, spec)) is not None:  # another process was making it
                return found
            if folder.exists():
                say(f"{folder} is damaged and is made anew")
                shutil.rmtree(folder)
            _make(spec, folder, revisions, (wanted, *ready) if ready else None, say)
    except OSError as error:
        if error.errno in READ_ONLY:
            raise InputError(f"Prepared data cannot be written to {cache}: {error.strerror}.") from error
        if not disk_full(error):
            raise
        raise InputError(f"The disk of {cache} is full; prepared data need room there. Nothing was kept.") from error
    if (found := prepared.read(folder, spec)) is None:
        raise InputError(f"{folder} cannot be read back right after it was written; is its disk in order?")
    return found


def _noted(found: Prepared, note: str) -> Prepared:
    found.provenance["notes"] = [*found.provenance["notes"], note]
    return found


def _revisions(spec: DataSpec) -> dict[str, str]:
    """What the rows are read from, and in which state: a commit, a hash of a file, a hash of the generator."""
    if spec.source == "embedded":
        return {"embedded generator": sources.generator_version()}
    if spec.source == "file":
        path = Path(spec.path or "").expanduser()
        return {path.name: "sha256:" + hashlib.sha256(files.read_bytes(path)).hexdigest()}
    return {sources.HUB[name].repo: sources.hub_revision(name) for name in hub_names(spec)}


class _Ledger:
    """Rows on their way, with what each step changed and dropped."""

    def __init__(self, raw: sources.Raw) -> None:
        self.rows, self.steps, self.notes = raw.rows, list(raw.counts), list(raw.notes)

    def keep(self, step: str, kept: np.ndarray) -> None:
        """Keep rows by mask or by index; a step that drops nothing is not written down."""
        before = len(self.rows)
        self.rows = self.rows.iloc[np.flatnonzero(kept) if kept.dtype == bool else kept].reset_index(drop=True)
        if len(self.rows) < before:
            self.steps.append((step, before, 0, len(self.rows)))

    def changed(self, step: str, rows: int) -> None:
        self.steps.append((step, len(self.rows), rows, len(self.rows)))


def _read(spec: DataSpec) -> sources.Raw:
    if spec.source == "embedded":
        count = EMBEDDED_ROWS if spec.rows is None else spec.rows
        return sources.read_embedded(count, spec.seed, spec.depth, spec.noise, spec.task, spec.domain)
    if spec.source == "file":
        path = Path(spec.path or "").expanduser()
        return files.read_file(path, spec.text_column, spec.label_column, spec.labels, spec.stars)
    parts = []
    for name in hub_names(spec):
        # of the Hub's millions a draw is enough: four times what is asked leaves room for balancing
        most = None if name == "sst2" else 4 * (spec.rows or POOLED_ROWS)
        part = sources.read_hub(name, most, spec.seed)
        if spec.source == "domains" and name == "sst2":  # its test rows stay out of every training set
            part.rows = part.rows[part.rows["split"] == "train"]
        parts.append(part)
    rows = pd.concat([part.rows for part in parts], ignore_index=True)
    if len(parts) == 1:
        return dataclasses.replace(parts[0], rows=rows)
    counts = [(f"read from {', '.join(sources.HUB[name].repo for name in hub_names(spec))}", len(rows), 0, len(rows))]
    # none of the three drops rows while it is read
    counts += [(step, len(rows), changed, len(rows)) for part in parts for step, _, changed, _ in part.counts[1:]]
    return sources.Raw(rows, sources.SENTIMENTS, counts, [note for part in parts for note in part.notes])


def _make(
    spec: DataSpec,
    folder: Path,
    revisions: Mapping[str, str],
    ready: tuple[str, Path, str] | None,
    say: Callable[[str], None],
) -> None:
    """Everything that ``prepare`` promises, into ``folder``."""
    started = time.monotonic()
    say(f"reading {spec.path if spec.source == 'file' else ', '.join(revisions)}")
    raw = _read(spec)
    ledger = _Ledger(raw)
    ledger.rows["text"], changed = clean.clean(ledger.rows["text"], **{name: getattr(spec, name) for name in CLEANING})
    for step, count in changed.items():
        ledger.changed(step, count)
    ledger.keep("empty texts dropped", (ledger.rows["text"].str.strip() != "").to_numpy())
    say(f"splitting {len(ledger.rows):,} rows")
    published = _split_sst2(spec, ledger) if spec.source == "sst2" else _split_pool(spec, ledger)

    label_names = list(sources.DOMAINS) if spec.task == "domain" and is_hub(spec) else raw.label_names
    if spec.train_fraction < 1:
        train = np.flatnonzero(ledger.rows["split"] == "train")
        kept = train[splits.nested(ledger.rows["label"].to_numpy()[train], spec.train_fraction, spec.seed)]
        step = f"{100 * spec.train_fraction:g} % of the training rows kept"
        ledger.keep(step, np.sort(np.concatenate([kept, np.flatnonzero(ledger.rows["split"] != "train")])))
    parts = {name: ledger.rows[ledger.rows["split"] == name].reset_index(drop=True) for name in SPLITS}
    if parts["train"]["label"].nunique() < 2:
        raise InputError(f"Only the class '{parts['train']['label'].iloc[0]}' is left in training; give more rows.")
    for name in ("validation", "test"):
        if missing := set(label_names) - set(parts[name]["label"]):
            ledger.notes.append(f"The {name} split holds no row of {', '.join(sorted(missing))}.")

    say("tokenising")
    tokenizer, described = _tokenizer(spec, ready, parts["train"]["text"], ledger.notes)
    arrays: dict[str, Tokens] = {}
    cut = before = after = 0
    for name, rows in parts.items():
        ids, offsets = tokenization.encode(rows["text"], tokenizer, None)
        rows["words"], rows["tokens"] = rows["text"].str.split().str.len(), np.diff(offsets)
        before += len(rows)
        if spec.lengths != "all":
            kept = splits.by_length(np.diff(offsets), spec.lengths, spec.seed)
            rows, (ids, offsets) = rows.iloc[kept].reset_index(drop=True), tokenization.take(ids, offsets, kept)
        after += len(rows)
        cut += int((rows["tokens"] > spec.max_length).sum())
        numbers = rows["label"].map({label: number for number, label in enumerate(label_names)}).to_numpy(np.int64)
        parts[name] = rows.assign(label_name=rows["label"], label=numbers)
        arrays[name] = Tokens(*tokenization.truncate(ids, offsets, spec.max_length), numbers)
    if spec.lengths != "all":
        ledger.steps.append((f"{spec.lengths} 30 % of each split kept, by tokens", before, 0, after))
    ledger.steps.append((f"texts cut to {spec.max_length} tokens", after, cut, after))

    say("looking for leaks")
    table = audit.audit(parts, spec.leak_words)
    allowed = [frozenset(("train", "test")), frozenset(("validation", "test"))] if spec.source == "sst2" else []
    if not spec.allow_leaks:
        audit.stop_on_leaks(table, spec.leak_words, allowed)

    sizes = {name: len(rows) for name, rows in parts.items()}
    mirrored = is_hub(spec) and constants.ENDPOINT != PUBLISHERS
    provenance = {
        "source": " + ".join(revisions) + (", from a mirror of the Hub" if mirrored else ""),
        "revision": ", ".join(dict.fromkeys(revisions.values())),
        "revisions": dict(revisions),
        "task": spec.task,
        "tokenizer": described,
        "rows": sizes,
        "notes": ledger.notes,
    }
    filters = pd.DataFrame(ledger.steps, columns=["step", "rows_in", "rows_changed", "rows_out"])
    table = pd.concat([published, table], ignore_index=True)
    prepared.write(folder, spec, arrays, parts, label_names, tokenizer, provenance, filters, table)
    say(f"{' + '.join(f'{n:,} {name}' for name, n in sizes.items())} rows in {time.monotonic() - started:.0f} s")


def _split_sst2(spec: DataSpec, ledger: _Ledger) -> pd.DataFrame:
    """The official test set, an internal validation set; returns the audit of the splits as they are published."""
    official = {name: ledger.rows[ledger.rows["split"] == split] for name, split in
                (("official train", "train"), ("official dev", "validation"))}  # fmt: skip
    published = audit.audit(official, spec.leak_words)
    train = np.flatnonzero(ledger.rows["split"] == "train")
    chosen, dropped, maximal = splits.sst2_validation(ledger.rows["text"].to_numpy()[train], spec.seed)
    where = np.full(len(ledger.rows), "test", dtype=object)
    where[train] = np.where(chosen, "validation", np.where(dropped, "", "train"))
    ledger.rows = ledger.rows.assign(split=where)
    ledger.keep("phrases inside validation sentences dropped", where != "")
    ledger.notes.append(
        f"The test set is the official dev set ({len(where) - len(train):,} sentences; the official test labels are "
        f"not public). Internal validation: {chosen.sum():,} of the {maximal:,} maximal phrases (in no other); the "
        f"{dropped.sum():,} training phrases inside them were dropped."
    )
    if spec.rows is not None and spec.rows < (ledger.rows["split"] != "test").sum():
        keep = [np.flatnonzero(ledger.rows["split"] == "test")]
        validation = np.flatnonzero(ledger.rows["split"] == "validation")
        train = np.flatnonzero(ledger.rows["split"] == "train")
        held = min(len(validation), max(2, spec.rows // 10))
        for pool, count in ((validation, held), (train, spec.rows - held)):
            keep.append(pool[splits.nested(ledger.rows["label"].to_numpy()[pool], count / len(pool), spec.seed)])
        ledger.keep(f"{spec.rows:,} rows drawn for training and validation", np.sort(np.concatenate(keep)))
    return published


def _split_pool(spec: DataSpec, ledger: _Ledger) -> pd.DataFrame:
    """Pooled rows: Hub duplicates out, balanced first, sized second, 80/10/10; returns the audit of the whole pool."""
    read = audit.within("as read", ledger.rows["text"], ledger.rows["label"])
    hub = is_hub(spec)
    if hub:
        key = pd.Series([splits.words_key(text) for text in ledger.rows["text"]])
        torn = ledger.rows["label"].groupby(key).transform("nunique") > 1
        ledger.keep("texts with conflicting labels dropped", ~torn.to_numpy())
        ledger.keep("duplicate texts dropped", ~key[~torn].duplicated().to_numpy())
    strata = ledger.rows["domain"] + " " + ledger.rows["label"]
    if spec.source == "domains" and spec.task == "domain":
        ledger.rows = ledger.rows.assign(label=ledger.rows["domain"])
    strata = strata.to_numpy(dtype=object)
    kept = np.arange(len(strata))
    if hub and not (spec.source in sources.HUB and sources.HUB[spec.source].proportions):
        asked = spec.rows or POOLED_ROWS
        rank = np.random.default_rng(spec.seed).permutation(len(strata))
        movies = np.flatnonzero(ledger.rows["domain"] == sources.DOMAINS[0])
        # whole sentences before their phrases
        rank[movies] = splits.maximal_first(ledger.rows["text"].to_numpy()[movies], spec.seed)
        kept = splits.balanced(strata, asked, rank)
        if len(kept) < asked // len(set(strata)) * len(set(strata)):
            least = pd.Series(strata).value_counts()
            ledger.notes.append(
                f"Asked for {asked:,} rows, took {len(kept):,}: balanced, every class gives as many as the smallest "
                f"has, and '{least.index[-1].strip()}' has {least.iloc[-1]:,}."
            )
        ledger.keep("balanced first, sized second", kept)
    elif spec.rows is not None and spec.rows < len(strata):
        kept = splits.nested(strata, spec.rows / len(strata), spec.seed)
        ledger.keep(f"{spec.rows:,} rows drawn, classes in proportion", kept)
    elif spec.rows is not None and spec.rows > len(strata):
        ledger.notes.append(f"Asked for {spec.rows:,} rows, took {len(strata):,}: there are no more.")
    if len(ledger.rows) < FEWEST:
        raise InputError(f"Only {len(ledger.rows)} rows are left to split; at least {FEWEST} are needed.")
    if ledger.rows["label"].nunique() < 2:
        raise InputError(f"Only the class '{ledger.rows['label'].iloc[0]}' is left; at least two are needed.")
    group = splits.groups(ledger.rows["text"].tolist(), spec.leak_words)
    sizes = np.bincount(group)
    if (sizes > 1).any():
        ledger.notes.append(
            f"{sizes[sizes > 1].sum():,} rows were split in {(sizes > 1).sum():,} group(s) of up to {sizes.max():,}, since "
            f"they have the same words, or one of more than {spec.leak_words} words lies inside another."
        )
    ledger.rows = ledger.rows.assign(split=splits.split(group, strata[kept], spec.seed))
    return read


def _tokenizer(
    spec: DataSpec, ready: tuple[str, Path, str] | None, texts: pd.Series, notes: list[str]
) -> tuple[PreTrainedTokenizerFast, str]:
    """The tokenizer of a spec and what to call it in a report; ``ready``: whose it is, its file and its version."""
    if ready is not None:
        name, path, version = ready
        tokenizer = tokenization.pretrained_tokenizer(path.parent)
        normalizer = tokenizer.backend_tokenizer.normalizer  # None: text is taken as it is
        if not spec.lowercase and normalizer and normalizer.normalize_str("A") == "a":
            notes.append(f"{name} lower-cases all text, also with lowercase=False.")
        return tokenizer, f"{name} at {version[:12]}"
    kind = "wordpiece" if spec.tokenizer == "auto" else spec.tokenizer
    tokenizer = tokenization.train(kind, texts, spec.vocab_size, spec.lowercase)
    described = f"{kind}, trained on the training split"
    if spec.tokenizer == "auto" and is_hub(spec):
        described += f", since {sources.BERT} was out of reach"
        notes.append(
            f"The tokenizer of {sources.BERT} could be had neither from the Hub nor from its cache; a {kind} "
            f"vocabulary of {len(tokenizer):,} pieces was trained on the training split instead."
        )
    return tokenizer, described
