"""Cleaning: each step does what its name says, leaves the rest alone, and is counted."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from rtxlib.data.clean import clean, clean_texts, decode_entities, squeeze, strip_tags, strip_urls

ON = {"lowercase": True, "strip_html": True, "strip_urls": True, "squeeze_whitespace": True}


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("great<br /><br />food", "great  food"),
        ("un<b>believ</b>able", "unbelievable"),
        ('<a href="http://x.com" rel=\'y\'>here</a>', "here"),
        ("<P CLASS=a>Hi</P>", " Hi "),
        ("before<!-- no -->after", "before after"),
        ("<script>alert(1)</script>x", " x"),
        ("a < b and c > d", "a < b and c > d"),
        ("I <3 it", "I <3 it"),
        ("x <b and c> y", "x <b and c> y"),
        ("a <brand> of its own", "a <brand> of its own"),
    ],
)
def test_only_real_tags_are_removed(text: str, cleaned: str) -> None:
    assert strip_tags(text) == cleaned


@pytest.mark.parametrize(
    ("text", "decoded"),
    [
        ("AT&amp;T", "AT&T"),
        ("&lt;3 &#39;s &#x27;", "<3 's '"),
        ("R&B &copy that", "R&B &copy that"),
        ("a&nbsp;b", "a\u00a0b"),
        ("&nosuch;", "&nosuch;"),
    ],
)
def test_entities_need_their_semicolon(text: str, decoded: str) -> None:
    assert decode_entities(text) == decoded


def test_urls_go_and_the_punctuation_after_them_stays() -> None:
    assert strip_urls("see http://y.com/a?b=1, or (WWW.z.com).") == "see , or ()."
    assert strip_urls("no.url here, not even http:// alone") == "no.url here, not even http:// alone"


def test_white_space_of_every_kind_is_squeezed() -> None:
    assert squeeze(" a\u00a0 b\t\n c ") == "a b c"


def test_an_escaped_tag_is_a_tag_and_its_place_is_squeezed() -> None:
    assert clean_texts(["Good&lt;br /&gt;FOOD  http://x.com/y"], **ON) == ["good food"]


def test_every_step_counts_the_rows_it_changed() -> None:
    texts, changed = clean(["Ok", "ok", "a &amp; <i>b</i>", "see www.x.com"], **ON)
    assert texts == ["ok", "ok", "a & b", "see"]
    assert changed == {
        "HTML entities decoded": 1,
        "HTML tags removed": 1,
        "URLs removed": 1,
        "lower-cased": 1,
        "white space squeezed": 1,
    }


def test_a_step_that_is_off_does_nothing_and_is_not_counted() -> None:
    texts, changed = clean(["A <br> &amp; http://x.com  b "], lowercase=True)
    assert texts == ["a <br> &amp; http://x.com  b "]
    assert changed == {"lower-cased": 1}


def takes_linear_time(work: Callable[[int], object], size: int) -> bool:
    """Whether ``work(size)`` takes about four times as long as a quarter of it; quadratic time would be sixteen times as long.

    Another process may disturb a measurement, so up to three are made.
    """

    def seconds(size: int) -> float:
        started = time.process_time()
        work(size)
        return time.process_time() - started

    return any(seconds(size) < 8 * seconds(size // 4) for _ in range(3))


@pytest.mark.parametrize("opening", ["<!--", "<script>", '<a b="', "<a ", "www."])
def test_hostile_text_takes_no_longer_than_any_other(opening: str) -> None:
    assert takes_linear_time(lambda size: clean([opening * size], **ON), 20_000)
