"""Measurements of notebook 07 with a pretrained encoder: similar texts and nearest neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.sparse import spmatrix
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import PreTrainedTokenizerBase

from rtx.embedding import embed, similarity
from rtxlib.data.batching import batches, collate
from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.models import pretrained
from rtxlib.models.encoder import Encoder
from rtxlib.models.presets import preset
from rtxstudy import checkpoints
from rtxstudy.questions.pretrained import behaviour, heads, retrieval


class Embedder(NamedTuple):
    """A sentence encoder with its tokenizer."""

    name: str
    encoder: Encoder
    tokenizer: PreTrainedTokenizerBase

    @classmethod
    def load(cls, name: str) -> Embedder | None:
        """The pretrained encoder of this Hub id or folder; None when its weights are out of reach."""
        if checkpoints.out_of_reach(name):
            return None
        return cls(name.rsplit("/", 1)[-1], pretrained.load(name), pretrained_tokenizer(pretrained.find(name)))

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Sentence embeddings (texts, hidden)."""
        return embed(texts, self.encoder, self.tokenizer)


def similarities(sentences: Sequence[str], embedder: Embedder | None) -> pd.DataFrame:
    """The cosine of every two sentences: one row and one column per sentence, and the row's own in ``sentence``.

    Without an embedder the table is empty.
    """
    if embedder is None:
        return pd.DataFrame({"sentence": []})
    vectors = embedder.vectors(sentences)
    table = pd.DataFrame(similarity(vectors, vectors), index=sentences, columns=sentences)
    return table.rename_axis("sentence").reset_index()


def norms_by_placement(data: Prepared) -> pd.DataFrame:
    """The size of a token's state after each layer of MiniLM's shape, with norms after (post) and before (pre) the sub-layers.

    The weights are random with std = 1/√width, which preserves the norm of a vector. Columns: those of
    :func:`rtxstudy.questions.pretrained.behaviour.norms_by_layer`, and ``model``.
    """
    test, pad_id = data.splits["test"], data.tokenizer.pad_token_id
    texts = [collate(test, rows, pad_id) for rows in batches(test.lengths, 4096, None, seed=None, epoch=0)[:1]]
    width = preset("minilm-l6").hidden_size
    torch.manual_seed(0)
    parts = []
    for placement in ("post", "pre"):
        config = preset(
            "minilm-l6",
            norm_placement=placement,
            pooler=False,
            vocab_size=len(data.tokenizer),
            pad_token_id=pad_id,
            initializer_range=width**-0.5,
        )
        norms = behaviour.norms_by_layer(Encoder(config).eval(), texts)
        parts.append(norms.assign(model=f"{placement}-norm, random weights"))
    return pd.concat(parts)


def neighbours(pools: Mapping[str, Prepared], rows: int, embedder: Embedder | None) -> pd.DataFrame:
    """The share of a test text's nearest neighbours that have its label: for embeddings, TF-IDF and chance.

    ``pools``: panel name → data to search; ``rows``: most texts of each label. Columns: those of
    :func:`rtxstudy.questions.pretrained.retrieval.compare`, and ``panel``. Without an embedder, only TF-IDF and chance are
    compared.
    """
    parts = []
    for panel, pool in pools.items():
        texts = pool.rows("test").groupby("label").head(rows)
        ks = tuple(k for k in (1, 10) if k < len(texts))
        kinds = representations(texts["text"].tolist(), [] if embedder is None else [embedder])
        parts.append(retrieval.compare(kinds, texts["label"].to_numpy(), ks=ks).assign(panel=panel))
    return pd.concat(parts, ignore_index=True)


def representations(texts: Sequence[str], embedders: Iterable[Embedder]) -> dict[str, np.ndarray | spmatrix]:
    """Name → vectors (texts, width) of the texts: TF-IDF of words and pairs of words, and each embedder's embeddings."""
    kinds = {"tf-idf": TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(texts)}
    return kinds | {embedder.name: embedder.vectors(texts) for embedder in embedders}


def best_matches(queries: Sequence[str], sentences: Sequence[str], embedder: Embedder | None) -> pd.DataFrame:
    """The sentence nearest to each query: query, nearest, similarity (the cosine). Empty without an embedder."""
    if embedder is None:
        return pd.DataFrame({"query": []})
    scores = similarity(embedder.vectors(queries), embedder.vectors(sentences))  # (queries, sentences)
    nearest = [sentences[place] for place in scores.argmax(axis=1)]
    return pd.DataFrame({"query": queries, "nearest": nearest, "similarity": scores.max(axis=1)})


def head_patterns(data: Prepared, rows: int, embedder: Embedder | None) -> pd.DataFrame:
    """What heads attend to on at most ``rows`` test texts (:mod:`~rtxstudy.questions.pretrained.heads`); empty without an
    embedder.
    """
    if embedder is None:
        return pd.DataFrame({"pattern": []})
    texts = data.rows("test")["text"].tolist()[:rows]
    return heads.attention_patterns(texts, embedder.encoder, embedder.tokenizer)
