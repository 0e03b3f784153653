"""Which candidates are trained in the time given: the cheapest first, and networks by successive halving.

Choices are made on the validation rows alone, or by cross-validation. What is finished is kept, and the same command with more
minutes goes on from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from rtxstudy.compare.candidates import CANDIDATES
from rtxstudy.compare.clock import OutOfTime
from rtxstudy.compare.estimate import Estimate
from rtxstudy.compare.fitted import with_minilm, without_layers
from rtxstudy.compare.halving import Halving
from rtxstudy.compare.on_ray import connected
from rtxstudy.compare.state import Race
from rtxstudy.compare.texts import Texts
from rtxstudy.compare.tuned import with_pairs


def run(
    texts: Texts,
    folder: Path,
    minutes: float,
    say: Callable[[str], None] = lambda line: None,
    executor: str = "local",
) -> Race:
    """Train what the time allows. An interrupt or the end of the time leaves what is finished.

    executor: what trains the networks, this process ("local") or a Ray cluster ("ray"); all else is done here. Other arguments:
    :class:`Race`. Raises InputError when there is no cluster.
    """
    race, estimate = Race(texts, folder, minutes, say), Estimate(texts)
    with connected(folder / "runs") if executor == "ray" else contextlib.nullcontext() as cluster:
        try:
            without_layers(race)
            if (frozen := with_minilm(race, estimate)) is not None:
                with_pairs(race, estimate, frozen)
            Halving(race, estimate, cluster).run()
        except OutOfTime:
            pass
        except KeyboardInterrupt:  # in JupyterLab
            race.clock.ended = "asked"
        race.quiet = cluster is None or cluster.idle()
    race.clock.stop_file.unlink(missing_ok=True)  # the wish is met, and a later call goes on
    if race.ended:
        why = "A stop was asked for before." if race.ended == "asked" else "The minutes were over."
        for candidate in CANDIDATES:
            if candidate.name not in race.entries and candidate.name not in race.left_out:
                race.left_out[candidate.name] = why
                race.late.add(candidate.name)
    return race
