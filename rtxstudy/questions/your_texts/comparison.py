"""The handle of notebook 10: somebody's texts, the models compared on them, and the one to take.

comparison = Comparison.open(Options(file, minutes=minutes, out=out))
race = comparison.race()
choice = comparison.choose()
comparison.hand_over()
comparison.close()
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from rtx.executors import ray as executors
from rtx.process import tune
from rtxlib import paths
from rtxlib.atomic import replacing
from rtxlib.checksums import sha256
from rtxlib.errors import InputError, disk_full, visible
from rtxstudy import checkpoints, provenance
from rtxstudy.questions.your_texts.answer import Answer, plain
from rtxstudy.questions.your_texts.busy import Waiting
from rtxstudy.questions.your_texts.limits import Limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas.io.formats.style import Styler
    from transformers import PreTrainedTokenizerFast

    from rtx.classifiers.folder import Classifier
    from rtxstudy.figures.save import Shown
    from rtxstudy.questions.your_texts.choice import Choice, Joined
    from rtxstudy.questions.your_texts.finished_candidates import Entry
    from rtxstudy.questions.your_texts.label_next import Unlabelled
    from rtxstudy.questions.your_texts.state import Race
    from rtxstudy.questions.your_texts.texts import Texts

MARK = "comparison.json"  # in the folder of a comparison: what it is about
TIMED = 24  # texts that are timed one by one
CALLED_FROM = "RTX_CALLED_FROM"  # the variable that tells the notebook in which folder `rtx compare` was called
STARTED = "RTX_STARTED"  # the variable that tells it when, by the monotonic clock, which is the same in all processes
REPORT_SECONDS, REPORT_SHARE = 20, 0.1  # kept for the choice and the report: so many seconds, at most this share of the minutes
SAMPLE_ROWS = 600  # of generated reviews, where no file is named
MODEL, ANSWER, REPORT, KEPT, FURTHER = "model", "answer.json", "report.html", "kept", "further.csv"


@dataclass(frozen=True)
class Options:
    """What the user asks for: the options of ``rtx compare``, which are the parameters of notebook 10."""

    file: str | None = None
    text_column: str | None = None
    label_column: str | None = None
    text_pair_column: str | None = None
    minutes: float = 15.0
    max_mb: float | None = None
    max_ms: float | None = None
    margin: float = 0.01
    group_column: str | None = None
    split_column: str | None = None
    test: str | None = None
    out: str | None = None
    executor: str | None = None
    every: bool = False
    unlabelled: str | None = None

    @property
    def shown(self) -> dict[str, Any]:
        """The same with the names of files in place of their paths."""
        named = {"file", "test", "out", "unlabelled"}
        return {name: Path(value).name if name in named and value else value for name, value in asdict(self).items()}


@dataclass
class Comparison:
    """One file and one folder, in one notebook. Open it with :meth:`open`."""

    options: Options
    texts: Texts
    folder: Path
    shown: str  # the folder, seen from where the user works
    limits: Limits
    executor: str = "local"
    unlabelled: Unlabelled | None = None
    to_label: str = ""  # a sentence about the texts to label next
    started: float = field(default_factory=time.time)
    waiting: Waiting = field(default_factory=Waiting)
    raced: Race | None = None
    chosen: Choice | None = None
    joined: Joined | None = None

    @classmethod
    def open(cls, options: Options) -> Comparison:
        """Read the file and make the folder. Raises InputError for whatever the user has to mend, before anything is trained."""
        tune()
        from rtxstudy.questions.your_texts.texts import open_texts

        executor = executors.known(options.executor)
        limits = Limits(options.margin, options.max_mb, options.max_ms)
        if not options.minutes >= 0:
            raise InputError(f"The minutes are 0 or more, not {options.minutes}.")
        folder = Path(options.out) if options.out else paths.root() / folder_name(options.file)
        require_ours(folder)
        source = options.file or _sample(folder)
        texts = open_texts(
            source,
            options.text_column,
            options.label_column,
            options.text_pair_column,
            options.group_column,
            options.split_column,
            options.test,
        )
        new = None
        if options.unlabelled is not None:
            from rtxstudy.questions.your_texts import label_next  # it loads torch, which takes seconds

            new = label_next.unlabelled(texts, options.unlabelled)
        _mark(folder, Path(source).absolute(), texts)
        path = os.path.relpath(folder, os.environ.get(CALLED_FROM, os.getcwd()))
        path = os.path.join(os.curdir, path) if path.startswith("-") else path  # a command would take it for an option
        return cls(options, texts, folder.absolute(), path, limits, executor, new)

    # ------------------------------------------------------------------------------------------------------------ the texts

    @cached_property
    def minilm(self) -> bool:
        """Whether MiniLM is within reach."""
        from rtxstudy.questions.your_texts.candidates import MINILM

        return checkpoints.out_of_reach(MINILM) is None

    @cached_property
    def tokenizer(self) -> PreTrainedTokenizerFast:
        """MiniLM's, or without the Hub a vocabulary of the training texts."""
        from rtxlib.data import tokenization
        from rtxlib.models import pretrained
        from rtxstudy.questions.your_texts.candidates import MINILM

        if self.minilm:
            return tokenization.pretrained_tokenizer(pretrained.find(MINILM))
        return tokenization.train(self.texts.whole(self.texts.rows("train")), 8000)

    @cached_property
    def lengths(self) -> pd.DataFrame:
        from rtxstudy.questions.your_texts import text_facts

        return text_facts.lengths(self.texts, self.tokenizer)

    @cached_property
    def findings(self) -> pd.DataFrame:
        from rtxstudy.questions.your_texts import text_facts
        from rtxstudy.questions.your_texts.candidates import MAX_LENGTH

        return text_facts.findings(self.texts, self.lengths, MAX_LENGTH, self.minilm)

    # ------------------------------------------------------------------------------------------------------------ the models

    def race(self) -> Race:
        """Train what the minutes allow; what is finished already is found."""
        from rtxstudy.questions.your_texts import race
        from rtxstudy.questions.your_texts.clock import STAYS

        def report(line: str) -> None:
            print(f"\r{line:<100}", end="\n" if line.startswith(STAYS) else "", file=sys.stderr, flush=True)

        options, spent = self.options, 0.0
        if began := os.environ.get(STARTED):
            spent = time.monotonic() - float(began) + min(REPORT_SECONDS, 60 * REPORT_SHARE * options.minutes)
        asked = {"every": options.every, "spent": spent, "max_mb": options.max_mb}
        self.raced = race.run(self.texts, self.folder / KEPT, options.minutes, report, self.executor, **asked)
        return self.raced

    @property
    def entries(self) -> dict[str, Entry | Joined]:
        """All that can be chosen: the finished candidates, and the cascade of two of them."""
        from rtxstudy.questions.your_texts.candidates import CASCADE

        assert self.raced is not None
        return {**self.raced.entries, **({CASCADE: self.joined} if self.joined else {})}

    def choose(self) -> Choice:
        """Measure what each finished model costs, and apply the rule."""
        from rtxstudy.questions.your_texts import choice

        assert self.raced is not None
        self.joined = choice.cascade(self.texts, self.raced.entries)
        costs = self._costs()
        self.chosen = choice.compare(self.texts, self.entries, costs, self.limits, self.raced.favourite)
        self._train_again(costs)
        return self.chosen

    def _train_again(self, costs: pd.DataFrame) -> None:
        """Let the chosen model learn from the validation texts, too, unless it then is too large to be chosen."""
        from rtxstudy.questions.your_texts import choice, last_training

        name, entries = self.chosen.taken, self.raced.entries
        if name not in entries or self.executor != "local":
            return
        entry, before = last_training.train(self.raced, name), entries[name]
        if entry is None:
            return
        entries[name] = entry
        costs.loc[name, ["rows", "seconds", "mb"]] = entry.rows, entry.seconds, entry.mb
        again = choice.compare(self.texts, self.entries, costs, self.limits, self.raced.favourite)
        if again.taken == name:
            self.chosen = again
        else:
            entries[name] = before

    def _costs(self) -> pd.DataFrame:
        """Index model; columns rows, seconds, mb and ms (of one text, on average over some test texts).

        The time of a cascade follows from those of its members, and from the share of texts that the first one answers.
        """
        from rtxlib.data.clean import clean_texts
        from rtxlib.data.rows import cut, spread
        from rtxstudy.questions.your_texts.candidates import CASCADE
        from rtxstudy.questions.your_texts.latency import single_text_seconds
        from rtxstudy.questions.your_texts.rows import CLEANING, LONGEST

        test = self.texts.rows("test")
        sample = test[spread(len(test), TIMED)]
        raw = [cut(text, LONGEST) for text in self.texts.raw(sample)]
        rows = {}
        for name, entry in self.raced.entries.items():
            spent = single_text_seconds(entry.open(), lambda texts: clean_texts(texts, **CLEANING), raw)
            rows[name] = {"rows": entry.rows, "seconds": entry.seconds, "mb": entry.mb, "ms": 1000 * float(np.mean(spent))}
        if self.joined is not None:
            first, second = rows[self.joined.first], rows[self.joined.second]
            both = {cost: first[cost] + second[cost] for cost in ("seconds", "mb")}
            ms = first["ms"] + (1 - self.joined.share) * second["ms"]
            rows[CASCADE] = {"rows": max(first["rows"], second["rows"]), **both, "ms": ms}
        return pd.DataFrame.from_dict(rows, orient="index")

    def open_model(self, name: str) -> Classifier:
        entry = self.entries[name]
        return entry.open(self.raced.entries) if entry is self.joined else entry.open()

    def what(self, name: str) -> str:
        """What a model is or does, in words; of the cascade with its members."""
        from rtxstudy.questions.your_texts.candidates import CASCADE, WHAT

        if name == CASCADE and self.joined is not None:
            return f"lets {self.joined.first} answer where it is sure, and {self.joined.second} elsewhere"
        return WHAT[name]

    # ------------------------------------------------------------------------------------------------------------ showing

    def show(self, figure: Figure, stem: str, numbers: pd.DataFrame, alt: str, caption: str | None = None) -> Shown:
        """Save a figure with its numbers into the folder, and show it."""
        from rtxstudy.figures.save import save

        return save(figure, stem, numbers, self.folder / "figures", alt, caption)

    def tabulate(self, table: pd.DataFrame) -> Styler:
        """A table without its index. Texts and labels of the user are shown as they are, never taken for HTML."""
        words = [name for name in table.columns if not is_numeric_dtype(table[name])]
        text_table = table.assign(**{str(name): table[name].map(_one_line) for name in words})
        return text_table.style.hide(axis="index").format(escape="html", precision=2, thousands=",")

    # ------------------------------------------------------------------------------------------------------------ the end

    def hand_over(self) -> Path | None:
        """Write the chosen model's folder and the answer as JSON. Returns the folder; None if no model is to be taken."""
        from rtxstudy.questions.your_texts import label_next
        from rtxstudy.questions.your_texts.hand_over import Chosen, hand_over

        chosen, model_folder, mark = self.chosen, None, self.folder / KEPT / "further.sha256"
        self.texts.said += label_next.put_away(self.folder / FURTHER, mark)
        if chosen.taken is not None:
            entry = self.entries[chosen.taken]
            row = chosen.table.set_index("model").loc[chosen.taken].to_dict()
            run = None if entry is self.joined else entry.run
            place, model = os.path.join(self.shown, MODEL), self.open_model(chosen.taken)
            choice = Chosen(chosen.taken, model, run, entry.test, row, len(self.entries), self.what(chosen.taken))
            model_folder = hand_over(self.texts, choice, self.folder / MODEL, self.folder / KEPT / "held_out.parquet", place)
            if self.unlabelled is not None:
                self.to_label = label_next.write(self.texts, self.unlabelled, model, row["ms"], self.folder / FURTHER)
                mark.write_text(sha256(self.folder / FURTHER), encoding="utf-8")
        else:
            shutil.rmtree(self.folder / MODEL, ignore_errors=True)  # of an earlier call, whose answer this one takes back
        with replacing(self.folder / ANSWER) as part:
            part.write_text(json.dumps(self.answer().plain(), indent=1, allow_nan=False) + "\n", encoding="utf-8")
        return model_folder

    @cached_property
    def quiet(self) -> bool:
        """Whether nothing else computed on this machine until the models were compared."""
        return self.raced.quiet and self.waiting.quiet()

    def answer(self) -> Answer:
        from rtxstudy.questions.your_texts import model_sentences
        from rtxstudy.questions.your_texts.candidates import MAJORITY, WORDS

        chosen, raced, texts = self.chosen, self.raced, self.texts
        n_test = len(texts.rows("test"))
        table = chosen.table.drop(columns=["behind", "behind_low", "behind_high", "same"])
        for column in ("mae", "test_mae"):  # they are there, too, where the labels are no scale
            table[column] = table.get(column, np.nan)
        rows = plain(table.to_dict("records"))
        by_name = {row["model"]: row for row in rows}
        chosen_row, words = by_name.get(chosen.taken, {}), by_name.get(WORDS, {})
        joined = self.joined
        answer = Answer(
            text_column=texts.columns.text,
            label_column=texts.columns.label,
            said=texts.said,
            take=chosen.taken,
            what=chosen.taken and self.what(chosen.taken),
            why=chosen.why,
            accuracy=chosen_row.get("test_accuracy"),
            macro_f1=chosen_row.get("test_macro_f1"),
            mae=chosen_row.get("test_mae"),
            low=chosen_row.get("test_low"),
            high=chosen_row.get("test_high"),
            ms=chosen_row.get("ms"),
            mb=chosen_row.get("mb"),
            judged_by=texts.judged_by,
            train_rows=chosen_row.get("rows"),
            n_test=n_test,
            n_judged=len(texts.judged),
            n_labelled=len(texts.table) - n_test,
            train_texts=len(texts.rows("train")),
            majority_accuracy=by_name[MAJORITY]["test_accuracy"],
            majority_score=by_name[MAJORITY]["test_score"],
            counting_words_accuracy=words.get("test_accuracy"),
            counting_words_score=words.get("test_score"),
            best=chosen.best,
            cascade=joined and {"first": joined.first, "second": joined.second, "share": float(joined.share)},
            ended=raced.ended or "all done",
            executor=self.executor,
            quiet=self.quiet,
            left_out=raced.left_out,
            not_tried=raced.not_tried,
            partial=raced.partial,
            shortened=raced.shortened,
            outlook=raced.outlook and asdict(raced.outlook),
            model=str(self.folder / MODEL) if chosen.taken else None,
            report=str(self.folder / REPORT),
            further=str(self.folder / FURTHER) if self.to_label else None,
            candidates=rows,
        )
        return replace(answer, verdict=model_sentences.verdict(chosen.table, answer, self.limits.margin))

    def close(self) -> provenance.Provenance:
        """End the notebook with its provenance."""
        data = {self.texts.name: {"rows": len(self.texts.table), "fingerprint": self.texts.fingerprint}}
        return provenance.block(self.options.shown, data, self.started, [0])


def folder_name(file: str | None) -> str:
    """The name of the folder of a comparison that has no other."""
    return f"compare-{Path(file).stem if file else 'sample'}"


def require_ours(folder: Path) -> None:
    """Raise InputError when something is in the place of the folder that no comparison wrote."""
    if os.path.lexists(folder) and not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name another with --out.")
    if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()) and not (folder / MARK).is_file():
        raise InputError(f"{folder} is there and no comparison wrote it; name another folder with --out.")


def _mark(folder: Path, file: Path, texts: Texts) -> None:
    """Make the folder and note in it what it is about.

    Raises InputError when it holds the comparison of another file with other texts, or when it cannot be read or written.
    """
    mark, record = folder / MARK, {"file": texts.name, "path": str(file), "texts": texts.fingerprint}
    try:
        content = mark.read_bytes() if mark.is_file() else b""
        earlier = json.loads(content) if content else record  # an empty mark was made a moment ago
        path, fingerprint = earlier["path"], earlier["texts"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{mark} is damaged; delete it, or name another folder with --out.") from None
    if path != record["path"] and fingerprint != record["texts"]:
        raise InputError(f"{folder} holds the comparison of another file, {path}; name another folder with --out.")
    try:
        with replacing(mark) as part:
            part.write_text(json.dumps(record) + "\n", encoding="utf-8")
    except OSError as error:
        if disk_full(error):
            raise
        raise InputError(f"{folder} cannot be written ({error.strerror}); name another folder with --out.") from error


def _sample(folder: Path) -> str:
    """The path of generated film reviews, for whoever wants to see the notebook first."""
    from rtxlib.data.datasets import Generated

    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()
    rows = Generated(rows=SAMPLE_ROWS).read().table.head(SAMPLE_ROWS)
    rows[["text", "label"]].to_csv(folder / "sample.csv", index=False)
    return str(folder / "sample.csv")


def _one_line(value: object) -> str:
    return visible(re.sub(r"\s*[\r\n\t]+\s*", " ", str(value)))

