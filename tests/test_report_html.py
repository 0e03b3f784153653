"""The report is one file that opens offline, reads on a phone and on paper, and hides no failure."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from rtxlib.errors import InputError
from rtxstudy.provenance import Provenance
from rtxstudy.report import html, notebooks

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="150"><rect width="300" height="150"/></svg>'
FIGURE = (
    '<figure><img alt="Two curves that rise" src="data:image/svg+xml;base64,'
    f'{base64.b64encode(SVG.encode()).decode()}"><figcaption>Accuracy, n = 872.</figcaption></figure>'
)
CHART = {
    "data": [{"type": "scatter", "x": [1, 2], "y": [3, 4], "mode": "markers+text", "text": ["a</script>", "b"]}],
    "layout": {"title": {"text": "What does a millisecond buy?"}, "width": 3000},
}


def markdown(source: str, **metadata: Any) -> Any:
    return new_markdown_cell(source, metadata=metadata)


def code(source: str, *outputs: Any, count: int = 1, tags: tuple[str, ...] = ()) -> Any:
    return new_code_cell(source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)})


def shown(**data: Any) -> Any:
    return new_output("display_data", data={kind.replace("_", "/", 1): value for kind, value in data.items()})


def plot(spec: dict[str, Any]) -> Any:
    return new_output("display_data", data={html.PLOTLY: spec, "text/html": "<p>another form</p>"})


def printed(text: str, name: str = "stdout") -> Any:
    return new_output("stream", name=name, text=text)


def build(folder: Path, *cells: Any, stem: str = "02_baseline", completed: bool | None = True, **more: Any) -> str:
    """The page made of one notebook."""
    notebook = new_notebook(cells=list(cells))
    if completed is not None:
        notebook.metadata.rtx = {"completed": completed, "error": None if completed else "cell 3: KeyError: 'b'"}
    nbformat.write(notebook, folder / f"{stem}.ipynb")
    return html.build([folder / f"{stem}.ipynb"], folder / "report.html", "A title & more?", **more).read_text("utf-8")


def soup(page: str) -> BeautifulSoup:
    return BeautifulSoup(page, "html.parser")


# ------------------------------------------------------------------------------------------------------------- content


def test_the_answer_stands_first_and_once(tmp_path: Path) -> None:
    answer = code("display(words)", shown(text_markdown="**Not yet**, by 0.6 points."), tags=("answer", "remove-input"))
    page = build(tmp_path, markdown("# What did we find?"), markdown("## Details"), answer, stem="99_report")
    assert page.index("<strong>Not yet</strong>") < page.index("What did we find? <a")
    assert page.count("Not yet") == 1
    assert "display(words)" not in page


def test_code_is_folded_at_the_end_of_its_section(tmp_path: Path) -> None:
    cells = [
        code("seeds: int = 1", count=1, tags=("parameters",)),
        code("seeds = 3", count=2, tags=("injected-parameters",)),
        code("import json", count=3),
        code("json.dumps('<a>')", shown(text_plain="'<a>'"), count=4),
        code("hidden = 1", printed("seen\n"), count=5, tags=("remove-input",)),
    ]
    folds = soup(build(tmp_path, *cells)).select("details.code")
    assert [fold.summary.text for fold in folds] == ["Parameters [1] – [2]", "Code [3] – [4]"]
    assert not any(fold.has_attr("open") for fold in folds)
    assert folds[1].pre.text == "import json\n\njson.dumps('<a>')\n"
    assert folds[1].select_one(".kn").text == "import"  # coloured


def test_alt_text_survives_and_an_image_without_words_gets_some(tmp_path: Path) -> None:
    bare, drawn = shown(image_png=PIXEL, text_plain="<Figure>"), shown(**{"image_svg+xml": SVG})
    page = build(tmp_path, code("a", shown(text_html=FIGURE)), code("b", bare, count=7), code("c", drawn))
    images = soup(page).select("main figure img")
    assert [image["alt"] for image in images][:2] == ["Two curves that rise", "Figure of notebook 02_baseline, cell 7"]
    assert images[1]["src"] == f"data:image/png;base64,{PIXEL}"
    assert base64.b64decode(images[2]["src"].partition("base64,")[2]).decode() == SVG
    assert "Accuracy, n = 872." in page


def test_numbers_are_right_aligned_and_words_are_not(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "example": ["a fine film", "3 stars"],
            "accuracy": [0.8123, None],
            "interval": ["0.79 – 0.83", "[0.71, 0.75]"],
            "cost": ["1.2 ms", "–"],
        },
        index=pd.Index(["standard-6x384", "recurrent-3x2x256"], name="model"),
    )
    found = soup(build(tmp_path, code("table", shown(text_html=table._repr_html_()))))
    rows = found.select(".table table tr")
    assert [cell.text for cell in rows[0].select("th")] == ["model", "example", "accuracy", "interval", "cost"]
    for row in rows:
        right = ["number" in cell.get("class", []) for cell in row.select("th, td")]
        assert right == [False, False, True, True, True]
    assert not found.select("main style, [border], tr[style]")
    assert found.select_one(".table")["tabindex"] == "0"  # can be scrolled by keyboard


def test_a_table_in_markdown_is_boxed_too(tmp_path: Path) -> None:
    page = build(tmp_path, markdown("| step | rows |\n|---|---|\n| read | 6,000 |\n"))
    assert "number" in soup(page).select_one(".table tbody td:last-child")["class"]


def test_formulas_become_mathml_outside_code_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    attention = "$$\\mathrm{softmax}\\left(\\frac{QK^\\top}{\\sqrt{d}}\\right)V$$"
    text = f"Costs $n^2$ here.\n\n{attention}\n\n`a = $5 + $6`\n\n```\n$x$\n```"
    page = soup(build(tmp_path, markdown(text)))
    assert [math["display"] for math in page.select("math")] == ["inline", "block"]
    assert page.select_one("math msup").text == "n2"
    assert "softmax" in [name.text for name in page.select("math mi")]
    assert [found.text.strip() for found in page.select("main code")] == ["a = $5 + $6", "$x$"]
    assert not capsys.readouterr().err


def test_aligned_equations_are_set_in_columns(tmp_path: Path) -> None:
    text = "$$\\begin{aligned} h &= F(h) \\\\ y &= Wh \\end{aligned}$$\n\n\\begin{align}a &= b\\end{align}"
    page = soup(build(tmp_path, markdown(text)))
    assert [len(math.select("mtr")) for math in page.select("math")] == [2, 1]
    assert "&" not in page.select_one(".prose").text
    assert "(1)" not in page.select_one(".prose").text


@pytest.mark.parametrize("formula", ["\\nosuchthing{x}", "\\frac{1}{"])
def test_a_formula_that_cannot_be_set_is_shown_and_told(
    tmp_path: Path, formula: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = soup(build(tmp_path, markdown(f"Here ${formula}$.")))
    assert page.select_one("code.unset").text == formula
    assert "cannot be set" in capsys.readouterr().err


def test_long_printing_keeps_its_end_and_warnings_are_folded_not_lost(tmp_path: Path) -> None:
    long = "".join(f"epoch {number}\n" for number in range(100))
    messages = [printed(text, "stderr") for text in ("\rstep 1\rstep 2\n", "UserWarning: look\n")]
    cells = [
        code("train()", printed(long), *messages),
        code("short()", printed("one \x1b[31mred\x1b[0m <line>\n")),
    ]
    page = soup(build(tmp_path, *cells))
    folds = page.select("details.printed")
    assert [fold.summary.text for fold in folds] == ["Printed: 100 lines, the last 40 here", "Messages: 1 line"]
    assert folds[0].pre.text.split("\n") == [f"epoch {number}" for number in range(60, 100)]
    assert folds[1].pre.text == "UserWarning: look"  # a line that is written over is progress
    assert page.select_one("div.printed pre").text == "one red <line>"


def test_a_failed_notebook_is_announced_and_shows_its_traceback(tmp_path: Path) -> None:
    error = new_output("error", ename="KeyError", evalue="'b'", traceback=["\x1b[31mKeyError\x1b[0m: <'b'>"])
    page = build(tmp_path, markdown("# Why?"), code("table['b']", error, count=3), completed=False)
    banner = soup(page).select_one(".banner")
    assert "02_baseline – cell 3: KeyError: 'b'" in banner.text
    assert banner.a["href"] == "#02_baseline"
    assert soup(page).select_one(".error pre").text == "KeyError: <'b'>"
    assert "not finished" in soup(page).select_one("#\\30 2_baseline .kicker").text


def test_without_a_completion_marker_a_notebook_counts_as_unfinished(tmp_path: Path) -> None:
    assert "did not run to its end" in soup(build(tmp_path, code("1"), completed=None)).select_one(".banner").text
    assert soup(build(tmp_path, code("1"))).select_one(".banner") is None


def test_skipped_notebooks_are_announced(tmp_path: Path) -> None:
    outcomes = [
        notebooks.Outcome("02_baseline", "done", 1.0),
        notebooks.Outcome("99_report", "skipped", 0.0, "needs 03_recurrent, which failed"),
    ]
    banner = soup(build(tmp_path, code("1"), outcomes=outcomes)).select_one(".banner")
    assert [item.text for item in banner.select("li")] == ["99_report – skipped: needs 03_recurrent, which failed"]


def test_a_skipped_notebook_of_an_earlier_run_does_not_answer(tmp_path: Path) -> None:
    answer = code("a", shown(text_markdown="An old answer."), tags=("answer",))
    assert "An old answer." in build(tmp_path, answer, stem="99_report")
    skipped = notebooks.Outcome("99_report", "skipped", 0.0, "needs 02_baseline, which failed")
    assert "An old answer." not in build(tmp_path, answer, stem="99_report", outcomes=[skipped])


def test_headings_make_the_contents_and_every_link_arrives(tmp_path: Path) -> None:
    links = "[above](#Cost-&-time), [this](02_baseline.ipynb), [cards](../data/README.md)"
    page = soup(build(tmp_path, markdown(f"# How good?\n\n## Cost & *time*\n\n## Cost & time\n\n{links}")))
    assert [heading.name for heading in page.select("header h1, .notebook :is(h2, h3)")] == ["h1", "h2", "h3", "h3"]
    assert page.h1.text == "A title & more?"
    ids = [tag["id"] for tag in page.select("[id]")]
    assert len(ids) == len(set(ids))
    links = [link["href"] for link in page.select("a")]
    assert len(page.select("nav a")) == 3
    assert len(page.select("main a:not(.anchor)")) == 2  # the file beside the notebook is named, not linked
    assert all(link[0] == "#" and link[1:] in ids for link in links)
    assert page.html["lang"] == "en"
    assert page.body.find("a")["href"] == "#report"  # skip link first


def test_what_would_be_fetched_is_left_out_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outside = '<p>Text <img src="https://example.org/a.png" alt="x"></p><script src="//example.org/a.js"></script>'
    prose = "![plot](plots/a.png)\n\n[a link](https://example.org)"
    page = build(tmp_path, code("a", shown(text_html=outside)), markdown(prose))
    assert [note.text for note in soup(page).select(".missing")] == [
        "[left out: https://example.org/a.png lies outside this file]",
        "[left out: //example.org/a.js lies outside this file]",
        "[left out: plots/a.png lies outside this file]",
    ]
    assert soup(page).select_one("main a")["href"] == "https://example.org"  # a link is only followed
    assert "plots/a.png" in capsys.readouterr().err


def test_the_chart_library_comes_once_and_only_where_there_are_charts(tmp_path: Path) -> None:
    assert 'id="plotly"' not in build(tmp_path, code("1", shown(text_plain="1")))
    whole_library = shown(text_html="<script>/** plotly.js v4 */</script>")
    page = build(tmp_path, code("a", whole_library, plot(CHART)), code("b", plot(CHART)))
    (library,) = soup(page).select("script#plotly")
    assert re.search(r"plotly\.js v\d", gzip.decompress(base64.b64decode(library.string)).decode())
    assert "plotly.js v" not in page
    charts = soup(page).select("figure.chart")
    assert [chart.div["aria-label"] for chart in charts] == ["What does a millisecond buy?"] * 2
    assert json.loads(charts[0].script.string) == {"data": CHART["data"], "layout": CHART["layout"]}
    assert "another form" not in page


def test_the_same_notebooks_give_the_same_bytes(tmp_path: Path) -> None:
    cells = [markdown("# A\n\n$x$"), code("a", plot(CHART), shown(text_html=FIGURE))]
    assert build(tmp_path, *cells) == build(tmp_path, *cells)
    assert {path.name for path in tmp_path.iterdir()} == {"02_baseline.ipynb", "report.html"}  # nothing half written


def test_what_is_no_notebook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.ipynb").write_text("{")
    for path in (tmp_path / "a.ipynb", tmp_path / "b.ipynb"):
        with pytest.raises(InputError, match="cannot be read as an executed notebook"):
            html.build([path], tmp_path / "report.html", "t")


def test_a_widget_is_shown_by_its_html_or_not_at_all(tmp_path: Path) -> None:
    """It would need a kernel, and the words it leaves are a progress bar that stands at its beginning."""
    widget = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "Map: 0%"}
    bar = new_output("display_data", data=widget)
    page = new_output("display_data", data=widget | {"text/html": "<p>the static page</p>"})
    text = build(tmp_path, code("a", bar), code("b", page))
    assert "Map: 0%" not in text and "the static page" in text


def test_an_appendix_ends_at_the_next_heading_of_its_level_and_what_is_for_the_notebook_alone_is_left_out(tmp_path: Path) -> None:
    cells = [
        markdown("# A chapter"),
        code("1", shown(text_plain="in the chapter")),
        markdown("## Loop dynamics", tags=["appendix"]),
        code("2", shown(text_plain="in the appendix")),
        markdown("### A detail"),
        code("3", shown(text_plain="deep in the appendix")),
        markdown("## Afterwards"),
        code("4", shown(text_plain="in the chapter again")),
        code("5", shown(text_plain="said before"), tags=("notebook-only",)),
    ]
    page = soup(build(tmp_path, *cells))
    chapter, appendix = page.select_one(".notebook"), page.select_one(".appendix")
    assert "in the chapter" in chapter.text and "in the chapter again" in chapter.text and "appendix" not in chapter.text
    assert "in the appendix" in appendix.text and "deep in the appendix" in appendix.text
    assert "said before" not in page.main.text
    anchors = [link["href"] for link in page.select("nav a")]
    assert anchors.index("#02_baseline-afterwards") < anchors.index("#02_baseline-appendix")


def test_a_section_that_the_profile_skips_is_left_out(tmp_path: Path) -> None:
    line = shown(text_markdown="*Skipped. This profile has no such data.*")
    here = [markdown("## Here"), code("1", line), code("2", shown(text_plain="a result"))]
    rows = "<tr><th>commit</th><td>abc</td></tr>"
    end = code("end", shown(text_html=f'<table class="provenance"><tbody>{rows}</tbody></table>'))
    last = [markdown("## Nor here"), code("2", line), end]
    silent = [markdown("## Silent"), code("3", shown(text_markdown=""))]  # a question whose claims this profile does not make
    page = build(tmp_path, markdown("# A"), markdown("## Not here"), code("0", line), *here, *silent, *last)
    assert not any(head in page for head in ("Not here", "Nor here", "Silent")) and "a result" in page and "commit abc" in page


def test_a_section_whose_only_results_are_in_the_appendix_goes_there_whole(tmp_path: Path) -> None:
    line = shown(text_markdown="*Skipped. This profile has no such data.*")
    detail = code("1", shown(text_plain="a detail"), tags=("appendix",))
    aside = [markdown("## Aside"), detail, code("2", shown(text_markdown=""))]
    page = soup(build(tmp_path, markdown("# A"), *aside, markdown("## Here"), code("3", shown(text_plain="a result"))))
    chapter, appendix = page.select_one(".notebook").text, page.select_one(".appendix").text
    assert "a result" in chapter and "Aside" not in chapter
    assert "a detail" in appendix and "Aside" in appendix and "Here" not in appendix
    page = soup(build(tmp_path, markdown("# A"), markdown("## Not here"), code("0", line), *aside))
    (only,) = page.select(".appendix")  # a title alone would be a chapter without a result
    assert not page.select(".notebook") and "Aside" in only.text and "a detail" in only.text
    only_title = soup(build(tmp_path, markdown("# A"), markdown("## Not here"), code("0", line)))
    assert not only_title.select(".notebook") and only_title.select(".appendix")


def test_a_wide_table_keeps_seven_columns_in_sight_and_tells_what_is_the_same_in_all_rows() -> None:
    from rtxstudy.report.markup import clean

    table = pd.DataFrame({"data": ["sst2"] * 30} | {f"c{n}": range(n, n + 30) for n in range(8)})
    found = soup(clean(table.to_html(index=False), "02"))
    (box,) = found.select(".tabled")
    assert found.select_one(".same").text == "In all rows: data SST-2."
    heads = [head.text for head in found.select("thead th:not(.more)")]
    assert heads == [f"c{n}" for n in range(7)]
    assert (box["data-columns"], box["data-rows"]) == ("9", "30")
    assert len(found.select("tbody tr:not(.later)")) == 15


def test_the_provenance_of_all_notebooks_is_one_block(tmp_path: Path) -> None:
    row = "<tr><th>{}</th><td>{}</td></tr>"
    for stem, seeds in (("01_a", "0, 1"), ("02_b", "0, 1, 2")):
        rows = "".join(row.format(*pair) for pair in (("commit", "abc"), ("dirty", "yes"), ("seeds", seeds)))
        block = code("study.close()", shown(text_html=f'<table class="provenance"><tbody>{rows}</tbody></table>'))
        build(tmp_path, markdown(f"# {stem}"), block, stem=stem)
    page = soup(html.build(sorted(tmp_path.glob("*.ipynb")), tmp_path / "r.html", "t").read_text())
    (colophon,) = page.select("#colophon")
    assert not page.select(".notebook table")
    assert "commit abc" in colophon.p.text and "not committed" in colophon.p.text
    assert colophon.text.count("0, 1, 2") == 1


def test_the_provenance_has_a_line_for_each_data_set() -> None:
    data = {"sst2": {"source": "a <b>", "fingerprint": "1"}, "cola": {"source": "c"}}
    rows = soup(Provenance(data=data, seeds=[0, 1])._repr_html_()).select("td")
    assert [list(row.stripped_strings) for row in rows] == [["sst2: source a <b>, fingerprint 1", "cola: source c"], ["0, 1"]]


# ----------------------------------------------------------------------------------------------------------- a browser

LIVE = """\
import base64, io
import pandas as pd
import plotly.graph_objects as go
from IPython.display import HTML, display
from matplotlib.figure import Figure

figure = Figure(figsize=(12, 4))
figure.subplots().plot([1, 2, 3])
drawn = io.StringIO()
figure.savefig(drawn, format="svg")
source = base64.b64encode(drawn.getvalue().encode()).decode()
display(HTML(f'<figure><img alt="A rising line" src="data:image/svg+xml;base64,{source}"></figure>'))
display(pd.DataFrame({f"a long column name {n}": [n / 7] for n in range(12)}))
go.Figure(go.Scatter(x=[1, 2], y=[1, 2]), layout={"title": "A chart", "width": 1400})
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of one notebook that a kernel ran and one put together here."""
    folder = tmp_path_factory.mktemp("report")
    text = "# What is it?\n\n$$" + "x_{1} + " * 60 + "y$$\n\nAnAddress" + "VeryLong" * 30
    nbformat.write(new_notebook(cells=[new_markdown_cell(text), new_code_cell(LIVE)]), folder / "01_live.ipynb")
    ran = notebooks.run(["01"], "smoke", {}, folder / "out", folder=folder)
    assert [outcome.status for outcome in ran] == ["done"]
    pixels = new_output("display_data", data={"image/png": PIXEL}, metadata={"alt": "A dot"})
    long = [code("x = " + "1 + " * 200 + "1", printed("y" * 900 + "\n" * 30)), code("p", pixels, plot(CHART))]
    (folder / "more").mkdir()
    build(folder / "more", markdown("# And this?\n\n## How long?"), *long)
    return html.build([ran[0].path, folder / "more" / "02_baseline.ipynb"], folder / "report.html", "Is it whole?")


def wait_until(page: Any, expression: str) -> None:
    """Ask until it is true. Playwright's own wait_for_function polls with eval, which the page's content policy forbids."""
    for _ in range(100):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"never true: {expression}")


def opened(browser: Any, report: Path, width: int, scheme: str = "light") -> tuple[Any, list[str]]:
    """The report in a window with the network off, and everything it asked for or complained about."""
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, offline=True)
    page, heard = context.new_page(), []
    page.on("request", lambda asked: None if asked.url.startswith(("data:", "blob:")) else heard.append(asked.url))
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(report.as_uri())
    wait_until(page, "[...document.querySelectorAll('.plot')].every((plot) => plot.querySelector('.main-svg'))")
    return page, heard


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_it_opens_offline_and_everything_has_drawn(browser: Any, report: Path, width: int, scheme: str) -> None:
    page, heard = opened(browser, report, width, scheme)
    assert heard == [report.as_uri()]
    images = page.evaluate("[...document.images].map((i) => [i.complete, i.naturalWidth, i.width, i.alt])")
    assert len(images) == 2
    for complete, natural, drawn, alt in images:
        assert complete and 0 < drawn <= natural + 20 and alt  # never drawn larger than it is; dark has a rim
    points = page.evaluate("[...document.querySelectorAll('.plot')].map((p) => p.querySelectorAll('.point').length)")
    assert points == [2, 2]
    sizes = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert sizes[0] <= sizes[1], "the page itself must not scroll sideways"
    widest = page.evaluate("Math.max(...[...document.querySelectorAll('.main-svg')].map((p) => p.clientWidth))")
    assert widest <= width
    formula = page.evaluate("document.querySelector('math').getBoundingClientRect().height")
    assert formula > 10
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 150) is (scheme == "dark")
    page.context.close()


def test_the_file_is_small_enough_to_mail(report: Path) -> None:
    assert report.stat().st_size < 9_000_000


def test_the_contents_stand_open_on_a_desk_and_closed_on_a_phone(browser: Any, report: Path) -> None:
    page, _ = opened(browser, report, 1280)
    assert page.locator("nav ol a").first.is_visible()
    page.evaluate("document.getElementById('02_baseline-how-long').scrollIntoView()")
    wait_until(page, "document.querySelector('nav a[aria-current=true]')?.textContent.trim() === 'How long?'")
    page.context.close()
    page, _ = opened(browser, report, 390)
    assert not page.locator("nav ol a").first.is_visible()
    page.locator("nav summary").click()
    page.get_by_role("link", name="And this?").click()
    page.locator("nav ol a").first.wait_for(state="hidden")  # a busy machine closes it and scrolls a moment later
    top = "document.getElementById('02_baseline').getBoundingClientRect().top"
    wait_until(page, f"0 <= {top} && {top} < 200")
    page.context.close()


def test_wide_tables_scroll_in_their_own_box(browser: Any, report: Path) -> None:
    page, _ = opened(browser, report, 390)
    inner, outer = page.eval_on_selector(".table", "(box) => [box.scrollWidth, box.clientWidth]")
    assert inner > outer
    assert outer <= 390
    page.context.close()


def test_a_table_is_sorted_and_shows_its_other_rows_and_a_figure_is_enlarged(browser: Any, tmp_path: Path) -> None:
    table = pd.DataFrame({"model": list("abcdefghijklmnopqrstu"), "score": [n * 37 % 21 for n in range(21)]})
    cells = [markdown("# A"), code("t", shown(text_html=table.to_html(index=False))), code("f", shown(text_html=FIGURE))]
    build(tmp_path, *cells)
    page, heard = opened(browser, tmp_path / "report.html", 390)
    rows = page.locator(".tabled tbody tr:visible")
    assert rows.count() == 15
    page.get_by_role("button", name="All 21 rows").click()
    assert rows.count() == 21
    page.get_by_role("button", name="score").click()
    assert rows.locator("td:last-child").all_inner_texts() == [str(n) for n in range(21)]
    with page.expect_download() as saved:
        page.get_by_role("button", name="CSV").click()
    lines = Path(saved.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[:2] == ['"model","score"', '"a","0"'] and len(lines) == 22
    page.get_by_role("button", name="Enlarge").click()
    assert page.evaluate("document.querySelector('dialog img').clientWidth") > 390
    assert heard == [(tmp_path / "report.html").as_uri()]
    page.context.close()


def test_paper_gets_no_code_and_dark_ink_on_white(browser: Any, report: Path) -> None:
    page, _ = opened(browser, report, 700, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("details.code").first.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("figure img").first.is_visible()
    style = "getComputedStyle(document.body)"
    assert page.evaluate(f"{style}.backgroundColor") == "rgb(255, 255, 255)"
    assert sum(map(int, re.findall(r"\d+", page.evaluate(f"{style}.color")))) < 200
    page.context.close()


def test_the_title_of_a_chapter_stays_where_nothing_is_shown_below_it(tmp_path: Path) -> None:
    page = build(
        tmp_path,
        markdown("# Pretrained encoders"),
        code("study.tabulate(loaded)", shown(text_markdown="")),
        markdown("## Does it know spam?"),
        code("study.say(spam)", shown(text_markdown="It does.")),
        markdown("## Is it old?"),
        code("study.say(age)", shown(text_markdown="")),
    )
    headings = [heading.text.rstrip(" #") for heading in BeautifulSoup(page, "html.parser").select(".notebook h2, .notebook h3")]
    assert headings == ["Pretrained encoders", "Does it know spam?"]
    assert "Is it old?" not in page
