"""The peers: each runs in a process of its own, where none of our code is loaded and none of our settings is made.

``Peer`` starts this file as a program and calls its functions there; arguments and answers are pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

    from rtxlib.data.batching import Tokens

# ---------------------------------------- in the peer's process


def trainer(
    config: Any, folder: Path, batch: int, warm_up: int, steps: int, padded_to: int | None, settings: dict[str, Any]
) -> float:
    """Rows per second of the Trainer on a new classifier: ``steps`` timed steps after ``warm_up`` untimed ones.

    folder: written by :func:`save_rows`. padded_to: the length to which every row is padded; None: the longest in its batch.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding

    ids, offsets, labels = _saved(folder)
    padding = {} if padded_to is None else {"padding": "max_length", "max_length": padded_to}
    return _timed_training(
        AutoModelForSequenceClassification.from_config(config),
        lambda i: {"input_ids": ids[offsets[i] : offsets[i + 1]].tolist(), "labels": int(labels[i])},
        len(labels),
        DataCollatorWithPadding(AutoTokenizer.from_pretrained(folder), **padding),
        (batch, warm_up, steps),
        settings,
    )


def masked_trainer(
    config: Any, folder: Path, batch: int, warm_up: int, steps: int, share: float, settings: dict[str, Any]
) -> float:
    """Rows per second of the Trainer on a new BertForMaskedLM, which predicts a ``share`` of the tokens; as :func:`trainer`."""
    from transformers import AutoTokenizer, BertForMaskedLM, DataCollatorForLanguageModeling

    ids, offsets, labels = _saved(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    special = np.isin(ids, tokenizer.all_special_ids).astype(int)  # else the collator asks the tokenizer for each row

    def row(i: int) -> dict[str, Any]:
        part = slice(offsets[i], offsets[i + 1])
        return {"input_ids": ids[part].tolist(), "special_tokens_mask": special[part].tolist()}

    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=share)
    return _timed_training(BertForMaskedLM(config), row, len(labels), collator, (batch, warm_up, steps), settings)


def _saved(folder: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    with np.load(folder / "rows.npz") as rows:
        return rows["ids"], rows["offsets"], rows["labels"]


def _timed_training(
    model: Any,
    row: Callable[[int], dict[str, Any]],
    count: int,
    collator: Any,
    sizes: tuple[int, int, int],
    settings: dict[str, Any],
) -> float:
    """Rows per second of the Trainer. row: the number of one of ``count`` rows -> its entries. sizes: batch, warm-up, steps."""
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Rows(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return count

        def __getitem__(self, i: int) -> dict[str, Any]:
            return row(i)

    class Clock(TrainerCallback):
        ends: tuple[float, ...] = ()

        def on_step_end(self, *_: object, **__: object) -> None:
            self.ends += (_now(),)

    clock, (batch, warm_up, steps) = Clock(), sizes
    with tempfile.TemporaryDirectory() as out:
        arguments = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=batch,
            max_steps=warm_up + steps,
            optim="adamw_torch_fused",
            use_cpu=not torch.cuda.is_available(),
            report_to=[],
            save_strategy="no",
            logging_strategy="no",
            disable_tqdm=True,
            dataloader_pin_memory=torch.cuda.is_available(),
            **settings,
        )
        Trainer(model=model, args=arguments, train_dataset=Rows(), data_collator=collator, callbacks=[clock]).train()
    return batch * steps / (clock.ends[-1] - clock.ends[warm_up - 1])


def plain_loop(folder: Path, dtype: torch.dtype, texts: list[str], size: int, length: int) -> tuple[float, np.ndarray]:
    """Seconds and logits of the loop that people write: batches in the order of the texts, each padded to its longest text."""
    import torch

    model, tokenizer = _classifier(folder)
    begun, parts = _now(), []
    with torch.inference_mode(), _autocast(dtype):
        for start in range(0, len(texts), size):
            batch = tokenizer(
                texts[start : start + size], padding=True, truncation=True, max_length=length, return_tensors="pt"
            )
            parts.append(model(**batch.to(model.device)).logits.float().cpu().numpy())
    return _now() - begun, np.concatenate(parts)


def text_pipeline(folder: Path, dtype: torch.dtype, texts: list[str], size: int, length: int) -> tuple[float, np.ndarray]:
    """Seconds and probabilities of ``pipeline``."""
    from transformers import pipeline

    model, tokenizer = _classifier(folder)
    classify = pipeline("text-classification", model=model, tokenizer=tokenizer, device=model.device, top_k=None)
    begun = _now()
    with _autocast(dtype):
        answers = classify(texts, batch_size=size, truncation=True, max_length=length)
    taken = _now() - begun
    by_label = [sorted(answer, key=lambda each: each["label"]) for answer in answers]
    return taken, np.array([[each["score"] for each in answer] for answer in by_label])


def alone(folder: Path, dtype: torch.dtype, texts: list[str], length: int) -> list[float]:
    """Milliseconds of a forward pass over each text alone."""
    import torch

    model, tokenizer = _classifier(folder)
    taken = []
    with torch.inference_mode(), _autocast(dtype):
        for text in texts:
            batch = tokenizer(text, truncation=True, max_length=length, return_tensors="pt").to(model.device)
            begun = _now()
            model(**batch)
            taken.append(1000 * (_now() - begun))
    return taken


def sentences(folder: Path, texts: list[str], size: int) -> tuple[float, np.ndarray]:
    """Seconds and embeddings of ``SentenceTransformer.encode``."""
    model = _sentence_transformer(folder)
    begun = _now()
    vectors = model.encode(texts, batch_size=size)
    return _now() - begun, vectors


def runtime(
    kind: str, folder: Path, precision: str, threads: int, texts: list[str], size: int, length: int
) -> tuple[float, np.ndarray]:
    """Seconds and logits of the graph in ONNX Runtime or OpenVINO, in batches of texts of like length.

    kind: as in :func:`_session`.
    """
    run, tokenizer = _session(kind, folder, precision, threads, length)
    begun = _now()
    encoded = tokenizer(texts, truncation=True, max_length=length)["input_ids"]
    order = sorted(range(len(texts)), key=lambda i: len(encoded[i]))
    options = {}
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        batch = tokenizer.pad({"input_ids": [encoded[i] for i in rows]}, return_tensors="np")
        options |= dict(zip(rows, run(batch["input_ids"], batch["attention_mask"]), strict=True))
    return _now() - begun, np.stack([options[i] for i in range(len(texts))])


def runtime_alone(
    kind: str, folder: Path, precision: str, threads: int, texts: list[str], length: int, tokenising: bool
) -> list[float]:
    """Milliseconds of the graph on each text alone, with the tokenizer's time or without it."""
    run, tokenizer = _session(kind, folder, precision, threads, length)
    taken = []
    for text in texts:
        begun = _now()
        batch = tokenizer(text, truncation=True, max_length=length, return_tensors="np")
        begun = begun if tokenising else _now()
        run(batch["input_ids"], batch["attention_mask"])
        taken.append(1000 * (_now() - begun))
    return taken


@cache
def _session(kind: str, folder: Path, precision: str, threads: int, length: int) -> tuple[Callable[..., np.ndarray], Any]:
    """A function (ids, mask) -> logits, and the tokenizer.

    kind: "onnxruntime" or "openvino" of the folder's ``model.onnx``, or "optimum": ONNX Runtime of ``optimum/model.onnx``.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    if kind in ("onnxruntime", "optimum"):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        graph = (folder / "optimum" if kind == "optimum" else folder) / "model.onnx"
        session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        names = {given.name for given in session.get_inputs()}  # optimum's graph also takes token types

        def run(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            return session.run(None, {name: given[name] for name in names})[0]

        return run, tokenizer
    import openvino

    hints = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY"}
    hints["INFERENCE_PRECISION_HINT"] = {"fp32": "f32", "bf16": "bf16"}[precision]
    compiled = openvino.Core().compile_model(folder / "model.onnx", "CPU", hints)
    return lambda ids, mask: compiled({"input_ids": ids, "attention_mask": mask})[0], tokenizer


@cache
def _classifier(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    return model.to("cuda" if torch.cuda.is_available() else "cpu"), AutoTokenizer.from_pretrained(folder)


@cache
def _sentence_transformer(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder))


def _autocast(dtype: torch.dtype) -> torch.autocast:
    import torch

    return torch.autocast("cuda" if torch.cuda.is_available() else "cpu", dtype, enabled=dtype != torch.float32)


def _now() -> float:
    """The clock in seconds, read after the device has finished."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def _serve() -> None:
    """Answer one call after another. Libraries print to standard output, so it is redirected to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(globals()[function](*arguments), answers)
        answers.flush()


# ---------------------------------------- in ours


def untouched() -> dict[str, str]:
    """The environment of a peer: ours without our settings."""
    from rtx.process import SETTINGS  # not in the peer's process

    return {name: value for name, value in os.environ.items() if name not in SETTINGS}


class Peer:
    """A process for peers, called as ``peer("plain_loop", …)``. A context manager; leaving it ends the process.

    threads: how many threads its torch takes; None: as many as it likes.
    """

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads

    def __enter__(self) -> Self:
        unset = untouched()
        # One GPU, as ours has: the Trainer would split each batch over several.
        unset["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
        unset |= {} if self.threads is None else {"OMP_NUM_THREADS": str(self.threads)}
        program = [sys.executable, "-P", str(Path(__file__).resolve())]
        self.process = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=unset)
        return self

    @property
    def pid(self) -> int:
        return self.process.pid

    def __call__(self, function: str, *arguments: Any) -> Any:
        pickle.dump((function, arguments), self.process.stdin)
        self.process.stdin.flush()
        try:
            return pickle.load(self.process.stdout)
        except EOFError:
            raise RuntimeError(f"The peer's process ended in {function}; its error stands above.") from None

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()


def save_rows(folder: Path, tokenizer: PreTrainedTokenizerFast, rows: Tokens) -> Path:
    """Write the tokenizer and the rows into the folder, as :func:`trainer` reads them; returns the folder."""
    tokenizer.save_pretrained(folder)
    np.savez(folder / "rows.npz", ids=rows.ids, offsets=rows.offsets, labels=rows.labels)
    return folder


if __name__ == "__main__":
    _serve()
