"""``rtx distill``: an encoder that learns the sentence embeddings of another, on texts without labels."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from rtx.cli.common import cli, data_specs, json_option, require_threads, settings_of, show_encoder
from rtx.model_names import whole


@cli.command()
@click.option("--model", required=True, help="The encoder that learns: a folder, as `rtx convert` writes it, or a Hub id.")
@click.option("--teacher", required=True, help="The encoder whose embeddings it learns: a Hub id or a folder.")
@click.option(
    "--data", "sources", required=True, multiple=True, help="A source (sst2, …) or a file as `rtx train` reads it, or several."
)
@click.option("--keep-out", "kept_out", multiple=True, help="Data whose validation and test texts are left out, too.")
@click.option("--text-column", help="The files' column of texts; 'text' by default.")
@click.option("--label-column", help="The files' column of labels, which only decides the split; 'label' by default.")
@click.option("--rows", type=click.IntRange(1), help="At most so many rows of each of the data.")
@click.option("--length", default=128, show_default=True, help="Tokens of a text that are read (8 to 512).")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="CPU threads.")
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field of the recipe `distill`.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@json_option
def distill(
    model: str,
    teacher: str,
    sources: tuple[str, ...],
    kept_out: tuple[str, ...],
    text_column: str | None,
    label_column: str | None,
    rows: int | None,
    length: int,
    seed: int,
    threads: int,
    changes: tuple[str, ...],
    out: Path,
    as_json: bool,
) -> None:
    """Teach an encoder the sentence embeddings of another, on the training texts of data without their labels.

    Validation and test texts are left out. A distillation that was stopped goes on with the same command. Then
    `rtx embed FILE --model OUT --out VECTORS.parquet` embeds texts with the folder.
    """
    from rtx.distillation import RECORD, Distillation, distil
    from rtxlib.training.recipe import recipe

    require_threads(threads)

    columns = {"text_column": text_column, "label_column": label_column}
    read, left_out = data_specs(columns, sources, kept_out, tokenizer=whole(model), rows=rows)
    what = Distillation(
        whole(model),
        whole(teacher),
        read,
        recipe("distill", **settings_of(changes)),
        left_out,
        seed,
        length=length,
        threads=threads,
    )
    show_encoder(out, RECORD, ("key", "distillation", "curve"), as_json, functools.partial(distil, what))
