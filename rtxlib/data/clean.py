"""Cleaning in steps; each step counts the rows it changes."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from rtxlib.data.rows import Text, blank
from rtxlib.errors import InputError

if TYPE_CHECKING:
    from rtxlib.data.rows import Rows
    from rtxlib.data.spec import DataSpec

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]]", re.IGNORECASE)

# Only the names of real elements count, and an attribute needs a "=". So "a < b", "<3" and "x <b and c>" stay.
_INLINE = (
    "a|abbr|acronym|b|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|sub|sup|"
    "tt|u|var"
)
_BLOCK = (
    "address|article|aside|audio|blockquote|body|br|button|caption|center|col|dd|div|dl|dt|embed|fieldset|figcaption|"
    "figure|footer|form|h[1-6]|head|header|hr|html|iframe|img|input|legend|li|link|main|meta|nav|object|ol|option|p|"
    "param|pre|script|section|select|source|style|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|video"
)
_ATTRIBUTES = r"(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?"
# The search ends at the next opening. Otherwise a text full of openings would take quadratic time.
_UNSEEN = re.compile(r"<!--(?:(?!<!--).)*?-->|<(script|style)\b[^<>]*>(?:(?!<\1\b).)*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.IGNORECASE)


def decode_entities(text: str) -> str:
    """``&amp;`` becomes ``&``. An entity needs its semicolon, because "&" without one is mostly a plain "&"."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def strip_tags(text: str) -> str:
    """Remove HTML tags, comments, scripts and styles. A block tag leaves a space; an inline tag leaves nothing."""
    return _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", _UNSEEN.sub(" ", text))) if "<" in text else text


def strip_urls(text: str) -> str:
    """Remove ``http://…``, ``https://…`` and ``www.…``, but not the punctuation after them."""
    return _URL.sub("", text)


def squeeze(text: str) -> str:
    """Every run of white space becomes one space; there is none at either end."""
    return " ".join(text.split())


# What a treebank's tokeniser makes of words and signs: "do n't" and "it 's" for "don't" and "it's", "-lrb-" for "(".
_CLITIC = re.compile(r"\s+(?=n't\b|'(?:s|re|ve|ll|d|m)\b)", re.IGNORECASE)
_BRACKET = re.compile(r"-[lr][rcs]b-", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)['\u2019](?=\w)")
_NOT_A_LETTER = re.compile(r"[\W\d_]+")
UNIFORM_WORDS = 10  # of a text whose format is made uniform


def letters_alone(text: str) -> str:
    """Lower-case words of letters, with one space between two: no punctuation, no digits, no tokeniser's marks.

    An apostrophe inside a word leaves nothing, so that "do n't" and "don't" become the same word, "dont".
    """
    joined = _APOSTROPHE.sub("", _CLITIC.sub("", _BRACKET.sub(" ", text)))
    return _NOT_A_LETTER.sub(" ", joined).strip().lower()


def uniform(text: str, words: int = UNIFORM_WORDS) -> str:
    """The middle ``words`` words of :func:`letters_alone`; a shorter text has fewer.

    The middle, because the beginning of a text may tell that it is a title, or that it is a whole text and no phrase.
    """
    of_text = letters_alone(text).split()
    start = max(0, (len(of_text) - words) // 2)
    return " ".join(of_text[start : start + words])


# Switch of DataSpec -> its steps, by their names in the table of filters. The order matters: an escaped tag becomes a
# tag when entities are decoded, and removals leave spaces behind.
STEPS = {
    "strip_html": (("HTML entities decoded", decode_entities), ("HTML tags removed", strip_tags)),
    "strip_urls": (("URLs removed", strip_urls),),
    "lowercase": (("lower-cased", str.lower),),
    "squeeze_whitespace": (("white space squeezed", squeeze),),
    "uniform": (("format made uniform", uniform),),
}


def clean(texts: Iterable[str], **switches: bool) -> tuple[list[str], dict[str, int]]:
    """Texts after the steps that are switched on, and how many texts each step changed.

    Args:
        texts: n texts
        switches: ``lowercase``, ``strip_html``, ``strip_urls``, ``squeeze_whitespace``, ``uniform``; a missing one is off

    Returns:
        n texts, of which some may be empty; and step -> number of texts changed, for the steps that are on, in order.
    """
    texts, changed = list(texts), {}
    for switch, steps in STEPS.items():
        for name, step in steps if switches.get(switch) else ():
            done = [step(text) for text in texts]
            changed[name] = sum(a != b for a, b in zip(texts, done, strict=True))
            texts = done
    return texts, changed


def clean_texts(texts: Iterable[Text], **switches: bool) -> list[Text]:
    """The cleaned texts without the counts, for new texts that a trained run labels. Switches as in ``clean``.

    A pair of texts stays a pair.
    """
    texts = list(texts)
    if not texts or isinstance(texts[0], str):
        return clean(texts, **switches)[0]
    return list(zip(*(clean(side, **switches)[0] for side in zip(*texts, strict=True)), strict=True))


def switches(spec: DataSpec) -> dict[str, bool]:
    """Which steps a spec switches on, as :func:`clean` takes them."""
    return {step: getattr(spec, step) for step in STEPS}


def clean_rows(rows: Rows, spec: DataSpec) -> None:
    """Clean the texts of the rows as the spec's switches say, and drop the texts that are then empty.

    Where the format is made uniform, texts of fewer than :data:`UNIFORM_WORDS` words are dropped, so that all are equally long.
    """
    for column in rows.text_columns:
        rows.table[column], changed = clean(rows.table[column], **switches(spec))
        for step, count in changed.items():
            rows.changed(step if column == "text" else f"{step} in second texts", count)
    empty = np.any([rows.table[column].map(blank) for column in rows.text_columns], axis=0)
    if empty.all():
        raise InputError(f"All {len(empty):,} texts are empty once they are cleaned; name another column of texts.")
    rows.keep("empty texts dropped", ~empty)
    if spec.uniform:
        counts = [rows.table[column].str.split().str.len() for column in rows.text_columns]
        rows.keep(f"texts of fewer than {UNIFORM_WORDS} words dropped", np.min(counts, axis=0) == UNIFORM_WORDS)
