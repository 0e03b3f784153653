"""Do the embeddings of a loop still find what belongs together, before and after a distillation?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from rtxstudy import studies
from rtxstudy.absent import Absent
from rtxstudy.figures.save import Drawing
from rtxstudy.numbers import percent
from rtxstudy.questions.domains.format_and_words import format_and_words
from rtxstudy.questions.pretrained import converted_embeddings, embedding_figures, neighbour_claims
from rtxstudy.questions.pretrained.checkpoint import checkpoint
from rtxstudy.questions.pretrained.similar_texts import Embedder

if TYPE_CHECKING:
    from rtxstudy import Study


@dataclass(frozen=True)
class ConvertedNeighbours:
    """How often the nearest neighbours of a text have its label."""

    original: str  # the short name of the pretrained encoder
    means: pd.DataFrame  # a row for each encoder and panel, as converted_embeddings.means
    differences: pd.DataFrame  # from the original, as converted_embeddings.differences
    control: pd.DataFrame | Absent  # how far the format tells the domain, as format_control


def converted_neighbours(study: Study) -> ConvertedNeighbours | Absent:
    """The loop and its layers passed once, as made and distilled. What is missing is distilled."""
    sizes = study.profile
    if isinstance(absent := study.ask(checkpoint), Absent):
        return absent
    distillations = studies.distillations(sizes)
    if not distillations:
        return Absent("This profile distils no embeddings.")
    keys = [] if study.redraws else [distillation.key for distillation in distillations]
    table = study.table(
        "where_depth_pays",
        "converted_neighbours",
        lambda: converted_embeddings.precisions(
            {
                f"the same domain · {study.source(sizes.domains)['data']}": study.data(sizes.domains),
                f"the same sentiment · {study.source()['data']}": study.data(sizes.data),
            },
            sizes.searched_rows,
            converted_embeddings.encoders(Embedder.load(sizes.pretrained), distillations),
        ),
        key=" ".join([*keys, f"{sizes.searched_rows} rows"]),
    )
    original = sizes.pretrained.rsplit("/", 1)[-1]
    means, differences = converted_embeddings.means(table), converted_embeddings.differences(table, original)
    return ConvertedNeighbours(original, means, differences, study.ask(format_and_words))


def draw(study: Study, converted: ConvertedNeighbours) -> Drawing:
    title = study.title(
        neighbour_claims.title,
        converted.differences,
        converted.original,
        otherwise="Neighbours with the same label",
    )
    return Drawing(
        embedding_figures.retrieval(converted.means, title=title),
        "12_retrieval",
        converted.means,
        alt="Share of a text's ten nearest neighbours that have its label, for the pretrained encoder, "
        "the loop and its layers once, before and after distillation, TF-IDF and chance.",
        caption="Intervals are over the texts that search; each student was distilled once.",
    )


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """Of :func:`~rtxstudy.questions.pretrained.converted_embeddings.means`: one row per model, one column per panel."""
    wide = table.pivot(index="model", columns="panel", values="mean")
    percents = wide.loc[table["model"].unique(), table["panel"].unique()].map(percent)
    return percents.rename_axis(columns=None).reset_index()
