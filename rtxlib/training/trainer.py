"""The training loop: batches by length, one optimiser step after another, the best weights kept."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from rtxlib.data.batching import Tokens, collate, pack
from rtxlib.errors import InputError
from rtxlib.models.encoder import EncoderBase
from rtxlib.training import checkpoint, parallel
from rtxlib.training.checkpoint import Progress
from rtxlib.training.device import autocast, moved, pick_precision
from rtxlib.training.optimizer import make_optimizer, rate_at
from rtxlib.training.predict import cross_entropy, predict_logits
from rtxlib.training.recipe import Recipe
from rtxlib.training.step_rows import StepRows

CHECKPOINT_SECONDS = 60.0  # a kill loses at most this much work
PROGRESS_SECONDS = 10.0
AGREE_EVERY = 20  # steps after which several processes agree on whether to save, because each agreement costs a message
_RANK_SEED = 1_000_003  # offset of each process's seed, so that dropout differs between processes


@dataclass
class Trained:
    """How a training went. Its model now holds the weights that were kept.

    ``curve`` has one row per evaluation: epoch, step, train_loss, val_loss, val_accuracy, learning_rate, seconds, grad_norm.
    """

    curve: pd.DataFrame
    best_epoch: float  # the epoch of the kept weights
    seconds: float  # spent training and validating, before and after each resumption
    cpu_seconds: float  # CPU seconds; they do not depend on other load
    rows_per_second: float  # training rows over the time spent in training steps alone
    tokens: int  # of the training steps, without padding
    padding_share: float  # padding tokens over all tokens of the training steps
    precision: str


def word_dropout(ids: Tensor, share: float, mask_id: int, special: Tensor) -> Tensor:
    """Replace a share of the ordinary tokens by ``mask_id``, so that the model cannot rely on single words."""
    hidden = (torch.rand(ids.shape, device=ids.device) < share) & ~torch.isin(ids, special)
    return ids.masked_fill(hidden, mask_id)


def distance_to_teacher(logits: Tensor, taught: Tensor, temperature: float) -> Tensor:
    """T²·Σ KL(teacher ‖ student) in nats over the rows, at temperature T (Hinton et al. 2015). Both logits: (rows, labels).

    T² keeps the gradient's size independent of T.
    """
    student, teacher = (F.log_softmax(x / temperature, dim=-1) for x in (logits, taught))
    return temperature**2 * F.kl_div(student, teacher, reduction="sum", log_target=True)


def class_weights(labels: np.ndarray, classes: int, power: float) -> np.ndarray:
    """The weight of each class in the loss, (classes,) in float32: 1 / its rows to a power, 1 on average over the rows.

    labels: (rows,) of training. A class without rows has the weight 0, because no row asks for it.
    """
    counts = np.bincount(labels, minlength=classes)
    weights = np.where(counts > 0, np.maximum(counts, 1.0) ** -power, 0.0)
    return (weights / weights[labels].mean()).astype(np.float32)


def evaluation_steps(recipe: Recipe, steps_per_epoch: int, total: int) -> set[int]:
    """The steps after which a training is evaluated: evenly spread over each epoch, and the last step."""
    count = math.ceil(recipe.most_epochs(steps_per_epoch)) * recipe.evaluations_per_epoch
    return {round(k * steps_per_epoch / recipe.evaluations_per_epoch) for k in range(1, count + 1)} | {total}


class Trainer:
    """Trains one model in place.

    The state of a training is ``model``, ``mean`` (the model of averaged weights, or None), ``best`` (the weights to keep so
    far), ``optimizer``, ``scaler``, ``progress`` and torch's random generators. A checkpoint holds all of it. A resumed training
    gives the weights of an uninterrupted one. On a GPU they agree up to rounding, because the order of its sums varies.

    Several processes that train together (:mod:`rtxlib.training.parallel`) each make a Trainer of the same arguments and end
    with the same weights. Rows and curve are those of all processes.

    Args:
        model: the model to train
        training: the training rows
        validation: the rows whose loss decides which weights are kept
        recipe: how to train
        seed: decides the order of the batches and all random draws
        special_ids: the tokenizer's "pad", "unk", "mask" if it has one, and all other ids that word dropout must spare
        device: where to compute
        checkpoint_file: a file that is written every minute and read at the start if it exists
        report: is called with a line about each evaluation, and with one about the progress every ten seconds
        teacher: (training rows, labels) logits of another model, which ``recipe.distillation`` compares with; None: no teacher

    Raises:
        InputError: a split is empty; later, the loss is not finite, or the checkpoint may not be read.
    """

    def __init__(
        self,
        model: EncoderBase,
        training: Tokens,
        validation: Tokens,
        recipe: Recipe,
        seed: int,
        special_ids: dict[str, int],
        device: torch.device,
        checkpoint_file: Path | None = None,
        report: Callable[[str], None] = lambda line: None,
        teacher: np.ndarray | None = None,
    ) -> None:
        if not len(training) or not len(validation):
            raise InputError("Training needs at least one training row and one validation row; the data have too few.")
        self.model = model.to(device)
        self.training, self.validation, self.lengths = training, validation, training.lengths
        self.recipe, self.seed, self.device = recipe, seed, device
        self.precision = pick_precision(recipe.precision, device)
        self.pad_id = special_ids["pad"]
        self.mask_id = special_ids.get("mask", special_ids["unk"])
        self.special_ids = torch.tensor(sorted(set(special_ids.values())), device=device)
        self.checkpoint_file, self.report, self.teacher = checkpoint_file, report, teacher
        self.label_weights: Tensor | None = None
        if recipe.balance:
            weights = class_weights(training.labels, model.config.num_labels, recipe.balance)
            self.label_weights = torch.from_numpy(weights).to(device)

        self.step_rows = StepRows(training, recipe, seed, device)
        self.total = recipe.steps(self.step_rows.per_epoch)
        self.evaluate_at = evaluation_steps(recipe, self.step_rows.per_epoch, self.total)
        self.start()

    def start(self) -> None:
        """Set everything but the model's weights to the state before the first step."""
        self.progress = Progress()
        self.mean = AveragedModel(self.model) if self.recipe.average else None
        self.best = self._kept_state()
        self.optimizer = make_optimizer(self.model, self.recipe)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.precision == "fp16")
        self.unread: list[tuple[Tensor, Tensor]] = []  # loss and gradient norm of steps, still on the device
        torch.manual_seed(self.seed + _RANK_SEED * parallel.rank())

    def run(self) -> Trained:
        """Train to the end, and leave the best weights in the model, or the last ones (``recipe.keep``)."""
        self.resume()
        self.model.train()
        if self.recipe.freeze_encoder:
            self.model.encoder.eval()  # a frozen encoder needs no dropout
        now = self.progress
        self.wall, self.cpu = time.perf_counter(), time.process_time()
        self.saved_at = self.reported_at = self.wall
        # The seed decides the order of the batches. A resumed training skips the first `step` batches.
        stream = itertools.islice(self.step_rows, now.step, None)

        while now.step < self.total and not now.stopped:
            pieces = next(stream)
            begun = time.perf_counter()
            self.step(pieces)
            to_evaluate = now.step in self.evaluate_at
            to_report = time.perf_counter() - self.reported_at > PROGRESS_SECONDS
            to_save = self.save_is_due()
            if to_evaluate or to_report or to_save:
                self.read_losses()
            now.training_seconds += time.perf_counter() - begun
            if to_evaluate:
                self.evaluate()
            if to_report:
                self.report_progress()
            if to_save:
                self.save()

        self.add_time()
        self.model.load_state_dict(self.best)
        self.model.eval()
        return Trained(
            curve=pd.DataFrame(now.curve),
            best_epoch=now.best_epoch,
            seconds=now.seconds,
            cpu_seconds=now.cpu_seconds,
            rows_per_second=now.rows / now.training_seconds,
            tokens=now.tokens,
            padding_share=1 - now.tokens / now.computed if now.computed else 0.0,
            precision=self.precision,
        )

    def step(self, pieces: list[np.ndarray]) -> None:
        """Update the weights once, from the rows of all ``pieces``: row indices of each micro-batch."""
        now, optimizer = self.progress, self.optimizer
        rate = rate_at(self.recipe, now.step, self.total, now.rate_factor)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        rows = sum(map(len, pieces))
        loss = torch.zeros((), device=self.device)
        for index in map(parallel.share, pieces):
            if len(index):
                part = self.loss(index) / rows
                self.scaler.scale(part).backward()
                loss += part.detach()
        self.add_up_gradients(loss)
        self.scaler.unscale_(optimizer)
        norm = torch.nn.utils.get_total_norm([p.grad for p in self.model.parameters() if p.grad is not None])
        # Clip: the fused AdamW divides the gradients by grad_scale.
        optimizer.grad_scale = ((norm + 1e-6) / self.recipe.clip_norm).clamp(min=1.0)
        self.scaler.step(optimizer)
        self.scaler.update()
        optimizer.zero_grad(set_to_none=True)
        self.unread.append((loss, norm))
        now.step += 1
        now.rows += rows
        if self.mean is not None and now.step > (1 - self.recipe.average) * self.total:
            self.mean.update_parameters(self.model)

    def loss(self, index: np.ndarray) -> Tensor:
        """The loss of a micro-batch, summed over its rows. index: (rows,) of the training rows.

        This is what another kind of training replaces, with :meth:`validate`.
        """
        batch = self.batch(index)
        labels = batch.pop("labels")
        if self.recipe.word_dropout:
            hide = self.recipe.word_dropout, self.mask_id, self.special_ids
            batch["input_ids"] = word_dropout(batch["input_ids"], *hide)
        with autocast(self.precision, self.device):
            logits = self.model(**batch).logits.float()
        smoothing = self.recipe.label_smoothing
        loss = F.cross_entropy(logits, labels, self.label_weights, reduction="sum", label_smoothing=smoothing)
        if self.teacher is not None:
            share, taught = self.recipe.distillation, torch.from_numpy(self.teacher[index]).to(self.device)
            loss = (1 - share) * loss + share * distance_to_teacher(logits, taught, self.recipe.temperature)
        return loss

    def batch(self, index: np.ndarray) -> dict[str, Tensor]:
        """The training rows of an index on the device, as the model's arguments, counted for the record."""
        batch = pack(self.training, index) if self.step_rows.packed else collate(self.training, index, self.pad_id)
        self.progress.tokens += int(self.lengths[index].sum())
        self.progress.computed += batch["input_ids"].numel()
        return moved(batch, self.device)

    def add_up_gradients(self, loss: Tensor) -> None:
        """Replace the loss and the gradients by their sums over all processes."""
        if parallel.processes() > 1:
            trained = [p for group in self.optimizer.param_groups for p in group["params"]]
            for p in trained:  # a process without rows has no gradients
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            parallel.add_up([loss, *(p.grad for p in trained)])

    def read_losses(self) -> None:
        """Bring losses and gradient norms from the device. This waits for the device, so it is not done at every step."""
        now = self.progress
        for loss, norm in torch.stack([torch.stack(pair) for pair in self.unread]).tolist():
            now.losses.append(loss)
            now.grad_norms.append(norm)
        self.unread.clear()
        self.stop_if_diverged("training", now.losses[-1])

    def stop_if_diverged(self, kind: str, loss: float) -> None:
        if not math.isfinite(loss):
            residual = ", use a smaller residual_scale" if self.model.config.recurrent_depth > 1 else ""
            raise InputError(
                f"The {kind} loss is {loss} at step {self.progress.step}: the run has diverged. "
                f"Lower the learning rate (it is {self.recipe.learning_rate:g}){residual}, or set back what you changed in the "
                "model, such as initializer_range."
            )

    def evaluate(self) -> None:
        """Validate, add a row to the curve, and let the loss decide on weights, learning rate and early stopping."""
        now, group = self.progress, self.optimizer.param_groups[0]
        epoch = now.step / self.step_rows.per_epoch
        loss, accuracy = parallel.agree(self.validate)  # process 0 validates and tells the others
        self.stop_if_diverged("validation", loss)
        self.add_time()
        train_loss = float(np.mean(now.losses))
        norms = np.array(now.grad_norms)
        norms = norms[np.isfinite(norms)]  # steps with an overflowed gradient were skipped and are left out
        now.curve.append(
            {
                "epoch": epoch,
                "step": now.step,
                "train_loss": train_loss,
                "val_loss": loss,
                "val_accuracy": accuracy,
                "learning_rate": group["lr"] / group["scale"],
                "seconds": now.seconds,
                "grad_norm": float(np.mean(norms)) if len(norms) else math.nan,
            }
        )
        now.losses, now.grad_norms = [], []
        self.judge(loss, epoch)
        self.report(f"epoch {epoch:.2f}: train loss {train_loss:.3f}, validation loss {loss:.3f}, accuracy {accuracy:.3f}")

    def validate(self) -> tuple[float, float]:
        """Loss and accuracy on the validation rows. Classes have the weights of training in the loss."""
        logits = predict_logits(self.model_to_keep(), self.validation, self.pad_id, self.device, self.precision)
        accuracy = float((logits.argmax(axis=1) == self.validation.labels).mean())
        weights = None if self.label_weights is None else self.label_weights.cpu().numpy()
        return cross_entropy(logits, self.validation.labels, weights), accuracy

    def judge(self, loss: float, epoch: float) -> None:
        """Keep the weights if they are the best, halve the rate on a plateau, and stop when the loss no longer falls."""
        now, recipe = self.progress, self.recipe
        if loss < now.best_loss or recipe.keep == "last":
            now.best_epoch, self.best = epoch, self._kept_state()
        if loss < now.best_loss:
            now.best_loss, now.evaluations_on_plateau = loss, 0
        else:
            now.evaluations_on_plateau += 1
            if now.evaluations_on_plateau > recipe.plateau_patience:
                now.rate_factor, now.evaluations_on_plateau = now.rate_factor / 2, 0
        if loss < now.reference_loss - recipe.min_delta:
            now.reference_loss, now.evaluations_without_progress = loss, 0
        else:
            now.evaluations_without_progress += 1
            now.stopped = recipe.patience is not None and now.evaluations_without_progress >= recipe.patience

    def report_progress(self) -> None:
        now = self.progress
        left = (self.total - now.step) * now.training_seconds / now.step
        recent = float(np.mean(now.losses[-50:])) if now.losses else now.curve[-1]["train_loss"]
        self.report(
            f"step {now.step}/{self.total}, epoch {now.step / self.step_rows.per_epoch:.2f}, loss {recent:.3f}, "
            f"{now.rows / now.training_seconds:.0f} rows/s, {left / 60:.1f} min left"
        )
        self.reported_at = time.perf_counter()

    def add_time(self) -> None:
        """Add the time since the last call to the training's wall-clock and processor time."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.progress.seconds += wall - self.wall
        self.progress.cpu_seconds += cpu - self.cpu
        self.wall, self.cpu = wall, cpu

    def save_is_due(self) -> bool:
        """Whether to write a checkpoint now. All processes have the same answer."""
        if self.checkpoint_file is None or (parallel.processes() > 1 and self.progress.step % AGREE_EVERY):
            return False
        return parallel.agree(lambda: time.perf_counter() - self.saved_at > CHECKPOINT_SECONDS)

    def save(self) -> None:
        """Write the state of the training to the checkpoint."""
        self.add_time()
        tensors = {
            "model": self.model.state_dict(),
            "best": self.best,
            "optimizer": checkpoint.optimizer_tensors(self.optimizer),
            "random": {name: parallel.gather(x) for name, x in checkpoint.random_state(self.device).items()},
        }
        if self.mean is not None:
            tensors["mean"] = self.mean.state_dict()
        if self.scaler.is_enabled():
            numbers = {name: x for name, x in self.scaler.state_dict().items() if isinstance(x, int | float)}
            tensors["scale"] = {name: torch.tensor(x) for name, x in numbers.items()}
        if parallel.rank() == 0:
            checkpoint.save(self.checkpoint_file, tensors, self.progress)
        self.saved_at = time.perf_counter()

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one. A damaged one is reported, and the training starts anew."""
        if self.checkpoint_file is None or not self.checkpoint_file.exists():
            return
        initial = self.best
        try:
            self.restore()
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except OSError as error:
            raise InputError(
                f"The checkpoint {self.checkpoint_file} cannot be read; "
                "ask its owner for read permission, or delete it to restart."
            ) from error
        except Exception:  # a damaged file, or one of another model; the model may be half restored, so it is reset
            self.model.load_state_dict(initial)
            self.start()
            self.report(f"the checkpoint {self.checkpoint_file} is damaged: starting anew")
        else:
            self.report(f"going on from step {self.progress.step} of {self.total}")

    def restore(self) -> None:
        """Replace the state of the training by that of the checkpoint."""
        groups, self.progress = checkpoint.load(self.checkpoint_file)
        self.model.load_state_dict(groups["best"])  # raises here if the shapes differ
        self.model.load_state_dict(groups["model"])
        self.best = {name: x.to(self.device) for name, x in groups["best"].items()}
        if self.mean is not None:
            self.mean.load_state_dict(groups["mean"])
        checkpoint.restore_optimizer(self.optimizer, groups["optimizer"])
        if "scale" in groups:
            self.scaler.load_state_dict(self.scaler.state_dict() | {k: x.item() for k, x in groups["scale"].items()})
        of_processes = {name: x.view(parallel.processes(), -1) for name, x in groups["random"].items()}
        # Cloned, because torch reads a random state from the start of its storage.
        checkpoint.restore_random({name: x[parallel.rank()].clone() for name, x in of_processes.items()}, self.device)

    def model_to_keep(self) -> EncoderBase:
        """The model of averaged weights, once there are any, and else the model that is trained."""
        return self.model if self.mean is None or not self.mean.n_averaged else self.mean.module

    def _kept_state(self) -> dict[str, Tensor]:
        return {name: x.detach().clone() for name, x in self.model_to_keep().state_dict().items()}
