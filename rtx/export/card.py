"""The README.md of an exported folder."""

from __future__ import annotations

from typing import Any

from rtxlib.errors import visible

_CARD = """# {model}, as {what}

`model.onnx` is {graph}. It takes {size:,} bytes.{passes}

| file | what it is |
| --- | --- |
| `model.onnx` | the graph: {inputs} → {output} |
| `tokenizer.json` | the tokenizer, which cuts texts to {max_length} tokens |
| `export.json` | labels, cleaning, and the numbers below |
| `run.py` | opens the folder with onnxruntime, tokenizers and numpy alone |

```
pip install onnxruntime tokenizers numpy
python run.py {example}
```

`rtx {command}` opens the folder, too.

## Checked when it was written

On {n_test:,} texts ({texts}) the float32 graph and the model differ by at most {difference:.1e}{same}.{loss}

## Other ways

{other}
"""
_OURS = """transformers alone has no classifier that computes these logits. With rtxlib installed, it opens the run's folder in
three lines:

```python
import rtxlib.models
from transformers import AutoModelForSequenceClassification
model = AutoModelForSequenceClassification.from_pretrained("the run's folder")
```

Without rtxlib, use the graph."""
_THEIRS = "The classifier has BERT's layers: `rtx export RUN --format transformers` writes it for transformers alone."
_EMBEDDINGS = "sentence-transformers and transformers open the folder or Hub id that the graph was made from."


def card(record: dict[str, Any], bert_shaped: bool) -> str:
    """A README in Markdown from the record of an export."""
    labels, eight = record["labels"], record["precision"] == "int8"
    if not record["any_depth"]:
        passes = "" if record["passes"] == 1 else f" Its block is passed {record['passes']} times; its weights are stored once."
    else:
        passes = f" Its block is an ONNX Loop; `passes` says how often it is passed ({record['passes']} in training)."
    written = {
        "what": "a graph that labels texts" if labels else "a graph of sentence embeddings",
        "graph": "the encoder with eight-bit weights" if eight else "the encoder in float32",
        "passes": passes,
        "inputs": ", ".join(f"`{name}`" for name in record["inputs"]),
        "output": "the logits of " + ", ".join(map(visible, labels)) if labels else f"an embedding of {record['width']} numbers",
        "example": '"a first text" "a second text"' if record["pairs"] else '"a text" "another"',
        "command": "predict DIR" if labels else "embed FILE --model DIR --out FILE.parquet",
        "same": ", and every text gets the same label" if labels else "",
        "loss": _loss(record) if eight else "",
        "other": (_THEIRS if bert_shaped else _OURS) if labels else _EMBEDDINGS,
    }
    return _CARD.format_map(record | {"texts": visible(record["texts"])} | written)


_CLASSIFIER = """# {model}, without rtxlib

This folder labels texts. It takes {size:,} bytes.

| file | what it is |
| --- | --- |
| `part.json`, `*.npz` | what kind of classifier this is, and its arrays; a folder inside is a part of it or a graph |
| `export.json` | labels, cleaning, and the numbers below |
| `run.py`, `graph.py` | open the folder with onnxruntime, tokenizers and numpy alone |

```
pip install onnxruntime tokenizers numpy
python run.py {example}
```

`rtx predict DIR` opens the folder, too.

## Checked when it was written

On {n_test:,} texts ({texts}) its probabilities without rounding differ from the model's by at most {difference:.1e}, and every
text gets the same label.{loss}
"""


def classifier_card(record: dict[str, Any]) -> str:
    """A README in Markdown from the record of an exported classifier that is no single graph."""
    example = '"a first text" "a second text"' if record["pairs"] else '"a text" "another"'
    loss = ""
    if record["precision"] == "int8":
        loss = f"\n\nWeights and tables have eight bits. The cost on the texts above:\n\n| | |\n| --- | --- |\n{_table(record)}"
    return _CLASSIFIER.format_map(record | {"texts": visible(record["texts"]), "example": example, "loss": loss})


def _table(record: dict[str, Any]) -> str:
    """What the eight bits cost, in rows of a table."""
    lost, rows = record["loss"], {}
    if "accuracy" in lost:
        rows |= {
            "accuracy in float32": f"{lost['accuracy']:.4f}",
            "accuracy in eight bits": f"{lost['accuracy_8_bits']:.4f}",
            "difference in points (95 % interval)": f"{lost['points']:+.2f} ({_interval(lost['points_interval'], 2)})",
        }
    if record["labels"]:
        rows["texts with another label"] = f"{lost['other_labels']:.2%}"
    else:
        rows |= {
            "mean cosine with float32 (95 % interval)": f"{lost['cosine']:.4f} ({_interval(lost['cosine_interval'], 4)})",
            "1 % of texts are below": f"{lost['cosine_1_percent']:.4f}",
            "lowest cosine": f"{lost['cosine_lowest']:.4f}",
        }
    rows["bytes beside float32"] = f"{record['size'] / record['size_float32']:.1%}"
    return "\n".join(f"| {what} | {value} |" for what, value in rows.items())


def _loss(record: dict[str, Any]) -> str:
    """What the eight bits cost a graph."""
    return f"""

The four maps of each layer and the embedding matrix have eight-bit weights; head, norms and positions stay in float32. The
factors that divide the states' channels (SmoothQuant) come from {record["n_calibration"]:,} other texts. The cost on the texts
above:

| | |
| --- | --- |
{_table(record)}"""


def _interval(ends: list[float], digits: int) -> str:
    return f"{ends[0]:.{digits}f} to {ends[1]:.{digits}f}"
