"""The model card in the folder of every run, so that the folder explains itself."""

from __future__ import annotations

import html
import re
from typing import Any

from rtxlib.errors import visible

_CARD = """---
library_name: transformers
pipeline_tag: text-classification
tags: [rtxlib, {family}-transformer]
---

# {model}, trained on {data}

A {family} transformer encoder for text classification: {num_hidden_layers} layers × {recurrent_depth} passes,
{hidden_size} wide, {parameters:,} parameters ({non_embedding_parameters:,} without the token table).

| measured on the test split | |
| --- | --- |
| accuracy | {accuracy:.4f} |
| F1 | {f1:.4f} |
| precision | {precision:.4f} |
| recall | {recall:.4f} |
| texts | {n_test} |

Labels: {labels}. {start} with recipe {recipe}, seed {seed}, on {train_rows:,} rows for {epochs:.2f} epochs
({train_seconds:.0f} s on {device}, {dtype}); the weights of epoch {best_epoch:.2f} were kept.

```python
import rtxlib.models  # makes transformers know this architecture
from transformers import pipeline

classify = pipeline("text-classification", "path/to/this/folder")
classify({example})
```

Training texts were cleaned with {cleaning}. `rtx predict` cleans texts in the same way; `pipeline` does not.
`seen_texts.parquet` holds a hash of each training and validation text, by which `rtx evaluate` knows them. The data set has
its own licence. The model has the biases of its data and of any pretrained weights it started from. It was trained on {data},
and nothing is claimed for other texts.
"""


def model_card(metrics: dict[str, Any], label_names: list[str], cleaning: dict[str, bool], pairs: bool) -> str:
    """A model card in Markdown, with the front matter of the Hugging Face Hub, from a run's metrics.

    pairs: whether the model reads pairs of texts.
    """
    steps = ", ".join(step for step, on in cleaning.items() if on) or "nothing"
    start = "Fine-tuned from pretrained weights" if metrics["family"] == "pretrained" else "Trained from scratch"
    if "pretraining_words" in metrics:
        start = f"Pretrained on {metrics['pretraining_words']:,} words of texts without their labels, then fine-tuned"
    written = {name: plain(value) if isinstance(value, str) else value for name, value in metrics.items()}
    example = '{"text": "a first text", "text_pair": "a second text"}' if pairs else '"a text"'
    return _CARD.format(**written, start=start, example=example, labels=", ".join(map(plain, label_names)), cleaning=steps)


def plain(name: str) -> str:
    """A name in one line of Markdown that shows it as it is: neither HTML nor Markdown takes effect."""
    return re.sub(r"[\\`*_\[\]|~$]", r"\\\g<0>", html.escape(visible(name), quote=False))
