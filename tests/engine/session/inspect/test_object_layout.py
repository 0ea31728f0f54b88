"""The parts of objects: offsets and sizes as gdb's `ptype /o` has them, values as `print` has."""

import shutil
import subprocess

import pytest
from controlkit import Held, held, sample

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.views import FieldView, LayoutView


def laid_out(guest: Held, text: str, *, again: bool = False) -> LayoutView:
    guest.do(cmd.ReadLayout(text, again))
    answer = guest.all(ev.LayoutRead)[-1]
    assert answer.command == cmd.ReadLayout(text, again)
    return answer.layout


def stopped(guest: Held, place: str) -> Console:
    console = Console(guest.control, lambda event: None)
    guest.do(cmd.TypedLine(f"break {place}"), cmd.Continue())
    return console


def paths(layout: LayoutView) -> dict[str, FieldView]:
    """Each part by what stands behind the object in an expression for it."""
    found: dict[str, FieldView] = {}
    above: list[str] = []
    for field in layout.fields:
        del above[field.level :]
        if field.name:
            above.append(field.name if field.name.startswith("[") else f".{field.name}")
            found["".join(above)] = field
    return found


def test_offsets_and_sizes_are_those_of_gdb() -> None:
    gdb = shutil.which("gdb")
    if gdb is None:
        pytest.skip("gdb is not installed")
    program = sample("x86_64", "structs")
    asked: list[str] = []
    with held(program) as guest:
        stopped(guest, "transfer")
        for kind, text in (
            ("person", "grace"),
            ("payment", "payment"),
            ("payment[4]", "*payment@4"),
        ):
            layout = laid_out(guest, text)
            assert layout.type in (f"struct {kind}", f"struct {kind.replace('[', ' [')}")
            for path, field in paths(layout).items():
                if field.bits is None:
                    place = f"(*(struct {kind.partition('[')[0]} *)0)"
                    if "[" in kind:
                        place = f"(*(struct {kind.replace('[', ' (*)[')})0)"
                    asked.append(f"{place}{path} {field.offset} {field.size}")
    words = [gdb, "-nx", "-batch"]
    for line in asked:
        place = line.split(" ")
        text = " ".join(place[:-2])
        words += ["-ex", f'printf "%lu %lu\\n", (long)&({text}), sizeof({text})']
    said = subprocess.run([*words, program], capture_output=True, text=True, check=True).stdout
    assert len(asked) > 40
    assert said.splitlines() == [" ".join(line.split(" ")[-2:]) for line in asked]


def test_values_holes_and_bits() -> None:
    with held(sample("x86_64", "structs")) as guest:
        stopped(guest, "transfer")
        layout = laid_out(guest, "&grace")
        assert (layout.size, layout.type, layout.more) == (48, "struct person", False)
        assert layout.data[8:10] == bytes((61, 1 | 9 << 1))
        found = paths(layout)
        assert found[".age"].value == "61 '='"
        assert found[".level"].value == "9"
        assert found[".level"].bits == (1, 5)
        assert found[".home.postcode"].value == "10115"
        assert not found[".home"].value
        holes = [(field.offset, field.size) for field in layout.fields if not field.name]
        assert holes == [(10, 2), (34, 2)]
        (scalar,) = laid_out(guest, "payment->amount").fields
        assert (scalar.name, scalar.value, scalar.size) == ("value", "300", 4)
        assert laid_out(guest, "grace.name").type == "const char"


def test_the_same_object_again_whatever_the_text_means_by_then() -> None:
    with held(sample("x86_64", "structs")) as guest:
        stopped(guest, "deposit")
        first = laid_out(guest, "person")
        balance = paths(first)[".balance"].value
        guest.do(cmd.Finish())  # to a frame that has no such name
        again = laid_out(guest, "person", again=True)
        assert again.address == first.address
        assert paths(again)[".balance"].value != balance


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nosuch", 'No symbol "nosuch" in current context.'),
        ("1 + 2", "it is nothing in memory"),
        ("main", "its type has no parts and no size"),
        ("(struct person *)8", "Cannot access memory at address 0x8"),
    ],
)
def test_what_has_no_parts_says_so(text: str, why: str) -> None:
    with held(sample("x86_64", "structs")) as guest:
        stopped(guest, "transfer")
        failure = guest.fail(cmd.ReadLayout(text))
        assert failure is not None
        assert why in failure.text


def test_a_program_that_has_ended_shows_what_it_left() -> None:
    with held(sample("x86_64", "structs")) as guest:
        Console(guest.control, lambda event: None)
        before = paths(laid_out(guest, "&grace"))[".balance"].value
        guest.do(cmd.Continue())
        assert before == "5000"
        assert paths(laid_out(guest, "&grace"))[".balance"].value == "4900"
