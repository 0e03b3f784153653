"""The model card in the folder of every run, so that the folder explains itself. Its text is in card.md."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

from rtxlib.errors import visible

_CARD = Path(__file__).with_suffix(".md").read_text(encoding="utf-8")


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
