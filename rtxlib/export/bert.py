"""A classifier of BERT's shape in the names of transformers, for users without this package."""

from __future__ import annotations

import os
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import BertForSequenceClassification, PreTrainedTokenizerFast

from rtxlib import checksums
from rtxlib.atomic import replacing_folder
from rtxlib.errors import InputError
from rtxlib.models.checkpoint_files import WEIGHTS
from rtxlib.models.config import ModelConfig
from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.references import REFERENCES, tensor_names, their_config

CLOSE = 1e-4  # largest difference of a logit


def is_bert_shaped(config: ModelConfig) -> bool:
    """Whether BertForSequenceClassification computes the same: BERT's layers, and a head that reads its pooler."""
    if config.pooling != "pooler":
        return False
    try:
        return their_config(config).model_type == "bert"
    except InputError:
        return False


def save(model: EncoderForSequenceClassification, tokenizer: PreTrainedTokenizerFast, labels: list[str], out: Path) -> None:
    """Write a folder that ``AutoModelForSequenceClassification`` opens without this package.

    Raises InputError if the folder exists, if the model has another shape, or if transformers computes other logits.
    """
    if os.path.lexists(out):
        raise InputError(f"{out} exists already; name a new folder.")
    config = model.config
    if not is_bert_shaped(config):
        raise InputError(
            "transformers alone has no classifier of this shape (it has BERT's layers with a head on the pooler); leave out "
            "--format for an ONNX graph, or open the run with `import rtxlib.models`."
        )
    state, prefix = model.encoder.state_dict(), REFERENCES["bert"].prefix
    tensors = {f"classifier.{name}": x for name, x in model.classifier.state_dict().items()}
    for ours, parts in tensor_names(config, "bert").items():
        for name, part in zip(parts, state[ours].chunk(len(parts)), strict=True):
            tensors[prefix + name] = part.contiguous().clone()
    theirs = their_config(config)
    theirs.architectures = ["BertForSequenceClassification"]
    theirs.id2label, theirs.label2id = dict(enumerate(labels)), {name: i for i, name in enumerate(labels)}
    with replacing_folder(out) as aside:
        theirs.save_pretrained(aside)
        save_file(tensors, aside / WEIGHTS, metadata={"format": "pt"})
        tokenizer.save_pretrained(aside)
        _require_agreement(model, aside)
        checksums.write(aside)


@torch.no_grad()
def _require_agreement(model: EncoderForSequenceClassification, folder: Path) -> None:
    """Compare the logits of random tokens, some of them padding and some of a second text."""
    ids = torch.randint(model.config.vocab_size, (4, 24), generator=torch.Generator().manual_seed(0))
    real = torch.ones_like(ids)
    real[1, 9:] = 0
    batch = {"input_ids": ids, "attention_mask": real, "token_type_ids": real * (torch.arange(24) > 12)}
    theirs = BertForSequenceClassification.from_pretrained(folder).eval()
    difference = float((theirs(**batch).logits - model.eval()(**batch).logits).abs().max())
    if not difference <= CLOSE:
        raise InputError(f"transformers computes other logits (by up to {difference:.2g}), so nothing is written.")
