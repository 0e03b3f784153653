"""The training loop: batches by length, one optimiser step after another, the best weights kept."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedModel

from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.errors import InputError
from rtxlib.training import checkpoint as saved
from rtxlib.training import parallel
from rtxlib.training.device import autocast, moved, pick_precision
from rtxlib.training.optimizer import make_optimizer, rate_at
from rtxlib.training.predict import cross_entropy, predict_logits
from rtxlib.training.recipe import Recipe
from rtxlib.training.steps import steps

CHECKPOINT_SECONDS = 60.0  # how much work a kill may cost at most
PROGRESS_SECONDS = 10.0
_RANK_SEED = 1_000_003  # far from every seed in use: processes that train together must not drop the same values


@dataclass
class Training:
    """How a training went; the model it was given now holds the weights that were kept."""

    curve: (
        pd.DataFrame
    )  # one row an evaluation: epoch, step, train_loss, val_loss, val_accuracy, learning_rate, seconds, grad_norm
    best_epoch: float  # whose weights were kept
    seconds: float  # spent training and validating, over all sittings
    cpu_seconds: float  # of processor time in them: what the training costs, however busy the machine was
    rows_per_second: float  # training rows over the time spent in training steps alone
    padding_share: float  # padded tokens over all tokens of the training steps
    precision: str


@dataclass
class _Progress:
    """Where a training stands: everything a checkpoint must carry beside tensors."""

    step: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    training_seconds: float = 0.0
    rows: int = 0
    tokens: int = 0  # of the texts, and
    computed: int = 0  # with their padding
    best_loss: float = math.inf  # the lowest validation loss
    best_epoch: float = 0.0  # whose weights are kept
    reference_loss: float = math.inf  # the loss that early stopping must beat by min_delta
    stale: int = 0  # evaluations since reference_loss fell
    stalled: int = 0  # evaluations since the plateau schedule last saw a better loss or cut the rate
    rate_factor: float = 1.0  # the plateau schedule's cuts so far
    losses: list[float] = field(default_factory=list)  # training loss of each step since the last evaluation
    grad_norms: list[float] = field(default_factory=list)
    curve: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False


def _hide_words(ids: Tensor, share: float, mask_id: int, special: Tensor) -> Tensor:
    """Replace a share of the ordinary tokens by ``mask_id``, so that no single word can be leaned on."""
    hidden = (torch.rand(ids.shape, device=ids.device) < share) & ~torch.isin(ids, special)
    return ids.masked_fill(hidden, mask_id)


def train(
    model: PreTrainedModel,
    training: Tokens,
    validation: Tokens,
    recipe: Recipe,
    seed: int,
    special_ids: dict[str, int],
    device: torch.device,
    checkpoint: Path | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Training:
    """Train ``model`` in place and leave in it the weights with the lowest validation loss, or the last (``recipe.keep``).

    special_ids: the tokenizer's "pad", "mask" (or "unk") and every other id that word dropout must spare.
    checkpoint: a file written every minute and read at the start if it is there; a training that was killed goes on from
    it to the same weights as an unbroken one, on a GPU up to rounding (its attention adds in any order). report: called with
    a line of progress every ten seconds.
    Where several processes train together (:mod:`rtxlib.training.parallel`) each calls this with the same arguments and the
    same ``checkpoint``, and ends with the same weights; rows, seconds and curve are those of all.
    A damaged checkpoint is reported, and the training starts anew. Raises InputError when the loss is no longer finite, a split
    is empty, or the checkpoint may not be read.
    """
    if not len(training) or not len(validation):
        raise InputError("Training needs at least one training row and one validation row; the data have too few.")
    precision = pick_precision(recipe.precision, device)
    scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
    model.to(device)
    torch.manual_seed(seed + _RANK_SEED * parallel.rank())
    optimizer = make_optimizer(model, recipe)
    lengths = training.lengths
    steps_per_epoch = len(batches(lengths, None, recipe.batch_rows, seed=seed, epoch=0))
    total = max(1, round(recipe.epochs * steps_per_epoch))
    evaluate_at = {
        round(k * steps_per_epoch / recipe.evaluations_per_epoch)
        for k in range(1, math.ceil(recipe.epochs) * recipe.evaluations_per_epoch + 1)
    } | {total}
    special = torch.tensor(sorted(set(special_ids.values())), device=device)
    mask_id = special_ids.get("mask", special_ids["unk"])

    now = _Progress()
    best = {name: x.detach().clone() for name, x in model.state_dict().items()}

    def go_on() -> None:
        nonlocal now, best
        groups, state = saved.load(checkpoint)
        now = _Progress(**state)
        model.load_state_dict(groups["best"])  # so that weights that do not fit are told now and not at the end
        model.load_state_dict(groups["model"])
        best = {name: x.to(device) for name, x in groups["best"].items()}
        saved.restore_optimizer(optimizer, groups["optimizer"])
        if "scale" in groups:
            scaler.load_state_dict(scaler.state_dict() | {k: v.item() for k, v in groups["scale"].items()})
        states = {name: x.view(parallel.processes(), -1) for name, x in groups["random"].items()}
        # Cloned, because torch reads a state from where its storage starts.
        saved.restore_random({name: x[parallel.rank()].clone() for name, x in states.items()}, device)

    if checkpoint is not None and checkpoint.exists():
        untouched = best
        try:
            go_on()
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except OSError as error:
            raise InputError(
                f"The checkpoint {checkpoint} cannot be read; ask its owner for the right to, or delete it to start anew."
            ) from error
        except Exception:  # damaged, or of something else: what it changed before that was noticed is undone
            now, best = _Progress(), untouched
            model.load_state_dict(best)
            optimizer = make_optimizer(model, recipe)
            scaler = torch.amp.GradScaler(device.type, enabled=precision == "fp16")
            torch.manual_seed(seed + _RANK_SEED * parallel.rank())
            report(f"the checkpoint {checkpoint} is damaged: starting anew")
        else:
            report(f"going on from step {now.step} of {total}")

    def save() -> None:
        tensors = {
            "model": model.state_dict(),
            "best": best,
            "optimizer": saved.optimizer_tensors(optimizer),
            "random": {name: parallel.gather(x, device) for name, x in saved.random_state(device).items()},
        }
        if scaler.is_enabled():
            tensors["scale"] = {
                k: torch.tensor(v) for k, v in scaler.state_dict().items() if isinstance(v, int | float)
            }
        if parallel.rank() == 0:
            saved.save(checkpoint, tensors, json.loads(json.dumps(vars(now))))

    def add_up(loss_sum: Tensor) -> None:
        """Make loss and gradients those of the rows of all processes."""
        if parallel.processes() > 1:
            learning = [p for group in optimizer.param_groups for p in group["params"]]
            for p in learning:  # one that this process's rows did not need
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            parallel.add_up([loss_sum, *(p.grad for p in learning)])

    def optimizer_step(micro: list[np.ndarray]) -> tuple[Tensor, Tensor]:
        """One update from all rows of ``micro``; returns its mean loss and the gradient's norm, still on the device."""
        rows = sum(map(len, micro))
        loss_sum = torch.zeros((), device=device)
        for index in filter(len, map(parallel.share, micro)):
            batch = collate(training, index, special_ids["pad"])
            now.tokens += int(lengths[index].sum())
            now.computed += batch["input_ids"].numel()
            batch = moved(batch, device)
            labels = batch.pop("labels")
            if recipe.word_dropout:
                batch["input_ids"] = _hide_words(batch["input_ids"], recipe.word_dropout, mask_id, special)
            with autocast(precision, device):
                logits = model(**batch).logits
            loss = (
                F.cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=recipe.label_smoothing) / rows
            )
            scaler.scale(loss).backward()
            loss_sum += loss.detach()
        add_up(loss_sum)
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
        # Clipped as clip_grad_norm_ would, but by the fused update, which divides by this as it reads the gradients.
        optimizer.grad_scale = ((norm + 1e-6) / recipe.clip_norm).clamp(min=1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss_sum, norm

    def stop_if_diverged(kind: str, loss: float) -> None:
        if not math.isfinite(loss):
            raise InputError(
                f"The {kind} loss is {loss} at step {now.step}: the run has diverged. "
                "Lower the learning rate, or use a smaller residual_scale."
            )

    def evaluate(epoch: float) -> None:
        """Validate, keep the best weights, and let the schedule and early stopping look at the loss."""
        nonlocal best

        def scores() -> tuple[float, float]:
            logits = predict_logits(model, validation, special_ids["pad"], device, precision)
            accuracy = float((logits.argmax(axis=1) == validation.labels).mean())
            return cross_entropy(logits, validation.labels), accuracy

        loss, accuracy = parallel.from_first(scores, 2, device)
        stop_if_diverged("validation", loss)
        norms = np.array(now.grad_norms)
        now.curve.append(
            {
                "epoch": epoch,
                "step": now.step,
                "train_loss": float(np.mean(now.losses)),
                "val_loss": loss,
                "val_accuracy": accuracy,
                "learning_rate": optimizer.param_groups[0]["lr"] / optimizer.param_groups[0]["scale"],
                "seconds": now.seconds + time.perf_counter() - started,
                # without the steps that fp16's scaler left out because their gradient overflowed
                "grad_norm": float(np.mean(norms[np.isfinite(norms)])) if np.isfinite(norms).any() else math.nan,
            }
        )
        now.losses, now.grad_norms = [], []
        if loss < now.best_loss or recipe.keep == "last":
            now.best_epoch = epoch
            best = {name: x.detach().clone() for name, x in model.state_dict().items()}
        if loss < now.best_loss:
            now.best_loss, now.stalled = loss, 0
        else:
            now.stalled += 1
            if now.stalled > recipe.plateau_patience:
                now.rate_factor, now.stalled = now.rate_factor / 2, 0
        if loss < now.reference_loss - recipe.min_delta:
            now.reference_loss, now.stale = loss, 0
        else:
            now.stale += 1
            now.stopped = recipe.patience is not None and now.stale >= recipe.patience
        fit = now.curve[-1]["train_loss"]
        report(f"epoch {epoch:.2f}: train loss {fit:.3f}, validation loss {loss:.3f}, accuracy {accuracy:.3f}")

    model.train()
    if recipe.freeze_encoder:
        model.encoder.eval()  # what does not learn needs no dropout
    started = last_save = last_report = time.perf_counter()
    cpu_started = time.process_time()
    pending: list[tuple[Tensor, Tensor]] = []  # losses and norms not yet brought over from the device
    stream = steps(training, recipe, seed)
    for _ in range(now.step):  # the order of the batches depends on the seed alone, so going on means skipping
        next(stream)
    while now.step < total and not now.stopped:
        micro = next(stream)
        rate = rate_at(recipe, now.step, total, now.rate_factor)
        for group in optimizer.param_groups:
            group["lr"] = rate * group["scale"]
        begun = time.perf_counter()
        pending.append(optimizer_step(micro))
        now.step += 1
        now.rows += sum(map(len, micro))
        clock = time.perf_counter()
        due_report = clock - last_report > PROGRESS_SECONDS
        due_save = parallel.due(clock - last_save > CHECKPOINT_SECONDS, now.step, device)
        if now.step in evaluate_at or due_report or due_save:  # reading a loss waits for the device, so do it seldom
            read = torch.stack([torch.stack(pair) for pair in pending]).tolist()
            now.losses += [loss for loss, _ in read]
            now.grad_norms += [norm for _, norm in read]
            pending.clear()
            stop_if_diverged("training", now.losses[-1])
        now.training_seconds += time.perf_counter() - begun
        if now.step in evaluate_at:
            evaluate(now.step / steps_per_epoch)
        if due_report:
            left = (total - now.step) * now.training_seconds / now.step
            recent = float(np.mean(now.losses[-50:])) if now.losses else now.curve[-1]["train_loss"]
            report(
                f"step {now.step}/{total}, epoch {now.step / steps_per_epoch:.2f}, loss {recent:.3f}, "
                f"{now.rows / now.training_seconds:.0f} rows/s, {left / 60:.1f} min left"
            )
            last_report = time.perf_counter()
        if checkpoint is not None and due_save:
            now.seconds, started = now.seconds + time.perf_counter() - started, time.perf_counter()
            now.cpu_seconds, cpu_started = now.cpu_seconds + time.process_time() - cpu_started, time.process_time()
            save()
            last_save = time.perf_counter()
    now.seconds += time.perf_counter() - started
    now.cpu_seconds += time.process_time() - cpu_started
    model.load_state_dict(best)
    model.eval()
    return Training(
        curve=pd.DataFrame(now.curve),
        best_epoch=now.best_epoch,
        seconds=now.seconds,
        cpu_seconds=now.cpu_seconds,
        rows_per_second=now.rows / now.training_seconds,
        padding_share=1 - now.tokens / now.computed if now.computed else 0.0,
        precision=precision,
    )
