"""``rtx report`` and ``rtx notebook``: run all notebooks, or one."""

from __future__ import annotations

import inspect
import sys
from typing import Any

import click

from rtxlib.errors import InputError, counted, nearest, shortened, visible
from rtxstudy import folders
from rtxstudy.commands import need_notebooks

TITLE = "Recurrent or standard? Transformers for text classification"
PROFILES = ("smoke", "demo", "full")  # as in rtxstudy.profiles, which loads torch

profile_option = click.option(
    "--profile", default="demo", show_default=True, help=f"The size of the study: {', '.join(PROFILES)}."
)
parameter_option = click.option(
    "-p", "--parameter", "parameters", multiple=True, metavar="NAME=VALUE", help="A notebook's parameter."
)
executor_option = click.option(
    "--executor",
    envvar="RTX_EXECUTOR",
    default="local",
    show_default=True,
    help="What trains the missing runs: local is this machine; ray is the Ray cluster at RAY_ADDRESS, else this machine's own.",
)


def _check_profile(name: str) -> None:
    if name not in PROFILES:
        raise InputError(f"There is no profile '{shortened(name)}'; there are {', '.join(PROFILES)}.{nearest(name, PROFILES)}")


def _run_notebooks(
    names: list[str] | None, profile: str, parameters: tuple[str, ...], training: bool, executor: str
) -> None:
    """Run notebooks, make the page of all executed ones, say where it is, and exit with 1 when a notebook failed."""
    from rtx import archive
    from rtx.executors import ray as executors
    from rtxlib import paths
    from rtxstudy.report import notebooks

    out, values = folders.reports_dir(profile), notebooks.pairs(parameters)
    executor = executors.known(executor)
    _check_profile(profile)
    archive.sweep(paths.root())
    outcomes = notebooks.run(names, profile, values, out, training=training, executor=executor)
    from rtxstudy import names, published
    from rtxstudy.report import html

    names.know(published.names(folders.results_dir(profile)))
    every = notebooks.read_outcomes(out)  # of earlier calls, too: what failed then is still not in the page
    executed = [outcome.path for outcome in every if outcome.path]
    if executed:
        page = html.build(executed, out / "report.html", TITLE, every)
        places = {"report": page, "figures": folders.figures_dir(profile), "results": folders.results_dir(profile)}
        click.echo("\n".join(f"{what:8} {visible(str(path))}" for what, path in places.items()))
    failed = [outcome for outcome in outcomes if outcome.status != "done"]
    for outcome in failed:
        click.echo(f"{outcome.name} {outcome.status}: {visible(str(outcome.error))}", err=True)
    if failed:
        sys.exit(1)


@click.command()
@profile_option
@parameter_option
@click.option("--notebooks", "names", metavar="01,02,…", help="Run only these; the page shows all that were ever run.")
@executor_option
@click.option("--no-training", is_flag=True, help="Draw again from the published tables.")
@click.option("--dry-run", is_flag=True, help="Say how many runs are missing and how long they take; train nothing.")
def report(
    profile: str,
    parameters: tuple[str, ...],
    names: str | None,
    executor: str,
    no_training: bool,
    dry_run: bool,
) -> None:
    """Run the notebooks and make the report."""
    need_notebooks("report")
    from rtx.executors import ray as executors

    chosen = None if names is None else [name.strip() for name in names.split(",")]
    executors.known(executor)
    if not dry_run:
        return _run_notebooks(chosen, profile, parameters, not no_training, executor)
    _check_profile(profile)
    from rtxstudy import estimate, profiles
    from rtxstudy.report import notebooks

    sources = notebooks.find(chosen)
    values: dict[str, Any] = {}
    for checked in notebooks.plan(sources, profile, notebooks.pairs(parameters)).values():
        values |= checked
    sizes = {name: values[name] for name in values if name in inspect.signature(profiles.load).parameters}
    within_reach, left_out = profiles.within_reach(profiles.load(profile, **sizes))
    table = estimate.plan(within_reach, sources)
    if left_out:
        click.echo(left_out, err=True)
    if len(table):
        click.echo(table.to_string(index=False, float_format=lambda x: f"{x:.1f}"))
    click.echo(
        f"{counted(table['to_train'].sum(), 'run')} to train, {table['in_store'].sum()} in the store; "
        f"about {counted(round(table['minutes'].sum()), 'minute')} of training on this device"
    )


@click.command()
@click.argument("name")
@profile_option
@parameter_option
@executor_option
@click.option("--no-training", is_flag=True, help="Draw again from the published tables.")
def notebook(name: str, profile: str, parameters: tuple[str, ...], executor: str, no_training: bool) -> None:
    """Run one notebook: `rtx notebook 03 -p seeds=3`."""
    need_notebooks("notebook")
    _run_notebooks([name], profile, parameters, not no_training, executor)
