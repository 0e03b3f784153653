"""What every data set's description has: which rows, how they are cleaned, split and tokenised."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from rtxlib.data.rows import FEWEST, Rows
from rtxlib.errors import InputError, nearest

DOMAINS = ["movies", "local business", "online shopping"]
_RANGES = {
    "rows": (FEWEST, 10**9), "max_length": (8, 512), "vocab_size": (64, 10**6), "leak_words": (1, 10**6),
    "seed": (0, 2**63 - 1), "items": (2, 20),
}  # fmt: skip


@dataclass(frozen=True)
class DataSpec(ABC):
    """Everything that determines the data of a run. Each kind of data (:mod:`rtxlib.data.datasets`) adds fields of its own.

    A kind says where its rows come from (:meth:`revisions`, :meth:`read`), and what is known of them before they are read.
    """

    source: str  # "embedded", "file", "domains" (three sources pooled), "composed", or the name of a data set of the Hub
    task: str = "sentiment"  # "sentiment", "domain", "spam", … one of the source's tasks
    rows: int | None = None  # at most this many; a published test set is not counted (splits.py)
    train_fraction: float = 1.0  # share of the training rows kept; a smaller share lies inside a larger one
    lengths: str = "all"  # "all", or the "shortest" or "longest" 30 % of every split, by tokens
    max_length: int = 256  # tokens of a text, [CLS] and [SEP] included; 8 to 512
    lowercase: bool = True
    strip_html: bool = True
    strip_urls: bool = True
    squeeze_whitespace: bool = True
    uniform: bool = False  # leave a few lower-case words of each text, without punctuation or digits (clean.uniform)
    # "bert", "wordpiece", or a model's folder or Hub id; auto: bert for the Hub's data, else wordpiece
    tokenizer: str = "auto"
    vocab_size: int = 8000  # of a trained tokenizer
    seed: int = 0  # of sampling, splits and the generator, not of training
    leak_words: int = 3  # a longer text that occurs on both sides of a split is a leak …
    allow_leaks: bool = False  # … which stops the run unless this is set

    # What a kind without the setting, or without more to say, answers.
    domain: ClassVar[str | None] = None  # rows of this domain alone
    official_test: ClassVar[bool] = False
    validation_share: ClassVar[float | None] = None
    hub: ClassVar[tuple[str, ...]] = ()  # the data sets of the Hub that are read
    published_test: ClassVar[str | None] = None  # the published split that is the test set; None: all rows are split here
    pairs: ClassVar[bool] = False  # whether a row is a pair of texts
    phrases: ClassVar[bool] = False  # whether the training rows are phrases of sentences, as in SST-2
    balanced: ClassVar[bool] = False  # whether rows are drawn so that the classes are of one size
    most_rows: ClassVar[int] = 10**9

    @abstractmethod
    def revisions(self) -> dict[str, str]:
        """What is read, and in which state: a commit of the Hub, a hash of the file, the generator's version.

        Raises InputError as :meth:`read`, where the state cannot be found out.
        """

    @abstractmethod
    def read(self) -> Rows:
        """The rows as their source has them. A large data set of the Hub is sampled to four times the rows asked for.

        Raises InputError if the Hub and its cache are out of reach, a data set has changed, or a file cannot be read.
        """

    @property
    @abstractmethod
    def tasks(self) -> tuple[str, ...]:
        """The tasks of the source; the first is its own."""

    @property
    def name(self) -> str:
        """The source in tables and figures."""
        return self.source

    def check(self) -> None:
        """Raises InputError for a field that is out of range or misspelt."""
        choices = {
            "lengths": ("all", "shortest", "longest"),
            "tokenizer": ("auto", "bert", "wordpiece", *([self.tokenizer] if "/" in self.tokenizer else [])),
            "task": self.tasks,
            "domain": (None, *DOMAINS),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed:
                whose = f" of the source '{self.source}'" if name == "task" else ""
                words = [word for word in allowed if word]
                raise InputError(f"{name}{whose} is one of {', '.join(words)}, not '{value}'.{nearest(str(value), words)}")
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name, None)
            if value is None and (name == "rows" or not hasattr(self, name)):
                continue
            high = self.most_rows if name == "rows" else high
            if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
                raise InputError(f"{name} is a whole number from {low:,} to {high:,}, not {value!r}.")
        if not 0 < self.train_fraction <= 1:
            raise InputError(f"train_fraction is above 0 and at most 1, not {self.train_fraction}.")
        if self.validation_share is not None and not 0 < self.validation_share <= 0.5:
            raise InputError(f"validation_share is above 0 and at most 0.5, not {self.validation_share}.")
