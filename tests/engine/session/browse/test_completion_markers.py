"""Static probes are offered where a definition may name one."""

from pathlib import Path

from markerkit import CODE, Note, file_with

from engine.arch.plan import Mode
from engine.session import GuestConfig
from engine.session.browse.browser import Browser


def offered(guest: Path, line: str, mode: Mode = Mode.STRICT) -> tuple[str, tuple[str, ...]]:
    completion = Browser(GuestConfig(str(guest)), mode).complete_definition(line, len(line), ())
    return line[completion.start :], completion.words


def test_markers_are_offered(tmp_path: Path) -> None:
    guest = tmp_path / "zoo"
    notes = (Note(), Note(), Note(name=b"gone", address=CODE + 4))
    guest.write_bytes(file_with(b"".join(note.raw for note in notes)))

    assert offered(guest, "sdt") == ("sdt", ("sdt_zoo:fed", "sdt_zoo:gone"))
    assert offered(guest, "%") == ("%", ("%sdt_zoo:fed", "%sdt_zoo:gone"))
    assert offered(guest, "p:a/b %sdt_zoo:g") == ("%sdt_zoo:g", ("%sdt_zoo:gone",))
    assert offered(guest, "p sdt_zoo:f") == ("sdt_zoo:f", ("sdt_zoo:fed",))
    assert offered(guest, "p sdt_zoo:", Mode.KERNEL)[1] == ()


def test_a_definition_is_judged_as_it_is_typed(tmp_path: Path) -> None:
    guest = tmp_path / "zoo"
    guest.write_bytes(file_with(Note().raw + Note(address=CODE + 4).raw))
    browser = Browser(GuestConfig(str(guest)), Mode.STRICT)

    good = browser.check("sdt_zoo:fed")
    assert (good.ok, len(good.places)) == (True, 2)
    assert good.text.startswith("2 uprobes: sdt_zoo/fed: ")
    assert not browser.check("sdt_zoo:nosuch").ok
    assert not browser.check("p %sdt_zoo:fed %nosuch").ok
