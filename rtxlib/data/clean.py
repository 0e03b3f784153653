"""Cleaning, one step at a time, each counting the rows it changed."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"]*[^\s<>\".,;:!?'()\[\]]", re.IGNORECASE)

# Only the names of real elements count, and an attribute needs its "=", so that "a < b", "<3" and "x <b and c>" stay.
_INLINE = (
    "a|abbr|acronym|b|bdo|big|cite|code|del|dfn|em|font|i|ins|kbd|label|mark|q|s|samp|small|span|strike|strong|sub|sup|"
    "tt|u|var"
)
_BLOCK = (
    "address|article|aside|audio|blockquote|body|br|button|caption|center|col|dd|div|dl|dt|embed|fieldset|figcaption|"
    "figure|footer|form|h[1-6]|head|header|hr|html|iframe|img|input|legend|li|link|main|meta|nav|object|ol|option|p|param|pre|"
    "script|section|select|source|style|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul|video"
)
_ATTRIBUTES = r"(?:\s+[\w:-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>]+))*\s*/?"
# a search ends at the next opening, so that a text full of openings takes no longer than any other
_UNSEEN = re.compile(
    r"<!--(?:(?!<!--).)*?-->|<(script|style)\b[^<>]*>(?:(?!<\1\b).)*?</\1\s*>", re.IGNORECASE | re.DOTALL
)
_INLINE_TAG = re.compile(rf"</?(?:{_INLINE}){_ATTRIBUTES}>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{_BLOCK}){_ATTRIBUTES}>", re.IGNORECASE)


def decode_entities(text: str) -> str:
    """``&amp;`` becomes ``&``; what lacks its semicolon is no entity here, since it is more often a plain "&"."""
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


def strip_tags(text: str) -> str:
    """HTML tags, comments, scripts and styles out; a space where the tag breaks the line, nothing inside a word."""
    return _BLOCK_TAG.sub(" ", _INLINE_TAG.sub("", _UNSEEN.sub(" ", text))) if "<" in text else text


def strip_urls(text: str) -> str:
    """``http://…``, ``https://…`` and ``www.…`` out, the punctuation after them kept."""
    return _URL.sub("", text)


def squeeze(text: str) -> str:
    """Every run of white space becomes one space, none at either end."""
    return " ".join(text.split())


# switch of DataSpec -> what it does, as named in the table of filters; in the order of work: an escaped tag is a tag
# once its entities are decoded, and taking things out leaves spaces behind
STEPS = {
    "strip_html": (("HTML entities decoded", decode_entities), ("HTML tags removed", strip_tags)),
    "strip_urls": (("URLs removed", strip_urls),),
    "lowercase": (("lower-cased", str.lower),),
    "squeeze_whitespace": (("white space squeezed", squeeze),),
}


def clean(texts: Iterable[str], **switches: bool) -> tuple[list[str], dict[str, int]]:
    """Texts after the steps that are switched on, and how many rows each step changed.

    Args:
        texts: n texts
        switches: ``lowercase``, ``strip_html``, ``strip_urls``, ``squeeze_whitespace``; a missing one is off

    Returns:
        n texts, some perhaps empty now; and for each step of a switch that is on, in order, the number of rows changed.
    """
    texts, changed = list(texts), {}
    for switch, steps in STEPS.items():
        for name, step in steps if switches.get(switch) else ():
            done = [step(text) for text in texts]
            changed[name] = sum(a != b for a, b in zip(texts, done, strict=True))
            texts = done
    return texts, changed


def clean_texts(texts: Iterable[str], **switches: bool) -> list[str]:
    """The texts alone: what a trained run does to new text. Switches as in ``clean``."""
    return clean(texts, **switches)[0]
