"""``rtx export``: an encoder as an ONNX graph, in a folder that runs without torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rtx.cli.common import cli, data_spec, find_run, json_option, read_texts, show
from rtx.errors import lacking
from rtxlib.errors import InputError, disk_full, fact, visible

if TYPE_CHECKING:
    from rtx.export.held_out import HeldOut
    from rtxlib.data.spec import DataSpec
    from rtxlib.runs.store import Run

FORMATS = ("onnx", "transformers")
_GENERATED = 2000  # generated rows when no data of a model are named; a tenth of them checks its graph


@cli.command()
@click.argument("source", metavar="RUN|MODEL")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="The folder to write; it must not exist. Without it the float32 graph of a RUN is written beside the run. There "
    "`rtx predict RUN` finds it and answers texts of up to 50,000 characters together by it, without torch.",
)
@click.option("--int8", "eight", is_flag=True, help="Eight-bit weights; the card says what they cost on the test split.")
@click.option(
    "--format",
    "kind",
    default=FORMATS[0],
    show_default=True,
    help="onnx, or transformers: a run of BERT's layers, for transformers alone.",
)
@click.option("--texts", help="A file of texts for a run whose own data are out of reach: --int8 calibrates and checks on them.")
@click.option("--data", help="For a MODEL: a source (sst2, …) or a file whose texts calibrate and check; 'embedded' by default.")
@click.option("--text-column", help="The file's column of texts; 'text' by default.")
@click.option("--text-pair-column", help="The column of second texts of --texts, for a run on pairs; 'text_pair' by default.")
@click.option("--label-column", help="The file's column of labels, which only decides the split; 'label' by default.")
@json_option
def export(
    source: str,
    out: Path | None,
    eight: bool,
    kind: str,
    texts: str | None,
    data: str | None,
    text_column: str | None,
    text_pair_column: str | None,
    label_column: str | None,
    as_json: bool,
) -> None:
    """Write a trained RUN or the sentence embeddings of a MODEL (a Hub id or folder) as an ONNX graph.

    A model of `rtx compare` that is no network (counted words, word vectors, a cascade) becomes arrays of NumPy beside the graphs
    of its encoders.

    The folder has the graph, the tokenizer, labels, cleaning, a card, and a script that needs onnxruntime, tokenizers and numpy
    alone. `rtx predict` and `rtx embed` open it, too. Before the folder is kept, the graph is compared with
    the model on the test texts of the run's data, at most 2,000; where these are out of reach, on generated texts, and the card
    says so. A block that was trained for every depth stays a loop whose passes can be chosen.
    """
    if kind not in FORMATS:
        raise InputError(f"--format is {' or '.join(FORMATS)}, not '{kind}'.")
    is_model = _is_model(source)
    if out is None and (is_model or eight or kind == "transformers"):
        here = "" if os.path.exists(Path(source).expanduser()) else f" There is no folder {source} here."
        raise InputError(f"Name a folder with --out; without it the float32 graph of a RUN is written beside the run.{here}")
    if out is not None and os.path.lexists(out):  # reported before anything is fetched
        raise InputError(f"{out} exists already; name a new folder.")
    if not is_model and (data or label_column or (text_column and not texts)):
        raise InputError("A run is checked on its own data, or on --texts; leave --data and its columns out.")
    if texts and (is_model or kind == "transformers"):
        raise InputError("--texts are for the ONNX graph of a run; a model is checked on --data.")
    if text_pair_column and not texts:
        raise InputError("--text-pair-column names a column of --texts.")
    run = None if is_model else find_run(source)
    if out is None:
        from rtx.export import beside

        if not beside.origin(run):
            raise InputError(f"{source} has no checksums, by which a graph beside it is known; name a folder with --out.")
        out = beside.place(run)
        if os.path.lexists(out):
            raise InputError(f"{out} exists already; delete it, or name a new folder.")
    try:
        if kind == "transformers":
            record = _for_transformers(run, out, eight)
        else:
            fields = {"text_column": text_column, "label_column": label_column, "rows": None if data else _GENERATED}
            spec = data_spec(data or "embedded", **fields) if is_model else None
            record = _as_graph(run or source, out, eight, spec, (texts, text_column, text_pair_column))
    except OSError as error:
        reason = "the disk is full" if disk_full(error) else error.strerror or error
        raise InputError(f"{out} could not be written: {reason}.") from error
    show(record, as_json)


def _is_model(source: str) -> bool:
    """Whether the source is a pretrained encoder and not a run."""
    from rtxlib.checksums import MARK

    folder = Path(source).expanduser()
    if os.path.isdir(folder):
        return not (folder / MARK).exists()
    return "/" in source


def _as_graph(
    source: Run | str, out: Path, eight: bool, spec: DataSpec | None, file: tuple[str | None, str | None, str | None]
) -> dict[str, object]:
    """Export a run or a model, and return what is shown. spec: the data of a model. file: of ``--texts``, and its two columns."""
    from rtx.export.opened import NEEDS

    try:
        import onnx  # noqa: F401 - so that its lack is told in a sentence
        import onnxruntime  # noqa: F401
    except ModuleNotFoundError:
        raise InputError(NEEDS) from None
    from rtx import use
    from rtx.export import classifiers, folder, held_out

    def report(line: str) -> None:
        click.echo(visible(line), err=True)

    if spec is not None:
        record = folder.export(folder.of_encoder(source, report), held_out.of_data(spec), out, eight, report)
    else:
        held = _held_out(source, eight, *file)
        report(f"compared on {len(held.test):,} texts: {held.what}")
        if use.is_classifier(source):
            record = classifiers.export(source, held, out, eight, report)
        else:
            record = folder.export(folder.of_run(source), held, out, eight, report)
    fields = ("model", "precision", "size", "size_float32", "passes", "any_depth", "n_test", "difference")
    return {name: record[name] for name in fields} | record.get("loss", {}) | {"folder": str(out)}


def _held_out(run: Run, eight: bool, texts: str | None, column: str | None, pair_column: str | None) -> HeldOut:
    """The texts that check what is exported: those of a file, or the run's own, or if these are out of reach generated ones.

    Raises InputError where eight bits would be calibrated on generated texts, which say nothing about the run's own.
    """
    from rtx.export import held_out
    from rtxlib.data import clean
    from rtxlib.data.datasets import from_record

    if pair_column is not None and not run.pairs:
        raise InputError("This run was trained on single texts; leave --text-pair-column out.")
    pairs, switches = run.pairs, clean.switches(from_record(run.spec["data"]))
    if texts is not None:
        _, rows = read_texts(texts, column, (pair_column or "text_pair") if pairs else None)
        return held_out.of_file(rows, Path(texts).name, switches)
    try:
        return held_out.of_run(run)
    except InputError as error:
        if lacking(error):
            raise
        if eight:
            raise InputError(
                f"The data of this run are out of reach ({fact(error)}), and eight bits are calibrated on texts like these; name "
                "a file of such texts with --texts, or leave out --int8."
            ) from error
        return held_out.generated(pairs, switches, error)


def _for_transformers(run: Run | None, out: Path, eight: bool) -> dict[str, object]:
    from rtx.export import bert
    from rtxlib.runs import trained

    if eight or run is None:
        raise InputError(
            "--int8 makes an ONNX graph; leave out --format."
            if eight
            else "--format transformers is for runs; transformers opens what `rtx convert` writes if it is passed once."
        )
    model, tokenizer = trained.open_run(run)
    bert.save(model.to("cpu"), tokenizer, run.spec["label_names"], out)
    click.echo(bert.snippet(model.config, repr(str(out))), err=True)
    return {"model": run.metrics["model"], "folder": str(out)}
