"""The keys of the committed runs: a change of the code must not rename a run that was trained before it."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from rtxlib.models import pretrained
from rtxlib.runs.spec import RunSpec

RECORDS = Path(__file__).resolve().parents[1] / "data" / "results" / "full" / "runs.parquet"


def test_the_spec_of_every_committed_record_has_the_key_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    records = pd.read_parquet(RECORDS, columns=["key", "spec", "fingerprint"])
    assert len(records) >= 223
    for record in records.itertuples():
        canonical = json.loads(record.spec)
        # The version of pretrained weights is read from the Hub; here the recorded one stands for it.
        monkeypatch.setattr(pretrained, "version", lambda name, recorded=canonical: recorded["weights"])
        spec = RunSpec.from_canonical(canonical)
        assert spec.key(record.fingerprint) == record.key, spec.title
        assert RunSpec.from_canonical(spec.canonical()) == spec, spec.title
