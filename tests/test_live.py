"""Progress of a notebook is one line that moves, and an interrupt says how to go on."""

from __future__ import annotations

import pytest

from rtxstudy.live import LONGEST, Live
from rtxstudy.report.render import _stream


def test_each_line_takes_the_place_of_the_one_before(capsys) -> None:
    with Live() as live:
        live("[1/2] a long line of progress")
        live("[2/2] done")
        live("x" * 500)
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1 and printed.endswith("…\n")
    first, second, third = printed.rstrip("\n").split("\r")[1:]
    assert len(second) == len(first) and len(third) == LONGEST  # nothing of the longer line is left behind the shorter one
    assert _stream("stdout", printed) == ""  # and none of them in a report


def test_an_interrupt_goes_on_its_way_and_a_sentence_says_that_nothing_is_lost(capsys) -> None:
    with pytest.raises(KeyboardInterrupt), Live() as live:
        live("[0/3 done]")
        raise KeyboardInterrupt
    assert "run the cell again" in capsys.readouterr().out


def test_work_that_reports_nothing_prints_nothing(capsys) -> None:
    with Live():
        pass
    assert capsys.readouterr().out == ""
