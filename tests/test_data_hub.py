"""Hub data sets, real data served on loopback: columns, labels, known counts, and what happens without the Hub."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pandas as pd
import pytest

from rtxlib.data import audit, tokenization
from rtxlib.data import datasets as ours
from rtxlib.data.datasets import Hub, Pooled
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.errors import InputError

COMMIT = r"[0-9a-f]{40}"


@pytest.fixture(scope="module")
def sst2(hub: str, prepared_cache: Path) -> Prepared:
    return prepare(Hub("sst2", rows=2000), prepared_cache, progress=False)


def rows(table: pd.DataFrame, check: str, left: str, right: str = "") -> int:
    (row,) = table[(table["check"] == check) & (table["left"] == left) & (table["right"] == right)].itertuples()
    return row.rows


def test_sst2_is_judged_on_the_official_dev_set(sst2: Prepared) -> None:
    sizes = {name: len(tokens) for name, tokens in sst2.splits.items()}
    assert sizes["test"] == 872 and 198 <= sizes["validation"] <= 200
    assert 1996 <= sizes["train"] + sizes["validation"] <= 2000
    assert sst2.rows("test")["label_name"].value_counts().to_dict() == {"positive": 444, "negative": 428}
    assert len(sst2.tokenizer) == 30_522
    assert sst2.provenance["source"] == "stanfordnlp/sst2, from a mirror of the Hub"
    assert pd.Series([sst2.provenance["revision"]]).str.fullmatch(COMMIT).all()
    assert sst2.provenance["tokenizer"].startswith("google-bert/bert-base-uncased at ")


def test_the_internal_validation_set_is_five_percent_of_the_maximal_phrases(sst2: Prepared) -> None:
    assert "344 of the 6,885 maximal phrases" in sst2.provenance["notes"][0]
    steps = sst2.filters.set_index("step")["rows_out"]
    assert steps["read from stanfordnlp/sst2"] == 67_349 + 872
    for left, right in (("train", "validation"), ("validation", "train")):
        assert rows(sst2.audit, "leak", left, right) == 0
    assert rows(sst2.audit, "inside", "train", "validation") == 0


def test_the_known_faults_of_sst2_are_found(sst2: Prepared) -> None:
    def count(check: str, left: str = "official train", right: str = "official dev") -> int:
        return rows(sst2.audit, check, left, right)

    assert count("duplicate texts", right="") == 371
    assert count("same text, different labels", right="") == 5
    assert count("inside") == 1769
    assert count("inside, 4–7 words") == count("leak") == 40
    assert count("same words", "official dev", "official train") == 2


def test_two_yelp_sets_share_reviews_and_the_audit_across_sources_says_so(hub: str) -> None:
    polarity = ours.read_hub("yelp_polarity", None, 0).table
    full = ours.read_hub("yelp_review_full", None, 0)
    assert full.steps[-1][1] - full.steps[-1][3] == (full.steps[0][1] - len(full.table)) > 0  # the three stars
    assert set(full.table["label"]) == {"negative", "positive"}
    test = polarity[polarity["split"] == "test"]["text"]
    assert test.isin(set(full.table["text"])).sum() == 3465
    table = audit.overlaps({"polarity test": test.head(500), "review_full": full.table["text"].head(3000)}, leak_words=3)
    shared = rows(table, "same text", "polarity test", "review_full")
    assert shared == test.head(500).isin(set(full.table["text"].head(3000))).sum() > 20
    with pytest.raises(InputError, match=r"A leak: .* of polarity test .* stand in review_full"):
        audit.stop_on_leaks(table[table["left"] == "polarity test"], 3, allowed=[])


def test_stars_of_amazon_and_the_counts_of_sms_spam(hub: str) -> None:
    amazon = ours.read_hub("amazon_reviews_multi_en", None, 0)
    assert amazon.table["label"].value_counts().to_dict() == {"positive": 2000, "negative": 1000}
    spam = ours.read_hub("sms_spam", None, 0)
    assert spam.table["label"].value_counts().to_dict() == {"ham": 4827, "spam": 747}
    assert spam.table["text"].duplicated().sum() == 403


def test_sms_spam_keeps_its_proportions_and_loses_its_duplicates(hub: str, prepared_cache: Path) -> None:
    data = prepare(Hub("sms_spam", task="spam", tokenizer="wordpiece"), prepared_cache, progress=False)
    texts = [text for name in data.splits for text in data.texts(name)]
    assert len(texts) == len(set(texts))
    shares = [data.rows(name)["label"].mean() for name in data.splits]
    assert max(shares) - min(shares) < 0.005
    assert 0.11 < shares[0] < 0.14
    assert data.audit.query("check == 'leak'")["rows"].sum() == 0


def test_more_than_there_is_gives_what_there_is_and_says_so(hub: str, prepared_cache: Path) -> None:
    data = prepare(Hub("amazon_reviews_multi_en"), prepared_cache, progress=False)
    assert sum(map(len, data.splits.values())) == 2000
    assert "Asked for 67,000 rows, took 2,000" in data.provenance["notes"][0]
    assert all(data.rows(name)["label"].mean() == 0.5 for name in data.splits)


@pytest.mark.parametrize("task", ["domain", "sentiment"])
def test_three_domains_are_balanced_and_do_not_leak(task: str, hub: str, prepared_cache: Path) -> None:
    data = prepare(Pooled(task=task, rows=600), prepared_cache, progress=False)
    assert {name: len(tokens) for name, tokens in data.splits.items()} == {"train": 480, "validation": 60, "test": 60}
    for name in data.splits:
        assert data.rows(name)["domain"].value_counts(normalize=True).between(0.32, 0.35).all()
        assert data.rows(name)["label_name"].value_counts(normalize=True).max() < 0.52
    assert data.label_names == (ours.DOMAINS if task == "domain" else ours.SENTIMENTS)
    repos = " + ".join(ours.HUB[name].repo for name in ours.THREE_DOMAINS)
    assert data.provenance["source"] == f"{repos}, from a mirror of the Hub"


def test_without_bert_a_vocabulary_is_trained_and_named(
    hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokenization, "fetch", lambda model: None)
    spec = Hub("amazon_reviews_multi_en", rows=200, vocab_size=500)
    data = prepare(spec, tmp_path, progress=False)
    assert data.provenance["tokenizer"].startswith("wordpiece, trained on the training split, since google-bert")
    assert any("could be had neither from the Hub nor from its cache" in note for note in data.provenance["notes"])
    assert len(data.tokenizer) <= 500
    with pytest.raises(InputError, match="tokenizer='wordpiece'"):
        prepare(Hub("amazon_reviews_multi_en", rows=200, tokenizer="bert"), tmp_path, progress=False)


def elsewhere(spec: DataSpec, *caches: Path, **environment: str) -> list[str]:
    """One line per cache of prepared data, from a new process: the Hub's libraries read their environment once."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom rtxlib.data.datasets import Hub\nfrom rtxlib.data.prepare import prepare\n"
        "from rtxlib.errors import InputError\n"
        "for cache in sys.argv[1:]:\n"
        "    try:\n"
        f"        data = prepare({spec}, Path(cache), progress=False)\n"
        "        print(data.fingerprint, *data.provenance['notes'])\n"
        "    except InputError as error:\n"
        "        print('refused:', error)\n"
    )
    command = [sys.executable, "-c", code, *map(str, caches)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_without_network_the_cache_serves_and_without_cache_the_ways_out_are_named(
    hub: str, tmp_path: Path, prepared_cache: Path
) -> None:
    spec = Hub("amazon_reviews_multi_en", rows=300)
    online = prepare(spec, prepared_cache, progress=False)
    (cached,) = elsewhere(spec, tmp_path / "new", HF_HUB_OFFLINE="1", HF_ENDPOINT="http://127.0.0.1:9")
    assert cached.startswith(online.fingerprint)
    assert "read from its cache on this machine" in cached

    nothing = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path / "empty")}
    refused, earlier = elsewhere(spec, tmp_path / "other", prepared_cache, **nothing)
    for way in ("SetFit/amazon_reviews_multi_en", "HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE=1", "'file'", "'embedded'"):
        assert way in refused
    assert earlier.startswith(online.fingerprint)  # prepared data need neither Hub nor cache
    assert "prepared earlier" in earlier


def test_a_hub_that_lacks_the_data_set_says_so(hub: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gone = ours.HubDataset("nobody/nothing", "text", ours.POLARITY)
    monkeypatch.setitem(ours.HUB, "yelp_polarity", gone)
    with pytest.raises(InputError, match="has no dataset nobody/nothing"):
        prepare(Hub("yelp_polarity"), tmp_path, progress=False)


def test_a_disk_that_fills_up_during_a_download_is_a_sentence(
    hub: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object, **__: object) -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        except OSError as error:
            raise datasets.exceptions.DatasetGenerationError("An error occurred") from error

    monkeypatch.setattr(datasets, "load_dataset", full)
    monkeypatch.setattr(ours, "_load", ours._load.__wrapped__)  # without what an earlier test has loaded
    with pytest.raises(InputError, match=r"disk is full; fancyzhx/yelp_polarity"):
        prepare(Hub("yelp_polarity"), tmp_path, progress=False)


def test_other_columns_than_the_known_ones_are_refused(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = ours.HubDataset("ucirvine/sms_spam", "message", ours.HAM_SPAM, splits=("train",))
    monkeypatch.setitem(ours.HUB, "sms_spam", changed)
    with pytest.raises(InputError, match=r"not as it was: .* with sms, label"):
        ours.read_hub("sms_spam", None, 0)
