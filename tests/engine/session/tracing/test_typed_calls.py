"""Arguments and results in the graph, against gdb's `info args` and our `finish`."""

import re

import pytest
from signatures import gdbs_arguments, ours, program, takers
from typedgraph import graph_lines

_FOREIGN = [pytest.param(arch, marks=pytest.mark.slow) for arch in ("aarch64", "riscv64")]
_LOST_BY_GDB = {("riscv64", "c"): {"u29", "u34", "u37", "u38", "u54", "u57"}}
"""Functions of an argument whose address is on the stack: GCC 12 describes it wrongly."""
_STACK = re.compile(r"0x[0-9a-f]{10,}")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "c++"])
@pytest.mark.parametrize("arch", ["x86_64", *_FOREIGN])
def test_arguments_are_as_info_args_has_them(arch: str, language: str) -> None:
    path, count = program(arch, language)
    lines = graph_lines(str(path), "t[0-9]*", "u[0-9]*", "f[0-9]*")
    here = {}
    for line in lines:
        found = re.match(r"([tu]\d+)\((.*)\);( /\*.*)?$", line)
        if found:
            assert found[3] is None, "they return nothing"
            here[found[1]] = _STACK.sub("STACK", found[2])
    there = {
        name: _STACK.sub("STACK", ", ".join(line.replace(" = ", "=", 1) for line in given))
        for name, given in gdbs_arguments(path, arch, count).items()
    }
    assert list(here) == takers(count)
    lost = {name for name, text in there.items() if "error reading" in text}
    assert lost == _LOST_BY_GDB.get((arch, language), set())
    for name in lost:  # both values are the same
        value, again = re.findall(r"(?:value|again)=(.*?)(?=, again=|, last=)", here[name])
        assert value == again
        del here[name], there[name]
    assert here == there
    results: dict[int, str] = {}
    for line in lines:
        found = re.match(r"(?:f(\d+)\(\);|\} /\* f(\d+))(?: /\*)?(?: ret=(.*) \*/)?$", line)
        if found:
            results.setdefault(int(found[1] or found[2]), found[3] or "")
    finished = ours(path, count)
    assert len(results) == count
    assert {number: _STACK.sub("STACK", text) for number, text in results.items()} == {
        number: _STACK.sub("STACK", re.sub(r"^\(.*\) (?=0x|@)", "", text))
        for number, text in finished.items()
    }
