"""Places of scripts in programs of a booted system: names, patterns, markers, refusals."""

import stat
import subprocess
from pathlib import Path

import pytest
from compiled import build
from markerkit import CODE, DATA, Note, file_with

from engine.arch import by_name
from engine.errors import ProbeError
from engine.machine.cpioarchive import ArchiveEntry
from engine.machine.ramdisk import RamdiskRoot
from engine.session.booted.files import BootFiles
from engine.session.booted.script.program_points import ProgramPoints
from engine.trace.bpftrace.attach_points import attach_point
from engine.trace.bpftrace.text import ScriptRemarks, ScriptText, Span
from engine.trace.bpftrace.tree import AttachPoint

SOURCE = """
namespace zoo { int feed(int n) { return n + 1; } int feed(long n) { return n + 2; } }
extern "C" { int walk(int n) { return zoo::feed(n); } int wake(int n) { return n; } }
extern "C" void _start() { walk(3); }
"""
NOTES = (
    Note(),
    Note(address=CODE + 4, arguments=b"8@-8(%rbp) 2@$7 -1@%al"),
    Note(provider=b"bar", name=b"open"),
    Note(name=b"counted", semaphore=DATA),
)


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> ProgramPoints:
    folder = tmp_path_factory.mktemp("points")
    flags = "-nostdlib", "-static", "-O0", "-fno-exceptions", "-Wl,-Ttext=0x401000"
    program = build(folder, "small", SOURCE, *flags, compiler="g++")
    arch = by_name("x86_64")
    assert arch is not None
    return ProgramPoints(arch, BootFiles(lambda: ramdisk(program)))


C_SOURCE = """
struct pair { long first, second; };
enum colour { RED, GREEN };
struct node { int value; struct node *next; };
__attribute__((noinline)) int visit(struct node *p, double scale, signed char depth,
                                    enum colour colour, struct pair pair, long a, long b, int c,
                                    short d, struct node all) {
    for (; p; p = p->next)
        a += p->value;
    return a + b + c + d + pair.first + all.value + depth + colour + (int)scale;
}
void nothing(void) { __asm__ volatile(""); }
int main(int argc, char **argv) {
    struct node end = {3, 0}, first = {1, &end};
    nothing();
    return visit(&first, argc, 3, GREEN, (struct pair){1, 2}, 4, 5, 6, 7, end);
}
"""


@pytest.fixture(scope="module", params=["-O0", "-O1"])
def described(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> BootFiles:
    """A system with a program that has debug information."""
    folder = tmp_path_factory.mktemp("described")
    (folder / "visit.c").write_text(C_SOURCE)
    program = folder / "visit"
    words = ("gcc", "-g", request.param, "-static-pie", "-o", str(program), "visit.c")
    subprocess.run(words, cwd=folder, check=True)
    return BootFiles(lambda: ramdisk(program))


def test_parameters_have_their_types_and_words(described: BootFiles) -> None:
    """Integers in registers first, then on the stack; what no word holds has no number."""
    arch = by_name("x86_64")
    assert arch is not None
    points = ProgramPoints(arch, described)
    found = points.arguments(point("uprobe:/bin/small:visit"))
    assert found is not None
    names = ("p", "scale", "depth", "colour", "pair", "a", "b", "c", "d", "all")
    numbers = (0, None, 1, 2, None, 5, 6, 7, 8, None)
    assert {name: number for name, (_, number) in found.items()} == dict(
        zip(names, numbers, strict=True)
    )
    assert found["depth"][0].size == 1
    result = points.result(point("uretprobe:/bin/small:visit"))
    assert result is not None
    assert result.size == 4
    assert points.arguments(point("uprobe:/bin/small:nothing")) == {}
    for text in ("uprobe:/bin/small:vis*", "uprobe:/bin/small:visit+4", "uprobe:/bin/none:main"):
        assert points.arguments(point(text)) is None


def test_lines_of_source_are_places(described: BootFiles) -> None:
    arch = by_name("x86_64")
    assert arch is not None
    points = ProgramPoints(arch, described)
    wanted = point("uprobe:/bin/small@visit.c:9")
    assert points.expanded(wanted) == [wanted]
    file = described.file("/bin/small")
    assert file is not None
    function = file.symbols.find("visit")
    assert function is not None
    sites = points.sites(wanted)
    assert sites
    assert all(function.address < one.link < function.address + function.size for one in sites)
    with pytest.raises(ProbeError, match="no code at or behind line 900"):
        points.expanded(point("uprobe:/bin/small@visit.c:900"))


def ramdisk(program: Path) -> RamdiskRoot:
    root = RamdiskRoot()
    marked = file_with(b"".join(note.raw for note in NOTES))
    files = {b"bin/small": program.read_bytes(), b"usr/lib/libzoo.so.1": marked}
    files[b"bin/script"] = b"#!/bin/sh\n"
    mode = stat.S_IFREG | 0o755
    root.add(ArchiveEntry(path, mode, data) for path, data in files.items())
    return root


def point(text: str) -> AttachPoint:
    remarks = ScriptRemarks(ScriptText("test", text))
    found = attach_point(text, Span(0, len(text)), remarks)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("uprobe:/bin/small:walk", ["uprobe:/bin/small:walk"]),
        ("uprobe:small:walk+4", ["uprobe:small:walk+4"]),
        ("uretprobe:small:wa*", ["uretprobe:small:walk", "uretprobe:small:wake"]),
        ("uprobe:small:none", []),
        (
            'uprobe:small:cpp:"zoo::feed"',
            ["uprobe:small:cpp:zoo::feed(int)", "uprobe:small:cpp:zoo::feed(long)"],
        ),
        (
            "usdt:libzoo:*",
            ["usdt:libzoo:zoo:fed", "usdt:libzoo:bar:open", "usdt:libzoo:zoo:counted"],
        ),
        ("usdt:zoo:bar:open", ["usdt:zoo:bar:open"]),
        ("uprobe:small:0x401000", ["uprobe:small:4198400"]),
    ],
)
def test_places_are_those_of_the_file(points: ProgramPoints, text: str, names: list[str]) -> None:
    assert [one.text for one in points.expanded(point(text))] == names


def test_sites_are_offsets_in_the_file(points: ProgramPoints) -> None:
    (walk,) = points.sites(point("uprobe:/bin/small:walk+4"))
    known = points.symbol("small", "walk")
    assert known is not None
    assert (walk.path, walk.link) == ("/bin/small", known[2].address + 4)
    assert walk.offset == known[1].file_offset(walk.link)
    one, other = points.sites(point("usdt:libzoo:zoo:fed"))
    assert (one.offset, other.offset) == (0x1001, 0x1004)
    assert [(each.base, each.size, each.memory) for each in other.operands] == [
        ("rbp", 8, True),
        ("", 2, False),
        ("rax", 1, False),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("uprobe:/bin/none:main", "is in no initial ramdisk"),
        ("uprobe:none:main", "no initial ramdisk has a program or a library of that name"),
        ("uprobe:/bin/*:main", "name one file of the booted system"),
        ("uprobe:/bin/script:main", "is a script for /bin/sh"),
        ("uprobe:small:walk+0x1000", "Offset outside the function bounds ('walk' size is"),
        ("uprobe:/bin/small@small.c:3", "no file of the program has line information"),
        ("uprobe:small:0x10", "Could not resolve address: small:0x10"),
        ("usdt:libzoo:zoo:counted", "has a semaphore, a counter in the program's memory"),
    ],
)
def test_refusals_say_what_to_do(points: ProgramPoints, text: str, why: str) -> None:
    def found() -> list[object]:
        return [points.sites(each) for each in points.expanded(point(text))]

    with pytest.raises(ProbeError) as caught:
        found()
    assert why in str(caught.value)
