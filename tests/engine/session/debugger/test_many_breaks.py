"""Breakpoints by the dozen: rbreak, save breakpoints, dprintf; sections against memory."""

from pathlib import Path

from cguest import CHECKOUT
from gdbwords import said

from engine.session.protocol.config import GuestConfig

STRUCTS = GuestConfig(str(CHECKOUT / "samples" / "bin" / "x86_64" / "structs"))


def test_saved_breakpoints_are_placed_again(tmp_path: Path) -> None:
    file = tmp_path / "stops"
    first = (
        *("break transfer", "condition 1 payment->amount > 5", "ignore 1 2", "tbreak deposit"),
        *("watch ada.balance", "catch syscall write", "tcatch fork", "disable 4"),
        'dprintf deposit,"gets %d\\n", amount',
    )
    said(STRUCTS, *first, f"save breakpoints {file}")
    assert file.read_text() == (
        "break transfer\n"
        "  condition $bpnum payment->amount > 5\n"
        "  ignore $bpnum 2\n"
        "tbreak deposit\n"
        "watch ada.balance\n"
        "catch syscall write\n"
        "disable $bpnum\n"
        "tcatch fork\n"
        'dprintf deposit,"gets %d\\n", amount\n'
    )
    again = said(STRUCTS, f"source {file}", "info breakpoints")
    assert "stop only if payment->amount > 5\n\tignore next 2 hits\n" in again
    assert "dprintf        keep y " in again
    assert '        printf "gets %d\\n", amount\n' in again


def test_nothing_to_save() -> None:
    assert said(STRUCTS, "save breakpoints /nonexistent/x") == "! warning: Nothing to save.\n"
    assert said(STRUCTS, "save") == '! "save" must be followed by: breakpoints\n'
    text = said(STRUCTS, "break main", "save breakpoints /nonexistent/x")
    assert text.endswith(
        "! Unable to open file '/nonexistent/x' for saving (No such file or directory)\n"
    )


def test_values_are_printed_where_nothing_stops() -> None:
    text = said(STRUCTS, 'dprintf deposit,"+%d for %s\\n", amount, person->name', "run")
    assert text.startswith("Dprintf 1 at 0x")
    assert "+300 for Ada" in text
    assert "exited" in text


def test_an_error_of_dprintf_is_told_and_the_program_goes_on() -> None:
    text = said(STRUCTS, 'dprintf deposit,"%d\\n", nosuch', "run")
    assert '! No symbol "nosuch" in current context.\n' in text
    assert "exited" in text
    assert said(STRUCTS, "dprintf deposit") == "! Format string required\n"


def test_sections_that_the_program_has_changed_do_not_match() -> None:
    text = said(STRUCTS, "break deposit", "run", "finish", "compare-sections")
    assert "Section .text, range 0x" in text
    assert ": MIS-MATCHED!\n" in text
    assert "! warning: One or more sections of the target image does not match\n" in text
    read_only = said(STRUCTS, "break deposit", "run", "compare-sections -r")
    assert "MIS-MATCHED" not in read_only
    assert ".text" in read_only


def test_a_regular_expression_that_is_none() -> None:
    assert said(STRUCTS, "rbreak (") == (
        "! Invalid regexp: missing ), unterminated subpattern at position 0\n"
    )
