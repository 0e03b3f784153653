"""What a dry run says: how many runs and pretrainings are missing, and how much arithmetic they are."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from rtxlib import paths
from rtxlib.data.corpus import packed
from rtxlib.data.datasets import Generated
from rtxlib.data.prepare import prepare
from rtxlib.data.tokenization import special_ids
from rtxlib.models.heads import EncoderForMaskedLM
from rtxlib.runs.pretraining import Pretraining, config_of, pretrain
from rtxlib.training.pretrainer import Pretrainer
from rtxlib.training.recipe import recipe
from rtxstudy import estimate, profiles, studies


def test_a_missing_pretraining_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    profile = profiles.load("smoke")
    trained = studies.where_depth_pays(profile)
    again = [dataclasses.replace(spec, seed=9) for spec in trained if spec.pretraining]
    monkeypatch.setitem(studies.STUDIES, "one", {"first": lambda _: trained, "second": lambda _: again})
    runs, arms = len(trained), 3
    plan = estimate.plan(profile, ["one"])
    assert plan["to_train"].tolist() == [runs + arms, len(again)] and (plan["minutes"] > 0).all()
    assert not paths.pretrained_dir().exists()
    what = again[0].pretraining
    pretrain(what, what.folder)
    plan = estimate.plan(profile, ["one"])
    assert plan["to_train"].tolist() == [runs + arms - 1, len(again)] and plan["in_store"].tolist() == [0, 0]


@pytest.mark.parametrize(
    "model, words",
    [("standard-2x64", {"embedding_size": 16}), ("recurrent-1x3x64", {"residual": "none"})],
)
def test_the_arithmetic_of_a_pretraining_is_what_torch_counts(model: str, words: dict, prepared_cache: Path) -> None:
    spec = Generated(rows=240, depth=1, vocab_size=400)
    data = prepare(spec, prepared_cache, progress=False)
    plan = recipe("pretrain", epochs=1, batch_rows=8, precision="fp32")
    what = Pretraining(model, (spec,), plan, length=32, overrides=words)
    rows, validation = packed(data.texts("train"), data.tokenizer, what.length, 0)
    trainer = Pretrainer(
        EncoderForMaskedLM(config_of(what, data.tokenizer)),
        rows,
        validation,
        plan,
        0,
        special_ids(data.tokenizer),
        torch.device("cpu"),
        share=what.share,
    )
    trainer.validate = lambda: (0.0, 0.0)
    with FlopCounterMode(display=False) as counter:
        trainer.run()
    assert estimate.pretraining_flops(what, {spec: data}) == pytest.approx(counter.get_total_flops(), rel=0.1)
