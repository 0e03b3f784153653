"""What depth gains, what a loop keeps of it, and the interval of that share."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from scipy import stats
from test_composed import arm

from rtxlib.data.datasets import Generated
from rtxlib.errors import InputError
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.training.recipe import recipe as named_recipe
from rtxstudy import Study, naming, profiles, studies
from rtxstudy.claims import sentences
from rtxstudy.finished import Runs
from rtxstudy.questions.depth_gain import depth_claims, depth_tables, pooled_seeds, seeds_claims
from rtxstudy.questions.depth_gain.depth_figures import depth_gains
from rtxstudy.questions.depth_gain.gains import beside_words, conversions, kept, own_text_gains
from rtxstudy.questions.depth_gain.verdicts import counted, judged
from rtxstudy.questions.pretrained import converted_embeddings
from rtxstudy.questions.pretrained.converted_embeddings import differences, means
from rtxstudy.questions.pretrained.similar_texts import Embedder
from rtxstudy.statistics import mean_difference, mean_squares, pooled

BASE = {"layers": 3, "passes": 2, "start": "lower"}


def answers(rng: np.random.Generator, share: float, seeds: int, items: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences of the loop and of the deep arm to a shallow arm that both share: D = 0.06, L = share · D."""
    hard = rng.random(items)  # of each text
    right = [rng.random((seeds, items)) * 0.5 + 0.5 * hard < p for p in (0.70, 0.76, 0.70 + 0.06 * share)]
    shallow, deep, loop = (np.asarray(part, float) for part in right)
    return loop - shallow, deep - shallow


def test_with_one_seed_it_is_fiellers_closed_form() -> None:
    loop, deep = answers(np.random.default_rng(0), 0.8, 1, 4000)
    found = kept(loop, deep)
    n, t = loop.size, stats.t.ppf(0.975, loop.size - 1)
    (vl, c), (_, vd) = np.cov(loop[0], deep[0]) / n
    mean_l, mean_d = loop.mean(), deep.mean()
    a, b, e = mean_d**2 - t**2 * vd, mean_l * mean_d - t**2 * c, mean_l**2 - t**2 * vl
    ends = (b + np.array([-1, 1]) * np.sqrt(b**2 - a * e)) / a
    assert found.share == pytest.approx(mean_l / mean_d)
    assert (found.low, found.high) == pytest.approx(tuple(ends), abs=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.8])
def test_the_interval_covers_the_true_share(share: float) -> None:
    rng = np.random.default_rng(1)
    found = [kept(*answers(rng, share, 3, 3000)) for _ in range(200)]
    covered = np.mean([one.low <= share <= one.high for one in found])
    assert 0.9 <= covered <= 1.0, covered
    assert np.median([one.high - one.low for one in found]) < 1.2  # and it is not wide for want of covariance


def test_where_depth_does_not_pay_no_share_is_given() -> None:
    rng = np.random.default_rng(2)
    _, nothing = answers(rng, 0.5, 3, 500)
    assert np.isnan(kept(nothing, nothing - nothing.mean())).all()
    assert np.isnan(kept(nothing, -np.abs(nothing))).all()


def test_a_loop_that_is_the_deep_encoder_keeps_all() -> None:
    _, deep = answers(np.random.default_rng(3), 0.5, 3, 2000)
    assert kept(deep, deep) == pytest.approx((1, 1, 1), abs=1e-6)
    with pytest.raises(InputError, match="same seeds × items"):
        kept(deep, deep[:2])


def gains(**changes) -> dict:
    row = {"regime": "from scratch", "data": "x", "depth_gain": 0.04, "depth_low": 0.03, "depth_high": 0.05, "loop_gain": 0.03}
    row |= {"loop_low": 0.02, "loop_high": 0.04, "depth_p": 0.001, "kept": 0.75, "kept_low": 0.5, "kept_high": 0.98}
    row |= {"n_seeds": 3, "n_items": 900, "learned": True, "sharing_gain": -0.002, "sharing_low": -0.005, "sharing_high": 0.001}
    row |= {"sharing_low_without": -0.008, "loop_low_without": 0.01, "deep": 0.8, "shallow": 0.76, "loop": 0.79, "words": 0.7}
    row |= {"baseline": "nb-svm", "baseline_accuracy": 0.71}
    for pair in ("deep_words", "loop_words", "deep_baseline", "loop_baseline"):
        row |= {f"{pair}_gain": 0.1, f"{pair}_low": 0.08, f"{pair}_high": 0.12}
    return row | changes


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({}, "replaces"),
        ({"sharing_low": -0.011}, "not settled"),
        ({"loop_low": -0.001}, "not settled"),  # the shallow encoder may be as good, and it takes less time
        ({"sharing_low_without": -0.011}, "not settled"),  # the answer depends on one seed
        ({"sharing_low": -0.03, "sharing_high": -0.012}, "loses"),
        ({"sharing_low": -0.03, "sharing_high": -0.001}, "below"),  # it is less accurate, and by how much is open
        ({"depth_p": 0.2, "depth_low": -0.01}, "no gain"),
        ({"depth_gain": -0.04, "depth_low": -0.05, "depth_high": -0.03}, "no gain"),
        ({"n_seeds": 2}, "few seeds"),
        ({"learned": False}, "not learned"),
    ],
)
def test_there_is_one_rule_of_replacing(changes: dict, verdict: str) -> None:
    assert judged(pd.DataFrame([gains(**changes)]))["verdict"].item() == verdict


def test_depth_pays_after_holms_correction_over_the_comparisons_that_take_part() -> None:
    """Of twenty comparisons with p = 0.02 none is left. Those of two seeds are not counted; those that did not learn are."""
    many = pd.DataFrame([gains(data=f"task {n}", depth_p=0.02) for n in range(20)])
    assert not judged(many)["pays"].any() and judged(many[:2])["pays"].all()
    few = pd.DataFrame([gains(n_seeds=2, depth_p=0.02, data="few")] * 10)
    table = judged(pd.concat([many[:2], few], ignore_index=True))
    assert table["pays"].tolist() == [True] * 2 + [False] * 10
    assert counted(table) == {"comparisons": 2, "tasks": 2, "pays": 2, "paying": 2}
    idle = pd.DataFrame([gains(learned=False, depth_p=1e-9, data="idle")] * 2)
    table = judged(pd.concat([many[:2], idle], ignore_index=True))
    assert not table["pays"][2:].any() and counted(table)["comparisons"] == 4  # what test texts tell thins no family


def test_pooled_noise_of_seeds_keeps_the_level_that_three_seeds_lose() -> None:
    """Experiments without an effect, fifteen comparisons each. By itself a comparison of three seeds is too often far out."""
    rng, found = np.random.default_rng(0), {"alone": [], "pooled": []}
    for _ in range(400):
        d = [rng.normal(size=(3, 1)) * 0.05 + rng.normal(size=(1, 300)) * 0.3 + rng.normal(size=(3, 300)) for _ in range(15)]
        means, squares = np.array([one.mean() for one in d]), [mean_squares(one) for one in d]
        found["pooled"] += pooled(means, squares, np.full(15, 3))[1]["p"].tolist()
        found["alone"] += [mean_difference(one).p for one in d]
    far = {way: np.mean(np.array(p) < 0.0025) for way, p in found.items()}
    assert far["alone"] > 0.004 and 0.001 < far["pooled"] < 0.004, far
    assert 0.035 < np.mean(np.array(found["pooled"]) < 0.05) < 0.065


def test_pooling_changes_the_comparisons_of_minilm_alone_and_says_which() -> None:
    own = {f"{kind}_square_{of}": 1e-6 for kind in pooled_seeds.KINDS for of in ("seeds", "items", "residual")}
    rows = [gains(data=f"task {n}", regime=studies.MADE, depth_p=0.2, **own) for n in range(4)]
    rows[0] |= {"depth_square_seeds": 4e-6, "sharing_gain": -0.002, "sharing_low": -0.03}
    table = pd.DataFrame([*rows, gains(data="other", depth_p=0.2, **own)])
    found = pooled_seeds.pool(table)
    assert found.ratios["depth"] == pytest.approx(7 / 4) and len(found.rows) == 4 and set(found.rows["before"]) == {"no gain"}
    assert set(found.rows["verdict"]) == {"replaces"}
    said = " ".join(sentences(seeds_claims.verdicts(found)))
    assert "Over the 4 comparisons" in said and "four verdicts change" in said and "Then depth pays on task 0 (MiniLM" in said
    assert "on four tasks." in seeds_claims.in_short(table).sentence
    assert list(pooled_seeds.readable(found)["without pooling"]) == ["no gain from depth shown"] * 4
    assert pooled_seeds.pool(table[3:]) is None and seeds_claims.in_short(table[3:]).holds is None


def test_counting_words_is_paired_with_both_encoders_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtx.archive.part", lambda run, name, results=None: pd.read_parquet(run.path / f"{name}.parquet"))
    labels, rng = np.arange(400) % 2, np.random.default_rng(0)
    levels = {"deep": 0.92, "shallow": 0.85, "loop": 0.78}
    arms = [arm(name, rng.random((3, 400)) < p, tmp_path, labels) for name, p in levels.items()]
    counting = pd.DataFrame(
        {
            "model": ["tf-idf + logistic regression", "nb-svm"],
            "validation_accuracy": [0.7, 0.8],
            "accuracy": [0.85, 0.75],
            "correct": [np.arange(400) < 340, np.arange(400) < 300],
        }
    )
    row = beside_words(*arms, counting)
    assert row["words"] == 0.85 and row["baseline"] == "nb-svm"  # validation texts choose, however good it is on test texts
    assert row["loop_words_high"] < 0 < row["deep_words_low"] and row["loop_baseline_gain"] > 0
    assert row["shallow_words_low"] < 0 < row["shallow_words_high"]


def test_the_dot_plot_draws_every_row_sorted_and_names_those_it_leaves_out() -> None:
    table = pd.DataFrame(
        [
            gains(data="small", depth_gain=0.01, depth_low=-0.01, depth_p=0.5),
            gains(),
            gains(data="far", depth_gain=0.12, depth_low=0.11, depth_high=0.13, loop_gain=0.1),
            gains(data="idle", learned=False),
        ]
    )
    figure = depth_gains(depth_claims.shown(table), "A title")
    names_of = [[label.get_text() for label in ax.get_yticklabels()] for ax in figure.axes]
    assert names_of == [["far · from scratch"], ["x · from scratch", "small · from scratch"]]  # a scale of its own for "far"
    faces = [[line.get_markerfacecolor() for line in ax.lines if line.get_marker() in ("o", "D")] for ax in figure.axes]
    assert [face == "white" for face in faces[1]] == [False, False, True, True]  # deep and loop of each row
    assert any("idle, from scratch (no encoder learned)" in text.get_text().replace("\n", " ") for text in figure.texts)
    shown = {text.get_text() for text in figure.axes[1].texts}
    assert {"−0.2 (−0.5 to +0.1)", "75\xa0%", "+10.0 (+8.0 to +12.0)"} <= shown


def test_the_dot_plot_of_a_single_row_has_room_for_its_words() -> None:
    """The demo has one row. Without room matplotlib warns that the axes collapsed, and draws over the head of the figure."""
    figure = depth_gains(depth_claims.shown(pd.DataFrame([gains()])), "A title")
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="constrained_layout not applied")
        FigureCanvasAgg(figure).draw()
    words = [text for text in figure.axes[0].texts if text.get_text()]
    assert words and all(text.get_window_extent().x1 <= figure.bbox.x1 for text in words)


def test_the_three_arms_of_a_task_differ_in_one_thing() -> None:
    profile = profiles.load("full")
    taught = dataclasses.replace(profile.depth_tasks[0], taught=named_recipe("finetune", distillation=0.5))
    small = named_recipe("small")
    own = dataclasses.replace(profile.depth_tasks[-1], scratch=small, own_text=named_recipe("finetune", layer_decay=1.0))
    profile = dataclasses.replace(profile, depth_tasks=(*profile.depth_tasks, taught, own))
    found = studies.trios(profile)
    assert len({trio.regime for trio in found}) == len(studies.REGIMES)
    for trio in found:
        arms = (trio.deep, trio.shallow, trio.loop)
        assert {len(arm) for arm in arms} == {profile.depth_seeds}
        assert len({(spec.data, dataclasses.replace(spec.recipe, distillation=0.0)) for arm in arms for spec in arm}) == 1
        for deep, shallow, loop in zip(*arms, strict=True):
            assert deep.seed == shallow.seed == loop.seed
            if loop.conversion:
                assert loop.conversion | {"passes": 1} == shallow.conversion and not deep.conversion
                assert (shallow.teacher, loop.teacher) in ((None, None), (deep, deep))
            else:
                sizes = [(spec.config(100, 0, ["a", "b"])) for spec in (deep, shallow, loop)]
                assert sizes[2].effective_depth == sizes[0].num_hidden_layers
                assert sizes[2].num_hidden_layers == sizes[1].num_hidden_layers
                assert len({(config.hidden_size, config.embedding_size) for config in sizes}) == 1
                assert sizes[2].residual == "none"


def test_the_pretrainings_of_the_arms_differ_in_model_and_learning_rate_alone() -> None:
    """So all arms see the same words in the same number of steps."""
    profile = profiles.load("full")
    trio, *_ = studies.trios(profile, ["own_text"])
    first = [{spec.pretraining.key: spec.pretraining for spec in arm} for arm in trio[1:]]
    assert [len(of_arm) for of_arm in first] == [1, 1, 1]  # the seeds vary the fine-tuning alone
    same_rate = [dataclasses.replace(what.recipe, learning_rate=1.0) for of_arm in first for what in of_arm.values()]
    assert same_rate[0] == same_rate[1] == same_rate[2]
    alike = {"model": "", "overrides": {}, "recipe": same_rate[0]}
    bare = [dataclasses.replace(what, **alike) for of_arm in first for what in of_arm.values()]
    assert bare[0] == bare[1] == bare[2]
    evaluated = {*profile.own_text.kept_out, *(task.data for task in profile.depth_tasks if task.own_text)}
    assert set(bare[0].kept_out) == {dataclasses.replace(data, tokenizer="bert") for data in evaluated}
    pooled = {"inference_mix"}  # its test pairs are those of MultiNLI and SNLI
    sources = {spec.source for spec in bare[0].kept_out}
    assert {task.data.source for task in profile.depth_tasks} - pooled <= sources and {"multi_nli", "snli"} <= sources
    assert {spec.tokenizer for spec in (*bare[0].data, *bare[0].kept_out, trio.loop[0].data)} == {"bert"}
    turned = dataclasses.replace(profile, depth_tasks=profile.depth_tasks[::-1])
    assert [spec.pretraining.key for spec in studies.trios(turned, ["own_text"])[0].loop] == list(first[2]) * profile.depth_seeds
    names = [spec.model for spec in studies.where_depth_pays(profile) if spec.pretraining]
    assert len(set(names[:3])) == 3 and len(names) % (3 * profile.depth_seeds) == 0  # workers do not wait for one encoder


def test_own_text_is_compared_arm_by_arm_and_with_what_others_pretrained(tmp_path) -> None:
    rng, labels = np.random.default_rng(0), np.arange(400) % 2
    levels = {studies.OWN_TEXT: (0.8, 0.7, 0.75), studies.SCRATCH: (0.6, 0.6, 0.6), studies.MADE: (0.9, 0.5, 0.5)}
    arms = {
        (regime, "p"): [arm(f"{regime}{n}", rng.random((3, 400)) < level, tmp_path, labels) for n, level in enumerate(each)]
        for regime, each in levels.items()
    }
    regimes = studies.OWN_TEXT, studies.SCRATCH, studies.MADE
    found = own_text_gains(arms, *regimes)
    assert found["difference"].tolist() == pytest.approx([0.2, 0.1, 0.15, -0.1], abs=0.05)
    assert found["comparison"].tolist()[-1] == f"{studies.OWN_TEXT}0 − {studies.MADE}0"
    assert depth_tables.own_text(found)["compared with"].tolist() == [studies.SCRATCH] * 3 + [studies.MADE]
    chance = {key: [arm(f"c{key[0]}{n}", rng.random((3, 400)) < 0.5, tmp_path, labels) for n in range(3)] for key in arms}
    mixed = own_text_gains({**arms, (studies.SCRATCH, "p"): chance[studies.SCRATCH, "p"]}, *regimes)
    assert mixed["learned"].tolist() == [False, False, False, True]  # and no row is left out
    assert depth_tables.own_text(mixed)["compared with"].iloc[0] == f"{studies.SCRATCH} (not both learned)"
    assert own_text_gains({key: own for key, own in arms.items() if key[0] != studies.OWN_TEXT}, *regimes).empty


def test_fewer_rows_reach_the_texts_of_the_pretraining_too() -> None:
    profile = profiles.load("smoke", rows=200, max_length=32)
    assert profile.own_text.data == (profile.depth_tasks[0].data,) and profile.data.rows == 200  # one vocabulary


def tried(**changes) -> dict:
    row = {"layers": 3, "passes": 2, "start": "lower", "beside": "", "val_accuracy": 0.70, "non_embedding_parameters": 5_000_000}
    return row | {"standard_error": 0.01, "texts": 2000, "taken": False} | changes


def test_of_ways_within_one_standard_error_the_smallest_is_taken(tmp_path) -> None:
    ways = [({"rank": 16}, 0.72, 6), ({}, 0.712, 5), ({"start": "spread"}, 0.69, 5), ({"layers": 2, "passes": 3}, 0.70, 4)]
    made = [
        (
            Run(f"{n}", {}, {"val_accuracy": accuracy, "val_loss": 0.7, "non_embedding_parameters": size}, None),
            RunSpec("some/encoder", Generated(), named_recipe("finetune"), conversion=BASE | way),
        )
        for n, (way, accuracy, size) in enumerate(ways)
    ]
    runs = Runs(tuple(run for run, _ in made), tuple(spec for _, spec in made), tmp_path)
    near, far = conversions(runs, 2000), conversions(runs, 400)  # standard errors of 1.0 and 2.2 points
    assert near["standard_error"].iloc[0] == pytest.approx((0.72 * 0.28 / 2000) ** 0.5)
    assert near["taken"].tolist() == [False, True, False, False] and far["taken"].tolist() == [False, False, False, True]
    assert near["beside"].tolist() == ["rank 16", "", "", ""]


def searched() -> pd.DataFrame:
    """Precisions of an original that finds most, a student that finds less, and the same students after a distillation."""
    rng = np.random.default_rng(0)
    share = {"chance": 0.5, "tf-idf": 0.6, "e": 0.9, "e 3×1": 0.6, "e 3×1 distilled": 0.9, "e 3×2": 0.7, "e 3×2 distilled": 0.9}
    ease = rng.normal(0, 0.1, 400)
    parts = [
        pd.DataFrame({"panel": "p", "model": model, "text": range(400), "precision": np.clip(mean + ease, 0, 1)})
        for model, mean in share.items()
    ]
    return pd.concat(parts, ignore_index=True)


def test_differences_of_neighbours_are_paired_by_the_text_that_searches() -> None:
    table = searched()
    rows = differences(table.sample(frac=1, random_state=0).sort_values("model", kind="stable"), "e").set_index("comparison")
    assert set(rows.index) == {f"{made} − e" for made in set(table["model"]) - {"chance", "tf-idf", "e"}} | {
        "e 3×2 distilled − e 3×1 distilled"
    }
    worse, same = rows.loc["e 3×1 − e"], rows.loc["e 3×2 distilled − e 3×1 distilled"]
    assert worse["high"] < 0 and worse["high"] - worse["low"] < 0.02  # unpaired it would be wider than 0.02
    assert same["difference"] == 0 and len(means(table)) == 7


def test_the_students_of_a_study_share_all_but_their_passes_and_read_no_text_that_searches() -> None:
    once, loop = studies.distillations(profiles.load("smoke", rows=200))
    assert once.conversion | {"passes": 2} == loop.conversion and dataclasses.replace(once, conversion=loop.conversion) == loop
    assert set(loop.kept_out) == {profiles.load("smoke", rows=200).data, profiles.load("smoke", rows=200).domains}
    assert {spec.rows for spec in loop.data} == {200}


def test_a_table_of_the_same_key_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RTX_HOME", str(tmp_path))
    study, made = Study.open("smoke"), []

    def make() -> pd.DataFrame:
        made.append(1)
        return pd.DataFrame({"n": [len(made)]})

    found = [study.table("s", "t", make, key)["n"].item() for key in ("a", "a", "b", "b")]
    assert found == [1, 1, 2, 2]
    monkeypatch.setenv("RTX_NO_TRAINING", "1")
    assert Study.open("smoke").table("s", "t", make)["n"].item() == 2


def test_a_wide_interval_is_cut_by_the_frame_and_the_figure_says_so() -> None:
    ends = {"depth_gain": 0.01, "depth_low": 0.0, "depth_high": 0.02, "loop_gain": 0.0, "loop_low": -0.01, "loop_high": 0.01}
    narrow = pd.DataFrame([gains(**ends)])
    wide = pd.concat([narrow, narrow.assign(data="b", loop_low=-0.4, loop_high=0.4)])
    drawn = [depth_gains(depth_claims.shown(table), "A title") for table in (narrow, wide)]
    notes = [" ".join(text.get_text() for text in figure.texts).replace("\n", " ") for figure in drawn]
    assert ["cut at the frame" in note for note in notes] == [False, True]
    low, high = drawn[1].axes[0].get_xlim()
    assert -0.03 < low < -0.02 and 0.02 < high < 0.03  # the mark is at zero; the frame holds two points on each side of it


def test_a_student_has_the_name_of_its_whole_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converted_embeddings, "distil", lambda what, folder: folder)
    monkeypatch.setattr(converted_embeddings.pretrained, "load", lambda folder: None)
    conversion = {"layers": 2, "passes": 2, "start": "lower", "edges": True}
    what = SimpleNamespace(conversion=conversion, student=lambda: None, folder=Path("x"))
    found = [one.name for one in converted_embeddings.encoders(Embedder("all-MiniLM-L6-v2", None, None), [what])]
    assert found[1:] == [f"all-MiniLM-L6-v2 2×2 lower between edges{end}" for end in ("", " distilled")]
    assert naming.converted("MiniLM", conversion) == "MiniLM loop (4 layers, 2 twice)"
