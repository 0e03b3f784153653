"""Sentences that answer which model to take for somebody's own texts. Notebook 10 imports this module itself.

``table`` is always that of :func:`rtxstudy.questions.your_texts.choice.compare`, ``answer`` that of ``Comparison.answer``.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Mapping

import pandas as pd

from rtxlib.errors import visible
from rtxlib.runs.card import plain
from rtxstudy.numbers import higher, interval, margin_points, megabytes, milliseconds, number, percent, signed
from rtxstudy.questions.your_texts.answer import Answer

FEW_TESTS = 100  # test texts; with fewer, every score here is rough
MORE_LABELS = 0.01  # a gain of accuracy that is worth labelling for
CHEAPER = 3.0  # times faster or smaller, to be named beside the chosen model
MANY_TIMES = 5  # times the texts by which models are chosen; so many are not to be had
WORTH_WAITING = 0.005  # of the score; what more minutes gain is told first where it is this much
WELL_CALIBRATED = 0.05  # of the mean largest probability minus the accuracy; a model is called well calibrated within this
FAST = 5.0  # milliseconds for a text; with fewer, speed matters to few


def score(value: float, n: int) -> str:
    return f"{value:.3f}" if n >= 1000 else f"{value:.2f}"


def verdict(table: pd.DataFrame, answer: Answer, margin: float) -> list[str]:
    """The answer in a few paragraphs: what to take, how good, fast and small it is, what else comes near, what is not settled."""
    rows = table.set_index("model")
    by, n = answer.judged_by, answer.n_test
    if answer.take is None:
        return [*_outlook(answer), _nothing(rows, answer), *_not_tried(answer), *_partial(answer), *_shortened(answer)]
    row = rows.loc[answer.take]
    parts = [*_outlook(answer), _take(row, answer), *_not_tried(answer), *_partial(answer), *_shortened(answer)]
    if answer.why == "smallest":
        best = rows.loc[answer.best]
        figures = f"({score(best['test_score'], n)} on the test texts, {milliseconds(best['ms'])}, {megabytes(best['mb'])})"
        why = (
            f"that gives all {answer.n_judged:,} texts by which models are chosen the same labels as **{answer.best}** "
            f"{figures}, which counts as the best"
            if row["same"]
            else f"whose {by} is shown to be less than {margin_points(margin)} below that of the model that counts as the best, "
            f"**{answer.best}** {figures}"
        )
        parts.append(f"It is the smallest model {why}.")
    else:
        cascades = table[(table["model"] == "cascade") & table["allowed"]]
        higher_cascade = bool((cascades["score"] > row["score"]).any())
        but = " but the cascade, which is not shown to be better," if higher_cascade else ""
        above = table[table["learned"] & table["allowed"] & (table["model"] != "cascade") & (table["score"] > row["score"])]
        no_other = f"No other model within the limits{but} has a higher {by} on the texts by which models are chosen."
        parts.append(f"{no_other if above.empty else _by_chance(above.iloc[0], row, answer)} {_smaller(table, answer)}".strip())
    parts += [_floor(answer), *_cheaper(table, answer), *_cascade(rows, answer), *_unsettled(table, answer, margin)]
    return parts + _not_learned(table, answer)


def _take(row: pd.Series, answer: Answer) -> str:
    n, by = answer.n_test, answer.judged_by
    also = f", accuracy {score(row['test_accuracy'], n)}" if by == "macro-F1" else ""
    if not math.isnan(row.get("test_mae", math.nan)):
        also += f", mean absolute error {row['test_mae']:.2f}"
    few = " These are few, so the interval is wide." if n < FEW_TESTS else ""
    again = ""
    if (answer.train_rows or 0) > answer.train_texts:
        again = f" After it was chosen, it was trained once more, also on the {answer.n_judged:,} texts by which it was chosen."
    return (
        f"Take **{answer.take}**: {by} **{score(row['test_score'], n)}** ({score(row['test_low'], n)} to "
        f"{score(row['test_high'], n)}){also}, {milliseconds(row['ms'])} for a text, {megabytes(row['mb'])}. This model "
        f"{answer.what}. The score is on {n:,} test texts that no choice has seen, with its 95 % interval.{few}{again}"
    )


def _by_chance(above: pd.Series, row: pd.Series, answer: Answer) -> str:
    """Why a model is not taken whose score on few texts is higher."""
    return (
        f"On the {answer.n_judged:,} texts by which models are chosen, the {answer.judged_by} of **{above['model']}** is "
        f"{above['score']:.3f} and that of **{answer.take}** {row['score']:.3f}. The difference is less than a standard error, "
        f"so it may be chance. **{answer.take}** did best on the public files nearest in rows, labels and length, so it is taken."
    )


def _outlook(answer: Answer) -> list[str]:
    """What more minutes would bring, where that is worth the first place of the answer."""
    more = answer.outlook
    if more is None or (more["gain"] is not None and more["gain"] < WORTH_WAITING):
        return []
    name, rows = more["model"], f"{more['train_texts']:,} training texts"
    gain = "How much that would gain is not known."
    if more["gain"] is not None:
        gain = f"{more['source']} a gain of about {higher(more['gain']).removesuffix(' higher')}."
    return [f"**The minutes were short.** With `--minutes {more['minutes']}` **{name}** is trained whole on all {rows}. {gain}"]


def _names(names: list[str]) -> str:
    named = [f"**{name}**" for name in names]
    return named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"


def _not_tried(answer: Answer) -> list[str]:
    """The models whose turn did not come, or did not end, because one of them may be better."""
    if not answer.not_tried:
        return []
    was, better = ("was", "It") if len(answer.not_tried) == 1 else ("were", "One of them")
    named = _names(answer.not_tried)
    if answer.ended == "asked":
        return [
            f"The comparison was stopped, as asked, before {named} {was} trained. {better} may be better: the same command goes "
            "on from here."
        ]
    return [
        f"There was no time to train {named}. {better} may be better: the same command with more `--minutes` goes on from here."
    ]


def _partial(answer: Answer) -> list[str]:
    """The models that learned from a part of the texts, because the time was short."""
    if not answer.partial:
        return []
    named = ", ".join(f"**{name}** ({rows:,})" for name, rows in answer.partial.items())
    which, again = ("this model", "it learns") if len(answer.partial) == 1 else ("these models", "they learn")
    return [
        f"The time was short, so {which} learned from a part of the {answer.train_texts:,} training texts: {named}. With more "
        f"`--minutes` {again} from all, and the answer may change."
    ]


def _shortened(answer: Answer) -> list[str]:
    """The models that read all texts, but shorter or less often, because the time was short."""
    if not answer.shortened:
        return []
    named = "; ".join(f"**{name}** was trained with {way}" for name, way in answer.shortened.items())
    return [f"To fit all training texts into the time, {named}."]


def _nothing(rows: pd.DataFrame, answer: Answer) -> str:
    if answer.why == "limits":
        fitting = rows[rows["learned"]].sort_values("ms")
        near = ", ".join(
            f"**{name}** ({milliseconds(row.ms)}, {megabytes(row.mb)})" for name, row in fitting.head(3).iterrows()
        )
        which = "The fastest is" if len(fitting) == 1 else "The fastest are"
        return f"**No model that has learned anything is within the limits (--max-ms, --max-mb).** {which} {near}."
    return (
        "**Take none of these models.** None is shown to be better than giving every text the most frequent label "
        f"({answer.judged_by} {score(answer.majority_score, answer.n_test)}). Either the labels cannot be told from "
        "these texts, or there are too few of them, or there was too little time."
    )


def _floor(answer: Answer) -> str:
    n, words, by = answer.n_test, answer.counting_words_score, answer.judged_by
    counting = "" if words is None else f", and counting words has {score(words, n)}"
    always = score(answer.majority_score, n)
    return f"For comparison: giving every text the most frequent label has {by} {always}{counting}."


def _smaller(table: pd.DataFrame, answer: Answer) -> str:
    choice = table[table["model"] == answer.take].iloc[0]
    smaller = table[table["learned"] & table["allowed"] & (table["mb"] < choice["mb"])]
    return "" if smaller.empty else "No smaller one is shown to come within the margin."


def _cheaper(table: pd.DataFrame, answer: Answer) -> list[str]:
    """The best model that is much faster or smaller than the chosen one."""
    choice, n = table[table["model"] == answer.take].iloc[0], answer.n_test
    faster = (CHEAPER * table["ms"] <= choice["ms"]) & (table["mb"] <= choice["mb"])
    smaller = (CHEAPER * table["mb"] <= choice["mb"]) & (table["ms"] <= max(choice["ms"], FAST))
    cheap = table[table["learned"] & table["allowed"] & (table["model"] != "cascade") & (faster | smaller)]
    if cheap.empty:
        return []
    row = cheap.sort_values("score", ascending=False).iloc[0]
    lower = row["test_score"] - choice["test_score"]
    gap = f"{higher(lower)} on the test texts" if abs(lower) >= 5e-4 else "the same on the test texts"
    gains = [what for what, cost in (("speed", "ms"), ("size", "mb")) if CHEAPER * row[cost] <= choice[cost]]
    matters = f"if {' or '.join(gains)} matters {'more ' if lower < 0 else ''}to you"
    return [
        f"A cheaper model is **{row['model']}**: {answer.judged_by} {score(row['test_score'], n)}, {milliseconds(row['ms'])} "
        f"for a text, {megabytes(row['mb'])}. That is {gap}. Take it {matters}."
    ]


def _cascade(rows: pd.DataFrame, answer: Answer) -> list[str]:
    """What a cascade saves against its better member, where that is the model to take."""
    pair = answer.cascade
    if pair is None or answer.take != pair["second"] or not rows.loc["cascade", "allowed"]:
        return []
    if rows.loc["cascade", "ms"] > rows.loc[pair["second"], "ms"] / 1.2:
        return []
    row, n = rows.loc["cascade"], answer.n_test
    return [
        f"A **cascade** takes {pair['first']} for the {percent(pair['share'], 0)} of the texts of which it is sure "
        f"and {pair['second']} for the others: {score(row['test_score'], n)} in {milliseconds(row['ms'])} a text on average."
    ]


def _unsettled(table: pd.DataFrame, answer: Answer, margin: float) -> list[str]:
    """The smaller model for which the judged texts are too few, and how many would tell."""
    choice = table[table["model"] == answer.take].iloc[0]
    open_ = table[table["needed"].notna() & (table["mb"] < choice["mb"])].sort_values("needed")
    if open_.empty:
        return []
    row = open_.iloc[0]
    needed = answer.n_judged + row["needed"]
    digits = len(str(int(needed))) - 2  # two digits of the number are written
    enough = math.ceil(needed / 10**digits) * 10**digits
    amount = f"About {int(enough):,} such texts" if enough <= MANY_TIMES * answer.n_judged else "Only many times more"
    return [
        f"A smaller model is **{row['model']}**. {answer.n_judged:,} texts to choose by are too few to tell whether it loses "
        f"less than {margin_points(margin)} (measured {signed(row['behind'])} points, "
        f"{interval(row['behind_low'], row['behind_high'])}). {amount} would tell. Label more, or let `--split-column` name more "
        "validation rows."
    ]


def _not_learned(table: pd.DataFrame, answer: Answer) -> list[str]:
    idle = table[~table["learned"] & (table["model"] != "majority class")]["model"].tolist()
    if not idle:
        return []
    names = ", ".join(f"**{name}**" for name in idle)
    verb = "is" if len(idle) == 1 else "are"
    they_have = "it has" if len(idle) == 1 else "they have"
    return [
        f"{names} {verb} **not shown to be better than the most frequent label**: either {they_have} not learned to tell the "
        "labels apart, or the texts to choose by are too few to tell."
    ]


def shown_table(table: pd.DataFrame, answer: Answer) -> pd.DataFrame:
    """The table of the report: one row per model, the best on the judged texts first."""
    n, hard = answer.n_test, "\xa0"
    columns = {
        "model": [f"{'→ ' * (name == answer.take)}{name}".replace(" ", hard) for name in table["model"]],
        f"{answer.judged_by} on test": [
            f"{score(row.test_score, n)} ({score(row.test_low, n)} to {score(row.test_high, n)})".replace(" ", hard)
            for row in table.itertuples()
        ],
    }
    if answer.judged_by != "accuracy":
        columns["accuracy"] = [score(value, n) for value in table["test_accuracy"]]
    if "test_mae" in table:
        columns["mean error"] = [f"{value:.2f}" for value in table["test_mae"]]
    columns |= {
        "score that decides": [f"{value:.3f}" for value in table["score"]],
        "ms a text": [f"{value:.2g}" if value < 10 else f"{value:.0f}" for value in table["ms"]],
        "size": [megabytes(value) for value in table["mb"]],
        "trained on": [f"{int(value):,}" for value in table["rows"]],
        "learned": [
            "–" if row.model == "majority class" else "yes" if row.learned else "not shown"
            for row in table.itertuples()
        ],
    }
    return pd.DataFrame(columns)


def columns_told(answer: Answer, cross_validated: bool) -> str:
    """What the columns of the table mean."""
    by = "in cross-validation" if cross_validated else "on the validation texts"
    numbers = any(row.get("test_mae") is not None for row in answer.candidates)
    scale = " *Mean error* is the mean absolute error of the predicted number." if numbers else ""
    arrow = "" if answer.take is None else "The arrow marks the model to take. "
    return (
        f"{arrow}In brackets stand 95 % intervals. *Score that decides* is the "
        f"{answer.judged_by} {by}.{scale} *Learned* says whether a model is shown to be better than always giving the most "
        f"frequent label. {timed(answer)}".rstrip()
    )


def timed(answer: Answer) -> str:
    """Where and when a text was timed, and whether the machine was busy; nothing to say of a quiet one."""
    busy = (
        "" if answer.quiet else "Other programs were running on this machine. The times are too long, and less could be trained "
        "in the minutes than on a quiet machine."
    )
    if answer.executor != "ray":
        return busy
    cluster = "The networks were trained on a Ray cluster. A text was timed on this machine after all trainings had ended."
    return cluster if answer.quiet else f"The networks were trained on a Ray cluster. {busy}"


def what_they_are(what: Mapping[str, str], names: list[str]) -> str:
    """Each model in a line. what: name → what it is or does."""
    return "\n".join(f"- **{name}**: {what[name]}." for name in names)


def left_out(reasons: Mapping[str, str], ended: str) -> str:
    """Which candidates are not in the table, and why."""
    lines = [f"- **{name}**: {plain(why)}" for name, why in reasons.items()]
    heads = {
        "asked": "The comparison was stopped early, as asked. The same command goes on from here.",
        "time": "The minutes were over before everything was done. The same command with more `--minutes` goes on from here.",
    }
    head = heads.get(ended, "")
    if not lines:
        return head or "Every candidate was trained."
    return "\n".join([f"{head} Left out:".strip(), "", *lines])


def more_labels(curve: pd.DataFrame, judged_by: str) -> str:
    """Whether more labelled texts would help: what the last step of the ``curve`` of a race brought."""
    sentences = []
    for row in curve[curve["gain"].notna()].itertuples():
        rows = curve.loc[curve["model"] == row.model, "rows"].iloc[-2:]
        if row.high < MORE_LABELS:
            tells = "more labels would help little"
        elif row.low > 0:
            tells = "more labels would probably help"
        else:
            tells = "the texts to judge by are too few to tell whether more labels would help"
        sentences.append(
            f"- **{row.model}**: {signed(row.gain)} points of {judged_by} from {rows.iloc[0]:,} to {rows.iloc[1]:,} training "
            f"texts ({interval(row.low, row.high)}); {tells}."
        )
    return "\n".join(sentences) or "There were too few texts or too few minutes for a learning curve."


def calibration(table: pd.DataFrame, name: str) -> str:
    """Whether the probabilities mean what they say. table: columns confidence, accuracy, rows."""
    rows = int(table["rows"].sum())
    sure, right = (float((table["rows"] * table[column]).sum() / rows) for column in ("confidence", "accuracy"))
    gap, error = sure - right, math.sqrt(max(right * (1 - right), 1 / rows) / rows)
    if abs(gap) > 2 * error:
        way = "is too sure" if gap > 0 else "is less sure than it could be"
    elif abs(gap) + 2 * error < WELL_CALIBRATED:
        way = "is about as sure as it should be"
    else:
        way = f"is not shown to be too sure or not sure enough by these {rows:,} test texts"
    return f"**{name}** {way}: its largest probability is {percent(sure)} on average, and its accuracy {percent(right)}."


def doubtful(table: pd.DataFrame, learned: int, n: int) -> str:
    """What the table of doubtful labels is, or why it is empty. learned: models that have learned; n: held-out texts."""
    if not learned:
        return "No model is shown to have learned anything, so no label can be doubted."
    if table.empty:
        return f"No label looks doubtful: for none of {n:,} held-out texts all models agree, with confidence, on another label."
    return (
        f"All models that learned agree, with confidence, on another label for the texts below, which are some of {n:,} held-out "
        "texts. Read them: correcting a label often helps more than another model. Some may be test texts. If labels of the test "
        "are corrected only where the models disagree with them, the next test score will be too high."
    )


def confused(table: pd.DataFrame) -> str:
    """The two labels that are mistaken for each other most. table: columns truth, prediction, rows."""
    wrong = table[(table["truth"] != table["prediction"]) & (table["rows"] > 0)].sort_values("rows", ascending=False)
    if wrong.empty:
        return "No test text was mistaken."
    row = wrong.iloc[0]
    return (
        f"The most frequent mistake: {row['rows']:,} of the "
        f"{table.loc[table['truth'] == row['truth'], 'rows'].sum():,} test texts labelled {plain(str(row['truth']))} "
        f"{'is' if row['rows'] == 1 else 'are'} taken for {plain(str(row['prediction']))}."
    )


def passes(table: pd.DataFrame, name: str, n: int) -> str:
    """What each pass of a loop changes. table: columns passes, accuracy, changed. n: texts."""
    lines = [
        f"After pass {int(row.passes)}: accuracy {number(row.accuracy, '.3f')}"
        + ("" if math.isnan(row.changed) else f", {percent(row.changed)} of the labels changed")
        for row in table.itertuples()
    ]
    return f"**{name}**, on {n:,} test texts. {'. '.join(lines)}."


def use(folder: str, how: Mapping[str, str]) -> str:
    """How to use what was handed over, ready to paste. folder: of the model. how: :func:`hand_over.how_to_predict`."""
    place = shlex.quote(visible(folder))
    return (
        f"The model is in `{place}`, with its tokenizer, labels, cleaning and a card.\n\n"
        f"```\nrtx predict {place} {how['typed']}\n"
        f"rtx predict {place} --file more.csv {how['options']} --out labelled.csv\n```\n\n"
        "```python\nfrom pathlib import Path\nfrom rtx import archive, use\n"
        f"print(use.predict(archive.find(Path(), {json.dumps(folder)}), [{how['pasted']}]))\n```\n\n"
        "All columns of `more.csv` stay in `labelled.csv`."
    )
