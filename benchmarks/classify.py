"""One tool that learns to classify texts: a program, run with the Python of the tool's own environment.

    PYTHON benchmarks/classify.py TOOL TRAIN.csv TEST.csv MINUTES WORK

Each tool is used as its own documentation tells. The files have the columns text and label. WORK is a folder for whatever the
tool writes. The last line of output is JSON: accuracy, seconds (from start to the trained model), mb (the model's files),
texts_per_second (of labelling the test texts), versions, settings; of ours also eight_bits.
Only the tool's own libraries are imported, because none of ours is in its environment.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

MINILM = "sentence-transformers/all-MiniLM-L6-v2"
POTION = "minishlab/potion-base-32M"  # the word vectors of model2vec's documentation
TOKENS = 256  # of a text that MiniLM is made for
FEW = 64  # rows of a label; with more, SetFit learns from some pairs of each row, because all are the square of the rows
ITERATIONS = 20  # of SetFit's paper: each row is in so many pairs of one label, and in so many of two

Rows = tuple[list[str], list[str]]  # texts and labels
Learnt = tuple[Callable[[list[str]], list[str]], float, str]  # texts → labels, megabytes, settings in words


def ending(end: float) -> Any:
    """A callback that ends a training by transformers' Trainer, or by SetFit's, when the clock reads ``end``."""
    from transformers import TrainerCallback

    class Ending(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
            control.should_training_stop |= time.perf_counter() > end

    return Ending()


def setfit(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """Sentence pairs through MiniLM, then logistic regression (Tunstall et al. 2022). The pairs end with the minutes."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    end = time.perf_counter() + 60 * minutes
    names = sorted(set(train[1]))
    model = SetFitModel.from_pretrained(MINILM, labels=names)
    rows = Dataset.from_dict({"text": train[0], "label": [names.index(label) for label in train[1]]})
    few = max(map(train[1].count, names)) <= FEW
    pairs = {} if few else {"num_iterations": ITERATIONS}
    arguments = TrainingArguments(output_dir=str(work), num_epochs=1, **pairs)
    Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[ending(end)]).train()
    model.save_pretrained(str(work / "model"))
    recipe = f"MiniLM, {'all pairs' if few else f'{2 * ITERATIONS} pairs of each row'}"
    recipe += ", ended with the minutes" * (time.perf_counter() > end)
    return lambda given: [str(label) for label in model.predict(given)], megabytes(work / "model"), recipe


def fasttext(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """Bags of word and character n-grams, autotuned for the same minutes (Joulin et al. 2017)."""
    import fasttext

    names = sorted(set(train[1]))
    lines = [
        f"__label__{names.index(label)} {' '.join(text.lower().split())}" for text, label in zip(*train, strict=True)
    ]
    held = max(1, len(lines) // 5)
    (work / "valid.txt").write_text("\n".join(lines[:held]) + "\n", encoding="utf-8")
    (work / "train.txt").write_text("\n".join(lines[held:]) + "\n", encoding="utf-8")
    model = fasttext.train_supervised(
        input=str(work / "train.txt"),
        autotuneValidationFile=str(work / "valid.txt"),
        autotuneDuration=max(1, round(60 * minutes)),
        verbose=0,
    )
    model.save_model(str(work / "model.bin"))

    def predict(given: list[str]) -> list[str]:
        answers, _ = model.predict([" ".join(text.lower().split()) for text in given])
        return [names[int(answer[0].removeprefix("__label__"))] for answer in answers]

    return predict, (work / "model.bin").stat().st_size / 1e6, "autotune by a fifth of the rows"


def model2vec(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """A head on static word vectors, which are trained with it.

    Where a copy of the Hub lacks ``POTION``, the vectors are distilled from MiniLM, as the documentation tells, too.
    """
    from huggingface_hub.errors import HfHubHTTPError
    from model2vec.distill import distill
    from model2vec.train import StaticModelForClassification

    try:
        model, vectors = StaticModelForClassification.from_pretrained(path=POTION), POTION
    except HfHubHTTPError:
        distill(MINILM, pca_dims=256).save_pretrained(str(work / "vectors"))
        model, vectors = StaticModelForClassification.from_pretrained(path=str(work / "vectors")), "distilled from MiniLM"
    model.fit(*train)
    model.to_pipeline().save_pretrained(str(work / "model"))
    return lambda given: [str(label) for label in model.predict(given)], megabytes(work / "model"), f"vectors: {vectors}"


def autogluon(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """AutoGluon's predictor for texts, which fine-tunes MiniLM here as all others do, in the given time."""
    import pandas as pd

    declare_image_operators()
    from autogluon.multimodal import MultiModalPredictor

    model = MultiModalPredictor(label="label", path=str(work / "model"), verbosity=1)
    model.fit(
        pd.DataFrame({"text": train[0], "label": train[1]}),
        time_limit=60 * minutes,
        hyperparameters={"model.hf_text.checkpoint_name": MINILM},
    )

    def predict(given: list[str]) -> list[str]:
        return [str(label) for label in model.predict(pd.DataFrame({"text": given}), as_pandas=False)]

    return predict, megabytes(work / "model"), "MiniLM fine-tuned"


def finetuned(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """MiniLM fine-tuned by transformers' Trainer, three epochs at its own learning rate, ended with the minutes."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    end = time.perf_counter() + 60 * minutes
    names = sorted(set(train[1]))
    model = AutoModelForSequenceClassification.from_pretrained(MINILM, num_labels=len(names))
    tokenizer = AutoTokenizer.from_pretrained(MINILM)
    ids = tokenizer(train[0], truncation=True, max_length=TOKENS)["input_ids"]
    rows = [{"input_ids": text, "labels": names.index(label)} for text, label in zip(ids, train[1], strict=True)]
    arguments = TrainingArguments(
        output_dir=str(work),
        num_train_epochs=3,
        per_device_train_batch_size=16,
        bf16=torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported(),
        use_cpu=True,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    collator = DataCollatorWithPadding(tokenizer)
    trainer = Trainer(model=model, args=arguments, train_dataset=rows, data_collator=collator, callbacks=[ending(end)])
    reached = trainer.train().metrics["epoch"]
    model.save_pretrained(work / "model")

    @torch.inference_mode()
    def predict(given: list[str]) -> list[str]:
        answers = []
        for start in range(0, len(given), 32):
            part = tokenizer(given[start : start + 32], truncation=True, max_length=TOKENS, padding=True, return_tensors="pt")
            answers += model.eval()(**part).logits.argmax(dim=1).tolist()
        return [names[number] for number in answers]

    return predict, megabytes(work / "model"), f"MiniLM, {reached:.2g} of 3 epochs by transformers' Trainer"


def words(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """Words and pairs of words by TF-IDF, and logistic regression, as scikit-learn's documentation tells."""
    import joblib
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000)).fit(*train)
    size = joblib.dump(model, work / "model")[0]
    return lambda given: model.predict(given).tolist(), Path(size).stat().st_size / 1e6, "TF-IDF and logistic regression"


def declare_image_operators() -> None:
    """Let torchvision be imported beside a CPU build of torch, where its wheel's operators on images cannot be loaded.

    AutoGluon imports it and calls none of them for texts.
    """
    import re
    from importlib.util import find_spec

    import torch

    package = Path(find_spec("torchvision").submodule_search_locations[0])
    try:
        torch.ops.load_library(str(package / "_C.so"))
    except OSError:
        named = re.findall(r'(?:register_meta\("|torchvision::)(\w+)"', (package / "_meta_registrations.py").read_text())
        for name in sorted(set(named)):
            torch.library.define(f"torchvision::{name}", "(Tensor images) -> Tensor")


def ours(train: Rows, test: Path, minutes: float, work: Path) -> Learnt:
    """``rtx compare --test`` without its notebook and report: what it takes, trained and chosen in the same minutes.

    The minutes count from the reading of the file on, and the time of the report is kept, as in the command.
    The test file is named so that all training rows are for training; nothing is chosen by it.
    """
    from rtxlib.data.clean import clean_texts
    from rtxstudy.questions.your_texts.comparison import STARTED, Comparison, Options
    from rtxstudy.questions.your_texts.rows import CLEANING

    write(work / "train.csv", train)
    os.environ[STARTED] = repr(time.monotonic())
    options = Options(
        str(work / "train.csv"), "text", "label", minutes=minutes, out=str(work / "out"), test=str(test)
    )
    comparison = Comparison.open(options)
    comparison.race()
    chosen = comparison.choose()
    comparison.hand_over()
    name = chosen.taken or chosen.best
    how = f"took {name}" if chosen.taken else f"took none, scored {name}"
    model, names = comparison.open_model(name), comparison.texts.label_names
    size = float(chosen.table.set_index("model")["mb"][name])

    def predict(given: list[str]) -> list[str]:
        return [names[number] for number in model.probabilities(clean_texts(given, **CLEANING)).argmax(axis=1)]

    return predict, size, how


TOOLS: dict[str, tuple[Callable[[Rows, Path, float, Path], Learnt], tuple[str, ...]]] = {  # tool → function, its packages
    "ours": (ours, ("rtxlib", "torch")),
    "setfit": (setfit, ("setfit", "sentence-transformers", "transformers", "torch")),
    "fasttext": (fasttext, ("fasttext-wheel", "numpy")),  # its predict needs numpy below 2
    "model2vec": (model2vec, ("model2vec", "torch")),
    "finetuned": (finetuned, ("transformers", "accelerate", "torch")),
    "words": (words, ("scikit-learn",)),
    "autogluon": (autogluon, ("autogluon.multimodal", "transformers", "torch")),
}


def megabytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def read(file: Path) -> Rows:
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    return [row["text"] for row in rows], [row["label"] for row in rows]


def write(file: Path, rows: Rows) -> None:
    with file.open("w", encoding="utf-8", newline="") as lines:
        csv.writer(lines).writerows([("text", "label"), *zip(*rows, strict=True)])


def measured(tool: str, train: Path, test: Path, minutes: float, work: Path) -> dict[str, Any]:
    """Train a tool and label the test texts with it. Of ours also what `rtx export --int8` writes is measured."""
    learn, packages = TOOLS[tool]
    work.mkdir(parents=True, exist_ok=True)
    rows = read(test)
    begun = time.perf_counter()
    predict, size, settings = learn(read(train), test, minutes, work)
    seconds = time.perf_counter() - begun
    record = {
        **tested(predict, *rows),
        "n_test": len(rows[0]),
        "seconds": seconds,
        "mb": size,
        "settings": settings,
        "versions": ", ".join(f"{name} {version(name)}" for name in packages),
    }
    if tool == "ours" and (work / "out" / "model").is_dir():
        record["eight_bits"] = eight_bits(work / "out" / "model", work / "eight", rows)
    return record


def tested(predict: Callable[[list[str]], list[str]], texts: list[str], labels: list[str]) -> dict[str, float]:
    """How right the answers to the test texts are, and how fast they come."""
    predict(texts[:8])  # warm
    begun = time.perf_counter()
    answers = predict(texts)
    rate = len(texts) / (time.perf_counter() - begun)
    right = [a == b for a, b in zip(answers, labels, strict=True)]
    return {"accuracy": sum(right) / len(right), "macro_f1": macro_f1(labels, answers), "texts_per_second": rate}


def eight_bits(model: Path, out: Path, test: Rows) -> dict[str, float]:
    """The same numbers of the model as `rtx export --int8` writes it, and its megabytes."""
    from rtx.export import opened

    subprocess.run([sys.executable, "-m", "rtx", "export", model, "--int8", "--out", out], check=True, stdout=sys.stderr)
    exported = opened.Opened(out)
    names = exported.spec["label_names"]
    answers = tested(lambda given: [names[number] for number in exported.probabilities(given).argmax(axis=1)], *test)
    return answers | {"mb": megabytes(out)}


def macro_f1(labels: list[str], answers: list[str]) -> float:
    """The mean over the labels of F1. Written here, because not every peer's environment has scikit-learn."""
    scores = []
    for label in set(labels):
        both = sum(a == b == label for a, b in zip(labels, answers, strict=True))
        scores.append(2 * both / (labels.count(label) + answers.count(label)))
    return sum(scores) / len(scores)


if __name__ == "__main__":
    if sys.argv[1] == "--try":  # whether the tool is there
        for package in TOOLS[sys.argv[2]][1]:
            print(package, version(package))
    else:
        name, train_file, test_file, given, folder = sys.argv[1:]
        print(json.dumps(measured(name, Path(train_file), Path(test_file), float(given), Path(folder))))
