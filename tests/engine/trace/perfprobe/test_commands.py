"""Commands of perf probe: what is read, and one error for what is not."""

import pytest

from engine.errors import CommandError, KprobeTuiError, ProbeError
from engine.trace.perfprobe.commands import (
    MAX_COMMAND,
    NO_END,
    CommandPlace,
    FieldStep,
    LineRange,
    read_command,
    read_line_range,
)


@pytest.mark.parametrize(
    ("text", "group", "event", "point"),
    [
        ("f", "", "", CommandPlace("f")),
        ("f:2", "", "f_L2", CommandPlace("f", line=2)),
        ("g:e=f+0x10", "g", "e", CommandPlace("f", offset=16)),
        ("f%return", "", "", CommandPlace("f", is_return=True)),
        ("f@dir/a.c:010", "", "f_L8", CommandPlace("f", "dir/a.c", line=8)),
        ("a.c:7", "", "", CommandPlace(file="a.c", line=7)),
        ("a.c;x=?*", "", "", CommandPlace(file="a.c", pattern="x=?*")),
        ("f@a.c;if(*)", "", "", CommandPlace("f", "a.c", pattern="if(*)")),
        (r"geo\:\:f", "", "", CommandPlace("geo::f")),
        (r"a\@b@c.c", "", "", CommandPlace("a@b", "c.c")),
        ("0x401000", "", "", CommandPlace("0x401000", address=0x401000)),
    ],
)
def test_places(text: str, group: str, event: str, point: CommandPlace) -> None:
    command = read_command(text)
    assert (command.group, command.event, command.point) == (group, event, point)


def test_arguments() -> None:
    words = "n=a->b[2].c:x32 p->q:string@user %di:u8 $retval @sym &v $vars a[0x10]"
    first, second, *rest = read_command(f"f {words}").arguments
    assert first.name == "n"
    assert first.steps == (FieldStep("b", arrow=True), FieldStep("[2]", 2, True), FieldStep("c"))
    assert (first.type, second.type, second.user, second.name) == ("x32", "string", True, "q")
    assert [one.variable for one in rest] == ["%di", "$retval", "@sym", "&v", "$vars", "a"]
    assert [one.is_variable for one in rest] == [False, False, False, False, False, True]
    assert rest[-1].steps == (FieldStep("[0x10]", 16, True),)


@pytest.mark.parametrize(
    "text",
    [
        *("", "f:x", "f+x", "f:1+1", "f%x", "f:1%return", "f+1%return", "@a.c"),
        *("1e=f", "g-h:e=f", "=f", "e=", "0x12g", "f@a.c@b.c:1@", "f%return local", "%sdt_a:b"),
        *(
            "f a[",
            "f a[x]",
            "f a-b",
            "f a=",
            "f " + "a " * 200,
            "f" * (MAX_COMMAND + 1),
            "+1",
            ":3",
        ),
        *("f:99999999999", "f:08", "sdt_a:b", "f a->b[99999999999]", ":", "f:-1", "f a[]"),
    ],
)
def test_bad_commands_give_one_line(text: str) -> None:
    with pytest.raises(ProbeError) as raised:
        read_command(text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "point"), [("f+", CommandPlace("f")), ("a.c", CommandPlace("a.c"))]
)
def test_what_perf_takes_all_the_same(text: str, point: CommandPlace) -> None:
    assert read_command(text).point == point


@pytest.mark.parametrize(
    ("text", "range_"),
    [
        ("f", LineRange("f", "", 0, NO_END)),
        ("f:3", LineRange("f", "", 3, NO_END)),
        ("f:3-5", LineRange("f", "", 3, 5)),
        ("f:3+2", LineRange("f", "", 3, 4)),
        ("f@a.c:3", LineRange("f", "a.c", 3, NO_END)),
        ("a.c:10+1", LineRange("", "a.c", 10, 10)),
        ("dir/a:0x10-020", LineRange("", "dir/a", 16, 16)),
    ],
)
def test_ranges_of_lines(text: str, range_: LineRange) -> None:
    assert read_line_range(text) == range_


@pytest.mark.parametrize(
    "text", ["", "f:", "f:x", "f:3-", "f:5-3", "f:1+1x", "1f", "f:1:2", "f g"]
)
def test_bad_ranges(text: str) -> None:
    with pytest.raises(CommandError) as raised:
        read_line_range(text)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value, KprobeTuiError)
