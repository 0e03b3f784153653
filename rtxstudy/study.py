"""The handle of a notebook: one study at one size, with its data, runs, tables, figures, provenance and clock.

A notebook opens a study, asks it questions, shows and says what they answer, and closes it::

    study = Study.open(profile, seeds=seeds, rows=rows)
    unified = study.ask(further.unified)
    study.show(further.draw_unified, unified)
    study.say(domain_claims.pairs, unified.differences)
    study.close()

A question that the profile does not ask answers with :class:`rtxstudy.absent.Absent`, of which nothing is shown but the reason.

Imports that load torch stand inside the methods, because :meth:`Study.open` tunes the process before torch is loaded.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from IPython.display import Markdown

from rtx.process import imports, tune
from rtxlib import paths
from rtxlib.errors import InputError
from rtxstudy import folders, names, provenance, published
from rtxstudy.absent import Absent, first_absent
from rtxstudy.claims import Claim, sentences
from rtxstudy.finished import Runs
from rtxstudy.live import Live

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

    from rtxlib.data.prepare import Prepared
    from rtxlib.data.spec import DataSpec
    from rtxlib.runs.spec import RunSpec
    from rtxlib.runs.store import Run
    from rtxstudy.figures.save import Drawing, Shown
    from rtxstudy.profiles import Profile

@dataclass
class Study:
    """One profile with its parameters, open in one notebook. Open it with :meth:`open`.

    If ``RTX_NO_TRAINING`` is set, the study *redraws*: runs and tables come from the published tables alone. The run store, the
    data and the weights are not read.
    """

    profile: Profile
    parameters: dict[str, Any]  # as the notebook's parameters cell has them
    results: Path  # the published tables of this profile
    figures: Path
    redraws: bool
    given: dict[str, Any] = field(default_factory=dict)  # the parameters that are not the profile's own
    started: float = field(default_factory=time.time)  # seconds since 1970
    _prepared: dict[DataSpec, Prepared] = field(default_factory=dict)
    _sources: dict[str, dict[str, Any]] = field(default_factory=dict)  # data label → row, of the data asked for so far
    _seeds: set[int] = field(default_factory=set)  # of the runs asked for so far
    _claims: dict[str, list[Claim]] = field(default_factory=dict)  # question → the claims made so far
    _answers: dict[Callable[..., Any], Any] = field(default_factory=dict)  # question → its answer
    _reasons: set[str] = field(default_factory=set)  # of absent answers, shown so far
    _number: str = ""  # of the notebook, as its figures have it

    @classmethod
    def open(cls, profile: str, **parameters: Any) -> Study:
        """Open the profile of this name; ``parameters`` as :func:`rtxstudy.profiles.load` takes them, None for the profile's own.

        Raises InputError for an unknown profile or a parameter out of range.
        """
        tune()
        with imports():
            from rtxstudy import profiles

        sizes = profiles.load(profile, **parameters)
        redraws = bool(os.environ.get("RTX_NO_TRAINING"))
        if not redraws:
            sizes, left_out = profiles.within_reach(sizes)
            if left_out:
                print(left_out)
        settings = {"profile": profile} | parameters
        results = folders.results_dir(profile)
        names.know(published.names(results))
        given = {name: value for name, value in parameters.items() if value is not None and value != {}}
        return cls(sizes, settings, results, folders.figures_dir(profile), redraws, given)

    # ------------------------------------------------------------------------------------------------------------ data

    def data(self, spec: DataSpec) -> Prepared:
        """The prepared data of a spec, prepared once for this notebook. Raises InputError when they are out of reach."""
        from rtxlib.data.prepare import prepare

        if spec not in self._prepared:
            self._prepared[spec] = prepare(spec, paths.prepared_dir())
        return self._prepared[spec]

    def prepared_sets(self, *labels: str) -> dict[str, Prepared]:
        """Label → prepared data: those of these labels, or every data set of the profile."""
        from rtxlib.runs.spec import data_label

        named = {data_label(spec): spec for spec in self.profile.data_sets}
        return {label: self.data(named[label]) for label in labels or named}

    def source(self, spec: DataSpec | None = None) -> dict[str, Any]:
        """Where data come from, as a row of a table; without a spec the headline data.

        Columns: ``data`` (their label), ``source``, ``revision``, ``tokenizer``, ``vocabulary`` (tokens), ``labels`` (names),
        ``train rows``, ``validation rows``, ``test rows``, ``fingerprint``.

        Raises InputError when a redraw finds no published row.
        """
        from rtxlib.runs.spec import data_label
        from rtxstudy import naming

        spec = spec or self.profile.data
        label = data_label(spec)
        if label not in self._sources:
            row = self._published_source(label) if self.redraws else _source(label, self.data(spec))
            self._sources[label] = row
            self._name({label: naming.of_data(spec)})
        return self._sources[label]

    def out_of_reach(self, spec: DataSpec) -> str | None:
        """Why the data of a spec cannot be read here (in a redraw: are not published), in a sentence; None if they can."""
        try:
            self.source(spec)
        except InputError as error:
            return str(error)
        return None

    def _published_source(self, label: str) -> dict[str, Any]:
        table = published.read(self.results, "sources")
        rows = [] if table is None else table[table["data"] == label].to_dict("records")
        if not rows:
            raise self._unpublished(f"description of {label}", "notebook 01")
        return rows[0] | {"labels": rows[0]["labels"].split(", ")}

    def _name(self, by_id: dict[str, names.Name]) -> None:
        """Take names for ids, and publish those that are new."""
        current = names.known()
        if new := {id_: name for id_, name in by_id.items() if current.get(id_) != name}:
            names.know(new)
            published.write_rows(self.results, "names", published.name_table(new), "id")

    def _unpublished(self, what: str, notebook: str = "the notebook") -> InputError:
        return InputError(
            f"There is no published {what} in {self.results}, and training is switched off; run {notebook} without "
            "--no-training first."
        )

    # ------------------------------------------------------------------------------------------------------------ runs

    def run(self, *studies: str) -> Runs:
        """The runs of these studies, which :data:`rtxstudy.studies.STUDIES` names; missing ones are trained.

        A redraw takes the published runs.

        Raises InputError when a run failed, or when a redraw finds a run that was never published.
        """
        from rtxstudy.studies import specs_of

        return self.runs_of([spec for study in studies for spec in specs_of(study, self.profile)])

    def runs_of(self, specs: Iterable[RunSpec]) -> Runs:
        """The runs of these specs, each once, as :meth:`run` finds or trains them."""
        from rtxstudy import naming

        specs = list(dict.fromkeys(specs))  # two studies may share a run
        self._seeds |= {spec.seed for spec in specs}
        runs = self._published_runs(specs) if self.redraws else self._finished_runs(specs)
        self._name(naming.of_runs(specs))
        return Runs(tuple(runs), tuple(specs), self.results)

    def _finished_runs(self, specs: list[RunSpec]) -> list[Run]:
        """For each spec the stored run; if there is none, the published run; if there is none, the run trained now."""
        from rtx.executors.execute import lookup, run

        published_runs = {run.key: run for run in published.runs(self.results)}
        pairs = lookup(specs, paths.runs_dir(), self._prepared)
        elsewhere = {key for key, here in pairs if here is None and key in published_runs}
        ours = {key: spec for spec, (key, _) in zip(specs, pairs, strict=True) if key not in elsewhere}
        with Live() as live:
            opened = run(list(ours.values()), live, data=self._prepared)
        runs = published_runs | dict(zip(ours, opened, strict=True))
        return [runs[key] for key, _ in pairs]

    def _published_runs(self, specs: list[RunSpec]) -> list[Run]:
        from rtx.executors.execute import TrainingRefused
        from rtxlib.runs.spec import RunSpec

        by_spec = {RunSpec.from_canonical(run.spec): run for run in published.runs(self.results)}
        runs = [by_spec.get(spec) for spec in specs]
        if missing := [spec.title for spec, run in zip(specs, runs, strict=True) if run is None]:
            raise TrainingRefused(
                f"{len(missing)} of {len(specs)} runs are not in the tables in {self.results}, and training is switched off: "
                f"{', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}. Run the notebook without --no-training first."
            )
        return runs

    def measure(self, what: Callable[[Run, Prepared | None, Path], pd.DataFrame], runs: Runs) -> pd.DataFrame:
        """A table of :mod:`rtxstudy.measured` for every run, one below the other.

        Each is measured once on the run's weights and kept beside them; a redraw reads the published ones.
        """
        tables = [
            what(run, None if self.redraws else self.data(spec.data), self.results)
            for run, spec in zip(runs, runs.specs, strict=True)
        ]
        return pd.concat(tables, ignore_index=True)

    def transfer(self, runs: Runs, to: DataSpec) -> pd.DataFrame:
        """The scores of runs on the test split of other data, measured once and kept beside each run.

        One row per run: key, model, seed, trained_on, tested_on, accuracy, f1, precision, recall, n_test, fingerprint.
        """
        from rtx.use import transfer
        from rtxlib.runs.spec import data_label

        if self.redraws:
            scores = runs.part("evaluations")
            return scores[scores["tested_on"] == data_label(to)].reset_index(drop=True)
        return pd.concat([transfer(run, to, self.data(to), self.results) for run in runs], ignore_index=True)

    def counting_words(self, spec: DataSpec | None = None, tested_on: DataSpec | None = None) -> pd.DataFrame:
        """What classifiers without a neural network reach on these data, without a spec on the headline data.

        ``tested_on``: judge on the test split of these data instead. Columns as
        :func:`rtx.baselines.counting_words.counting_words` gives them. The result is published under the data's fingerprints and
        the version of the table. A table of an earlier version is computed again; a redraw shows it as it is, without the
        classifiers and columns that it lacks.

        Raises InputError when a redraw finds no published result.
        """
        from rtx.baselines.counting_words import VERSION, counting_words
        from rtxlib.runs.store import changed

        spec = spec or self.profile.data
        to = tested_on or spec
        key = json.dumps([changed(spec), changed(to)], sort_keys=True)  # a new setting does not change old keys
        every = published.read(self.results, "counting_words")
        rows = pd.DataFrame() if every is None else every[every["key"] == key].reset_index(drop=True)
        if self.redraws and rows.empty:
            raise self._unpublished("score of counting words")
        prints = None if self.redraws else f"{self.data(spec).fingerprint} {self.data(to).fingerprint} version {VERSION}"
        if len(rows) and (self.redraws or (rows["fingerprints"] == prints).all()):
            return rows.drop(columns=["key", "fingerprints"])
        table = counting_words(self.data(spec), self.data(to)).assign(seed=spec.seed)
        new_rows = table.assign(key=key, fingerprints=prints, correct=table["correct"].map(list))
        published.write_rows(self.results, "counting_words", new_rows, "key")
        return table

    # ---------------------------------------------------------------------------------------------------------- tables

    def table(
        self, study: str, name: str, make: Callable[[], pd.DataFrame], key: str | None = None, optional: bool = False
    ) -> pd.DataFrame:
        """The table ``name`` of a study, which ``make`` computes from data or weights. It is published, and a redraw reads it.

        ``key``: what the table is made from. It is published in the column ``key``, and a table with this key is not made again.
        ``optional``: a redraw that finds no published table gives an empty one, because earlier reports did not have it.

        Raises InputError when a redraw finds no published table that is not optional.
        """
        every = published.read(self.results, name) if self.redraws or key else None
        rows = None if every is None else every[every["study"] == study].drop(columns="study").reset_index(drop=True)
        if self.redraws:
            if rows is None and optional:
                return pd.DataFrame()
            if rows is None:
                raise self._unpublished(f"table '{name}'")
            return rows
        if rows is not None and len(rows) and (rows["key"] == key).all():
            return rows
        table = make() if key is None else make().assign(key=key)
        published.publish(study, [], self.results, **{name: table})
        return table

    def publish(self, study: str, runs: Iterable[Run] = (), **tables: pd.DataFrame) -> None:
        """Write what a study found: its runs, and further tables that several studies share (:func:`published.publish`).

        Nothing is written of an answer that is absent.
        """
        if isinstance(runs, Absent):
            return
        there = {name: table for name, table in tables.items() if not isinstance(table, Absent)}
        published.publish(study, runs, self.results, **there)

    def findings(self) -> dict[str, pd.DataFrame]:
        """What all studies of this profile have published: :func:`rtxstudy.published.findings`."""
        return published.findings(self.results)

    # ---------------------------------------------------------------------------------------------------------- showing

    def ask(self, question: Callable[..., Any], *answers: Any) -> Any:
        """What ``question(study, *answers)`` answers: an object with named tables and runs, or :class:`~rtxstudy.absent.Absent`.

        A question about an answer that is absent is absent for the same reason. A question without answers is asked once in a
        notebook, however many others need it.
        """
        if answers:
            return first_absent(answers) or question(self, *answers)
        if question not in self._answers:
            self._answers[question] = question(self)
        return self._answers[question]

    def show(self, draw: Callable[..., Drawing], *answers: Any) -> Shown | Markdown:
        """Save what ``draw(study, *answers)`` draws, as :func:`rtxstudy.figures.save.save` does, and show it.

        If an answer is absent, show the reason.
        """
        from rtxstudy.figures.save import save

        if absent := first_absent(answers):
            return self._reason(absent)
        drawing = draw(self, *answers)
        self._number = drawing.stem.partition("_")[0]
        heading = " ".join(drawing.figure.texts[0].get_text().split()) if drawing.figure.texts else ""
        alt = f"{heading}. {drawing.alt}" if heading else drawing.alt  # the title says what is seen, and the alt text where
        return save(drawing.figure, drawing.stem, drawing.numbers, self.figures, alt, drawing.caption, drawing.finds)

    def tabulate(
        self,
        make: Callable[..., pd.DataFrame | Styler] | pd.DataFrame | list[dict[str, Any]] | Absent,
        *answers: Any,
        title: str | None = None,
    ) -> Styler | Markdown:
        """Show a table without its index under ``title``: ``make(*answers)``, or ``make`` itself. One without rows is not shown.

        If the table or an answer is absent, show the reason.
        """
        if absent := first_absent((make, *answers)):
            return self._reason(absent)
        table = make(*answers) if callable(make) else pd.DataFrame(make)
        if not len(table.index):
            return Markdown("")
        styled = getattr(table, "style", table).hide(axis="index")
        return styled.set_caption(title) if title else styled

    def _reason(self, absent: Absent) -> Markdown:
        """The reason of an absent answer, once in a notebook."""
        if absent.why in self._reasons:
            return Markdown("")
        self._reasons.add(absent.why)
        return Markdown(f"*Skipped. {absent.why}*")

    @property
    def speaks(self) -> bool:
        """Whether claims are made. They are written for the full study as it is; all others show their tables alone."""
        from rtxstudy import profiles

        full = profiles.PROFILES["full"]
        return self.profile in (full, profiles.within_reach(full)[0])

    def say(self, make: Callable[..., Claim | list[Claim]], *answers: Any) -> Markdown:
        """The claims that a function of :mod:`rtxstudy.questions` makes: those that are true, as a paragraph or a list.

        The file ``QUESTION_claims.py`` of the function names the question, under which :meth:`close` publishes all of them, the
        others too. If an answer is absent, the reason.
        """
        if absent := first_absent(answers):
            return self._reason(absent)
        if not self.speaks:
            return Markdown("")
        result = make(*answers)
        claims = result if isinstance(result, list) else [result]
        self._claims.setdefault(_question(make), []).extend(claims)
        lines = sentences(claims)
        return Markdown(("\n" if any(one.startswith("- ") for one in lines) else " ").join(lines))

    def write(self, make: Callable[..., str], *answers: Any) -> Markdown:
        """The Markdown that ``make(*answers)`` gives, in every profile. If an answer is absent, the reason."""
        absent = first_absent(answers)
        return self._reason(absent) if absent else Markdown(make(*answers))

    def title(self, make: Callable[..., Claim], *arguments: Any, otherwise: str) -> str:
        """The title of a figure: the claim of ``make`` if it is true, and otherwise what the figure shows, without a finding."""
        if not self.speaks:
            return otherwise
        claim = make(*arguments)
        self._claims.setdefault(_question(make), []).append(replace(claim, kind="title"))
        return claim.sentence if claim.holds else otherwise

    def close(self) -> provenance.Provenance:
        """End the notebook: publish its claims, and give the provenance of its numbers."""
        records = [
            asdict(one) | {"question": question}
            for question, claims in self._claims.items()
            for one in dict.fromkeys(claims)
            if one.holds is not None
        ]
        tables = {"claims": pd.DataFrame(records)} if records else {}
        if self._number:
            tables["settings"] = pd.DataFrame([{"parameters": published.written(self.given)}])
        if tables:
            published.publish(f"notebook {self._number}", [], self.results, **tables)
        names = ("source", "revision", "tokenizer", "fingerprint")
        data = {label: {name: row[name] for name in names if row.get(name)} for label, row in self._sources.items()}
        return provenance.block(self.parameters, data or None, self.started, sorted(self._seeds) or None)


def _question(make: Callable[..., Any]) -> str:
    """What the claims of a function are about: its file is ``QUESTION_claims.py``."""
    return make.__module__.rpartition(".")[2].removesuffix("_claims")


def _source(label: str, data: Prepared) -> dict[str, Any]:
    return {
        "data": label,
        "source": data.provenance["source"],
        "revision": str(data.provenance.get("revision", ""))[:12],
        "tokenizer": data.provenance["tokenizer"],
        "vocabulary": len(data.tokenizer),
        "labels": data.label_names,
        **{f"{split} rows": len(tokens) for split, tokens in data.splits.items()},
        "fingerprint": data.fingerprint[:16],
    }
