"""Sentences on the control of the domain task."""

from __future__ import annotations

import pandas as pd

from rtxstudy.numbers import points, signed


def format_control(table: pd.DataFrame) -> str:
    """What format alone tells, and what counting words keeps in uniform texts.

    ``table``: of :func:`rtxstudy.evaluation.format_control.format_control`.
    """
    from rtxstudy.evaluation import format_control as of  # here, because it loads scikit-learn

    row = table.set_index("input")
    constant, whole, few = (row.loc[name, "accuracy"] for name in (of.CONSTANT, of.WHOLE, of.UNIFORM))
    both, change = row.loc[of.BOTH], row.loc[of.UNIFORM]
    interval = f"{signed(change['difference_low'])} to {points(change['difference_high'])}"
    lines = [
        f"- **Length, punctuation and digits**, without any word, label {both['accuracy']:.1%} of the {both['n_test']:,} test "
        f"texts correctly (95 % interval {both['low']:.1%} to {both['high']:.1%}), length alone "
        f"{row.loc[of.LENGTH, 'accuracy']:.1%}. One label for all is right for {constant:.1%}.",
        f"- **Uniform texts** are {change['words']:.0f} lower-case words without punctuation or digits. Length and punctuation "
        f"label {row.loc[of.LEFT, 'accuracy']:.1%} of them correctly, and counting words {few:.1%}. The same texts as they are "
        f"give counting words {whole:.1%}; the difference is {points(change['difference'])} (95 % interval {interval}). On texts "
        f"of full length without punctuation and digits, counting words reaches {row.loc[of.LETTERS, 'accuracy']:.1%}.",
    ]
    if whole > constant:
        share = (few - constant) / (whole - constant)
        lines.append(f"- Uniform texts keep {share:.0%} of what counting words gains over one label for all.")
    if both["low"] > constant:
        lines.append(
            "- So a part of this task can be solved without reading a word. Its accuracies do not show reading alone."
        )
    return "\n".join(lines)


def format_tells(table: pd.DataFrame, data: str) -> str:
    """A warning beside another result on these data: how many labels their format alone gives away.

    ``table``: of :func:`rtxstudy.evaluation.format_control.format_control`; ``data``: their name.
    """
    from rtxstudy.evaluation import format_control as of  # here, because it loads scikit-learn

    row = table.set_index("input")
    told, constant = row.loc[of.BOTH, "accuracy"], row.loc[of.CONSTANT, "accuracy"]
    if row.loc[of.BOTH, "low"] <= constant:
        return f"On **{data}**, the format of a text does not tell its label (control in notebook 06)."
    return (
        f"Read the results on **{data}** with care. The format of a text alone, without any word, tells its label for {told:.0%} "
        f"of the texts (control in notebook 06; one label for all is right for {constant:.0%}). A neighbour of the same kind may "
        "be one of the same format, so more such neighbours do not show that an encoder understands more."
    )
