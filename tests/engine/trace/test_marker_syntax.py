"""Definitions on static probes: the forms of perf, bpftrace and ours."""

import pytest

from engine.errors import ProbeError
from engine.trace.marker_syntax import MarkerName, marker_line, marker_name, named_words

NAMES = {
    "%sdt_zoo:fed": ("zoo", "fed", ""),
    "%zoo:fed": ("zoo", "fed", ""),
    "%fed": ("*", "fed", ""),
    "sdt_zoo:fed": ("zoo", "fed", ""),
    "sdt_zoo/fed": ("zoo", "fed", ""),
    "sdt_zoo:*": ("zoo", "*", ""),
    "sdt_*:f[ae]d": ("*", "f[ae]d", ""),
    "sdt_zoo:gc-start": ("zoo", "gc-start", ""),
    "libzoo.so.1:%sdt_zoo:fed": ("zoo", "fed", "libzoo.so.1"),
    "/lib/zoo:%zoo:fed": ("zoo", "fed", "/lib/zoo"),
    "/lib/zoo:%fed": ("*", "fed", "/lib/zoo"),
    "sdt:zoo:fed": ("zoo", "fed", ""),
    "sdt:%zoo:fed": ("zoo", "fed", ""),
    "sdt:%sdt_zoo:fed": ("zoo", "fed", ""),
    "sdt:/lib/zoo:zoo:fed": ("zoo", "fed", "/lib/zoo"),
    "usdt:./zoo:zoo:fed": ("zoo", "fed", "./zoo"),
    "usdt:/lib/zoo:fed": ("*", "fed", "/lib/zoo"),
    "sdt:libzoo:zoo:fed": ("zoo", "fed", "libzoo"),
    "usdt:fed": ("*", "fed", ""),
}


@pytest.mark.parametrize("text", NAMES)
def test_a_marker_is_named(text: str) -> None:
    provider, name, file = NAMES[text]

    assert marker_name(text) == MarkerName(text, provider, name, file)


@pytest.mark.parametrize(
    "text",
    [
        *("main", "main+4", "libc.so.6:open", "/bin/x:0x10", "/bin/x:main", "main%return"),
        *("file.c:12", "0x1234", "sdt_zoo", "libc:open%return", "", "sdtx:a"),
    ],
)
def test_other_places_are_none(text: str) -> None:
    assert marker_name(text) is None


@pytest.mark.parametrize("text", ["sdt:::", "sdt:/lib/zoo", "sdt:a:b:c:d", "usdt:/x:", "sdt:a b"])
def test_a_name_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ProbeError, match=r"a marker is u?sdt:PATH:PROVIDER:NAME"):
        marker_name(text)


def test_lines_with_and_without_a_head() -> None:
    def parts(line: str) -> tuple[str, str, tuple[str, ...]] | None:
        found = marker_line(line)
        return None if found is None else (found.head, found.marker.name, found.args)

    assert parts("sdt_zoo:fed") == ("p", "fed", ())
    assert parts("  %zoo:fed n=$arg1 # why\n") == ("p", "fed", ("n=$arg1",))
    assert parts("p:my/s %sdt_zoo:fed $arg1 %di") == ("p:my/s", "fed", ("$arg1", "%di"))
    assert parts("!p sdt:/x:zoo:fed") == ("!p", "fed", ())
    assert parts("!sdt_zoo:fed") == ("!p", "fed", ())
    for line in ("", "#", "p main", "p main %di", "-:sdt_zoo/fed", "r main%return", "sched/*"):
        assert parts(line) is None


@pytest.mark.parametrize("line", ["r %sdt_zoo:fed", "p %sdt_zoo:fed%return", "r:x sdt:/x:zoo:fed"])
def test_nothing_returns_from_a_marker(line: str) -> None:
    with pytest.raises(ProbeError, match="nothing returns: define it with p"):
        marker_line(line)


def test_a_dash_is_two_underscores() -> None:
    name = MarkerName("", "zoo", "gc-start")

    assert name.fits("zoo", "gc__start")
    assert name.fits("zoo", "gc-start")
    assert not name.fits("zoo", "gc_start")
    assert not name.fits("ark", "gc__start")


def test_arguments_by_number() -> None:
    def fetch(number: int) -> tuple[str, str]:
        return {1: ("%di", "s32"), 2: ("-16(%bp)", "u64")}[number]

    def words(*given: str) -> tuple[str, ...]:
        return named_words(given, fetch, 2)

    assert words("$arg*") == ("arg1=%di:s32", "arg2=-16(%bp):u64")
    assert words("$arg2", "n=$arg1") == ("arg2=-16(%bp):u64", "n=%di:s32")
    assert words("n=$arg1:x8") == ("n=%di:x8",)
    assert words("text=+0($arg2):string") == ("text=+0(-16(%bp)):string",)
    assert words("+8(+0($arg1)):u32", "%ax", "$stack0") == ("+8(+0(%di)):u32", "%ax", "$stack0")
