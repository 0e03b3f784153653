"""``rtx embed`` and ``rtx similarity``: sentence embeddings of a pretrained encoder."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtx.cli import shards
from rtx.cli.common import cli, json_option, read_texts, show
from rtx.cli.output import check_out, force_option, json_line, write_whole
from rtx.process import exit_status, imports
from rtxlib.errors import InputError, counted, visible

if TYPE_CHECKING:
    import numpy as np
    from transformers import PreTrainedTokenizerBase

    from rtx.export.opened import Opened
    from rtxlib.models.config import ModelConfig
    from rtxlib.models.encoder import Encoder

MINILM = "sentence-transformers/all-MiniLM-L6-v2"

model_option = click.option("--model", default=MINILM, show_default=True, help="A pretrained model's Hub id or folder.")
weights_option = click.option("--weights", help="Another weights file of the model. A pickle is opened only if named here.")


def _open(model: str, weights: str | None) -> tuple[Encoder, PreTrainedTokenizerBase]:
    from rtxlib.data.tokenization import pretrained_tokenizer
    from rtxlib.models.pretrained import find, load

    encoder = load(model, weights)
    click.echo(f"{visible(model)}: {encoder.loaded}", err=True)
    return encoder, pretrained_tokenizer(find(model))


@cli.command()
@click.argument("file")
@click.option("--text-column", help="A table's column of texts; 'text' by default.")
@model_option
@weights_option
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The Parquet file to write; for a folder, a folder.")
@force_option
@shards.executor_option
@shards.workers_option
@json_option
def embed(
    file: str,
    text_column: str | None,
    model: str,
    weights: str | None,
    out: Path,
    force: bool,
    executor: str | None,
    workers: int | None,
    as_json: bool,
) -> None:
    """Write the sentence embedding of every text in FILE.

    FILE is a text file with one text per line, or a CSV, TSV, JSONL or Parquet table. Empty texts keep their rows. Or it is a
    folder of Parquet or JSONL files. They are then written into the folder --out with all of their columns and `embedding`, and
    the same command goes on where one was stopped.
    """
    if shards.is_folder(file, out):
        options = {"weights": weights, "text_column": text_column or "text"}
        return shards.work("embed", file, out, model, executor, workers, force, as_json, **options)
    shards.require_no_folder_options(executor, workers)
    if out.suffix.lower() != ".parquet":
        raise InputError(f"'{out}' must end in .parquet, which keeps vectors exact and small.")
    if not os.access(out.parent, os.W_OK):  # reported now, not after an hour's work
        raise InputError(f"There is no folder '{out.parent}' that can be written to.")
    check_out(out, force, file)
    _, texts = read_texts(file, text_column)
    if not texts:
        raise InputError(f"{file} holds no text to embed.")
    started = time.monotonic()
    try:
        embeddings, description = _embeddings(texts, model, weights)
        _write(out, texts, embeddings, description)
    except KeyboardInterrupt as stop:
        click.echo(f"Interrupted; {visible(str(out))} was not written.", err=True)
        sys.exit(exit_status(stop))
    _show_written(texts, embeddings, started, out, as_json)


def _embeddings(texts: list[str], model: str, weights: str | None) -> tuple[np.ndarray, dict[str, str]]:
    """The embeddings (texts, width) by a model or an exported folder, and the file's metadata that say how they were made."""
    from rtx.export import opened

    if exported := opened.find(model):
        if weights is not None:
            raise InputError(f"{model} is an exported folder with weights of its own; leave out --weights.")
        return exported.embed(texts), _of_exported(model, exported)
    from tqdm import tqdm

    with imports():
        from rtx.embedding import embed as vectors

    encoder, tokenizer = _open(model, weights)
    every = 0.2 if sys.stderr.isatty() else 30  # seconds; a terminal redraws the line, a log keeps each
    with tqdm(total=len(texts), unit=" texts", file=sys.stderr, mininterval=every) as bar:
        embeddings = vectors(texts, encoder, tokenizer, report=lambda done, _: bar.update(done - bar.n))
    return embeddings, _of_encoder(model, weights, encoder.config)


def _show_written(texts: list[str], embeddings: np.ndarray, started: float, out: Path, as_json: bool) -> None:
    """Say on standard error what was written, or print it as JSON."""
    if as_json:
        seconds = round(time.monotonic() - started, 1)
        return show({"out": str(out), "rows": len(texts), "dimensions": embeddings.shape[1], "seconds": seconds}, True)
    click.echo(
        f"{counted(len(texts), 'text')}, {embeddings.shape[1]} dimensions, "
        f"{time.monotonic() - started:.1f} s, written to {visible(str(out))}",
        err=True,
    )


def _of_encoder(model: str, weights: str | None, config: ModelConfig) -> dict[str, str]:
    """Which model made the embeddings, and how, for the metadata of the file. Metadata are strings: true or false."""
    from rtxlib.models.pretrained import version

    pooled = {"pooling": config.pooling, "normalized": json.dumps(config.normalize)}
    return {"model": model, "revision": version(model), "weights": weights or "", **pooled}


def _of_exported(model: str, exported: Opened) -> dict[str, str]:
    """The same of an exported folder."""
    record = exported.record
    pooled = {"pooling": record["pooling"], "normalized": json.dumps(record["normalized"])}
    return {"model": model, "revision": exported.version, "weights": record["precision"], **pooled}


def _write(out: Path, texts: list[str], embeddings: np.ndarray, description: dict[str, str]) -> None:
    """Write the columns ``text`` and ``embedding``; the metadata say which model made them."""
    import pyarrow as pa
    from pyarrow import parquet

    vectors = pa.FixedSizeListArray.from_arrays(pa.array(embeddings.ravel()), embeddings.shape[1])
    table = pa.table({"text": pa.array(texts, pa.string()), "embedding": vectors}, metadata=description)
    write_whole(out, lambda path: parquet.write_table(table, path))


@cli.command()
@click.argument("texts", nargs=-1)
@model_option
@weights_option
@json_option
def similarity(texts: tuple[str, ...], model: str, weights: str | None, as_json: bool) -> None:
    """Print how similar two or more TEXTS are.

    For two it is the cosine of their embeddings, −1 to 1; for more it is the matrix of all pairs.
    """
    if len(texts) < 2:
        count = "there is one" if texts else "there is none"
        raise InputError(f"Give at least two texts to compare, each in quotes; {count}.")
    with imports():
        from rtx.embedding import embed as vectors
        from rtx.embedding import similarity as cosines
    from rtxlib.data.files import whole

    texts = tuple(map(whole, texts))  # the shell's bytes that are not UTF-8 arrive as halves of surrogate pairs
    embeddings = vectors(texts, *_open(model, weights))
    matrix = cosines(embeddings, embeddings)
    if as_json:
        record = {"model": model, "texts": texts, "similarity": matrix.astype(float).round(6).tolist()}
        click.echo(json_line(record))
    elif len(texts) == 2:
        click.echo(f'{matrix[0, 1]:.4f}  "{visible(texts[0])}" and "{visible(texts[1])}"')
    else:
        click.echo("    " + "".join(f"{number:>9}" for number in range(1, len(texts) + 1)))
        for number, (text, row) in enumerate(zip(texts, matrix, strict=True), start=1):
            click.echo(f"{number:>4}{''.join(f'{cosine:9.4f}' for cosine in row)}  {visible(text)}")
