"""Is the pretrained checkpoint of the profile within reach?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rtxstudy import checkpoints
from rtxstudy.absent import Absent

if TYPE_CHECKING:
    from rtxstudy import Study


def checkpoint(study: Study) -> str | Absent:
    """The name of the checkpoint. A redraw needs no weights."""
    missing = "" if study.redraws else checkpoints.out_of_reach(study.profile.pretrained)
    if missing:
        return Absent(f"It needs pretrained weights, which are not here. {missing}")
    return study.profile.pretrained
