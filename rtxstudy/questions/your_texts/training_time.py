"""How long a training will take on this machine, from the first steps of one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import cached_property

import numpy as np
import torch

from rtxlib.data.batching import Tokens
from rtxlib.data.tokenization import encode, pretrained_tokenizer, special_ids
from rtxlib.models import pretrained
from rtxlib.models.config import ModelConfig
from rtxlib.models.convert import loop_config
from rtxlib.models.presets import preset
from rtxlib.models.size import forward_flops, parameter_count
from rtxlib.training.device import pick_device, training_threads
from rtxlib.training.trainer import Trainer
from rtxstudy import checkpoints
from rtxstudy.questions.your_texts.candidates import FINE_TUNED, LOOP, MAX_LENGTH, MINILM, NAMED, Candidate, Plan
from rtxstudy.questions.your_texts.contrastive import TUNING
from rtxstudy.questions.your_texts.texts import Texts

GUESSED_SPEED = 2e10  # floating-point operations a second and thread, before anything was measured
START_SECONDS = 3  # of a training, whatever its size
STEP_SECONDS = 0.01  # of a step, whatever its size
MEASURED_SECONDS = 2.0  # of training steps by which the speed of this machine is measured, after one that warms up
MEASURED_ROWS = 512  # training rows that these steps are drawn from
SAMPLED = 2000  # texts whose lengths stand for all
SHORTEST = 5  # seconds of a training from which a speed is learnt; a shorter one was found, not trained


class Estimate:
    """Seconds of a training: its floating-point operations over the speed of this machine.

    The speed is first a guess, then that of the first steps of MiniLM's training (:meth:`measure`), then of each network its own.
    """

    def __init__(self, texts: Texts) -> None:
        self.texts = texts
        self.speed = GUESSED_SPEED * torch.get_num_threads()
        self.speeds: dict[str, float] = {}  # of each network; until it was trained, that of another of its origin
        self.trained: set[str] = set()
        self.has_minilm = checkpoints.out_of_reach(MINILM) is None

    @cached_property
    def lengths(self) -> np.ndarray:
        """(at most :data:`SAMPLED`,) tokens of some texts, uncut. Without MiniLM's tokenizer they are guessed from the words."""
        every = np.arange(len(self.texts.table))
        rows = np.random.default_rng(0).permutation(every)[:SAMPLED]
        if self.has_minilm:
            return np.diff(encode(self.texts.texts(rows), pretrained_tokenizer(pretrained.find(MINILM)), None)[1])
        return np.rint(1.3 * self.texts.words[rows] + 3).astype(int)

    def tokens(self, max_length: int = MAX_LENGTH) -> float:
        """Tokens that an encoder reads of a text, on average."""
        return float(np.minimum(self.lengths, max_length).mean())

    def cut(self, max_length: int) -> float:
        """The share of the tokens of all texts (of each at most :data:`MAX_LENGTH`) that a shorter length leaves unread."""
        return 1 - self.tokens(max_length) / self.tokens()

    def measure(self, rows: np.ndarray, threads: Iterable[int], report: Callable[[], object]) -> int:
        """Measure the speed of MiniLM's first training steps on some rows, with each number of threads.

        Returns the fastest number of threads: on a busy machine they wait for one another, so fewer may be faster. report: is
        called before each step, and may raise.
        """
        tokenizer, names = pretrained_tokenizer(pretrained.find(MINILM)), self.texts.label_names
        rows = rows[:MEASURED_ROWS]
        ids, offsets = encode(self.texts.texts(rows), tokenizer, MAX_LENGTH)
        separator = tokenizer.sep_token_id if self.texts.pairs else None
        data = Tokens(ids, offsets, self.texts.numbers(rows).astype(np.int64), separator)
        model = pretrained.with_head(pretrained.load(MINILM, config=pretrained.read_config(MINILM, num_labels=len(names))))
        recipe = NAMED[FINE_TUNED].recipe(Plan(len(rows)))
        trainer = Trainer(model, data, data, recipe, 0, special_ids(tokenizer), pick_device())
        trainer.model.train()
        stream, speeds = iter(trainer.step_rows), {}
        trainer.step(next(stream))
        for number in threads:
            with training_threads(number):
                begun, flops = time.monotonic(), 0.0
                while time.monotonic() - begun < MEASURED_SECONDS:
                    report()
                    pieces = next(stream)
                    trainer.step(pieces)
                    lengths = data.lengths[np.concatenate(pieces)]
                    flops += 3 * len(lengths) * forward_flops(model.config, round(lengths.mean()))
                trainer.read_losses()  # waits for a GPU
                speeds[number] = flops / (time.monotonic() - begun)
        best = max(speeds, key=speeds.__getitem__)
        self.speed = self.speeds[FINE_TUNED] = self.speeds[LOOP] = speeds[best]
        return best

    def row_flops(self, candidate: Candidate, max_length: int) -> float:
        """Floating-point operations of one pass of one text through a candidate's network, on average."""
        return forward_flops(self._config(candidate), max(1, round(self.tokens(max_length))))

    def megabytes(self, candidate: Candidate) -> float:
        """Megabytes of the weights of a candidate's network. One from scratch has at least these: its vocabulary comes later."""
        counts = parameter_count(self._config(candidate))
        return 4e-6 * counts["total" if candidate.pretrained else "non_embedding"]

    def _config(self, candidate: Candidate) -> ModelConfig:
        if not candidate.pretrained:
            return preset(candidate.model)
        config = pretrained.read_config(candidate.model or MINILM)
        return loop_config(config, **candidate.conversion) if candidate.conversion else config

    def seconds(self, candidate: Candidate, plan: Plan, trainings: int = 1) -> float:
        """Estimated seconds of the trainings of a candidate, of which all but one are for the folds of a cross-validation.

        Each reads the validation rows once an epoch. In the end all rows that judge are answered once.
        """
        row = self.row_flops(candidate, plan.max_length)
        speed = self.speeds.get(candidate.name, self.speed)
        test = len(self.texts.rows("test"))
        judges = len(self.texts.judged) + test
        if candidate.kind == "vectors":  # in cross-validation the rows that judge are those that it learns from
            return START_SECONDS + row * (plan.rows + (test if self.texts.cross_validated else judges)) / self.speed
        if candidate.kind == "tuned":
            passes, count = 3 * TUNING.steps * TUNING.recipe.batch_rows + plan.rows, TUNING.steps
        else:
            recipe = candidate.recipe(plan)
            passes = recipe.epochs * (3 * plan.rows + len(self.texts.judged) / trainings)
            count = recipe.epochs * plan.rows / recipe.batch_rows
        each = START_SECONDS + STEP_SECONDS * count * (not candidate.pretrained) + row * passes / speed
        return trainings * each + row * judges / speed

    def learn(self, candidate: Candidate, plan: Plan, spent: float) -> None:
        """Correct the speed of a network after one training of so many seconds.

        Other networks of its origin (MiniLM, or random weights) take that speed over until they are trained themselves.
        """
        expected = self.seconds(candidate, plan) - START_SECONDS
        speed = self.speeds.get(candidate.name, self.speed) * expected / (spent - START_SECONDS)
        self.trained.add(candidate.name)
        for name, other in NAMED.items():
            alike = (other.kind, other.pretrained) == (candidate.kind, candidate.pretrained)
            if name == candidate.name or (alike and name not in self.trained):
                self.speeds[name] = speed
