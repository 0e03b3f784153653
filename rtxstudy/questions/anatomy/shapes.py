"""The shape of a text on its way through a classifier, and the parameters that it meets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn

from rtxlib.models.heads import EncoderForSequenceClassification
from rtxlib.models.presets import preset

# What a step is called -> the module whose output it is, in the order in which a text meets them. The first layer stands for all.
_LAYER = "encoder.stack.blocks.0.0"
_STEPS = {
    "token vectors": "encoder.embeddings.token",
    "embedding: segments, positions and norm added": "encoder.embeddings",
    "queries, keys and values": f"{_LAYER}.attention.qkv",
    "attention weights": f"{_LAYER}.attention",
    "attention's output": f"{_LAYER}.attention.output",
    "inside the feed-forward": f"{_LAYER}.feedforward.input",
    "feed-forward's output": f"{_LAYER}.feedforward.output",
    "state after a layer": _LAYER,
    "states after the last layer": "encoder.stack",
    "pooler: tanh of the first token's state": "encoder.pooler",
    "logits": "classifier",
}
_OTHER = dict.fromkeys(
    (
        "encoder.embeddings.token_type",
        "encoder.embeddings.position",
        "encoder.embeddings.norm",
        "encoder.embeddings.widen",
    ),
    "embedding: segments, positions and norm added",
)


def trace(name: str, texts: int, length: int, **overrides: Any) -> pd.DataFrame:
    """The shapes on the way of a batch through the classifier of this preset: one row per step, in order.

    The model runs on the meta device, where a tensor has a shape and no numbers, so a model of any size takes no memory. A
    step that the model does not have is left out. ``overrides``: fields of its configuration.

    Columns:

    - ``step``: what the step is called;
    - ``times``: how often a text meets it;
    - ``shape``: of what comes out, as "(texts, tokens, width)". Attention weights are (texts, heads, tokens, tokens);
    - ``numbers``: how many numbers that is;
    - ``parameters``: of the step alone, in all layers.

    The parameters sum to those of the model.
    """
    with torch.device("meta"), torch.inference_mode():
        model = EncoderForSequenceClassification(preset(name, **overrides)).eval()
        shapes, hooks = {"token ids": (texts, length)}, []
        for step, path in _STEPS.items():
            if path in dict(model.named_modules()):
                hook = _keep(shapes, step, -1 if step == "attention weights" else 0)
                hooks.append(model.get_submodule(path).register_forward_hook(hook))
        ids = torch.zeros((texts, length), dtype=torch.long)
        model(ids, output_attentions=True)  # attentions, because the last layer otherwise computes only what is read
        for hook in hooks:
            hook.remove()
    owned, config = _parameters(model), model.config
    inside = ("queries", "attention", "inside", "feed-forward", "state after")
    rows = [
        {
            "step": step,
            "times": config.effective_depth if step.startswith(inside) else 1,
            "shape": f"({', '.join(map(str, shape))})",
            "numbers": torch.Size(shape).numel(),
            "parameters": owned.get(step, 0),
        }
        for step, shape in sorted(shapes.items(), key=lambda item: ["token ids", *_STEPS].index(item[0]))
    ]
    return pd.DataFrame(rows)


def _keep(shapes: dict[str, tuple[int, ...]], step: str, which: int) -> Any:
    """A hook that notes the shape of a module's output; ``which`` of its tensors, if it returns several."""

    def hook(module: nn.Module, inputs: Any, output: Tensor | tuple[Tensor, ...]) -> None:
        tensor = output if isinstance(output, Tensor) else output[which]
        shapes[step] = tuple(tensor.shape)

    return hook


def _parameters(model: nn.Module) -> Mapping[str, int]:
    """Step → parameters that belong to it and to no part of it. A layer's own are its norms."""
    ends = {path.removeprefix(f"{_LAYER}."): step for step, path in _STEPS.items() if path.startswith(f"{_LAYER}.")}
    counts: dict[str, int] = {}
    for name, p in model.named_parameters():
        module = name.rpartition(".")[0]
        if module.startswith("encoder.stack.blocks."):
            step = next((step for end, step in ends.items() if module.endswith(end)), "state after a layer")
        else:
            fallback = next((step for step, path in _STEPS.items() if module == path), "states after the last layer")
            step = _OTHER.get(module, fallback)
        counts[step] = counts.get(step, 0) + p.numel()
    return counts
