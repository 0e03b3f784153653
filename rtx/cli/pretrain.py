"""``rtx pretrain``: an encoder that predicts hidden tokens of texts without labels."""

from __future__ import annotations

import functools
from pathlib import Path

import click

from rtx.cli.common import cli, data_specs, json_option, require_threads, settings_of, show_encoder
from rtx.cli.runs import set_option
from rtx.model_names import whole


@cli.command()
@click.option(
    "--model", required=True, help="standard-<layers>x<width>, recurrent-<layers>x<passes>x<width>, or another preset."
)
@click.option(
    "--data", "sources", required=True, multiple=True, help="A source (sst2, …) or a file as `rtx train` reads it, or several."
)
@click.option("--keep-out", "kept_out", multiple=True, help="Data whose validation and test texts are left out, too.")
@click.option("--tokenizer", help="bert, or a model's folder or Hub id; for data of the Hub, bert by default.")
@click.option("--text-column", help="The files' column of texts; 'text' by default.")
@click.option("--label-column", help="The files' column of labels, which only decides the split; 'label' by default.")
@click.option("--length", default=128, show_default=True, help="Tokens of a row (16 to 512).")
@click.option("--share", default=0.15, show_default=True, help="Share of the tokens that are hidden.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0, 2**63 - 1))
@click.option("--threads", default=1, show_default=True, type=click.IntRange(1), help="CPU threads.")
@set_option
@click.option("--recipe-set", "changes", multiple=True, metavar="FIELD=VALUE", help="Set a field of the recipe `pretrain`.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The folder to write.")
@json_option
def pretrain(
    model: str,
    sources: tuple[str, ...],
    kept_out: tuple[str, ...],
    tokenizer: str | None,
    text_column: str | None,
    label_column: str | None,
    length: int,
    share: float,
    seed: int,
    threads: int,
    overrides: tuple[str, ...],
    changes: tuple[str, ...],
    out: Path,
    as_json: bool,
) -> None:
    """Pretrain a model from scratch on the training texts of data, without their labels.

    Validation and test texts are left out. A pretraining that was stopped goes on with the same command. Then fine-tune the
    folder: `rtx train --model OUT --data FILE`.
    """
    from rtxlib.models.presets import preset
    from rtxlib.runs.pretraining import RECORD, Pretraining
    from rtxlib.runs.pretraining import pretrain as pretrain_into
    from rtxlib.runs.spec import check_overrides
    from rtxlib.training.recipe import recipe

    require_threads(threads)
    settings = settings_of(overrides)
    check_overrides(settings)
    preset(model, **settings)  # a mistake is reported before any data are fetched

    columns = {"text_column": text_column, "label_column": label_column}
    if tokenizer not in (None, "auto", "bert", "wordpiece"):
        tokenizer = whole(tokenizer)
    read, left_out = data_specs(columns, sources, kept_out, tokenizer=tokenizer)
    what = Pretraining(
        model,
        read,
        recipe("pretrain", **settings_of(changes)),
        left_out,
        seed,
        settings,
        length,
        share,
        threads,
    )
    show_encoder(out, RECORD, ("pretraining", "curve"), as_json, functools.partial(pretrain_into, what))
