"""What notebook 07 measures with a pretrained encoder: which texts are alike, and which belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from transformers import PreTrainedTokenizerBase

from rtxlib.data.batching import batches, collate
from rtxlib.data.prepared import Prepared
from rtxlib.data.tokenization import pretrained_tokenizer
from rtxlib.models import pretrained
from rtxlib.models.encoder import Encoder
from rtxlib.models.presets import preset
from rtxlib.training.embed import embed, similarity
from rtxstudy.evaluation import behaviour, retrieval


class Embedder(NamedTuple):
    """A sentence encoder with its tokenizer."""

    name: str
    encoder: Encoder
    tokenizer: PreTrainedTokenizerBase

    @classmethod
    def load(cls, name: str) -> Embedder | None:
        """The pretrained encoder of this Hub id or folder; None when its weights are out of reach."""
        if pretrained.out_of_reach(name):
            return None
        return cls(name.rsplit("/", 1)[-1], pretrained.load(name), pretrained_tokenizer(pretrained.find(name)))

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Sentence embeddings (texts, hidden)."""
        return embed(texts, self.encoder, self.tokenizer)


def similarities(sentences: Sequence[str], embedder: Embedder | None) -> pd.DataFrame:
    """The cosine of every two sentences: one row per sentence, which stands in ``sentence``, and one column per sentence.

    Without an embedder the table is empty.
    """
    if embedder is None:
        return pd.DataFrame({"sentence": []})
    vectors = embedder.vectors(sentences)
    return pd.DataFrame(similarity(vectors, vectors), index=sentences, columns=sentences).rename_axis("sentence").reset_index()


def norms_by_placement(data: Prepared) -> pd.DataFrame:
    """The size of a token's state after each layer of MiniLM's shape, with norms after (post) and before (pre) the sub-layers.

    The weights are random, of a standard deviation that keeps the length of what a matrix multiplies. Columns as
    :func:`rtxstudy.evaluation.behaviour.norms_by_layer` gives them, and ``model``.
    """
    test, pad_id = data.splits["test"], data.tokenizer.pad_token_id
    texts = [collate(test, rows, pad_id) for rows in batches(test.lengths, 4096, None, seed=None, epoch=0)[:1]]
    torch.manual_seed(0)
    parts = []
    for placement in ("post", "pre"):
        config = preset(
            "minilm-l6",
            norm_placement=placement,
            pooler=False,
            vocab_size=len(data.tokenizer),
            pad_token_id=pad_id,
            initializer_range=384**-0.5,
        )
        norms = behaviour.norms_by_layer(Encoder(config).eval(), texts)
        parts.append(norms.assign(model=f"{placement}-norm, random weights"))
    return pd.concat(parts)


def neighbours(pools: Mapping[str, Prepared], rows: int, embedder: Embedder | None) -> pd.DataFrame:
    """How many of a test text's nearest neighbours have its label, by embeddings, by TF-IDF and by chance.

    ``pools``: what is searched, by the name of its panel; ``rows``: texts of each label at most. Columns as
    :func:`rtxstudy.evaluation.retrieval.compare` gives them, and ``panel``. Without an embedder only words are compared.
    """
    parts = []
    for panel, pool in pools.items():
        texts = pool.rows("test").groupby("label").head(rows)
        kinds = {"tf-idf": TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit_transform(texts["text"])}
        if embedder is not None:
            kinds[embedder.name] = embedder.vectors(texts["text"].tolist())
        parts.append(retrieval.compare(kinds, texts["label"].to_numpy(), ks=(1, 10)).assign(panel=panel))
    return pd.concat(parts, ignore_index=True)


def best_matches(queries: Sequence[str], texts: Sequence[str], embedder: Embedder) -> pd.DataFrame:
    """The three texts nearest to each query: query, similarity, review (cut after 88 letters)."""
    scores = similarity(embedder.vectors(queries), embedder.vectors(texts))
    return pd.DataFrame(
        [
            {"query": query, "similarity": scores[i, j], "review": texts[j] if len(texts[j]) < 90 else f"{texts[j][:88]}…"}
            for i, query in enumerate(queries)
            for j in scores[i].argsort()[::-1][:3]
        ]
    )
