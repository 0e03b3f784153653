"""Open the model and the tokenizer of a finished run, and let it answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from rtxlib import checksums
from rtxlib.data.batching import Tokens
from rtxlib.data.clean import STEPS, clean_texts
from rtxlib.data.rows import Text, cut
from rtxlib.data.tokenization import cut_texts, encode, load_tokenizer
from rtxlib.errors import InputError, fact, shown
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.pretrained import load_trained
from rtxlib.runs import store
from rtxlib.runs.store import Run
from rtxlib.training.device import pick_device, pick_precision
from rtxlib.training.predict import predict_logits


def open_run(run: Run) -> tuple[EncoderForSequenceClassification, PreTrainedTokenizerBase]:
    """The model (in evaluation mode, on the GPU if there is one) and the tokenizer of a run.

    Raises InputError as :func:`open_model`, when its record gives texts no length, or when its tokenizer cannot be read or has
    words that the model has not.
    """
    _require_here(run)
    with checksums.unchanged(run.path):
        model = open_model(run)
        length = run.spec["data"]["max_length"]
        if type(length) is not int or length < 2:
            raise store.damaged(run.key, run.path, f"spec.json has the max_length {shown(length)}")
        try:
            tokenizer = load_tokenizer(run.path)
            if tokenizer.pad_token_id is None:
                raise ValueError("tokenizer_config.json is missing or names no special tokens")
            if (words := max(tokenizer.get_vocab().values()) + 1) > model.config.vocab_size:
                raise ValueError(f"it has {words:,} words and the model's configuration {model.config.vocab_size:,}")
        except Exception as error:
            raise _unreadable(run, "tokenizer", error) from error
    return model.to(pick_device()), tokenizer


def _require_here(run: Run) -> None:
    if run.path is None:
        raise InputError(f"Only the record of run {run.key} is here, not its weights; train it again to use it.")


def open_model(run: Run) -> EncoderForSequenceClassification:
    """The model of a run, in evaluation mode, on the CPU.

    The checksums of its files are compared, then every tensor is accounted for (:func:`load_trained`). Raises InputError when
    only the run's record is here, when a file is not as it was written or cannot be read, or when the labels of spec.json are not
    those of config.json. Somebody may have edited a file and its checksum.
    """
    _require_here(run)
    if (run.path / store.CLASSIFIER).is_file():
        raise InputError(f"{run.path} holds {run.metrics['model']}, no network; `rtx predict` and `rtx evaluate` open it.")
    for path in (run.path, *run.path.glob("*")):  # safetensors reports an unreadable file as missing
        if not os.access(path, os.R_OK):
            raise InputError(f"Run {run.key} cannot be read; ask its owner for permission to read {path}.")
    checksums.check_kinds(run.path)
    with checksums.unchanged(run.path):
        store.verify(run, checksums.opened)
        try:
            model = load_trained(run.path)
        except Exception as error:
            raise _unreadable(run, "weights", error) from error
    ours, theirs = run.spec["label_names"], [name for _, name in sorted(model.config.id2label.items())]
    if ours != theirs:
        what = f"spec.json has the {len(ours)} labels {shown(ours)}, and config.json has the {len(theirs)} labels {shown(theirs)}"
        raise store.damaged(run.key, run.path, what)
    return model


def _unreadable(run: Run, part: str, error: Exception) -> InputError:
    return InputError(f"The {part} of run {run.key} cannot be read ({fact(error)}); {store.made_again(run.path)}")


def cleaned(run: Run, texts: Sequence[Text]) -> list[Text]:
    """Texts, cleaned as the run's training texts were, and cut where these were: a record of `rtx compare` says so."""
    switches = {step: run.spec["data"].get(step, False) for step in STEPS}  # a record of an earlier version lacks later steps
    return [cut(text, run.spec.get("longest")) for text in clean_texts(texts, **switches)]


def answerer(run: Run) -> Callable[..., np.ndarray]:
    """The probabilities (texts, labels) of cleaned texts, as a function that holds the network."""
    model, tokenizer = open_run(run)
    device = pick_device()
    precision = pick_precision(run.spec["recipe"]["precision"], device)
    separator = tokenizer.sep_token_id if run.pairs else None

    def answer(texts: list[Text], **way: Any) -> np.ndarray:
        if cut := cut_texts(texts):
            print(cut, file=sys.stderr)
        ids, offsets = encode(texts, tokenizer, run.spec["data"]["max_length"])
        tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64), separator)
        logits = predict_logits(model, tokens, tokenizer.pad_token_id, device, precision, **way)
        if not np.isfinite(logits).all():
            what = f"Run {run.key} answers with numbers that are not finite, so its weights are damaged"
            raise InputError(f"{what}: {store.made_again(run.path)}")
        return torch.from_numpy(logits).softmax(dim=1).numpy()

    return answer


def probabilities(run: Run, texts: Sequence[Text], **way: Any) -> np.ndarray:
    """Probabilities (texts, labels) of texts, which are cleaned and cut as the run's training texts were.

    A run on pairs takes pairs of texts. Standard error says how many texts are too long to be tokenised whole.

    way: ``recurrent_depth`` or ``early_exit``, see :meth:`EncoderForSequenceClassification.forward`.
    """
    return answerer(run)(cleaned(run, texts), **way)
