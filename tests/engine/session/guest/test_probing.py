"""Probes of a session: all or none, as many as can be, and those that wait for their file."""

from pathlib import Path

import pytest
from compiled import build
from sessionkit import SAMPLES, heads, loaded
from sysroot import SysrootUnavailable, sysroot

from engine.arch.plan import Rules
from engine.errors import ProbeRejectedError
from engine.image import ElfImage, SymbolTable
from engine.probes.kprobe import Kprobe
from engine.session.guest.probed_space import ProbedSpace
from engine.session.guest.probing import Probing
from engine.session.guest.wanted_probes import Wanted
from engine.session.program.places import Place

RECURSION = SAMPLES / "x86_64" / "recursion"
LIBRARY = """
int plug_work(int a) { return a * 3 + 1; }
int plug_other(int a) { return a - 1; }
"""
# Opens the library twice, with code of its own in between; `plug_work` is called 3 + 2 times.
LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int sum = 0;
    for (int round = 3; round >= 2; round--) {
        void *handle = dlopen(argv[1], RTLD_NOW);
        if (!handle) { puts(dlerror()); return 1; }
        int (*work)(int) = (int (*)(int))dlsym(handle, "plug_work");
        for (int i = 0; i < round; i++) sum += work(i);
        dlclose(handle);
    }
    printf("sum %d\\n", sum);
    return 0;
}
"""


def offset_of(path: Path, name: str) -> int:
    image = ElfImage.open(str(path))
    offset = image.file_offset(SymbolTable(image).find_all(name)[0].address)
    assert offset is not None
    return offset


def wanted(probing: Probing, text: str, rules: Rules = Rules.KPROBE) -> Wanted:
    probe = Kprobe(record=lambda thread: None, rules=rules, name=text)
    return Wanted(probing.verdicts.places.resolve(text)[0], probe)


# -- all or none, and as many as can be ------------------------------------------------------


def test_all_or_none() -> None:
    with loaded(RECURSION) as guest:
        probing = guest.session.probes()
        good = wanted(probing, "fibonacci")
        middle = wanted(probing, "fibonacci+1")

        with pytest.raises(ProbeRejectedError, match="EILSEQ"):
            probing.place([good, middle])
        assert probing.manager.points == {}
        assert probing.pending == []


def test_as_many_as_can_be() -> None:
    with loaded(RECURSION) as guest:
        probing = guest.session.probes()
        texts = ("fibonacci", "fibonacci+1", "main", "fibonacci+3", "factorial")
        rows = [wanted(probing, text) for text in texts]
        refused = probing.place_each(rows)

        assert [place.text for place, _ in refused] == ["fibonacci+1", "fibonacci+3"]
        assert all("middle of an instruction" in why for _, why in refused)
        guest.run()
        assert [row.probe.hits for row in rows] == [987, 0, 1, 0, 1]


def test_an_address_is_known_before_the_probe_is_armed() -> None:
    with loaded(RECURSION) as guest:
        probing = guest.session.probes()
        one = wanted(probing, "fibonacci")
        seen: list[tuple[int | None, bool]] = []

        def ready(probe: Kprobe, space: ProbedSpace, place: Place) -> None:
            seen.append((probe.addr, bool(probing.manager.points)))

        probing.place([Wanted(one.place, one.probe, ready)])
        assert seen == [(one.place.link, False)]


# -- names ------------------------------------------------------------------------------------


def test_two_names_of_one_address_and_functions_over_each_other(tmp_path: Path) -> None:
    """`twin` is another name of `first`; `inner` lies within `outer`."""
    source = """
        .intel_syntax noprefix
        .text
        .globl _start, first, twin, outer, inner
        .type first, @function
        .type twin, @function
        .type outer, @function
        .type inner, @function
    _start: call first
        call outer
        call inner
        mov eax, 60
        mov edi, ebx
        syscall
    first:
    twin: mov ebx, 1
        ret
        .size first, .-first
        .size twin, .-twin
    outer: add ebx, 2
    inner: add ebx, 4
        ret
        .size inner, .-inner
        .size outer, .-outer
    """
    program = build(tmp_path, "names", source, "-nostdlib", "-static")
    with loaded(program) as guest:
        tracing = guest.tracing()
        for line in ("p:a first", "p:b twin", "p:c outer+3", "p:d inner", "p:e outer"):
            tracing.definitions.define(line)
        manager = guest.session.probes().manager
        assert len(manager.points) == 3
        reports = guest.run(tracing)

        assert reports.exit_code == 1 + 2 + 4 + 4
        names = [row.partition(":")[0] for row in guest.events]
        assert names == ["b", "a", "e", "d", "c", "d", "c"]  # newest first at one address
        assert all("(first+0x0/" in row or "(twin+0x0/" in row for row in guest.events[:2])


# -- files that are mapped later -----------------------------------------------------------------


@pytest.fixture
def loader(tmp_path: Path) -> tuple[Path, Path]:
    library = build(tmp_path, "libplug.so", LIBRARY, "-shared", "-fPIC", "-O1")
    return build(tmp_path, "loader", LOADER, "-O1", "-ldl"), library


def test_a_place_waits_for_dlopen(loader: tuple[Path, Path]) -> None:
    program, library = loader
    with loaded(program, str(library), shares=((str(library), False),)) as guest:
        tracing = guest.tracing()
        offset = offset_of(library, "plug_work")
        tracing.definitions.define(f"p:g/work {library}:{offset:#x} a=%di:s32")
        tracing.definitions.define(f"p:g/other {library}:{offset_of(library, 'plug_other'):#x}")
        probing = guest.session.probes()
        assert [item.probe.name for item in probing.pending] == ["g/work", "g/other"]
        reports = guest.run(tracing)

        assert guest.out == "sum 17\n"
        assert [(item.probe.name, item.fate.again) for item in probing.pending] == [
            ("g/work", True),
            ("g/other", True),
        ]
        values = [row.rpartition("=")[2] for row in guest.events]
        assert values == ["0", "1", "2", "0", "1"]
        assert heads(reports) == []


def test_a_place_refused_when_its_file_is_mapped(loader: tuple[Path, Path]) -> None:
    """The file is not probed, the program runs on, and the reason is told."""
    program, library = loader
    with loaded(program, str(library), shares=((str(library), False),)) as guest:
        probing = guest.session.probes()
        one = wanted(probing, f"{library}:{offset_of(library, 'plug_work') + 1:#x}", Rules.UPROBE)
        probing.place([one])
        assert len(probing.pending) == 1
        tracing = guest.tracing()
        reports = guest.run(tracing)

        assert guest.out == "sum 17\n"
        assert one.probe.hits == 0
        (text,) = heads(reports)
        assert "not placed when its file was mapped" in text


def test_a_waiting_place_can_be_deleted(loader: tuple[Path, Path]) -> None:
    program, library = loader
    with loaded(program, str(library), shares=((str(library), False),)) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(f"p:g/work {library}:{offset_of(library, 'plug_work'):#x}")
        tracing.definitions.define("-:g/work")
        assert guest.session.probes().pending == []
        assert heads(guest.run(tracing)) == []
        assert guest.events == []


@pytest.mark.sysroot
@pytest.mark.slow
@pytest.mark.parametrize(("arch", "argument"), [("x86_64", "%di"), ("aarch64", "%x0")])
def test_a_uprobe_in_the_c_library(arch: str, argument: str) -> None:
    """At its entry `puts` gets the text that the program then writes."""
    try:
        root = sysroot(arch)
    except SysrootUnavailable as reason:
        pytest.skip(str(reason))
    libraries = sorted(root.glob("usr/lib/*-linux-gnu/libc.so.6"))
    path = "/" + str(libraries[0].relative_to(root))
    offset = offset_of(libraries[0], "malloc")
    program = root / "usr/bin/lua5.4"
    with loaded(program, "-e", "print(('x'):rep(12345):len())", root=str(root)) as guest:
        tracing = guest.tracing()
        tracing.definitions.define(f"p:c/malloc {path}:{offset:#x} size={argument}:u64")
        reports = guest.run(tracing)

        assert (guest.out, reports.exit_code) == ("12345\n", 0)
        sizes = [int(row.rpartition("=")[2]) for row in guest.events]
        assert 5 < len(sizes) < 10_000
        assert any(size > 12345 for size in sizes)  # the string that Lua repeats
        assert heads(reports) == []
        # Mapped, and named in a definition, it was read once.
        mapping = next(m for m in guest.session.memory.mappings if m.name == path)
        module = guest.session.modules.at(mapping.start)
        file = guest.session.probes().verdicts.file_of(
            guest.session.probes().verdicts.places.resolve(f"{path}:{offset:#x}")[0]
        )
        assert module is not None
        assert file.image is module.image
        assert file.symbols is module.symbols


def test_slots_are_no_memory_of_the_guest() -> None:
    """What a program asks about its memory (getrusage, sysinfo) does not change."""
    with loaded(RECURSION) as guest:
        memory = guest.session.memory
        before = memory.used()
        guest.tracing().definitions.on_entries("*")
        points = guest.session.probes().manager.points.values()
        assert any(point.slot is not None for point in points)
        assert memory.used() == before > 0
