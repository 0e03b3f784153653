"""``rtx report`` and ``rtx notebook``: the study, whole or one notebook."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import click

from rtxlib.cli.common import known_profile, parameter_option, profile_option

executor_option = click.option(
    "--executor",
    envvar="RTX_EXECUTOR",
    default="local",
    show_default=True,
    help="Who trains the missing runs: local, this machine; ray, a Ray cluster: that of RAY_ADDRESS, else this machine's.",
)
TITLE = "Recurrent or standard? Transformers for text classification"


def _run_notebooks(
    names: list[str] | None, profile: str, parameters: tuple[str, ...], training: bool, executor: str, title: str
) -> None:
    """Execute, make the page of all that is there, say where it lies, and fail when a notebook failed."""
    from rtxlib import paths
    from rtxlib.runs import executors
    from rtxstudy.report import notebooks

    out, given = paths.reports_dir(profile), notebooks.pairs(parameters)
    who = executors.known(executor)
    outcomes = notebooks.run(names, known_profile(profile), given, out, training=training, executor=who)
    from rtxstudy.report import html

    executed = [outcome.path for outcome in notebooks.read_outcomes(out) if outcome.path]
    if executed:
        page = html.build(executed, out / "report.html", title, outcomes)
        click.echo(f"report   {page}\nfigures  {paths.figures_dir(profile)}\nresults  {paths.results_dir(profile)}")
    if any(outcome.status != "done" for outcome in outcomes):
        for outcome in outcomes:
            if outcome.status != "done":
                click.echo(f"{outcome.name} {outcome.status}: {outcome.error}", err=True)
        sys.exit(1)


@click.command()
@profile_option
@parameter_option
@click.option("--notebooks", "names", metavar="01,02,…", help="Only these notebooks, and the page of all there are.")
@executor_option
@click.option("--no-training", is_flag=True, help="Redraw from the run store; fail where a run is missing.")
@click.option(
    "--dry-run", is_flag=True, help="How many runs there would be and how long they would take; trains nothing."
)
def report(
    profile: str, parameters: tuple[str, ...], names: str | None, executor: str, no_training: bool, dry_run: bool
) -> None:
    """Run the notebooks and make the report."""
    from rtxlib.runs import executors

    chosen = None if names is None else [name.strip() for name in names.split(",")]
    executors.known(executor)
    if not dry_run:
        return _run_notebooks(chosen, profile, parameters, not no_training, executor, TITLE)
    known_profile(profile)
    from rtxstudy import estimate, profiles
    from rtxstudy.report import notebooks

    sources = notebooks.find(chosen)
    given: dict[str, Any] = {}
    for checked in notebooks.plan(sources, profile, notebooks.pairs(parameters)).values():
        given |= checked
    sizes = {name: given[name] for name in given if name in inspect.signature(profiles.load).parameters}
    table = estimate.plan(profiles.load(profile, **sizes), sources)
    click.echo(table.to_string(index=False, float_format=lambda x: f"{x:.1f}"))
    click.echo(
        f"{table['to_train'].sum()} runs to train, {table['in_store'].sum()} in the store; "
        f"about {table['minutes'].sum():.0f} minutes of training on this device"
    )


@click.command()
@click.argument("name")
@profile_option
@parameter_option
@executor_option
@click.option("--no-training", is_flag=True, help="Use the run store alone.")
def notebook(name: str, profile: str, parameters: tuple[str, ...], executor: str, no_training: bool) -> None:
    """Run one notebook: `rtx notebook 03 -p seeds=3`."""
    _run_notebooks([name], profile, parameters, not no_training, executor, TITLE)
