"""``rtx convert``: a pretrained encoder made into a loop, or cut to the vocabulary of a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtx.cli.common import cli, json_option, read_texts, show
from rtxlib.errors import InputError, disk_full

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from rtxlib.models.encoder import Encoder


@cli.command()
@click.argument("source")
@click.option("--layers", required=True, type=click.IntRange(1), help="Layers of the block.")
@click.option(
    "--passes", required=True, type=click.IntRange(1), help="Passes through the block; 1 only drops the other layers."
)
@click.option("--start", default="lower", show_default=True, help="Which layers the block starts from: lower, spread or average.")
@click.option("--rank", type=click.IntRange(1), help="Add to each matrix, in each pass, a matrix of this rank of its own.")
@click.option("--pass-norms", is_flag=True, help="Give each pass norms of its own.")
@click.option("--edges", is_flag=True, help="Keep the first and the last layer outside the loop.")
@click.option(
    "--vocabulary",
    metavar="FILE",
    help="Keep only the word pieces that the texts of this file need, and every letter. The file is read as by `rtx embed`.",
)
@click.option("--text-column", help="A table's column of texts; 'text' by default.")
@click.option("--text-pair-column", help="A table's column of second texts, where each row is a pair of texts.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write; it must not exist.")
@json_option
def convert(
    source: str,
    layers: int,
    passes: int,
    start: str,
    rank: int | None,
    pass_norms: bool,
    edges: bool,
    vocabulary: str | None,
    text_column: str | None,
    text_pair_column: str | None,
    out: Path,
    as_json: bool,
) -> None:
    """Make a pretrained encoder (SOURCE, a Hub id or folder) into a loop of fewer layers.

    The loop is not yet as good as its source: fine-tune it with `rtx train --model OUT --data FILE`, or teach it the source's
    embeddings with `rtx distill`. With one pass the folder opens in transformers alone; a loop opens there after
    `import rtxlib.models`.
    """
    from rtx.vocabulary import with_vocabulary_of
    from rtxlib.data.rows import sides
    from rtxlib.data.tokenization import pretrained_tokenizer
    from rtxlib.models.convert import to_loop
    from rtxlib.models.pretrained import find, load

    if os.path.lexists(out):  # reported before anything is fetched
        raise InputError(f"{out} exists already; name a new folder.")
    if vocabulary is None and (text_column or text_pair_column):
        raise InputError("--text-column and --text-pair-column belong to --vocabulary; name the file of texts, too.")
    texts = [] if vocabulary is None else read_texts(vocabulary, text_column, text_pair_column)[1]
    encoder, tokenizer = load(source), pretrained_tokenizer(find(source))
    click.echo(f"{source}: {encoder.loaded}", err=True)
    loop = to_loop(encoder, layers, passes, start, rank, pass_norms, edges)
    if vocabulary is not None:
        loop, tokenizer = with_vocabulary_of(loop, tokenizer, (side for text in texts for side in sides(text)))
    _save(loop, out, tokenizer)
    record = {
        "parameters": sum(p.numel() for p in loop.parameters()),
        "parameters_before": sum(p.numel() for p in encoder.parameters()),
        "token_table": loop.embeddings.token.weight.numel(),
        "vocabulary": loop.config.vocab_size,
        "layers_passed": loop.config.effective_depth,
        "folder": str(out),
    }
    show(record, as_json)


def _save(encoder: Encoder, out: Path, tokenizer: PreTrainedTokenizerBase) -> None:
    from safetensors import SafetensorError

    from rtxlib.models.pretrained import save

    try:
        save(encoder, out, tokenizer)
    except (OSError, SafetensorError) as error:
        reason = "the disk is full" if disk_full(error) else getattr(error, "strerror", None) or error
        raise InputError(f"{out} could not be written: {reason}.") from error
