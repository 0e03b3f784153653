"""The rows of public files that ``rtx compare`` and its peers learn from, and other rows on which they are scored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

import pandas as pd

from rtxlib.errors import InputError, nearest

TEST_SHARE, MOST_TEST = 0.2, 5000


class Source(NamedTuple):
    """One file of a repository of the Hub. ``split``: a part of its path."""

    repo: str
    split: str
    text: str
    label: str


class Data(NamedTuple):
    """Rows to learn from and rows to test on. Without a test file a fixed fifth of the rows is for testing."""

    train: tuple[Source, ...]
    test: Source | None = None
    each: int | None = None  # training rows of a label; None: all, or ``rows``
    rows: int | None = None  # training rows in all
    longer: int = 0  # only texts of more characters
    labels: dict[str, str] | None = None  # published label → label; None: as published
    which: bool = False  # whether the label says also which source a text is from


SST2 = Source("stanfordnlp/sst2", "train", "sentence", "label")
SMS = Source("ucirvine/sms_spam", "train", "sms", "label")
YELP = Source("fancyzhx/yelp_polarity", "train", "text", "label")
AMAZON = Source("mteb/amazon_polarity", "train", "text", "label")
COLA = Source("nyu-mll/glue", "cola/train", "sentence", "label")
AMAZON_STARS = Source("SetFit/amazon_reviews_multi_en", "validation", "text", "label")
SENTIMENT = {"0": "negative", "1": "negative", "2": "neutral", "3": "positive", "4": "positive"}  # number of stars − 1

_PHRASES = SST2._replace(split="validation")
DATA = {
    "sms": Data((SMS,)),
    "sst2-8": Data((SST2,), _PHRASES, each=8),
    "sst2-64": Data((SST2,), _PHRASES, each=64),
    "sst2-1000": Data((SST2,), _PHRASES, rows=1000),
    "sst2-10000": Data((SST2,), _PHRASES, rows=10_000),
    "sst2": Data((SST2,), _PHRASES),
    "yelp-stars": Data((Source("Yelp/yelp_review_full", "test", "text", "label"),), rows=4000),
    "amazon-stars": Data((AMAZON_STARS,)),
    # Five files as users have them: two, three and many labels, 300 to 100,000 rows, short texts and long ones.
    "300-messages": Data((SMS,), rows=300),
    "2,000-long-reviews": Data((YELP,), rows=2000, longer=1000),
    "4,000-of-three-labels": Data((AMAZON_STARS,), labels=SENTIMENT),
    "10,000-of-ten-labels": Data((SMS, SST2, YELP, AMAZON, COLA), rows=10_000, which=True),
    "100,000-mixed": Data((SST2, AMAZON, YELP), rows=100_000),
}


def rows_of(data: Data, draw: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows, columns text and label. Raises InputError when the Hub does not answer.

    draw: which training rows are drawn where there are more; the test rows are always the same.
    """
    train = _fitting(data, data.train).sample(frac=1, random_state=0)
    if data.test is None:
        held = min(MOST_TEST, int(TEST_SHARE * len(train)))
        test, train = train.iloc[:held], train.iloc[held:]
    else:
        test = _fitting(data, (data.test,)).head(MOST_TEST)
    if draw:
        train = train.sample(frac=1, random_state=draw)
    if data.each is not None:
        train = train.groupby("label").head(data.each)
    return train.head(data.rows or len(train)), test


def _fitting(data: Data, sources: Iterable[Source]) -> pd.DataFrame:
    parts = []
    for source in sources:
        part = table_of(source)
        part = part[part["text"].str.len() > data.longer]
        labels = part["label"].map(data.labels) if data.labels else part["label"]
        parts.append(part.assign(label=f"{source.repo.rpartition('/')[2]} " + labels if data.which else labels))
    return pd.concat(parts, ignore_index=True)


def table_of(source: Source) -> pd.DataFrame:
    """The rows of a file of the Hub: columns text and label. Raises InputError when the Hub does not answer."""
    from huggingface_hub import HfApi, hf_hub_download

    try:
        files = HfApi().list_repo_files(source.repo, repo_type="dataset")
        file = next(file for file in files if source.split in file and file.endswith((".parquet", ".jsonl")))
        path = hf_hub_download(source.repo, file, repo_type="dataset")
    except Exception as error:  # every failure of the Hub has its own exception
        raise InputError(f"{source.repo} could not be fetched ({type(error).__name__}).") from error
    table = pd.read_parquet(path) if file.endswith(".parquet") else pd.read_json(path, lines=True)
    return pd.DataFrame({"text": table[source.text].astype(str), "label": table[source.label].astype(str)})


def require_known(names: Iterable[str], data: Collection[str]) -> None:
    """Raise InputError for a name that is not among the data of a benchmark."""
    for name in names:
        if name not in data:
            raise InputError(f"There are no data '{name}'; there are {', '.join(data)}.{nearest(name, data)}")
