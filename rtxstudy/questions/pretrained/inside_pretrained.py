"""How are BERT, MiniLM and ModernBERT built, what do their layers see and know, and which texts do they find alike?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
from pandas.io.formats.style import Styler

from rtxlib.models import Encoder, preset
from rtxstudy.absent import Absent
from rtxstudy.checkpoints import out_of_reach
from rtxstudy.figures.save import Drawing
from rtxstudy.questions.anatomy import anatomy, blueprint_figures, blueprints
from rtxstudy.questions.pretrained import (
    behaviour,
    embedding_figures,
    guide,
    head_figures,
    heads,
    pretraining_claims,
    probing,
    probing_figures,
    similar_texts,
)
from rtxstudy.questions.pretrained.similar_texts import Embedder

if TYPE_CHECKING:
    from rtxstudy import Study

DRAWN = {"BERT": "bert-base", "MiniLM": "minilm-l6", "ModernBERT": "modernbert-base"}
SENTENCES = [
    "This is a sample sentence.",
    "Another example text.",
    "The soup was cold and the waiter rude.",
    "Service was slow and the food arrived lukewarm.",
    "A wonderful little place, we will come back.",
    "The film drags on for two dull hours.",
    "I nearly fell asleep in the cinema.",
    "A moving story, beautifully acted.",
    "The charger broke after a week.",
    "Battery life is far shorter than promised.",
]
QUERIES = ["the food was not even warm", "I could not stay awake", "it does not charge any more"]


def embedder(study: Study) -> Embedder | None:
    """The pretrained encoder of the profile; None where its weights are out of reach, and in a redraw, which needs none."""
    return None if study.redraws else Embedder.load(study.profile.pretrained)


def loaded(study: Study) -> pd.DataFrame:
    """What was loaded: encoder, tensors."""
    encoder = study.ask(embedder)
    rows = [] if encoder is None else [{"encoder": encoder.name, "tensors": encoder.encoder.loaded}]
    return pd.DataFrame(rows, columns=["encoder", "tensors"])


def _needs_weights(study: Study, table: pd.DataFrame) -> pd.DataFrame | Absent:
    """The table, or why it is empty."""
    if len(table):
        return table
    missing = "" if study.redraws else out_of_reach(study.profile.pretrained)
    return Absent(f"It needs pretrained weights, which are not here. {missing}".strip())


def draw_blueprints(study: Study) -> Drawing:
    table = blueprints.blueprints(DRAWN)
    title = study.title(pretraining_claims.blueprints_title, [*DRAWN], otherwise="How they are built")
    return Drawing(
        blueprint_figures.blueprints(table, title),
        "07_blueprints",
        table,
        alt=f"Drawings of {', '.join(DRAWN)} side by side: embedding, what each layer has with its "
        "norms and residuals, a strip of all layers, and how a text becomes one vector.",
    )


@dataclass(frozen=True)
class TwoEncoders:
    """MiniLM, with its weights where they are here, and ModernBERT with random ones."""

    minilm: Encoder
    modernbert: Encoder

    @property
    def parts(self) -> pd.DataFrame:
        """A row for each feature, a column for each encoder."""
        columns = {"MiniLM": anatomy.anatomy(self.minilm, "bert"), "ModernBERT": anatomy.anatomy(self.modernbert, "modernbert")}
        return pd.DataFrame(columns).rename_axis("feature").reset_index()

    @property
    def claims(self) -> pd.DataFrame:
        """The descriptions of both, and whether they hold (:func:`anatomy.claims`)."""
        return anatomy.claims(self.minilm, self.modernbert)


def two_encoders(study: Study) -> TwoEncoders:
    encoder = study.ask(embedder)
    minilm = encoder.encoder if encoder else Encoder(preset("minilm-l6")).eval()
    return TwoEncoders(minilm, Encoder(preset("modernbert-base")).eval())


def claims(two: TwoEncoders) -> Styler:
    """A readable table of :attr:`TwoEncoders.claims`."""
    return two.claims.style.format({"holds": lambda holds: "yes" if holds else "no"})


def draw_reach(study: Study, two: TwoEncoders) -> Drawing:
    reach = study.table(
        "pretraining", "reach", lambda: behaviour.reach(two.modernbert, 200).assign(model="ModernBERT")
    )
    title = study.title(pretraining_claims.reach_title, reach, otherwise="Which tokens a layer sees")
    return Drawing(
        embedding_figures.attention_reach(reach, title),
        "07_attention_reach",
        reach,
        alt="For a global and a local layer of ModernBERT, which of 200 tokens attends to which: all "
        "to all, and a band around the diagonal.",
    )


def draw_norms(study: Study) -> Drawing:
    norms = study.table("pretraining", "norms", lambda: similar_texts.norms_by_placement(study.data(study.profile.data)))
    title = study.title(pretraining_claims.norms_title, norms, otherwise="Length of the state by layer")
    return Drawing(
        embedding_figures.norms_by_layer(norms, title),
        "07_norms_by_layer",
        norms,
        alt="Mean size of a token's state after each layer of MiniLM's shape with random weights, "
        "norms after and before the sub-layers.",
    )


def alike(study: Study) -> pd.DataFrame | Absent:
    """The cosine of every two of ten sentences."""
    return _needs_weights(
        study,
        study.table(
            "pretraining", "similarity", lambda: similar_texts.similarities(SENTENCES, study.ask(embedder))
        ),
    )


def draw_alike(study: Study, cosines: pd.DataFrame) -> Drawing:
    title = study.title(pretraining_claims.similarity_title, cosines, otherwise="Cosine of ten sentences")
    return Drawing(
        embedding_figures.similarity_heatmap(cosines.set_index("sentence"), title=title),
        "07_similarity",
        cosines,
        alt="Cosine similarity of ten sentences about food, films and electronics, embedded by MiniLM.",
    )


def draw_neighbours(study: Study) -> Drawing:
    sizes = study.profile
    near = study.table(
        "pretraining",
        "neighbours",
        lambda: similar_texts.neighbours(
            {
                f"the same domain · {study.source(sizes.domains)['data']}": study.data(sizes.domains),
                f"the same sentiment · {study.source()['data']}": study.data(sizes.data),
            },
            sizes.searched_rows,
            study.ask(embedder),
        ),
    )
    title = study.title(pretraining_claims.retrieval_title, near, otherwise="Neighbours of the same kind")
    without = isinstance(study.ask(alike), Absent)
    return Drawing(
        embedding_figures.retrieval(near, title),
        "07_retrieval",
        near,
        alt="Share of a text's nearest neighbours that have its label, for MiniLM embeddings, TF-IDF vectors and chance.",
        caption="Intervals are over the texts that search."
        + (" MiniLM is not shown: its weights cannot be had here." if without else ""),
    )


def nearest(study: Study) -> pd.DataFrame | Absent:
    """The sentence that is nearest to each of three queries."""
    matches = study.table(
        "pretraining",
        "nearest_sentences",
        lambda: similar_texts.best_matches(QUERIES, SENTENCES, study.ask(embedder)),
        optional=True,
    )
    return _needs_weights(study, matches)


def measured_guide(study: Study, fetch: bool) -> pd.DataFrame | Absent:
    """Size, speed and quality of four pretrained encoders (:func:`guide.guide`); ``fetch`` downloads what is missing."""
    sizes = study.profile
    table = study.table(
        "pretraining",
        "guide",
        lambda: guide.guide(
            study.data(sizes.data), study.data(sizes.domains), sizes.searched_rows, study.ask(embedder), fetch
        ),
        optional=True,
    )
    return Absent("The published tables do not have it yet.") if table.empty else table


def head_patterns(study: Study) -> pd.DataFrame | Absent:
    """What each head of MiniLM looks at (:func:`similar_texts.head_patterns`)."""
    sizes = study.profile
    patterns = study.table(
        "pretraining",
        "head_patterns",
        lambda: similar_texts.head_patterns(study.data(sizes.data), sizes.searched_rows, study.ask(embedder)),
        key=f"{study.source()['fingerprint']} {sizes.pretrained} {sizes.searched_rows} rows",
        optional=True,
    )
    return _needs_weights(study, patterns)


def strongest_heads(study: Study, patterns: pd.DataFrame) -> pd.DataFrame:
    """The head that shows each pattern most (:func:`heads.strongest`)."""
    return heads.strongest(patterns)


def draw_heads(study: Study, patterns: pd.DataFrame, strongest: pd.DataFrame) -> Drawing:
    means = patterns.groupby(["pattern", "layer", "head"], sort=False)[["share", "uniform"]].mean().reset_index()
    title = study.title(pretraining_claims.heads_title, strongest, otherwise="What single heads look at")
    return Drawing(
        head_figures.attention_patterns(means, title=title),
        "07_heads",
        patterns.drop(columns="key"),
        alt="Six maps of layers and heads of MiniLM: the share of attention that goes to the previous "
        "token, the next token, the token itself, [CLS], [SEP] and the same token elsewhere.",
    )


def probes(study: Study) -> pd.DataFrame | Absent:
    """What linear probes read from each layer of MiniLM and from each pass of the recurrent encoder."""
    sizes = study.profile
    runs = study.run("baseline", "recurrent")
    loop = runs.where(model=sizes.recurrent, sharing="shared", seed=0)[0]
    without = " without the pretrained encoder" if isinstance(study.ask(alike), Absent) else ""
    accuracies = study.table(
        "pretraining",
        "probes",
        lambda: probing.of_encoders(study.data(sizes.data), sizes.searched_rows, study.ask(embedder), loop),
        key=f"{study.source()['fingerprint']} {loop.key} {sizes.searched_rows} rows{without}",
        optional=True,
    )
    return _needs_weights(study, accuracies)


def draw_probes(study: Study, accuracies: pd.DataFrame) -> Drawing:
    title = study.title(pretraining_claims.probes_title, accuracies, otherwise="What the layers know")
    return Drawing(
        probing_figures.probes(accuracies, title=title),
        "07_probes",
        accuracies.drop(columns="key"),
        alt="Accuracy of linear probes for length, words and sentiment by layer of MiniLM and by pass "
        "of the recurrent encoder, each beside random weights.",
    )
