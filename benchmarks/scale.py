"""The generated tables of docs/: every comparison, the peers of ``rtx compare``, and the cost of 10,000 runs and of 10⁹ texts.

python -m benchmarks.scale            # prints them
python -m benchmarks.scale --write    # puts them into the pages
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks import compare
from benchmarks.__main__ import FILES
from benchmarks.measure import verdict

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "docs" / "cluster.md", ROOT / "docs" / "speed.md")
MACHINES = {"a laptop of 2 cores": 2, "one machine of 64": 64, "a cluster of 1,000": 1000}
RUNS, TEXTS = 10_000, 10**9
MODELS = ("standard-6x384", "recurrent-3x2x256")
# The benchmark rows behind the arithmetic: reviews, and phrases of about a dozen tokens.
READ = "prediction, 60 Yelp reviews, bf16, beside a plain loop over transformers"
SHORT = "prediction, 400 SST-2 phrases, bf16, beside a plain loop over transformers"
VECTORS = "embedding, 50 Yelp reviews, beside SentenceTransformer's default batches of 32"
READINGS = {  # what is done → its row, its unit, what it leaves behind: 12 bytes a text, or 384 numbers of four bytes
    "10⁹ reviews labelled": (READ, "reviews a second and core (BERT 6×384, bf16", f"{TEXTS * 12 / 1e9:.0f} GB of answers"),
    "10⁹ film phrases labelled": (SHORT, "phrases a second and core (BERT 6×384, bf16", f"{TEXTS * 12 / 1e9:.0f} GB of answers"),
    "10⁹ reviews embedded": (VECTORS, "reviews a second and core (MiniLM-L6, fp32", f"{TEXTS * 1536 / 1e12:.1f} TB of vectors"),
}


def benchmarks(device: str = "cpu") -> dict[str, Any]:
    return json.loads((ROOT / "reports" / FILES[device]).read_text())


def duration(hours: float) -> str:
    """``0.5`` → ``30 min``, ``30`` → ``30 h``, ``300`` → ``12 days``."""
    if hours < 1:
        return f"{60 * hours:.0f} min"
    return f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h" if hours < 72 else f"{hours / 24:.0f} days"


def rate_of_core(row: dict[str, Any]) -> float:
    """Texts a second and core. The settings of a row end in its number of threads, one on each core."""
    threads = int(re.search(r"(\d+) threads?$", row["settings"])[1])
    return row["ours"] / threads


def line(what: str, unit: str, core_hours: float, stored: str) -> str:
    spread = " | ".join(duration(core_hours / cores) for cores in MACHINES.values())
    return f"| {what} | {unit} | {core_hours:,.0f} | {spread} | {stored} |"


def arithmetic() -> str:
    """The table of costs, as Markdown. It assumes perfect scaling: runs, and shards of texts, do not wait for each other."""
    runs = pd.read_parquet(ROOT / "data" / "results" / "full" / "runs.parquet")
    runs = runs[(runs["data"] == "sst2") & (runs["recipe"] == "default")]
    bench = {row["name"]: row for row in benchmarks()["rows"]}
    lines = [
        f"| what | measured | core-hours | {' | '.join(MACHINES)} | left behind |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    minutes = runs.groupby("model")["train_cpu_seconds"].median() / 60
    for model in MODELS:
        of_model = runs[runs["model"] == model]
        terabytes = RUNS * of_model["size_mb"].iloc[0] / 1e6
        unit = f"{minutes[model]:.1f} core-minutes a run ({', '.join(of_model['dtype'].unique())}, n = {len(of_model)})"
        lines.append(
            line(f"{RUNS:,} runs of {model} on SST-2", unit, RUNS * minutes[model] / 60, f"{terabytes:.2f} TB of weights")
        )
    for what, (name, unit, left) in READINGS.items():
        rate = rate_of_core(bench[name])
        measured = f"{rate:.0f} {unit}, n = {bench[name]['n']})"
        lines.append(line(what, measured, TEXTS / (rate * 3600), left))
    rate = rate_of_core(bench[READ])
    core_hours = TEXTS / (rate * 3600)
    lines += [
        "",
        f"Core-hours = texts / (texts a second and core × 3,600 s); for the labelled reviews 10⁹ / ({rate:.1f} × 3,600) = "
        f"{core_hours:,.0f}. Hours = core-hours / cores.",
        "",
        f"The 10⁹ reviews take {60 * core_hours / minutes[MODELS[0]]:,.0f} times as long as training {MODELS[0]} once. "
        f"A review takes {bench[SHORT]['ours'] / bench[READ]['ours']:.1f} times as long as a film phrase of SST-2.",
    ]
    return "\n".join(lines)


def comparisons(device: str = "cpu") -> str:
    """Every row of the benchmarks on a device, as Markdown."""
    lines = [
        "| what | ours | peer | unit | ratio (lowest to highest, n) | aim | result | memory, MB: ours, peer |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    rows = benchmarks(device)["rows"]
    for row in rows:
        aim = "–" if row["aim"] is None else f"{row['aim']:.3g}"
        if row["ratio"] is None:
            lines.append(f"| {row['name']} | – | – | {row['unit']} | – | {aim} | {row['settings']} | – |")
            continue
        memory = ", ".join("–" if row.get(side) is None else f"{row[side]:,.0f}" for side in ("ours_mb", "peer_mb"))
        spread = f"{row['spread'][0]:.2f} to {row['spread'][1]:.2f}, " if row["spread"] else ""
        outcome = verdict(row["ratio"], row["aim"]).replace("missed", "**missed**")
        alike = row["aim"] is not None and row["ratio"] < row["aim"] <= row["ratio"] + 0.005  # they would be printed alike
        digits = 3 if alike else 2
        ours, peer = (f"{x:.3g}" if x < 100 else f"{x:,.0f}" for x in (row["ours"], row["peer"]))
        lines.append(
            f"| {row['name']} | {ours} | {peer} | {row['unit']} | {row['ratio']:.{digits}f} "
            f"({spread}n = {row['n']}) | {aim} | {outcome} | {memory} |"
        )
    return "\n".join([*lines, "", *_places(rows, "room")])


def _megabytes(row: dict[str, Any]) -> str:
    """The size of a model; one digit more where it is below a megabyte."""
    return f"{row['mb']:.{1 if row['mb'] < 1 else 0}f}"


def instead() -> str:
    """``rtx compare`` beside what a user would take instead of it, as Markdown, and whether the aims are met."""
    rows = compare.means(json.loads(compare.FILE.read_text())["rows"])
    columns = ("data, training rows", "minutes", "tool", "accuracy (± deviation)", "macro-F1", "minutes taken", "memory, MB")
    lines = [f"| {' | '.join((*columns, 'model, MB', 'texts/s', 'how'))} |", "| --- " * (len(columns) + 3) + "|"]
    for row in rows:
        given = f"{row['minutes']:g} | {row['tool']}"
        if "accuracy" not in row:
            lines.append(f"| {row['data']} | {given} | – | – | – | – | – | – | {row['why']} |")
            continue
        spread = f" ± {row['spread']:.3f} (n = {row['n']})" if row["spread"] is not None else ""
        lines.append(
            f"| {row['data']}, {row['train_rows']:,} | {given} | {row['accuracy']:.3f}{spread} | {row['macro_f1']:.3f} | "
            f"{row['seconds'] / 60:.1f} | {row['peak_mb']:,.0f} | {_megabytes(row)} | {row['texts_per_second']:,.0f} | "
            f"{row['settings']} |"
        )
        if one := row["eight_bits"]:
            lines.append(
                f"| {row['data']}, {row['train_rows']:,} | {row['minutes']:g} | the same in eight bits | {one['accuracy']:.3f} | "
                f"{one['macro_f1']:.3f} | – | – | {_megabytes(one)} | {one['texts_per_second']:,.0f} | `rtx export … --int8` |"
            )
    aims = [f"| {' | '.join(compare.VERDICT)} |", "| --- " * len(compare.VERDICT) + "|"]
    aims += [f"| {' | '.join(one).replace('missed', '**missed**')} |" for one in compare.verdicts(rows)]
    return "\n".join([*lines, "", *_places(rows, "data"), "", *aims])


def _places(rows: list[dict[str, Any]], kind: str) -> list[str]:
    """A line for each machine: the kinds of rows that were measured there."""
    places: dict[str, dict[str, None]] = {}
    for row in rows:
        places.setdefault(row["machine"], {})[row[kind]] = None
    return [f"- {place}: {', '.join(names)}" for place, names in places.items()]


def page_with(page: Path) -> str:
    """The text of a page with fresh tables between its marks."""
    text = page.read_text(encoding="utf-8")
    for mark, compute in COMPUTED.items():
        begin, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
        if begin in text:
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{compute()}\n{end}{rest.partition(end)[2]}"
    return text


COMPUTED = {"arithmetic": arithmetic, "comparisons": comparisons, "on a GPU": partial(comparisons, "cuda"), "instead": instead}

if __name__ == "__main__":
    for page in PAGES:
        print(page_with(page))
        if "--write" in sys.argv[1:]:
            page.write_text(page_with(page), encoding="utf-8")
