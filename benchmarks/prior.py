"""What won at which size and length: the table by which ``rtx compare`` orders its candidates.

    python -m benchmarks.prior [--data sst2-1000 sms-600 …]

For each setting every candidate is trained whole (networks at most at 128 word pieces, which cost a quarter of the time of 256)
on some rows of a public file, a fifth of them to watch the training by, and scored on other rows. Where they are few, what wins
depends on which they are, so there the scores are means over five draws. The rows go to
``rtxstudy/questions/your_texts/prior.json``; a call keeps those that it does not measure again. One processor thread is used.
The answers of the first draw to its test texts go to ``reports/prior/``, where ``benchmarks.choice`` reads them.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save_file

from benchmarks.__main__ import machine
from benchmarks.rows import AMAZON, AMAZON_STARS, COLA, SMS, SST2, YELP, Source, require_known, table_of
from rtxlib import paths
from rtxlib.atomic import replacing
from rtxlib.errors import InputError
from rtxstudy.questions.your_texts import plans, prior
from rtxstudy.questions.your_texts.beside import Beside
from rtxstudy.questions.your_texts.candidates import (
    CANDIDATES,
    FROM_SCRATCH,
    FROZEN,
    MAJORITY,
    STATIC,
    TUNED,
    WORDS,
    Plan,
)
from rtxstudy.questions.your_texts.clock import Clock
from rtxstudy.questions.your_texts.fitted import FIT
from rtxstudy.questions.your_texts.race import Turns
from rtxstudy.questions.your_texts.state import Race
from rtxstudy.questions.your_texts.texts import Texts, open_texts
from rtxstudy.questions.your_texts.tuned import unfit

ANSWERS = paths.root() / "reports" / "prior"  # one file for each setting: model → (test rows, labels), and the true labels
MOST_TEST = 1000
FEW, DRAWS = 150, 5  # up to so many rows, so many draws
HOURS = 100.0  # of a clock that never ends


class Setting(NamedTuple):
    """``rows``: of all labels together; a fifth validates. ``scratch``: whether encoders from scratch are trained, in draw 0."""

    source: Source
    rows: int
    scratch: bool = True

    @property
    def draws(self) -> int:
        return DRAWS if self.rows <= FEW else 1


def _settings(name: str, source: Source, *rows: int, scratch: int = 3000) -> dict[str, Setting]:
    return {f"{name}-{many}": Setting(source, many, many <= scratch) for many in rows}


SETTINGS: dict[str, Setting] = {
    **_settings("sst2", SST2, 20, 50, 100, 150, 300, 1000, 3000, 10_000),
    **_settings("sms", SMS, 150, 600, 2500),
    **_settings("cola", COLA, 150, 600, 3000),
    **_settings("yelp", YELP, 80, 300, 1200),
    **_settings("yelp-stars", Source("Yelp/yelp_review_full", "train", "text", "label"), 150, 600, 2500, scratch=0),
    **_settings("amazon", AMAZON, 80, 200, 1000),
    **_settings("amazon-stars", AMAZON_STARS, 300, 1200),
}


@contextlib.contextmanager
def opened(setting: Setting, draw: int = 0) -> Iterator[Turns]:
    """A race that never ends, on rows to learn from, a fifth of them to watch the training by, and other rows to score on."""
    with tempfile.TemporaryDirectory() as folder:
        texts = _texts(setting, draw, Path(folder))
        race = Race(texts, Path(folder) / "kept", Clock(60 * HOURS, Path(folder) / "stop"))
        yield Turns(race, Beside(race))


def _texts(setting: Setting, draw: int, folder: Path) -> Texts:
    table = table_of(setting.source).drop_duplicates("text")
    table = table.sample(frac=1, random_state=draw).head(setting.rows + MOST_TEST).reset_index(drop=True)
    split = ["test"] * len(table)
    split[: setting.rows] = ["validation" if row % 5 == 0 else "train" for row in range(setting.rows)]
    table.assign(split=split).to_csv(folder / "rows.csv", index=False)
    return open_texts(folder / "rows.csv", "text", "label", split_column="split")


def measured(name: str, setting: Setting) -> list[dict[str, Any]]:
    """A row for each candidate: means over the draws. What stands in it besides is of the first draw."""
    every = [drawn(name, setting, draw) for draw in range(setting.draws)]
    rows = []
    for row in every[0]:
        same = [one for draw in every for one in draw if one["model"] == row["model"]]
        means = {"accuracy": round(mean(one["accuracy"] for one in same), 4)}
        rows.append(row | means | {"cpu_seconds": round(mean(one["cpu_seconds"] for one in same)), "draws": len(same)})
    return rows


def drawn(name: str, setting: Setting, draw: int) -> list[dict[str, Any]]:
    """A row for each candidate, of one draw."""
    with opened(setting, draw) as turns:
        texts, race, scores, seconds = turns.texts, turns.race, {}, {}
        rows, scratch = len(race.train), setting.scratch and draw == 0
        left_out = ({TUNED} if unfit(race) else set()) | (set() if scratch else set(FROM_SCRATCH))
        for candidate in CANDIDATES:
            if candidate.name in left_out:
                continue
            begun = time.process_time()
            if candidate.name in (MAJORITY, WORDS, STATIC, FROZEN):
                FIT[candidate.name](race)
            else:
                epochs = plans.whole(candidate, rows).epochs
                turns.train_by(candidate, Plan(rows, prior.MAX_LENGTH, epochs, threads=1))
            seconds[candidate.name] = time.process_time() - begun
            scores[candidate.name] = accuracy(texts, race.entries[candidate.name].test)
            reached = f"{scores[candidate.name]:.3f} {seconds[candidate.name]:7.0f} s"
            print(f"{name:18} {draw} {candidate.name:24} {reached}", flush=True)
        common = {
            "data": name.rsplit("-", 1)[0],
            "rows": rows,
            "labels": len(texts.label_names),
            "tokens": round(turns.estimate.tokens(prior.MAX_LENGTH), 1),
            "n_test": len(texts.rows("test")),
        }
        if draw == 0:
            answers = {model: race.entries[model].test.astype(np.float32) for model in seconds}
            ANSWERS.mkdir(parents=True, exist_ok=True)
            file = ANSWERS / f"{common['data']}-{rows}.safetensors"
            save_file(answers | {"labels": texts.numbers(texts.rows("test"))}, file)
        return [{**common, "model": model, "accuracy": scores[model], "cpu_seconds": seconds[model]} for model in seconds]


def accuracy(texts: Texts, p: np.ndarray) -> float:
    return float((p.argmax(axis=1) == texts.numbers(texts.rows("test"))).mean())


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(prog="python -m benchmarks.prior", description="What wins at which size and length.")
    parser.add_argument("--data", nargs="+", default=list(SETTINGS), help=", ".join(SETTINGS))
    arguments = parser.parse_args()
    require_known(arguments.data, SETTINGS)
    torch.set_num_threads(1)
    where = {"machine": f"{machine()}, 1 thread", "torch": torch.__version__, "measured": f"{datetime.date.today()}"}
    head = {"by": "python -m benchmarks.prior", "n": "one seed; accuracies are means over so many draws; n_test rows score"}
    for name in arguments.data:
        added = [row | where for row in measured(name, SETTINGS[name])]
        old = json.loads(prior.FILE.read_text(encoding="utf-8"))["rows"]
        same = (added[0]["data"], added[0]["rows"])
        rows = [row for row in old if (row["data"], row["rows"]) != same] + added
        with replacing(prior.FILE) as part:
            lines = ",\n  ".join(json.dumps(row) for row in rows)
            part.write_text(f'{{"measured": {json.dumps(head)},\n "rows": [\n  {lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(str(error))
