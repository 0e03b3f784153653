"""A classifier of BERT's shape in the names of transformers, for users without this package."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file
from transformers import PreTrainedTokenizerFast

from rtx.export import check
from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.errors import InputError
from rtxlib.models.checkpoint_files import WEIGHTS, write_pooling
from rtxlib.models.config import ModelConfig
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.references import REFERENCES, tensor_names, their_config

transformers.utils.logging.disable_progress_bar()  # it draws a bar for the weights that are read back here


def architecture(config: ModelConfig) -> str | None:
    """The class of transformers that computes the same logits; None if there is none.

    ``BertForSequenceClassification`` reads the pooler. ``BertForTokenClassification`` gives logits for each token. A head is
    linear, so their mean over the tokens of a text are the logits of a classifier that reads the mean state, and those of [CLS]
    are the logits of one that reads the state of [CLS].
    """
    try:
        if their_config(config).model_type != "bert":
            return None
    except InputError:
        return None
    return "BertForSequenceClassification" if config.pooling == "pooler" else "BertForTokenClassification"


def snippet(config: ModelConfig, where: str) -> str:
    """Python that labels a text with transformers alone. where: the folder, as Python writes it."""
    auto = f"AutoModel{architecture(config).removeprefix('Bert')}"
    read = {"pooler": "logits", "cls": "logits[:, 0]", "mean": "logits.mean(dim=1)"}[config.pooling]
    padded = "  # in a padded batch: the mean over the real tokens of a text" * (config.pooling == "mean")
    return (
        f"from transformers import {auto}, AutoTokenizer\n\n"
        f"model, tokenizer = {auto}.from_pretrained({where}), AutoTokenizer.from_pretrained({where})\n"
        'logits = model(**tokenizer("a text", return_tensors="pt")).logits\n'
        f"print(model.config.id2label[int({read}.argmax())]){padded}"
    )


def write(model: EncoderForSequenceClassification, labels: list[str], out: Path) -> None:
    """Write configuration and weights in the names of transformers into a folder that exists.

    Raises InputError if the model has another shape, or if transformers computes other logits.
    """
    config, name = model.config, architecture(model.config)
    if name is None:
        raise InputError(
            "Only a model of BERT's layers can be written for transformers alone; leave out --format for an ONNX graph, or open "
            "the run with `import rtxlib.models`."
        )
    state, prefix = model.encoder.state_dict(), REFERENCES["bert"].prefix
    tensors = {f"classifier.{part}": x for part, x in model.classifier.state_dict().items()}
    for ours, parts in tensor_names(config, "bert").items():
        for part, x in zip(parts, state[ours].chunk(len(parts)), strict=True):
            tensors[prefix + part] = x.contiguous().clone()
    theirs = their_config(config)
    theirs.architectures = [name]
    theirs.id2label, theirs.label2id = dict(enumerate(labels)), {label: i for i, label in enumerate(labels)}
    theirs.save_pretrained(out)
    save_file(tensors, out / WEIGHTS, metadata={"format": "pt"})
    if config.pooling in ("cls", "mean"):
        write_pooling(out, config)
    _require_agreement(model, out)


def save(model: EncoderForSequenceClassification, tokenizer: PreTrainedTokenizerFast, labels: list[str], out: Path) -> None:
    """Write a folder that transformers opens without this package. Raises InputError if it exists, or as :func:`write`."""
    if os.path.lexists(out):
        raise InputError(f"{out} exists already; name a new folder.")
    with replacing_folder(out, new=True) as aside:
        write(model, labels, aside)
        tokenizer.save_pretrained(aside)
        checksums.write(aside)


@torch.no_grad()
def _require_agreement(model: EncoderForSequenceClassification, folder: Path) -> None:
    """Compare the logits of random tokens, some of them padding and some of a second text."""
    ids = torch.randint(model.config.vocab_size, (4, 24), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(ids)
    real[1, 9:] = 0
    types = real * (torch.arange(24) > 12) * (model.config.type_vocab_size > 1)
    batch = {"input_ids": ids, "attention_mask": real, "token_type_ids": types}
    theirs = getattr(transformers, architecture(model.config)).from_pretrained(folder).eval()
    logits = theirs(**batch).logits
    if model.config.pooling == "cls":
        logits = logits[:, 0]
    elif model.config.pooling == "mean":
        logits = (logits * real[..., None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
    ours = model.eval()(**batch).logits
    if not check.close(ours.numpy(), logits.numpy()):
        difference = float((logits - ours).abs().max())
        raise InputError(f"transformers computes other logits (by up to {difference:.2g}), so nothing is written.")
