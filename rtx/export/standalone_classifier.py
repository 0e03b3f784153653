"""Labels of texts, from the files beside this script. It needs onnxruntime, tokenizers and numpy.

python run.py "a fine film" "a dull one"      (for pairs of texts: python run.py "first" "second")
"""

import json
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

try:
    from rtx.export.standalone import Exported as Graph
    from rtx.export.standalone import main
except ImportError:  # beside graph.py, without the package
    from graph import Exported as Graph
    from graph import main


def sides(text):
    return (text,) if isinstance(text, str) else text


def majority(folder, settings, threads):
    shares = np.log(np.maximum(settings["shares"], 1e-30)).astype(np.float32)
    return lambda texts: np.tile(shares, (len(texts), 1))


def words(folder, settings, threads):
    arrays, pattern = np.load(folder / "arrays.npz"), re.compile(settings["word"])
    names = json.loads((folder / "terms.json").read_text(encoding="utf-8"))  # of each side: words and word pairs
    numbers = [{term: sum(map(len, names[:side])) + i for i, term in enumerate(terms)} for side, terms in enumerate(names)]

    def answer(texts):
        logits = np.tile(arrays["bias"], (len(texts), 1))
        for row, text in enumerate(texts):
            for side, known in zip(sides(text), numbers, strict=True):
                singles = pattern.findall(side.lower())
                counts = Counter(singles) + Counter(map(" ".join, pairwise(singles)))
                terms = [(known[term], count) for term, count in counts.items() if term in known]
                if terms:
                    index, count = np.array(terms).T
                    tfidf = (1 + np.log(count)) * idf[index]
                    logits[row] += tfidf / np.linalg.norm(tfidf) @ (weights[index] * scale)
        return logits

    idf, weights, scale = arrays["idf"], arrays["weights"], arrays["scale"]
    return answer


def linear(vectors):
    """A linear model on the vectors of single texts, or of pairs u, v: (u, v, |u - v|, u * v)."""

    def made(folder, settings, threads):
        arrays, embed = np.load(folder / "arrays.npz"), vectors(folder, settings, threads)

        def answer(texts):
            parts = [embed(list(side)) for side in zip(*map(sides, texts), strict=True)]
            if len(parts) == 2:
                parts += [np.abs(parts[0] - parts[1]), parts[0] * parts[1]]
            return np.concatenate(parts, axis=1) @ (arrays["weights"] * arrays["scale"]) + arrays["bias"]

        return answer

    return made


def static(folder, settings, threads):
    table = np.load(folder / "table.npz")
    rows, scale, tokenizer = table["rows"], table["scale"], Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = True

    def embed(texts):
        means = np.zeros((len(texts), rows.shape[1]), np.float32)
        for row, pieces in enumerate(tokenizer.encode_batch(texts, add_special_tokens=False)):
            if ids := pieces.ids[: settings["most"]]:
                means[row] = (rows[ids].astype(np.float32) * scale[ids]).mean(axis=0)
        return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)

    return embed


def cascade(folder, settings, threads):
    first, second = (part(folder / name, threads) for name in ("first", "second"))

    def probabilities(logits):
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return p / p.sum(axis=1, keepdims=True)

    def answer(texts):
        p = probabilities(first(texts))
        unsure = np.flatnonzero(p.max(axis=1) < settings["threshold"])
        if len(unsure):
            p[unsure] = probabilities(second([texts[i] for i in unsure]))
        return np.log(np.maximum(p, 1e-30))

    return answer


KINDS = {
    "majority": majority,
    "words": words,
    "static": linear(static),
    "frozen": linear(lambda folder, settings, threads: Graph(folder / "encoder", threads)),
    "network": lambda folder, settings, threads: Graph(folder / "graph", threads),
    "cascade": cascade,
}


def part(folder, threads):
    """The logits (texts, labels) of the classifier in a folder, as a function of cleaned texts."""
    settings = json.loads((folder / "part.json").read_text(encoding="utf-8"))
    answer = KINDS[settings["kind"]](folder, settings, threads)

    def logits(texts):
        scores = np.asarray(answer(texts), np.float32)
        return np.hstack([np.zeros_like(scores), scores]) if scores.shape[1] == 1 else scores

    return logits


class Exported(Graph):
    def __init__(self, folder: Path, threads: int = 0) -> None:
        self.record = json.loads((folder / "export.json").read_text(encoding="utf-8"))
        self.part = part(folder, threads)

    def width(self) -> int:
        return self([("a", "a") if self.record["pairs"] else "a"]).shape[1]

    def __call__(self, texts: list, passes: int | None = None) -> np.ndarray:
        """Logits (texts, labels) of cleaned texts, or of pairs (first, second)."""
        return self.part(texts) if len(texts) else np.empty((0, self.record["width"]), np.float32)


if __name__ == "__main__":
    main(Exported(Path(__file__).resolve().parent), sys.argv[1:])
