"""Each part of the project imports only what lies before it; the table below is the direction."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = (
    "IPython",
    "ipykernel",
    "jupyter",
    "jupyter_client",
    "jupyter_core",
    "jupyterlab",
    "nbconvert",
    "papermill",
)
PLOTTING = ("matplotlib", "seaborn", "plotly", "anywidget", "statsmodels", "nbformat", "nbclient")
# they import nothing of ours but each other
LEAVES = ("rtxlib.errors", "rtxlib.atomic", "rtxlib.checksums", "rtxlib.hub", "rtxlib.memory")
READERS = ("rtx.export.standalone_classifier",)  # of an exported folder, with numpy alone
OURS = ("rtxlib", "rtx", "rtxstudy")
MODELS = ("torch", "transformers")
TABLES = ("rtxstudy.statistics", "rtxstudy.pareto")  # they read tables alone
TRADEOFF = "rtxstudy.questions.accuracy.tradeoff_figures"  # which the interactive figure draws again

# The files, what they never import, and the exceptions to that.
RULES = [
    ("rtxlib", ("rtx", "rtxstudy", *PLOTTING, *NOTEBOOKS), ()),
    ("rtx", ("rtxstudy", *PLOTTING, *NOTEBOOKS), ()),
    ("rtxlib/errors.py rtxlib/atomic.py rtxlib/checksums.py rtxlib/hub.py", OURS, LEAVES),
    ("rtxlib/memory.py rtx/process.py", (*OURS, *MODELS), LEAVES),
    ("rtxlib/models", OURS, ("rtxlib.models", *LEAVES)),
    ("rtxlib/data", OURS, ("rtxlib.data", "rtxlib.paths", *LEAVES)),
    ("rtxlib/training", OURS, ("rtxlib.training", "rtxlib.models", "rtxlib.data", *LEAVES)),
    ("rtx/baselines", OURS, ("rtx.baselines", "rtx.classifiers.words", "rtxlib")),
    ("rtx/classifiers", OURS, ("rtx.classifiers", "rtx.embedding", "rtxlib")),
    (
        "rtx/archive.py rtx/beam_search.py rtx/distillation.py rtx/embedding.py rtx/errors.py rtx/latency.py rtx/vocabulary.py",
        OURS,
        ("rtx.embedding", "rtxlib"),
    ),
    ("rtx/export rtx/shards rtx/executors", ("rtx.cli", "rtx.doctor"), ()),
    ("rtx/export/standalone.py rtx/export/opened.py", (*OURS, *MODELS), ("rtx.export.standalone", *READERS, *LEAVES)),
    (
        "rtxstudy/figures rtxstudy/questions/*/*_figures.py",
        (*OURS, *MODELS),
        ("rtxstudy.figures", "rtxstudy.names", "rtxstudy.numbers", "rtx.cli.output", TRADEOFF, *TABLES, *LEAVES),
    ),
    ("rtxstudy/statistics.py rtxstudy/pareto.py", (*OURS, *MODELS), (*TABLES, *LEAVES)),
    ("rtxstudy/pages", ("rtxstudy", *PLOTTING, *NOTEBOOKS), ("rtxstudy.pages", "anywidget")),
    ("rtxstudy/report", OURS, ("rtxstudy.report", "rtxstudy.names", "rtx.process", "rtxlib.paths", *LEAVES)),
    ("rtxstudy/names.py rtxstudy/numbers.py", OURS, ()),
    ("rtxstudy/questions/*/*_claims.py rtxstudy/questions/*/*_runs.py", (*PLOTTING, *NOTEBOOKS), ()),
    ("rtxstudy/questions", ("rtxstudy.report", "rtxstudy.study", "rtxstudy.commands"), ()),
    ("rtxstudy", ("rtx.cli",), ("rtx.cli.output", "rtx.cli.commands")),  # the page of options prints the help of the commands
]


def imported(path: Path) -> set[str]:
    """The dotted names that a file imports, at its top or inside a function."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            start = ".".join(package[: len(package) + 1 - node.level]) if node.level else ""
            module = f"{start}.{node.module}".strip(".") if node.module else start
            # `from rtxlib import paths` names a module of a package, `from rtxlib.errors import InputError` an attribute
            names |= {f"{module}.{alias.name}" for alias in node.names}
    return names


def inside(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize(("where", "never", "but"), RULES, ids=[where for where, _, _ in RULES])
def test_nothing_looks_back(where: str, never: tuple[str, ...], but: tuple[str, ...]) -> None:
    places = [found for place in where.split() for found in ROOT.glob(place)]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    found = [
        (file.name, name) for file in files for name in imported(file) if inside(name, never) and not inside(name, but)
    ]
    assert files and not found
