"""Breakpoints of an editor beside those that words place."""

from collections.abc import Iterator

import pytest
from dapkit import FrontEnd, Message, front_end
from sysroot import CHECKOUT

STRUCTS = CHECKOUT / "samples" / "bin" / "x86_64" / "structs"
SOURCE = {"path": str(CHECKOUT / "samples" / "structs.c")}
TRANSFER, PAID = 54, 60


@pytest.fixture
def editor() -> Iterator[FrontEnd]:
    """One whose guest stands at its first instruction."""
    with front_end() as found:
        found.launch(STRUCTS, stopOnEntry=True)
        found.go()
        yield found


def typed(editor: FrontEnd, line: str) -> str:
    return editor.value(line, context="repl")


def lines(editor: FrontEnd, *wanted: Message) -> list[Message]:
    """The editor's breakpoints in the file."""
    found = editor.ask("setBreakpoints", source=SOURCE, breakpoints=list(wanted))
    breakpoints: list[Message] = found["breakpoints"]
    return breakpoints


def listed(editor: FrontEnd) -> list[str]:
    """Where the guest stops, as words tell it."""
    return [line.rpartition(":")[2] for line in typed(editor, "info breakpoints").splitlines()[1:]]


def test_what_words_place_is_removed_in_the_editor(editor: FrontEnd) -> None:
    typed(editor, f"break structs.c:{TRANSFER} if payment->id == 1002")
    new = editor.event("breakpoint")["body"]["breakpoint"]
    assert new["line"] == TRANSFER
    # An editor that has taken it in names it with its own, by its line alone.
    first, second = lines(editor, {"line": TRANSFER}, {"line": PAID})
    assert first["id"] == new["id"]
    assert "payment->id == 1002" in typed(editor, "info breakpoints")
    assert lines(editor, {"line": PAID})[0]["id"] == second["id"]
    assert listed(editor) == [str(PAID)]
    # At a line of the editor's it stays as long as the line does.
    typed(editor, f"tbreak structs.c:{PAID}")
    lines(editor, {"line": PAID})
    assert listed(editor) == [str(PAID)] * 2
    lines(editor)
    assert listed(editor) == []
    # Nobody names what was set a moment ago, and is not wanted any more.
    typed(editor, f"break structs.c:{PAID}")
    typed(editor, f"break structs.c:{TRANSFER}")
    lines(editor, {"line": TRANSFER, "condition": "payment->id == 1003"})
    assert "stop only if payment->id == 1003" in typed(editor, "info breakpoints")
    assert len(listed(editor)) == 2  # it, and its condition
    assert editor.run()["hitBreakpointIds"]
    assert editor.value("payment->id") == "1003"


def test_a_data_breakpoint_that_failed_is_not_there(editor: FrontEnd) -> None:
    at = editor.ask("evaluate", expression="&ada.balance")["memoryReference"]
    watched = {"dataId": f"{at}/4", "accessType": "write"}
    for wrong in ({"hitCondition": "often"}, {"condition": "1 +"}, {"condition": "nothing"}):
        placed = editor.ask("setDataBreakpoints", breakpoints=[{**watched, **wrong}])
        assert not placed["breakpoints"][0]["verified"]
        assert typed(editor, "info watchpoints") == "No watchpoints."
    editor.ask("setDataBreakpoints", breakpoints=[watched])
    assert editor.run()["reason"] == "data breakpoint"


def test_a_filter_whose_stop_a_word_has_deleted_stops_again(editor: FrontEnd) -> None:
    for _ in range(2):
        editor.ask("setExceptionBreakpoints", filters=["syscall"])
        assert "syscall" in typed(editor, "info breakpoints")
        typed(editor, "delete")
        assert "syscall" not in typed(editor, "info breakpoints")
    editor.ask("setExceptionBreakpoints", filters=["syscall"])
    assert editor.run()["reason"] == "exception"
