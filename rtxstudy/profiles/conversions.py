"""Ways to make a pretrained encoder of six layers into a loop: arguments of :func:`rtxlib.models.convert.to_loop`."""

from __future__ import annotations

from typing import Any

LOWER: dict[str, Any] = {"layers": 3, "passes": 2, "start": "lower"}
# Notebook 09 trains each with one seed and chooses among them by validation accuracy. The first one is the loop of the study.
CONVERSIONS: tuple[dict[str, Any], ...] = (
    {"layers": 2, "passes": 2, "start": "lower", "edges": True},
    LOWER,
    {"layers": 3, "passes": 2, "start": "average"},
    {"layers": 3, "passes": 2, "start": "spread"},
    LOWER | {"pass_norms": True},
    LOWER | {"rank": 16},
    {"layers": 3, "passes": 2, "start": "average", "rank": 16},
    {"layers": 2, "passes": 3, "start": "lower"},
    {"layers": 1, "passes": 4, "start": "lower", "edges": True},
)
# A loop whose state can be read after each of its passes, because training draws the passes of each batch
READ_EARLY: dict[str, Any] = LOWER | {"passes": 4, "depth_sampling": "uniform"}
