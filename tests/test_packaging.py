"""What the wheel holds, and that it trains without the study's packages. test_notebooks.py makes the report with them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from test_imports import OURS as PACKAGES
from test_imports import ROOT, imported

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NEEDED = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
NOT_IMPORTED = {"accelerate", "jupyterlab", "ipython"}  # transformers, `make lab` and the notebooks use them
STEMS = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))


def names(requirements: Iterable[str]) -> set[str]:
    return {Requirement(requirement).name.lower().replace("_", "-") for requirement in requirements}


# ---------------------------------------- what pyproject.toml lists


def test_every_folder_of_code_is_a_package_of_the_wheel() -> None:
    files = [
        file
        for package in PACKAGES
        for file in (ROOT / package).rglob("*")
        if file.suffix not in ("", ".pyc")
    ]
    folders = {str(file.parent.relative_to(ROOT)).replace(os.sep, ".") for file in files}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders | {"rtxstudy.notebooks"})


@pytest.mark.parametrize(
    ("folder", "listed"), zip(PACKAGES, (NEEDED, NEEDED, NEEDED + EXTRAS["study"]), strict=True), ids=PACKAGES
)
def test_every_package_that_code_imports_is_listed(folder: str, listed: list[str]) -> None:
    """Those of extras of their own (Ray, export) apart."""
    files = list((ROOT / folder).rglob("*.py"))
    modules = {name.partition(".")[0] for file in files for name in imported(file)}
    modules -= {*sys.stdlib_module_names, *PACKAGES, "ray", "onnx", "onnxruntime", "mpl_toolkits"}
    modules -= {"graph"}  # a file beside the one that imports it, in an exported folder
    known = importlib.metadata.packages_distributions()
    wanted = {module: names(known.get(module, [module])) for module in modules}
    assert not {module: owners for module, owners in wanted.items() if not owners & names(listed)}


def test_every_listed_package_is_used() -> None:
    files = [file for folder in PACKAGES for file in (ROOT / folder).rglob("*.py")]
    modules = {name.partition(".")[0] for file in files for name in imported(file)}
    known = importlib.metadata.packages_distributions()
    used = set().union(*(names(known.get(module, [module])) for module in modules - {*sys.stdlib_module_names}))
    listed = names(NEEDED + EXTRAS["study"])
    assert listed - NOT_IMPORTED <= used and len(listed) == len(NEEDED + EXTRAS["study"])


def test_the_conda_environment_installs_this_package_with_a_python_that_it_takes() -> None:
    """No conda channel is within reach of the tests, so only what the file says is checked."""
    said = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    *of_conda, of_pip = said["dependencies"]
    assert said["channels"] == ["conda-forge"] and of_conda[1:] == ["pip"]
    name, _, versions = of_conda[0].partition(" ")
    wanted = SpecifierSet(PROJECT["project"]["requires-python"])
    offered = [f"3.{minor}" for minor in range(40) if f"3.{minor}" in SpecifierSet(versions)]
    assert name == "python" and offered and all(version in wanted for version in offered)
    (installed,) = of_pip["pip"]
    folder, _, extra = installed.removeprefix("-e ").partition("[")  # pip's folder is that of environment.yml
    assert (ROOT / folder).resolve() == ROOT and extra.removesuffix("]") in EXTRAS


# ---------------------------------------- the wheel


def closure(requirements: Iterable[str]) -> set[str]:
    """The distributions that requirements need, and what these need in turn; packages of other platforms are skipped."""
    found: set[str] = set()
    waiting = [Requirement(requirement) for requirement in requirements]
    while waiting:
        requirement = waiting.pop()
        extras = {"", *requirement.extras}
        name = f"{requirement.name.lower()}[{','.join(sorted(extras))}]"
        if name in found:
            continue
        found.add(name)
        for further in map(Requirement, importlib.metadata.requires(requirement.name) or ()):
            if further.marker is None or any(further.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(further)
    return {name.partition("[")[0] for name in found}


def environment(folder: Path, wheel: Path, requirements: list[str]) -> Callable[..., subprocess.CompletedProcess]:
    """A new environment with the wheel and the tested versions of what ``requirements`` need, and nothing else.

    Returns a function that runs its ``rtx`` in ``folder/empty``. The packages are links to those of the running interpreter.
    """
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    site = Path(
        subprocess.check_output([python, "-c", "import site; print(site.getsitepackages()[0])"], text=True).strip()
    )
    for name in closure(requirements):
        distribution = importlib.metadata.distribution(name)
        tops = {Path(file).parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}
        for top in tops:
            link, target = site / top, Path(distribution.locate_file(top)).resolve()
            if target.exists() and not link.exists():
                link.symlink_to(target)
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), *install], check=True)
    (folder / "empty").mkdir()
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "RTX_HOME", "VIRTUAL_ENV")}
    clean |= {"OMP_NUM_THREADS": "1", "JUPYTER_PATH": f"{sys.prefix}/share/jupyter"}  # the templates of nbconvert
    return lambda *words: subprocess.run(
        [folder / "venv" / "bin" / "rtx", *words], cwd=folder / "empty", env=clean, capture_output=True, text=True
    )


def test_the_wheel_holds_the_packages_and_the_notebooks(wheel: Path) -> None:
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    tree = {file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()}
    files = {str(file.relative_to(ROOT)) for file in tree if file.suffix != ".pyc"}
    assert held == files | {f"rtxstudy/notebooks/{stem}.ipynb" for stem in STEMS}


def test_without_the_study_the_wheel_trains_and_says_what_to_install(wheel: Path, tmp_path: Path) -> None:
    rtx = environment(tmp_path, wheel, NEEDED)
    for words in (["report"], ["report", "--dry-run"], ["notebook", "02"], ["pages", "--out", "pages"]):
        done = rtx(*words)
        assert done.returncode == 2 and done.stderr.startswith(
            f"rtx: `rtx {words[0]}` needs packages that are not installed"
        )
        assert done.stderr.endswith('pip install "rtxlib[study]"\n') and done.stderr.count("\n") == 1
    small = ("--model", "recurrent-1x2x32", "--data", "embedded", "--rows", "240", "--recipe", "smoke")
    done = rtx("train", *small)
    assert done.returncode == 0 and "accuracy" in done.stdout, done.stderr[-3000:]
    assert [folder.name for folder in (tmp_path / "empty").iterdir()] == ["data"]
    done = rtx("doctor")
    assert done.returncode == 0 and "study                 not installed (statsmodels" in done.stdout
    assert "\n  report " in rtx("--help").stdout
