"""Do the embeddings of a converted encoder still find what belongs together, before and after they are distilled?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import pandas as pd

from rtx.distillation import Distillation, distil
from rtxlib.data.prepare import Prepared
from rtxlib.models import pretrained
from rtxlib.runs.spec import conversion_words
from rtxstudy.questions.pretrained import retrieval
from rtxstudy.questions.pretrained.similar_texts import Embedder, representations
from rtxstudy.statistics import mean_interval

K = 10  # neighbours of a text
DISTILLED = "distilled"  # how the name of a student ends after its distillation


def encoders(original: Embedder, distillations: Iterable[Distillation]) -> Iterator[Embedder]:
    """The original, and each student before its distillation and after it. A missing distillation is done now.

    A student is named after the original and its whole conversion, as runs are: "all-MiniLM-L6-v2 2×2 lower between edges", and
    the same with "distilled" at its end.
    """
    yield original
    for what in distillations:
        name = " ".join([original.name, *conversion_words(what.conversion)])
        yield original._replace(name=name, encoder=what.student())
        encoder = pretrained.load(str(distil(what, what.folder)))
        yield original._replace(name=f"{name} {DISTILLED}", encoder=encoder)


def precisions(pools: Mapping[str, Prepared], rows: int, embedders: Iterable[Embedder]) -> pd.DataFrame:
    """The share of each test text's ten nearest neighbours that have its label: for TF-IDF, chance and each embedder.

    ``pools``: panel name → data to search; ``rows``: most texts of each label. Columns: ``panel``, ``model``, ``text`` (its
    number in the panel), ``precision``. Of chance it is the expected one.
    """
    embedders, parts = list(embedders), []
    for panel, pool in pools.items():
        texts = pool.rows("test").groupby("label").head(rows)
        labels = texts["label"].to_numpy()
        by_model = {"chance": retrieval.chance(labels)}
        for model, vectors in representations(texts["text"].tolist(), embedders).items():
            by_model[model] = retrieval.precision_at_k(retrieval.neighbours(vectors, K), labels)
        table = pd.DataFrame(by_model).rename_axis("text").melt(var_name="model", value_name="precision", ignore_index=False)
        parts.append(table.reset_index().assign(panel=panel))
    return pd.concat(parts, ignore_index=True)[["panel", "model", "text", "precision"]]


def means(table: pd.DataFrame) -> pd.DataFrame:
    """The mean precision of each model over the texts that search, with its 95 % interval.

    ``table``: of :func:`precisions`. Columns: ``panel``, ``model``, ``k``, ``mean``, ``low``, ``high``, ``n`` (texts).
    """
    return pd.DataFrame(
        [
            {"panel": panel, "model": model, "k": K} | mean_interval(part["precision"])._asdict()
            for (panel, model), part in table.groupby(["panel", "model"], sort=False)
        ]
    )


def differences(table: pd.DataFrame, original: str) -> pd.DataFrame:
    """Differences of precision, paired by the text that searches: one row each, with a 95 % interval over the texts.

    ``table``: of :func:`precisions`; ``original``: the model that the students were made from. Each student is compared with the
    original, and what the last student finds after its distillation with what the first one finds. Columns: ``panel``,
    ``comparison`` ("A − B"), ``difference`` (0.01 = one percentage point), ``low``, ``high``, ``n`` (texts).
    """
    rows = []
    for panel, part in table.groupby("panel", sort=False):
        by_text = part.pivot(index="text", columns="model", values="precision")
        variants = [model for model in part["model"].unique() if model.startswith(f"{original} ")]
        taught = [model for model in variants if model.endswith(DISTILLED)]
        pairs = [*((model, original) for model in variants), (taught[-1], taught[0])]
        for a, b in pairs:
            mean, low, high, n = mean_interval(by_text[a] - by_text[b])
            row = {"panel": panel, "comparison": f"{a} − {b}", "difference": mean, "low": low, "high": high, "n": n}
            rows.append(row)
    return pd.DataFrame(rows)
