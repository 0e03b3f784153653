"""The transformer page in a real JupyterLab with a running kernel: what either side changes, the other has."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from test_pages_swiglu import START, swiglu

CELLS = (
    'from rtxstudy.pages.widget import TransformerExplorer\npage = TransformerExplorer(tokens=["the", "cat"], d_model=6)\npage',
    'print("shape", page.attention.shape, "sums to one", bool((abs(page.attention.sum(-1) - 1) < 1e-9).all()))',
    'print("heads", page.state["heads"], "words", page.state["tokens"], "d", page.state["d_model"])',
    'page.set(d_model=10, tokens=["a", "b", "c"], position="rotary")',
    'print("then", page.attention.shape, page.cross_attention.shape, page.probabilities.shape, page.state["heads"])',
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a JupyterLab of this interpreter, and the folder it shows."""
    folder, config = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("config")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    options = {
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.root_dir": folder,
        "ServerApp.allow_root": True,
        "ServerApp.kernel_spec_manager_class": "rtxstudy.report.notebooks.RunningInterpreter",
        "IdentityProvider.token": "",
        "LabApp.news_url": "",
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
    }
    with (config / "log").open("w") as log:
        server = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "jupyterlab",
                "--no-browser",
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            env=os.environ | {name: str(config / name) for name in folders},
            stdout=log,
            stderr=log,
        )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urllib.request.urlopen(f"{address}/api/status", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (config / "log").read_text()[-3000:]
                time.sleep(0.25)
        else:
            raise AssertionError((config / "log").read_text()[-3000:])
        yield address, folder
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def window(browser: Any) -> Iterator[Any]:
    """One window, whose second tab need not fetch JupyterLab again."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    yield context
    context.close()


def opened(window: Any, lab: tuple[str, Path], sources: Sequence[str]) -> tuple[Any, Any, list[str], list[str]]:
    """A tab with a notebook of these cells and an idle kernel: the tab, its cells, what it asks for, and its errors."""
    address, folder = lab
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    name = f"of-{len(list(folder.glob('*.ipynb')))}.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources], metadata=kernel), folder / name)
    tab = window.new_page()
    asked_for: list[str] = []
    complaints: list[str] = []
    tab.on("request", lambda asked: asked_for.append(asked.url))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto(f"{address}/lab/tree/{name}?reset")
    cells = tab.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
    cells.nth(len(sources) - 1).wait_for(timeout=90_000)
    tab.locator('.jp-Notebook-ExecutionIndicator[data-status="idle"]').wait_for(timeout=90_000)
    return tab, cells, asked_for, complaints


def press_run(tab: Any, cell: Any) -> None:
    """Run a cell as a person does: click into it, press Ctrl+Enter, and press again while JupyterLab has not taken it.

    A notebook that has just opened may take the focus back after the click, and the keys then go nowhere.
    """
    before = cell.locator(".jp-InputPrompt").inner_text()
    for _ in range(12):
        cell.locator(".cm-content").click()
        tab.keyboard.press("Control+Enter")
        for _ in range(25):
            if cell.locator(".jp-InputPrompt").inner_text() != before:  # [*], then [1]
                return
            tab.wait_for_timeout(200)
    raise AssertionError("JupyterLab did not run the cell within a minute")


def test_the_page_and_the_kernel_share_one_state(window: Any, lab: tuple[str, Path]) -> None:
    address, _ = lab
    page, cells, asked_for, complaints = opened(window, lab, CELLS)

    def run(number: int) -> str:
        """Run a cell and wait for its end; what it printed."""
        cell = cells.nth(number)
        press_run(page, cell)
        cell.locator(".jp-InputPrompt", has_text=re.compile(r"\[\d+\]")).wait_for(timeout=60_000)
        page.wait_for_timeout(500)  # the output comes a moment after the prompt, and a page's answer a moment later
        printed = cell.locator(".jp-OutputArea-output pre")
        return printed.first.inner_text() if printed.count() else ""

    run(0)
    explorer = page.locator(".rtx-page")
    explorer.locator(".answer").wait_for(timeout=30_000)
    page.wait_for_timeout(600)
    assert run(1).strip() == "shape (2, 2, 2, 2) sums to one True"

    tokens = explorer.locator(".tokens").first.locator("input")  # the page changes, Python reads
    explorer.locator(".add").first.click()
    page.keyboard.type("dd")  # in JupyterLab's command mode two d's would delete the cell
    page.keyboard.press("Escape")
    explorer.get_by_role("button", name="more: dimension d").click()
    page.wait_for_timeout(600)
    assert cells.count() == len(CELLS)
    assert run(2).strip() == "heads 2 words ['the', 'cat', 'dd'] d 8"

    explorer.locator("td").first.click()  # the slider is in sight wherever the page stands in the notebook
    bar, box = explorer.locator(".editor").bounding_box(), explorer.bounding_box()
    assert box["y"] < bar["y"] and bar["y"] + bar["height"] < box["y"] + box["height"] <= 1000

    run(3)  # Python changes, the page follows
    assert tokens.evaluate_all("(all) => all.map((one) => one.value)") == ["a", "b", "c"]
    assert explorer.get_by_label("dimension d", exact=True).input_value() == "10"
    assert explorer.get_by_label("positions").input_value() == "rotary"
    # two heads would be five wide, and RoPE turns pairs: the page made it one, and the kernel knows
    assert run(4).strip() == "then (2, 1, 3, 3) (2, 1, 3, 3) (3, 7) 1"
    own = (address, address.replace("http", "ws"), "data:", "blob:")
    assert [url for url in asked_for if not url.startswith(own)] == [] and complaints == []
    page.close()


SWIGLU_CELLS = (
    "from rtxstudy.pages.widget import SwigluExplorer\npage = SwigluExplorer(beta=2)\npage",
    'print(page.state["beta"], page.state["compare"], page.state["w1"])',
    'page.set(beta=5, compare=["gelu"])',
)


def test_the_swiglu_page_and_the_kernel_share_one_state(window: Any, lab: tuple[str, Path]) -> None:
    tab, cells, _, complaints = opened(window, lab, SWIGLU_CELLS)

    press_run(tab, cells.nth(0))
    page = tab.locator(".rtx-page")
    page.get_by_label("W₁", exact=True).fill("-1.5", timeout=90_000)
    page.get_by_label("ReLU", exact=True).check()
    tab.wait_for_timeout(1000)  # changes are gathered, then sent
    press_run(tab, cells.nth(1))
    assert cells.nth(1).locator(".jp-OutputArea-output pre").inner_text(timeout=30_000).strip() == "2 ['relu'] -1.5"
    press_run(tab, cells.nth(2))
    page.locator("[data-number=gelu]").wait_for(timeout=30_000)
    assert page.get_by_label("β", exact=True).input_value() == "5" and page.locator("[data-number=relu]").count() == 0
    out = float(page.locator("[data-number=out]").inner_text().replace("−", "-"))
    assert out == pytest.approx(swiglu(START | {"beta": 5.0, "w1": -1.5})["parts"]["out"], abs=6e-6)
    assert complaints == []
    tab.close()
