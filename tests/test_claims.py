"""What the proposal claims: a claim holds, does not hold, is not settled or is not measured, as the published tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from rtxstudy import published
from rtxstudy.claims import sentences
from rtxstudy.questions.proposal import proposal_claims, proposal_measured
from rtxstudy.questions.proposal.proposal import proposal
from rtxstudy.questions.proposal.proposal_measured import FAILS, HOLDS, OPEN, UNMEASURED, Claim, Measured

STANDARD, RECURRENT, WIDE = "standard-6x384", "recurrent-3x2x256", "standard-6x256"
PROPOSAL = proposal(STANDARD, RECURRENT, WIDE, 2, "sst2")


def tables(**compared: tuple[str, str, float, float, int]) -> dict[str, pd.DataFrame]:
    """Runs of three encoders, and comparisons by their study: data, "a − b", low, high, seeds."""
    sizes = {STANDARD: 9.7e6, RECURRENT: 4.0e6, WIDE: 8.0e6}
    runs = [
        {
            "key": model,
            "model": model,
            "data": "sst2",
            "parameters": n,
            "non_embedding_parameters": n,
            "size_mb": n / 1e5,
            "train_seconds": 60,
            "recipe": "default",
            "device": "CPU, 1 thread",
        }
        for model, n in sizes.items()
    ]
    rows = [
        {"study": study, "data": data, "comparison": name, "difference": (low + high) / 2, "low": low, "high": high}
        | {"n_seeds": seeds, "n_items": 872}
        for study, (data, name, low, high, seeds) in compared.items()
    ]
    columns = ["study", "data", "comparison", "difference", "low", "high", "n_seeds", "n_items"]
    return {"runs": pd.DataFrame(runs), "comparisons": pd.DataFrame(rows, columns=columns)}


def found(given: dict[str, pd.DataFrame], part: str) -> dict:
    """The only row whose claim, or what is measured, has these words."""
    table = proposal_measured.claims(PROPOSAL, given)
    (row,) = table[table["claim"].str.contains(part) | table["how"].str.contains(part)].to_dict("records")
    return row


@pytest.mark.parametrize(
    ("measured", "says"),
    [
        (None, UNMEASURED),
        (Measured(0.02, 0.015, 0.03, 3, 872), HOLDS),
        (Measured(-0.02, -0.03, 0.005, 3, 872), FAILS),
        (Measured(0.01, 0.005, 0.03, 3, 872), OPEN),
        (Measured(0.02, 0.015, 0.03, 2, 872), OPEN),  # two seeds settle nothing
        (Measured(0.02), HOLDS),  # a count has no interval
        (Measured(0.0), FAILS),
    ],
)
def test_a_claim_is_a_region_and_the_whole_interval_decides(measured: Measured | None, says: str) -> None:
    claim = Claim("It gains a point.", "somewhere", "", "points", 0.01, np.inf, lambda _: measured)
    assert proposal_measured.outcome(claim, measured) == says


def test_sizes_are_read_from_the_runs() -> None:
    given = tables()
    assert found(given, "^parameters of standard")["outcome"] == HOLDS  # 9.7 is about 9.8
    assert found(given, f"^parameters of {RECURRENT}$")["outcome"] == FAILS  # 4.0 is not about 3.4
    saved = found(given, "^share of the parameters that is saved")
    assert saved["value"] == pytest.approx(1 - 4 / 9.7) and saved["outcome"] == FAILS


def test_each_claim_about_parameters_is_measured_with_the_embedding_matrix_and_without() -> None:
    """A loop with half of the layers' parameters has more than half of all, because the embedding matrix is not halved."""
    given = tables()
    given["runs"]["parameters"] += 6e6
    table = proposal_measured.claims(PROPOSAL, given)
    own = table[table["claim"].str.contains("parameters")]
    assert own.groupby("claim").size().eq(2).all() and own["claim"].nunique() == 4
    share = table[table["claim"].str.contains("one R-th")].set_index("how")
    assert share["value"].tolist() == pytest.approx([10 / 14, 0.5]) and share["outcome"].tolist() == [FAILS, HOLDS]


def test_the_region_of_a_claim_is_shown_beside_its_outcome() -> None:
    written = proposal_claims.readable(proposal_measured.claims(PROPOSAL, tables()))
    assert list(written)[:2] == ["claim", "outcome"]
    true_if = dict(zip(written["what is measured"], written["counts as true if"], strict=True))
    assert true_if[f"parameters of {RECURRENT}"] == "3.23 to 3.57 million"
    assert true_if["share of the parameters that is saved"] == "at least 0.635"
    assert true_if["megabytes of the weights, recurrent over standard"] == "at most 0.5"
    minutes = next(how for how in true_if if "wall clock" in how)
    assert true_if[minutes] == "28.5 to 31.5 minutes" and "upper limit" in minutes
    assert true_if[next(how for how in true_if if "comparable:" in how)] == "at least −1.0 points"


def test_a_component_is_measured_as_soon_as_its_study_is_published() -> None:
    assert found(tables(), "SwiGLU")["outcome"] == UNMEASURED and np.isnan(found(tables(), "SwiGLU")["value"])
    other = tables(variants=("sst2", f"{RECURRENT} − {RECURRENT} gelu", 0.02, 0.04, 3))
    assert found(other, "SwiGLU")["outcome"] == UNMEASURED  # of another study
    given = tables(components=("sst2", f"{RECURRENT} − {RECURRENT} gelu", 0.02, 0.04, 3))
    assert found(given, "SwiGLU")["outcome"] == HOLDS and found(given, "SwiGLU")["n_seeds"] == 3


def test_a_component_that_was_trained_on_another_device_settles_nothing() -> None:
    """The devices may differ by as much as the component changes."""
    given = tables(components=("sst2", f"{RECURRENT} − {RECURRENT} gelu", 0.02, 0.04, 3))
    base = given["runs"][given["runs"]["model"] == RECURRENT]
    for device, says in ((base["device"].iloc[0], HOLDS), ("NVIDIA H100", OPEN)):
        given["runs"] = pd.concat([base, base.assign(model=f"{RECURRENT} gelu", device=device, key="other")])
        row = found(given, "SwiGLU")
        assert row["outcome"] == says and ("trained on a GPU" in row["how"]) == (says == OPEN)


def test_minutes_on_a_gpu_are_measured_on_a_gpu_alone() -> None:
    given = tables()
    assert found(given, "on a GPU")["outcome"] == UNMEASURED
    given["runs"]["device"] = "NVIDIA H100"
    assert found(given, "on a GPU")["outcome"] == UNMEASURED  # of another part of the data
    given["runs"]["data"] = "sst2 33%"
    assert found(given, "on a GPU")["outcome"] == UNMEASURED  # by another recipe
    given["runs"]["recipe"] = "published"
    assert (found(given, "on a GPU")["value"], found(given, "on a GPU")["outcome"]) == (1, FAILS)


def test_what_carries_over_is_measured_on_a_source_without_training() -> None:
    at_home = tables(transfer=("sst2", f"{RECURRENT} − {STANDARD}", 0.02, 0.04, 3))
    assert found(at_home, "generalise")["outcome"] == UNMEASURED
    at_home["carried_over"] = at_home["comparisons"]
    assert found(at_home, "generalise")["outcome"] == HOLDS


def test_a_comparison_is_found_in_either_order() -> None:
    given = tables(components=("sst2", f"{RECURRENT} layernorm − {RECURRENT}", -0.04, -0.02, 3))
    row = found(given, "RMSNorm performs")
    assert (row["value"], row["low"], row["high"]) == pytest.approx((0.03, 0.02, 0.04)) and row["outcome"] == HOLDS


def test_the_claim_about_performance_is_of_the_headline_data() -> None:
    assert (
        found(tables(domains=("domains", f"{RECURRENT} − {STANDARD}", -0.1, -0.05, 3)), "comparable")["outcome"]
        == UNMEASURED
    )
    near = tables(recurrent=("sst2", f"{RECURRENT} − {STANDARD}", -0.009, 0.006, 5))
    assert found(near, "comparable")["outcome"] == HOLDS and found(near, "measurable")["outcome"] == OPEN


def test_the_table_and_the_sentences_say_what_was_measured() -> None:
    given = tables(recurrent=("sst2", f"{RECURRENT} − {STANDARD}", -0.02, -0.012, 5))
    given["tour_norm_times"] = pd.DataFrame({"norm": ["rmsnorm", "layernorm"], "ms": [1.5, 1.0]})
    table = proposal_measured.claims(PROPOSAL, given)
    written = proposal_claims.readable(table).set_index("claim")
    assert len(written) == table["claim"].nunique() <= 15  # each claim once
    assert written.loc[written["outcome"] == UNMEASURED, "measured"].eq("–").all()
    assert "−1.6 points (−2.0 to −1.2, 5 seeds × 872 texts)" in set(written["measured"])
    assert written.loc["RMSNorm computes faster than LayerNorm.", "measured"] == "1.50"
    (sentence,) = sentences(proposal_claims.summary(table))
    assert sentence.startswith(f"Of {len(written)} claims ")


def test_a_claim_on_parameters_has_one_row_with_both_counts() -> None:
    given = tables()
    given["runs"]["parameters"] += 6e6
    written = proposal_claims.readable(proposal_measured.claims(PROPOSAL, given)).set_index("claim")
    row = written.loc["The baseline has about 9.8 million parameters."]
    assert row["outcome"] == f"{FAILS}; without the embedding matrix {HOLDS}"
    assert row["measured"] == "15.70 million; without the embedding matrix 9.70 million"


def test_the_committed_tables_measure_what_they_can() -> None:
    given = published.findings(Path(__file__).resolve().parents[1] / "data/results/full")
    table = proposal_measured.claims(PROPOSAL, given).set_index("how")
    assert table.loc[f"parameters of {STANDARD}", "value"] == pytest.approx(25.9, abs=0.1)
    assert table.loc[f"parameters outside the embedding matrix of {RECURRENT} over those of {WIDE}", "outcome"] == HOLDS
    assert table.loc[f"parameters of {RECURRENT} over those of {WIDE}", "outcome"] == FAILS
    runs = given["runs"]
    of_claim = runs[(runs["model"] == STANDARD) & (runs["data"] == "sst2 33%")]  # runs on other data measure nothing of it
    on_cpu = of_claim["device"].str.startswith("CPU").all()
    assert (table.loc[table["claim"].str.contains("on a GPU"), "outcome"] == UNMEASURED).all() == on_cpu
    assert (table.loc[table["claim"].str.contains("SwiGLU|LayerNorm"), "outcome"] != UNMEASURED).all()
