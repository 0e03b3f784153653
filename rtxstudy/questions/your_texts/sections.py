"""What notebook 10 shows of a comparison, section by section. Each function returns what its cell displays."""

from __future__ import annotations

import pandas as pd
from IPython.display import Markdown
from pandas.io.formats.style import Styler

from rtxlib.data.rows import spread
from rtxstudy.figures.save import Shown
from rtxstudy.questions.accuracy import accuracy_figures
from rtxstudy.questions.audit import audit_figures
from rtxstudy.questions.your_texts import further, model_sentences, text_facts, text_figures, text_sentences
from rtxstudy.questions.your_texts.candidates import LOOP, MAX_LENGTH, WHAT, WORDS
from rtxstudy.questions.your_texts.comparison import Comparison
from rtxstudy.questions.your_texts.hand_over import how_to_predict

MOST_BARS, MOST_CELLS = 8, 10  # labels that a figure of shares, and a confusion matrix, can hold
MOST_ROWS, MOST_PAIRS = 40, 15  # of the tables that stand in their place
LOOPS = (LOOP, "recurrent-3x2x256")
FOLLOWED, FOLLOWED_SECONDS = 1000, 5.0  # test texts of which each pass is read, and about how long that may take


def setting(comparison: Comparison) -> Markdown:
    texts = comparison.texts
    columns = texts.columns.text, texts.columns.label, texts.columns.pair
    return Markdown(
        text_sentences.setting(texts.name, columns, text_facts.labels(texts), texts.said, texts.cross_validated)
    )


def labels(comparison: Comparison) -> Shown | Styler:
    """The share of each label in each split; of many labels a table."""
    balance = text_facts.labels(comparison.texts)
    safe = balance.assign(label_name=balance["label_name"].map(text_figures.safe))
    if safe["label_name"].nunique() == len(comparison.texts.label_names) <= MOST_BARS:
        figure = audit_figures.label_balance(safe)
        return comparison.show(figure, "10_labels", balance, alt="Share of each label in each split.")
    wide = balance.pivot(index="label_name", columns="split", values="rows").fillna(0).astype(int)
    return comparison.tabulate(wide.sort_values("train", ascending=False).head(MOST_ROWS).reset_index())


def lengths(comparison: Comparison) -> Shown:
    """The lengths of the texts in tokens, in each split."""
    ordered = [row for split in ("train", "validation", "test") for row in comparison.texts.rows(split)]
    return comparison.show(
        audit_figures.length_histogram(comparison.lengths.iloc[ordered], limit=MAX_LENGTH),
        "10_lengths",
        comparison.lengths.groupby(["split", "tokens"]).size().rename("texts").reset_index(),
        alt="Distribution of the lengths of the texts in tokens, in each split.",
    )


def cut_texts(comparison: Comparison) -> Markdown:
    return Markdown(text_sentences.lengths(comparison.lengths, MAX_LENGTH))


def oddities(comparison: Comparison) -> Markdown:
    return Markdown(text_sentences.oddities(comparison.findings))


def verdict(comparison: Comparison) -> Markdown:
    return Markdown("\n\n".join(comparison.answer().verdict))


def models(comparison: Comparison) -> Styler:
    """What each model reaches and costs."""
    return comparison.tabulate(model_sentences.shown_table(comparison.chosen.table, comparison.answer()))


def columns(comparison: Comparison) -> Markdown:
    return Markdown(model_sentences.columns_told(comparison.answer(), comparison.texts.cross_validated))


def what_they_are(comparison: Comparison) -> Markdown:
    """What each model is, and which were left out."""
    raced, names = comparison.raced, comparison.chosen.table["model"].tolist()
    parts = model_sentences.what_they_are(WHAT, names), model_sentences.left_out(raced.left_out, raced.ended)
    return Markdown("\n\n".join(parts))


def times(comparison: Comparison) -> Shown:
    """Each model's score against its time for one text."""
    chosen = comparison.chosen
    costs = chosen.table[["model", "ms", "mb", "test_score", "test_low", "test_high"]]
    return comparison.show(
        text_figures.accuracy_against_time(costs, chosen.taken, comparison.answer().judged_by),
        "10_time",
        costs,
        alt="Each model's score on the test texts against its time for one text; area is its size.",
    )


def learning_curve(comparison: Comparison) -> Shown | Markdown:
    """The score of several models against the number of training texts; nothing where no model was trained on parts."""
    curve = comparison.raced.curve
    if curve.empty:
        return Markdown("")
    return comparison.show(
        text_figures.learning_curve(curve, comparison.answer().judged_by),
        "10_learning_curve",
        curve,
        alt="The score of several models against the number of training texts.",
    )


def more_labels(comparison: Comparison) -> Markdown:
    return Markdown(model_sentences.more_labels(comparison.raced.curve, comparison.texts.judged_by))


def _of_best(comparison: Comparison) -> str:
    """The model to take, or the one that counts as the best where none is to be taken."""
    return comparison.chosen.taken or comparison.chosen.best or comparison.chosen.table["model"].iloc[0]


def _confused(comparison: Comparison) -> pd.DataFrame:
    texts = comparison.texts
    return further.confusion(texts, comparison.entries[_of_best(comparison)].test, texts.rows("test"))


def confusion(comparison: Comparison) -> Shown | Styler:
    """Which labels are given for which; of many labels the most frequent mistakes, as a table."""
    confused, texts = _confused(comparison), comparison.texts
    safe = confused.assign(**{side: confused[side].map(text_figures.safe) for side in ("truth", "prediction")})
    if safe["truth"].nunique() == len(texts.label_names) <= MOST_CELLS:
        return comparison.show(
            accuracy_figures.confusion(safe, note="Share of each true label, and number of test texts."),
            "10_confusion",
            confused,
            alt="Confusion matrix of the chosen model on the test texts.",
        )
    mistakes = confused[(confused["truth"] != confused["prediction"]) & (confused["rows"] > 0)]
    return comparison.tabulate(mistakes.sort_values("rows", ascending=False).head(MOST_PAIRS))


def most_confused(comparison: Comparison) -> Markdown:
    return Markdown(model_sentences.confused(_confused(comparison)))


def _calibration(comparison: Comparison) -> pd.DataFrame:
    texts = comparison.texts
    return further.calibration(texts, comparison.entries[_of_best(comparison)].test, texts.rows("test"))


def calibration(comparison: Comparison) -> Shown:
    """Accuracy on the test texts against the model's largest probability."""
    bins = _calibration(comparison)
    alt = "Accuracy on the test texts against the model's largest probability."
    return comparison.show(text_figures.calibration(bins), "10_calibration", bins, alt=alt)


def how_sure(comparison: Comparison) -> Markdown:
    return Markdown(model_sentences.calibration(_calibration(comparison), _of_best(comparison)))


def mistakes(comparison: Comparison) -> Styler | Markdown:
    """The mistakes of which the model was surest; nothing where there are none, which the sentence on confused labels says."""
    texts = comparison.texts
    table = further.mistakes(texts, comparison.entries[_of_best(comparison)].test, texts.rows("test"))
    return Markdown("") if table.empty else comparison.tabulate(table)


def _doubtful(comparison: Comparison) -> pd.DataFrame:
    table = comparison.chosen.table
    learned = set(table.loc[table["learned"], "model"])
    entries = {name: entry for name, entry in comparison.raced.entries.items() if name in learned}
    return further.doubtful_labels(comparison.texts, entries)


def doubts(comparison: Comparison) -> Markdown:
    learned = int(comparison.chosen.table["learned"].sum())
    n = len(comparison.texts.judged) + len(comparison.texts.rows("test"))
    return Markdown(model_sentences.doubtful(_doubtful(comparison), learned, n))


def doubtful_labels(comparison: Comparison) -> Styler | Markdown:
    """Texts on which all models that learned agree against the label; nothing where there are none."""
    doubtful = _doubtful(comparison)
    return Markdown("") if doubtful.empty else comparison.tabulate(doubtful)


def telling_words(comparison: Comparison) -> Styler | Markdown:
    """The words and word pairs that speak most for each label."""
    if WORDS not in comparison.raced.entries:
        return Markdown("*Counting words could not be trained on these texts.*")
    return comparison.tabulate(further.telling_words(comparison.texts, comparison.open_model(WORDS)))


def passes(comparison: Comparison) -> Markdown:
    """What each pass of a loop changes, for each loop that was trained."""
    texts = comparison.texts
    test, ms = texts.rows("test"), comparison.chosen.table.set_index("model")["ms"]
    sentences = []
    for name in [name for name in LOOPS if name in comparison.raced.entries]:
        some = test[spread(len(test), max(1, min(FOLLOWED, int(1000 * FOLLOWED_SECONDS / ms[name]))))]
        table = further.passes(texts, comparison.open_model(name), some)
        sentences.append(model_sentences.passes(table, name, len(some)))
    return Markdown("\n\n".join(sentences) or "*No loop was trained in the time.*")


def use(comparison: Comparison) -> Markdown:
    """How to use the model that was handed over."""
    if comparison.chosen.taken is None:
        return Markdown("*No model was handed over, because none is to be taken.*")
    return Markdown(model_sentences.use(f"{comparison.shown}/model", how_to_predict(comparison.texts)))


def label_next(comparison: Comparison) -> Markdown:
    """Which texts to label next."""
    if comparison.unlabelled is not None and not comparison.to_label:
        return Markdown("*No texts were chosen, because no model is to be taken that could say of which it is unsure.*")
    nothing = "*Give a file of texts without labels with `--unlabelled FILE` to get a list of those most worth labelling.*"
    return Markdown(comparison.to_label or nothing)
