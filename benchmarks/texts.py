"""The texts that are timed: real ones where the Hub answers, generated ones otherwise."""

from __future__ import annotations

from functools import cache

from rtxlib import paths
from rtxlib.data.datasets import data_spec
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.synthetic import generate

_FILES = {
    "sst2": ("stanfordnlp/sst2", "data/train-00000-of-00001.parquet", "sentence"),
    "yelp_polarity": ("fancyzhx/yelp_polarity", "plain_text/test-00000-of-00001.parquet", "text"),
}
_NAMES = {"sst2": "SST-2", "yelp_polarity": "Yelp", "sms_spam": "SMS spam", "domains": "three domains"}


@cache
def hub_answers() -> bool:
    """Whether the Hub's data are available here."""
    try:
        _hub_texts("sst2", 1)
    except Exception as error:  # every failure of the Hub has its own exception
        print(f"The Hub's texts are not available ({type(error).__name__}); the embedded generator's are used.")
        return False
    return True


def _hub_texts(name: str, count: int) -> list[str]:
    import pandas as pd
    from huggingface_hub import hf_hub_download

    repo, file, column = _FILES[name]
    texts = pd.read_parquet(hf_hub_download(repo, file, repo_type="dataset"), columns=[column])[column]
    return texts.sample(min(len(texts), count), random_state=0).tolist()


def texts(name: str, count: int) -> tuple[str, list[str]]:
    """A name for the texts, and ``count`` texts of ``sst2`` or ``yelp_polarity``."""
    if hub_answers():
        return {"sst2": "SST-2 phrases", "yelp_polarity": "Yelp reviews"}[name], _hub_texts(name, count)
    return "generated reviews", generate(count, 0)["text"].tolist()


def prepared(name: str, max_length: int = 256) -> tuple[str, Prepared]:
    """A name for the data, and a prepared data set to train on. max_length: tokens at which longer texts are cut."""
    if hub_answers():
        return _NAMES[name], prepare(data_spec(name, max_length=max_length), paths.prepared_dir())
    return "generated reviews", prepare(data_spec("embedded", max_length=max_length), paths.prepared_dir())
