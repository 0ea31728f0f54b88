"""What is in values: as gdb finds it by expressions, and what cannot be read."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from controlkit import Held, held, sample
from sysroot import CHECKOUT

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.frames import VariableView
from engine.session.protocol.views import PartsView

LISTS = CHECKOUT / "tests" / "data" / "debugger" / "lists.c"


def read(guest: Held, *branches: cmd.Branch) -> tuple[PartsView | None, ...]:
    """What is in values at the moment that is seen."""
    moment = guest.view.moment
    guest.do(cmd.ReadParts(moment, branches))
    answer = guest.all(ev.PartsRead)[-1]
    assert answer.command == cmd.ReadParts(moment, branches)
    return answer.found


def parts(guest: Held, number: int, *steps: int, frame: int = 0, count: int = 64) -> PartsView:
    """What is in a variable."""
    (found,) = read(guest, cmd.Branch(frame, number, steps, count))
    assert found is not None
    return found


def walked(
    guest: Held, frame: int, number: int, own: VariableView, text: str, deep: int
) -> Iterator[tuple[str, str]]:
    """(expression of C, text) of all values without parts that are reached in so many steps."""

    def walk(view: VariableView, text: str, steps: tuple[int, ...]) -> Iterator[tuple[str, str]]:
        if not view.opens:
            yield text, view.value
        elif len(steps) < deep:
            found = parts(guest, number, *steps, frame=frame)
            assert not found.more
            assert not found.trouble
            for at, part in enumerate(found.parts):
                yield from walk(part, expression(text, view, part.name), (*steps, at))

    yield from walk(own, text, ())


def expression(text: str, view: VariableView, name: str) -> str:
    """A part as C names it."""
    if name == "*":
        return f"*({text})"
    if name.startswith("["):
        return f"({text}){name}"
    if name.startswith("<"):
        return text  # the members of an anonymous structure are those of the outer one
    return f"({text})->{name}" if view.leads else f"({text}).{name}"


def test_parts_are_those_of_gdb(tmp_path: Path) -> None:
    compiler, debugger = shutil.which("gcc"), shutil.which("gdb")
    if compiler is None or debugger is None:
        pytest.skip("no gcc or no gdb")
    program = tmp_path / "lists"
    subprocess.run([compiler, "-g", "-O0", "-static", "-no-pie", "-o", program, LISTS], check=True)
    found: dict[str, str] = {}
    with held(str(program)) as guest:
        view = guest.do(cmd.ToggleBreak("twice"), cmd.Continue())
        for number, variable in enumerate(view.frames[2].variables):
            if variable.name in ("o", "list", "buffer"):
                found |= walked(guest, 2, number, variable, variable.name, 5)
    asked = [item for text in found for item in ("-ex", f"output {text}", "-ex", r"echo \n")]
    script = ["break *twice", "run", "up 2", r"echo \nSTART\n"]
    begin = [word for line in script for word in ("-ex", line)]
    done = subprocess.run(
        [debugger, "-nx", "-batch", *begin, *asked, program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    if "No symbol" in done.stdout + done.stderr or "START" not in done.stdout:
        pytest.skip(f"gdb cannot run it here: {done.stderr[-200:]}")
    told = done.stdout.partition("START\n")[2].splitlines()
    assert len(told) == len(found) > 80
    different = {
        text: (mine, theirs)
        for (text, mine), theirs in zip(found.items(), told, strict=True)
        if mine != theirs and not theirs.endswith(f") {mine}")  # a pointer's type in front
    }
    assert not different


def test_what_leads_nowhere_and_what_is_long_says_so() -> None:
    with held(sample("x86_64", "structs")) as guest:
        view = guest.do(cmd.ToggleBreak("transfer"), cmd.Continue())
        (payment,) = view.frames[0].variables[:1]
        assert payment.opens
        assert payment.leads.startswith("{id = 1001, from = 0x")
        names = [part.name for part in parts(guest, 0).parts]
        assert names == ["id", "from", "to", "amount", "kind", "detail"]
        few = parts(guest, 0, count=2)
        assert [part.name for part in few.parts] == ["id", "from"]
        assert few.more
        person = parts(guest, 0, 1)
        assert [part.value for part in person.parts[1:3]] == ["61 '='", "1"]
        gone = parts(guest, 0, 99)
        assert (gone.parts, gone.trouble) == ((), "it is not there any more")
        assert parts(guest, 0, 0).parts == ()  # a number has none
        address = int(payment.value.split()[0], 16)
        guest.do(cmd.WriteMemory(address + 8, (0x10).to_bytes(8, "little")))
        bad = parts(guest, 0).parts[1]
        assert (bad.value, bad.leads, bad.opens) == ("0x10", "<0x10 cannot be read>", True)
        inside = parts(guest, 0, 1)
        assert (inside.parts, inside.trouble) == ((), "0x10 cannot be read")


def test_another_moment_is_not_answered_about() -> None:
    with held(sample("x86_64", "structs")) as guest:
        old = guest.do(cmd.ToggleBreak("transfer"), cmd.Continue()).moment
        guest.do(cmd.StepInsn())
        before = len(guest.all(ev.PartsRead))
        guest.do(cmd.ReadParts(old, (cmd.Branch(0, 0),)))
        assert len(guest.all(ev.PartsRead)) == before
        assert read(guest, cmd.Branch(0, 99), cmd.Branch(77, 0)) == (None, None)


def test_displays_are_values_that_open() -> None:
    with held(sample("x86_64", "structs")) as guest:
        Console(guest.control, guest._tell)
        guest.do(cmd.ToggleBreak("transfer"), cmd.Continue())
        view = guest.do(
            *(cmd.TypedLine(f"display{word}") for word in (" *payment", "/x grace.age", "/i $pc"))
        )
        assert [(one.number, one.text) for one in view.displays] == [
            (1, "*payment"),
            (2, "/x grace.age"),
        ]
        first, second, third = read(
            guest,
            cmd.Branch(cmd.DISPLAYS, 1, (), 9),
            cmd.Branch(cmd.DISPLAYS, 2),
            cmd.Branch(cmd.DISPLAYS, 9),
        )
        assert first is not None
        assert first.own.value.startswith("{id = 1001")
        assert [part.name for part in first.parts][:2] == ["id", "from"]
        assert second is not None
        assert second.own.value == "0x3d"
        assert third is None
        guest.do(cmd.TypedLine("undisplay 2"), cmd.TypedLine("finish"))
        (lost,) = read(guest, cmd.Branch(cmd.DISPLAYS, 1))
        assert lost is not None
        assert lost.own.value == '<No symbol "payment" in current context.>'
        assert len(guest.view.displays) == 1
