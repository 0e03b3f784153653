"""How many runs a profile still needs, and how long they will take here: for ``rtx report --dry-run``."""

from __future__ import annotations

import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F

from rtx.executors.execute import lookup
from rtxlib import paths
from rtxlib.data.batching import collate, pack
from rtxlib.data.prepare import Prepared, prepare
from rtxlib.data.spec import DataSpec
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError
from rtxlib.models.size import forward_flops
from rtxlib.runs.pretraining import Pretraining, config_of
from rtxlib.runs.spec import RunSpec
from rtxlib.runs.store import Run
from rtxlib.runs.train import fresh_model, model_config
from rtxlib.training.device import autocast, moved, pick_device, pick_precision
from rtxlib.training.step_rows import StepRows
from rtxstudy import folders, published
from rtxstudy.checkpoints import out_of_reach
from rtxstudy.finished import Runs
from rtxstudy.profiles import Profile
from rtxstudy.questions.recipes.recipe_search import of_round
from rtxstudy.studies import STUDIES, finals, first_round

FORWARD_AND_BACKWARD = 3  # a backward pass costs twice the forward one
PROBE_STEPS = 3


def training_flops(spec: RunSpec, data: Prepared) -> float:
    """Floating-point operations of the whole training, without padding and without an early stop."""
    lengths = pd.Series(data.splits["train"].lengths).value_counts()
    config = model_config(spec, data)
    depths = range(1, config.recurrent_depth + 1) if config.depth_sampling == "uniform" else [config.recurrent_depth]
    epoch = np.mean(
        [sum(forward_flops(config, int(t), recurrent_depth=r) * rows for t, rows in lengths.items()) for r in depths]
    )
    steps = math.ceil(len(data.splits["train"]) / spec.recipe.batch_rows)  # of an epoch
    return FORWARD_AND_BACKWARD * epoch * spec.recipe.most_epochs(steps)


def pretraining_flops(what: Pretraining, data: dict[DataSpec, Prepared]) -> float:
    """Floating-point operations of a whole pretraining, products with the vocabulary included.

    data: prepared data by their spec; those that are missing are prepared and added. The texts that would leave the corpus, such
    as phrases of its sentences, are counted too, because looking for them takes longer than an estimate may.
    """
    for spec in what.data:
        if spec not in data:
            data[spec] = prepare(spec, paths.prepared_dir())
    tokenizer = data[what.data[0]].tokenizer
    config = config_of(what, tokenizer)
    config.pooling = "mean"  # every token is read
    inner = what.length - 2  # tokens of a row between [CLS] and [SEP]
    table = config.embedding_size or config.hidden_size
    head = 2 * what.share * inner * table * (config.hidden_size + config.vocab_size)  # of the hidden tokens of a row
    texts = pd.unique(np.array([text for spec in what.data for text in data[spec].texts("train")], dtype=object))
    ids, _ = encode(texts.tolist(), tokenizer, None)
    rows = (len(ids) - len(texts)) / inner  # a text loses its [CLS]
    return FORWARD_AND_BACKWARD * (forward_flops(config, what.length) + head) * rows * what.recipe.epochs


def flops_per_second(spec: RunSpec, data: Prepared) -> float:
    """The speed of this device: the fastest of three real training batches, without the update, after one to warm up."""
    device = pick_device()
    model = fresh_model(dataclasses.replace(spec, pretraining=None), data).to(device).train()
    training = data.splits["train"]
    step_rows, seconds = StepRows(training, spec.recipe, 0, device), []
    micro = next(iter(step_rows))
    for _ in range(1 + PROBE_STEPS):
        start = time.perf_counter()
        for rows in micro:
            cpu = pack(training, rows) if step_rows.packed else collate(training, rows, data.tokenizer.pad_token_id)
            batch = moved(cpu, device)
            labels = batch.pop("labels")
            with autocast(pick_precision(spec.recipe.precision, device), device):
                logits = model(**batch, recurrent_depth=model.config.recurrent_depth).logits
            F.cross_entropy(logits.float(), labels).backward()
        model.zero_grad()
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    lengths = training.lengths[np.concatenate(micro)]
    flops = FORWARD_AND_BACKWARD * sum(forward_flops(model.config, int(length)) for length in lengths)
    return flops / min(seconds[1:])


def _within_reach(spec: RunSpec, data: dict[DataSpec, Prepared]) -> bool:
    """Whether a notebook would train this run here. Composed data are prepared for that, and added to ``data``."""
    if spec.pretrained:
        return not out_of_reach(spec.model)
    if spec.data.source == "composed" and spec.data not in data:
        try:
            data[spec.data] = prepare(spec.data, paths.prepared_dir())
        except InputError:
            return False
    return True


def _first_round(profile: Profile, elsewhere: dict[str, Run], data: dict[DataSpec, Prepared]) -> pd.DataFrame | None:
    """What the first round of the recipe search reached; None as long as a run of it is missing, or if there is no search.

    elsewhere: published runs by their key. data: prepared data by their spec; those that are missing are prepared and added.
    """
    specs = first_round(profile)
    runs = [run or elsewhere.get(key) for key, run in lookup(specs, paths.runs_dir(), data=data)]
    if not runs or None in runs:
        return None
    return of_round(profile.search.recipes, Runs(tuple(runs), tuple(specs), folders.results_dir(profile.name)))


def plan(profile: Profile, notebooks: Iterable[str]) -> pd.DataFrame:
    """One row per study: notebook, study, runs, in_store, to_train, minutes. A run of two studies counts in the first.

    A published run counts as in the store, as in the notebooks. A pretraining that a missing run needs and that is missing too
    counts as a run of the first study that needs it. Runs with unavailable pretrained weights are left out, and so are those on
    tasks composed of phrases that are out of reach. Of the finals of the recipe search the longest possible ones count, until its
    first round is known.
    """
    counted_keys: set[str] = set()  # keys of runs and pretrainings
    elsewhere = {run.key: run for run in published.runs(folders.results_dir(profile.name))}
    data: dict[DataSpec, Prepared] = {}
    rows = []
    rate = None
    for notebook in notebooks:
        for name, study in STUDIES.get(notebook, {}).items():
            study_specs = study(profile)
            if study_specs and study is finals:
                decided = _first_round(profile, elsewhere, data)
                study_specs = finals(profile, decided)
                name += " (at most)" if decided is None else ""
            specs = [spec for spec in study_specs if _within_reach(spec, data)]
            pairs = lookup(specs, paths.runs_dir(), data=data)
            new = [(key, run, spec) for spec, (key, run) in zip(specs, pairs, strict=True) if key not in counted_keys]
            counted_keys.update(key for key, _, _ in new)
            missing = [spec for key, run, spec in new if run is None and key not in elsewhere]
            if missing and rate is None:
                # This probe uses all cores. Real runs on a CPU share them.
                rate = flops_per_second(missing[0], data[missing[0].data])
            alike = Counter(dataclasses.replace(spec, seed=0) for spec in missing)  # a seed changes no arithmetic
            flops = sum(training_flops(spec, data[spec.data]) * count for spec, count in alike.items())
            needed = {spec.pretraining.key: spec.pretraining for spec in missing if spec.pretraining}
            first = {key: what for key, what in needed.items() if key not in counted_keys and not what.folder.exists()}
            counted_keys.update(first)
            flops += sum(pretraining_flops(what, data) for what in first.values())
            seconds = flops / rate if missing else 0.0
            rows.append(
                {
                    "notebook": notebook,
                    "study": name,
                    "runs": len(new) + len(first),
                    "in_store": len(new) - len(missing),
                    "to_train": len(missing) + len(first),
                    "minutes": seconds / 60,
                }
            )
    return pd.DataFrame(rows, columns=["notebook", "study", "runs", "in_store", "to_train", "minutes"])
