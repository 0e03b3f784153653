"""Labels or sentence embeddings of texts, from the files beside this script. It needs onnxruntime, tokenizers and numpy.

python run.py "a fine film" "a dull one"      (for pairs of texts: python run.py "first" "second")
"""

import html
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # onnxruntime would report its use to its makers
import onnxruntime

TOKENS = 384  # of a batch: on two cores, batches of 256 to 512 tokens read the most texts a second


class Exported:
    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.record = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))  # it cuts
        self.padding = {key: self.tokenizer.padding[key] for key in ("pad_id", "pad_token")}
        self.tokenizer.no_padding()  # each batch is padded to its own longest text
        self.tokenizer.encode_special_tokens = True  # a text may spell out [SEP]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads  # 0: all cores
        self.session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.inputs = [each.name for each in self.session.get_inputs()]

    def width(self) -> int:
        return self.session.get_outputs()[0].shape[-1]

    def clean(self, text: str) -> str:
        for kind, pattern, new in self.record["cleaning"]:
            if kind == "entities":
                text = re.sub(pattern, lambda match: html.unescape(match[0]), text)
            elif kind == "replace":
                text = re.sub(pattern, new, text)
            elif kind == "middle":  # so many words, from the middle
                text = " ".join((words := text.split())[max(0, (len(words) - int(pattern)) // 2) :][: int(pattern)])
            else:
                text = text.lower() if kind == "lower" else " ".join(text.split())
        return text[: self.record["longest"]]

    def __call__(self, texts: list, passes: int | None = None) -> np.ndarray:
        """Logits (texts, labels) or embeddings (texts, width) of cleaned texts, or of pairs (first, second)."""
        answers = np.empty((len(texts), self.record["width"]), np.float32)
        tokens = self.tokenizer.encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda i: len(tokens[i]))
        while order:  # batches of texts of like length
            longest = len(tokens[order[-1]])
            batch = [order.pop() for _ in range(min(len(order), max(1, TOKENS // longest)))]
            for i in batch:
                tokens[i].pad(longest, **self.padding)
            fields = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}
            feed = {name: np.array([getattr(tokens[i], field) for i in batch]) for name, field in fields.items()}
            feed["passes"] = np.array(passes or self.record["passes"])
            answers[batch] = self.session.run(None, {name: feed[name] for name in self.inputs})[0]
        return answers


def main(exported: Exported, texts: list) -> None:
    if not texts or (exported.record["pairs"] and len(texts) != 2):
        sys.exit("Give texts as arguments, each in quotes; for a model of pairs, a first and a second text.")
    texts = [exported.clean(text) for text in texts]
    for answer in exported([tuple(texts)] if exported.record["pairs"] else texts):
        if exported.record["labels"]:
            p = np.exp(answer - answer.max()) / np.exp(answer - answer.max()).sum()
            print(exported.record["labels"][p.argmax()], *(f"{value:.4f}" for value in p))
        else:
            print(*(f"{value:.6f}" for value in answer))


if __name__ == "__main__":
    main(Exported(Path(__file__).resolve().parent), sys.argv[1:])
