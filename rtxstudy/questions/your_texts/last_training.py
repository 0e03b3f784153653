"""The chosen model trained once more, on the validation texts, too: they have chosen it, and now it can learn from them.

The test texts stay unseen, so the test score is that of the model that is handed over.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from rtxlib.errors import InputError
from rtxstudy.questions.your_texts.beside import Beside
from rtxstudy.questions.your_texts.candidates import MAJORITY, NAMED
from rtxstudy.questions.your_texts.clock import OutOfTime
from rtxstudy.questions.your_texts.finished_candidates import Entry
from rtxstudy.questions.your_texts.fitted import FIT
from rtxstudy.questions.your_texts.race import Turns
from rtxstudy.questions.your_texts.state import Race
from rtxstudy.questions.your_texts.training_time import START_SECONDS

SAFETY = 1.2  # times the seconds that the training is expected to take; so many must be left


class Last(Race):
    """A race of one candidate that learns from the validation texts, too. They judge nothing any more, so no score is said."""

    curves = False

    def __init__(self, race: Race) -> None:
        super().__init__(race.texts, race.folder, race.clock)
        self.train = np.concatenate([race.train, race.texts.judged])

    def finish(self, entry: Entry) -> None:
        self.entries[entry.name] = entry


def train(race: Race, name: str) -> Entry | None:
    """The chosen candidate, trained by the same plan on the training and the validation texts; None where it is not.

    Its answers to the validation texts stay those by which it was chosen. In cross-validation it has learned from these texts
    already, a model that read a part of the training texts was short of time, and a network from scratch needs validation texts
    to end its training. A training can fail: a model that answers texts worse after it has learned from them is not taken.
    """
    candidate, entry, clock = NAMED[name], race.entries[name], race.clock
    scratch = candidate.kind == "network" and not candidate.pretrained
    if race.texts.cross_validated or entry.rows != len(race.train) or scratch or name == MAJORITY:
        return None
    last = Last(race)
    plan = dataclasses.replace(entry.plan, rows=len(last.train))
    seconds = SAFETY * (START_SECONDS + entry.seconds * plan.rows / entry.rows)
    if last.find(candidate, plan) is None and (seconds > clock.left or clock.ended == "asked"):
        return None
    clock.progress(name, "learning from the validation texts, too")
    try:
        if name in FIT:
            FIT[name](last)
        else:
            Turns(last, Beside(last)).train_by(candidate, plan)
    except InputError as error:
        clock.announce(f"{name} stays as it was chosen. Training it on the validation texts, too, failed: {error}")
        return None
    except (OutOfTime, KeyboardInterrupt):  # the model that was chosen is there
        return None
    finally:
        clock.stop_file.unlink(missing_ok=True)
    again = last.entries[name]
    if race.score(again.judged, race.texts.judged) < race.score(entry.judged, race.texts.judged):  # it has seen them, and fails
        clock.announce(f"{name} stays as it was chosen. Trained on the validation texts, too, it knows them less than before.")
        return None
    return dataclasses.replace(again, judged=entry.judged, seconds=entry.seconds + again.seconds)
