"""Remarks about places of scripts, as they are printed."""

from engine.trace.bpftrace.text import ScriptRemark, ScriptRemarks, ScriptText, Span


def _lines(text: str, start: int, end: int) -> list[str]:
    remark = ScriptRemark("WARNING", "odd", Span(start, end), ScriptText("a.bt", text), "do not")
    return list(remark.lines())


def test_the_place_in_its_line() -> None:
    assert _lines("one\n\ttwo three\n", 9, 14) == [
        "a.bt:2:6-11: WARNING: odd",
        "    two three",
        "        ~~~~~",
        "HINT: do not",
    ]
    assert _lines("one", 3, 3)[:3] == ["a.bt:1:4-4: WARNING: odd", "one", "   ~"]


def test_several_lines() -> None:
    assert _lines("one\ntwo\nthree", 2, 9)[:4] == ["a.bt:1-3: WARNING: odd", "one", "two", "three"]
    shown = _lines("x\n" * 100, 0, 150)
    assert (len(shown), shown[-2]) == (24, "...")


def test_a_very_long_line_is_shown_near_the_place() -> None:
    line = "a" * 1000 + "bad" + "c" * 1000
    header, text, marks, _ = _lines(line, 1000, 1003)
    assert header == "a.bt:1:1001-1004: WARNING: odd"
    at = marks.index("~~~")
    assert text[at : at + 3] == "bad"
    assert text.startswith("...a")
    assert text.endswith("c...")
    assert len(text) < 600


def test_remarks_are_kept_in_order() -> None:
    remarks = ScriptRemarks(ScriptText("a.bt", "one two"))
    remarks.warning("odd", Span(0, 3))
    remarks.raise_errors()
    assert [one.severity for one in remarks.found] == ["WARNING"]
