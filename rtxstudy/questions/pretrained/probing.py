"""What the states of an encoder know: linear probes for length, words and sentiment, after each layer or pass.

A probe is a linear classifier on the mean state of a text (Alain & Bengio 2017). Its training texts fit it and choose its
penalty; other texts judge it. The same probe on an encoder of the same shape with random weights is the control.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from transformers import PreTrainedTokenizerBase

from rtx.latency import EVALUATION_TOKENS
from rtxlib.data.batching import Tokens, batches, collate
from rtxlib.data.prepare import Prepared
from rtxlib.data.tokenization import encode
from rtxlib.errors import InputError
from rtxlib.models.encoder import Encoder
from rtxlib.runs.store import Run
from rtxlib.runs.trained import open_run
from rtxstudy.questions.pretrained.behaviour import reading
from rtxstudy.questions.pretrained.similar_texts import Embedder
from rtxstudy.statistics import error_of_share

WORDS = 4  # words whose presence is probed
PENALTIES = (1e1, 1e2, 1e3, 1e4)  # of the ridge, among which leave-one-out on the training texts chooses
_WORD = re.compile(r"[^\W\d_]{3,}")  # of at least three letters: shorter ones are mostly fragments
_SHORTEST, _LONGEST = 0.1, 0.9  # quantiles of the judging texts' lengths between which training texts are drawn
_LEAST = 5  # texts of either answer, below which a question is not asked


class Question(NamedTuple):
    """A question with two answers that are equally frequent among its texts."""

    task: str  # "length", "a word" or the task of the data
    asked: str  # "at least 19 tokens", or the word
    train: np.ndarray  # indices of training texts
    train_answers: np.ndarray
    judged: np.ndarray  # indices of the texts that judge it
    answers: np.ndarray


class ProbeTexts(NamedTuple):
    """The texts on which probes are trained and judged, and the questions about them."""

    train: list[str]
    judged: list[str]
    questions: list[Question]


def probe_texts(data: Prepared, rows: int, seed: int = 0) -> ProbeTexts:
    """At most ``rows`` training texts, the test texts that judge, and the questions about both.

    Training texts are drawn among those that are as long as most test texts. The questions, each with equally many texts of
    either answer:

    - whether a text has at least as many tokens as the median of the training texts;
    - for each of the :data:`WORDS` words that most of the training texts hold, at most half of them: whether a text holds the
      word. Each text with the word is paired with a text of (nearly) the same length without it, so that length does not tell;
    - the label, if the data have two.
    """
    rng = np.random.default_rng(seed)
    train, judged = data.rows("train"), data.rows("test")
    low, high = judged["tokens"].quantile([_SHORTEST, _LONGEST])
    fitting = train[train["tokens"].between(low, high)]
    train = fitting.iloc[np.sort(rng.permutation(len(fitting))[:rows])].reset_index(drop=True)
    if len(train) < 2 * _LEAST:
        raise InputError(f"Only {len(train)} training texts are as long as the test texts; probes need {2 * _LEAST}.")
    tables = (train, judged)
    median = int(train["tokens"].median())
    candidates = [("length", f"at least {median} tokens", [table["tokens"].to_numpy() >= median for table in tables])]
    word_sets = [[set(_WORD.findall(text.lower())) for text in table["text"]] for table in tables]
    frequent = Counter(word for words in word_sets[0] for word in words)
    words = [word for word, count in frequent.most_common() if count <= len(train) / 2][:WORDS]
    candidates += [("a word", word, [np.array([word in text for text in side]) for side in word_sets]) for word in words]
    if len(data.label_names) == 2:
        candidates.append((data.spec.task, data.label_names[1], [table["label"].to_numpy() == 1 for table in tables]))
    questions = []
    for task, what, answers in candidates:
        lengths = [table["tokens"].to_numpy() if task == "a word" else None for table in tables]
        chosen = [_balanced(answer, length, rng) for answer, length in zip(answers, lengths, strict=True)]
        if min(map(len, chosen)) >= 2 * _LEAST:
            (fit, judge), (of_fit, of_judge) = (
                chosen,
                (answer[index] for answer, index in zip(answers, chosen, strict=True)),
            )
            questions.append(Question(task, what, fit, of_fit, judge, of_judge))
    return ProbeTexts(train["text"].tolist(), judged["text"].tolist(), questions)


def _balanced(answers: np.ndarray, lengths: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Indices of equally many texts of either answer; with ``lengths``, in pairs of texts of nearly the same length."""
    yes, no = (rng.permutation(np.flatnonzero(answers == answer)) for answer in (True, False))
    few = min(len(yes), len(no))
    if lengths is None:
        return np.sort(np.concatenate([yes[:few], no[:few]]))
    free, pairs = list(no), []
    for one in yes[:few]:
        partner = min(range(len(free)), key=lambda i: abs(int(lengths[free[i]]) - int(lengths[one])))
        if abs(int(lengths[free[partner]]) - int(lengths[one])) <= max(1, lengths[one] // 10):
            pairs += [one, free.pop(partner)]
    return np.array(sorted(pairs), dtype=np.int64)


def mean_states(
    texts: Sequence[str], encoder: Encoder, tokenizer: PreTrainedTokenizerBase, max_length: int | None, by_pass: bool
) -> np.ndarray:
    """The mean state of each text's tokens, (depths, texts, hidden) in float32.

    Depth 0 is the embedding. The others are the states after each layer, or with ``by_pass`` after each pass of the loop.
    """
    ids, offsets = encode(texts, tokenizer, max_length or encoder.config.max_position_embeddings)
    tokens = Tokens(ids, offsets, np.zeros(len(texts), dtype=np.int64))
    means: np.ndarray | None = None
    with reading(encoder):
        for index in batches(tokens.lengths, EVALUATION_TOKENS, None, seed=None, epoch=0):
            batch = collate(tokens, index, tokenizer.pad_token_id)
            mask = batch["attention_mask"]
            mask = None if mask is None else mask.to(encoder.device)
            out = encoder(batch["input_ids"].to(encoder.device), mask, output_hidden_states=True)
            for depth, state in enumerate(states := out.pass_states if by_pass else out.hidden_states):
                if means is None:
                    means = np.empty((len(states), len(texts), state.shape[-1]), dtype=np.float32)
                weights = mask if mask is not None else batch["input_ids"].new_ones(state.shape[:2])
                weights = weights.to(state.device, state.dtype)[..., None]  # (B, T, 1)
                means[depth, index] = ((state * weights).sum(dim=1) / weights.sum(dim=1)).float().cpu().numpy()
    return means


def probe(train: np.ndarray, judged: np.ndarray, questions: Sequence[Question]) -> pd.DataFrame:
    """The accuracy of a probe at each depth: one row per depth and task; the words of a task are taken together.

    train, judged: (depths, texts, hidden), as :func:`mean_states` gives them. Columns: ``depth``, ``task``, ``asked``,
    ``accuracy``, ``low`` and ``high`` (95 % over the judging texts, which counts them as independent), ``n`` (texts that judge).
    """
    rows = []
    for depth, (fit_on, judged_on) in enumerate(zip(train, judged, strict=True)):
        right: dict[str, list[np.ndarray]] = {}
        for question in questions:
            model = make_pipeline(StandardScaler(), RidgeClassifierCV(PENALTIES))
            model.fit(fit_on[question.train], question.train_answers)
            right.setdefault(question.task, []).append(model.predict(judged_on[question.judged]) == question.answers)
        for task, parts in right.items():
            correct = np.concatenate(parts)
            share, half = float(correct.mean()), 1.96 * float(error_of_share(correct.mean(), len(correct)))
            names = ", ".join(question.asked for question in questions if question.task == task)
            rows.append((depth, task, names, share, max(share - half, 0.0), min(share + half, 1.0), len(correct)))
    return pd.DataFrame(rows, columns=["depth", "task", "asked", "accuracy", "low", "high", "n"])


def probes(
    texts: ProbeTexts, trained: Encoder, untrained: Encoder, tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> pd.DataFrame:
    """:func:`probe` on an encoder and on its control: one below the other, with ``weights`` "trained" or "random".

    The depths are passes if the encoder is a loop, and layers otherwise; ``by`` says which. A text is cut to
    ``max_length`` tokens.
    """
    by_pass, parts = trained.config.recurrent_depth > 1, []
    for weights, encoder in (("trained", trained), ("random", untrained)):
        states = [mean_states(side, encoder, tokenizer, max_length, by_pass) for side in (texts.train, texts.judged)]
        parts.append(probe(*states, texts.questions).assign(weights=weights))
    return pd.concat(parts, ignore_index=True).assign(by="pass" if by_pass else "layer")


def of_encoders(data: Prepared, rows: int, embedder: Embedder | None, run: Run) -> pd.DataFrame:
    """:func:`probes` on a pretrained encoder and on a trained run of the study, in the column ``model``.

    rows: most training texts of a probe. An encoder whose weights are not here is left out; without any the table is empty.
    """
    encoders = {} if embedder is None else {embedder.name: (embedder.encoder, embedder.tokenizer)}
    if run.path is not None:
        model, tokenizer = open_run(run)
        encoders[run.metrics["model"]] = (model.encoder, tokenizer)
    texts, parts = probe_texts(data, rows), [pd.DataFrame(columns=["model"])]
    for name, (encoder, tokenizer) in encoders.items():
        torch.manual_seed(0)
        untrained = Encoder(encoder.config).eval().to(encoder.device)
        table = probes(texts, encoder, untrained, tokenizer, data.spec.max_length)
        parts.append(table.assign(model=name))
    return pd.concat(parts[1:] or parts, ignore_index=True)
