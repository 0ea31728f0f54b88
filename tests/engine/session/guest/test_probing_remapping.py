"""Probes of files that come and go, with the counters that say whether anybody is probing."""

import re
from pathlib import Path

import pytest
from archkit import COMPILED
from compiled import build
from controlkit import held
from graphkit import compiled
from sessionkit import heads, loaded

from engine.arch.plan import Mode
from engine.guest.memory import MappingError
from engine.image import ElfImage, SymbolTable
from engine.session.protocol import commands as cmd
from engine.session.protocol.requests import TraceOptions

# `users` is what an SDT marker calls its semaphore, where one puts it: what stands in .bss is
# cleared by the loader after it was counted.
LIBRARY = """
__attribute__((section(".probes"))) short users = 0;
short more = 7;
int label = 40;
int plug(int a) { label++; return a + users * 10 + more * 100; }
int other(int a) { return a + users; }
"""
# Opens the library `argv[2]` times, each time elsewhere; the last time two calls.
LOADER = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
int seen = 5;
int main(int argc, char **argv) {
    int rounds = atoi(argv[2]);
    for (int round = 1; round <= rounds; round++) {
        void *handle = dlopen(argv[1], RTLD_NOW);
        if (!handle) { puts(dlerror()); return 1; }
        int (*plug)(int) = (int (*)(int))dlsym(handle, "plug");
        printf("%d ", plug(round));
        seen += round;
        if (round == rounds) printf("%d ", plug(9));
        dlclose(handle);
        mmap((void *)((unsigned long)plug & ~4095ul), 4096, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    puts("");
    return 0;
}
"""

# Remaps the page of work() and other() in a way of its own, and calls work() where it is then.
MOVER = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define P 4096ul
#define MOVED __attribute__((noinline, aligned(4096), section(".text.moved")))
extern char __executable_start;
MOVED long work(long x) { __asm__ volatile("" ::: "memory"); return x * 3 + 1; }
__attribute__((noinline, section(".text.moved"))) long other(long x) {
    __asm__ volatile("" ::: "memory");
    return work(x) * 5 + 2;
}
__attribute__((noinline, aligned(4096), section(".text.kept"))) long kept(long x) {
    __asm__ volatile("" ::: "memory");
    return x + 4;
}
__attribute__((noinline, section(".text.kept"))) long leave(char *page) {
    mprotect(page, P, PROT_READ);
    mprotect(page, P, PROT_READ | PROT_EXEC);
    char *spot = mmap(0, P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mremap(page, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, spot);
    mremap(spot, P, P, MREMAP_MAYMOVE | MREMAP_FIXED, page);
    return 1;
}
__attribute__((noinline, section(".text.moved"))) long away(char *page) {
    long x = leave(page);
    __asm__ volatile("" ::: "memory");
    return x + 1;
}
#define CALL(f, at, x) ((long (*)(long))((at) + ((unsigned long)(f) & (P - 1))))(x)
#define MOVE(from, to, size, how) mremap(from, P, size, MREMAP_MAYMOVE | MREMAP_FIXED | how, to)
#define AGAIN(to) mmap(to, P, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, page - start)
int main(int argc, char **argv) {
    char *page = (char *)((unsigned long)work & -P), *at = page, *start = &__executable_start;
    char *spot = mmap(0, 4 * P, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = open("/proc/self/exe", O_RDONLY);
    long sum = 0;
    for (int i = 0; i < 300; i++)
        sum += work(i) + other(i);
    switch (*argv[1]) {
    case 'm': at = MOVE(page, spot, P, 0); break;
    case 'g': at = MOVE(page, spot, 2 * P, 0); break;
    case 'b':
        at = MOVE(page, spot, P, 0);
        sum += CALL(work, at, 1);
        at = MOVE(at, page, P, 0);
        break;
    case 'd':
        at = MOVE(page, spot, P, MREMAP_DONTUNMAP);
        sum += CALL(work, at, 3) + CALL(work, page, 4);
        break;
    case 'n':
        mprotect(page, P, PROT_NONE);
        mprotect(page, P, PROT_READ | PROT_EXEC);
        break;
    case 'r': mprotect(page, P, PROT_READ); mprotect(page, P, PROT_READ | PROT_EXEC); break;
    case 'c': madvise(page, P, MADV_DONTNEED); break;
    case 's':
        madvise(page, P, MADV_DONTNEED);
        sum += work(1);
        mprotect(page, P, PROT_READ);
        mprotect(page, P, PROT_READ | PROT_EXEC);
        break;
    case 'u': munmap(page, P); at = AGAIN(page); break;
    case 'e': munmap(page, P); at = AGAIN(spot); break;
    case 'o': at = AGAIN(page); break;
    case 'a': for (int i = 0; i < 3; i++) sum += away(page); break;
    case 'l': munmap(page, P); printf("%ld\\n", sum + kept(1)); return 0;
    }
    if (at == MAP_FAILED)
        return 1;
    for (int i = 0; i < 300; i++)
        sum = sum * 7 + CALL(work, at, i) + kept(i);
    printf("%ld\\n", sum);
    return 0;
}
"""

both = pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("remapping")
    library = build(folder, "libplug.so", LIBRARY, "-shared", "-fPIC", "-O1")
    return build(folder, "loader", LOADER, "-O1", "-ldl"), library


def offset_of(path: Path, name: str) -> int:
    image = ElfImage.open(str(path))
    offset = image.file_offset(SymbolTable(image).find_all(name)[0].address)
    assert offset is not None
    return offset


@both
def test_a_uprobe_is_placed_again_whenever_its_file_is_mapped(
    programs: tuple[Path, Path], mode: Mode
) -> None:
    program, library = programs
    share = ((str(library), False),)
    with loaded(program, str(library), "3", shares=share) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        place = f"{library}:{offset_of(library, 'plug'):#x}"
        tracing.definitions.define(
            f"p:g/in {place} a=%di:s32 label=@+{label_offset(library):#x}:s32"
        )
        tracing.definitions.define(f"r:g/out {place} v=$retval:s32")
        reports = guest.run(tracing)

        assert guest.out == "701 702 703 709 \n"
        assert heads(reports) == []
        found = [re.sub(r"\(.*?\)", "()", row) for row in guest.events]
        assert found == [
            row
            for a, label in ((1, 40), (2, 40), (3, 40), (9, 41))
            for row in (f"in: () a={a} label={label}", f"out: () v={700 + a}")
        ]
        addresses = {row.split("(")[1].partition(")")[0] for row in guest.events[::2]}
        assert len(addresses) == 3  # it was mapped elsewhere each time
        waiting = [(item.probe.name, item.fate.again) for item in guest.session.probes().pending]
        assert sorted(waiting) == [("g/in", True), ("g/out", True)]
        assert all(event.probes[0].hits == 4 for event in tracing.events.values())


def label_offset(library: Path) -> int:
    """What `@+OFF` is for the library's `label`."""
    image = ElfImage.open(str(library))
    symbols = SymbolTable(image)
    plug, label = (symbols.find_all(name)[0].address for name in ("plug", "label"))
    return label - plug + (image.file_offset(plug) or 0)


@both
@pytest.mark.parametrize("counter", ["users", "more"])
def test_a_counter_is_one_higher_in_each_mapping(
    programs: tuple[Path, Path], counter: str, mode: Mode
) -> None:
    """It waits for its page: the loader maps the code first. A return probe at the same place
    does not count again, one at another place does."""
    program, library = programs
    share = ((str(library), False),)
    with loaded(program, str(library), "2", shares=share) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        reference = f"({offset_of(library, counter):#x})"
        plug = f"{library}:{offset_of(library, 'plug'):#x}"
        tracing.definitions.define(f"p:g/a {plug}{reference}")
        tracing.definitions.define(f"r:g/b {plug}{reference}")
        tracing.definitions.define(f"p:g/c {library}:{offset_of(library, 'other'):#x}{reference}")
        reports = guest.run(tracing)

        more = 2 * (10 if counter == "users" else 100)
        assert guest.out == f"{701 + more} {702 + more} {709 + more} \n"
        assert heads(reports) == []
        assert len(guest.events) == 6


def test_a_counter_goes_down_with_its_breakpoint(programs: tuple[Path, Path]) -> None:
    """Of the program itself: at once, and not below zero."""
    program, _ = programs
    with loaded(program, "none", "0") as guest:
        session = guest.session
        tracing = guest.tracing()
        main, seen = (f"{offset_of(program, name):#x}" for name in ("main", "seen"))
        address = session.probes().where("seen")
        assert address is not None

        def value() -> int:
            return int.from_bytes(session.memory.read(address, 2), "little")

        assert value() == 5
        tracing.definitions.define(f"p:g/a {program}:{main}({seen})")
        assert value() == 6
        (probe,) = tracing.events["g", "a"].probes
        session.probes().manager.disable(probe)
        assert value() == 5
        session.probes().manager.enable(probe)
        assert value() == 6
        session.memory.poke(address, bytes(2))
        tracing.definitions.define("-:g/a")
        assert value() == 0
        assert session.probes().notices == [
            f"the reference counter at {address:#x} would become -1"
        ]


def test_a_fresh_run_counts_afresh(programs: tuple[Path, Path]) -> None:
    """Each run has the counter of its own probes, whatever became of it in the one before."""
    program, _ = programs
    main, seen = (f"{offset_of(program, name):#x}" for name in ("main", "seen"))
    with held(str(program), "none", "0") as guest:

        def value() -> int:
            address = guest.control.session.probes().where("seen")
            assert address is not None
            return int.from_bytes(guest.control.session.memory.read(address, 2), "little")

        guest.do(cmd.Define(f"p:g/a {program}:{main}({seen})", stops=True), cmd.Continue())
        assert value() == 6
        address = guest.control.session.probes().where("seen") or 0
        guest.do(cmd.WriteMemory(address, bytes([90])), cmd.Restart())
        assert value() == 6
        guest.do(cmd.Continue(), cmd.Restart(), cmd.Enable((1,), on=False))
        assert value() == 5
        guest.do(cmd.Restart())
        assert value() == 5
        guest.do(cmd.Enable((1,)))
        assert value() == 6
        guest.do(cmd.Delete((1,)), cmd.Restart())
        assert value() == 5


def test_symbols_of_other_files_are_found_where_they_are_mapped(
    programs: tuple[Path, Path],
) -> None:
    program, library = programs
    preload = (f"LD_PRELOAD={library}",)
    share = ((str(library), False),)
    with loaded(program, str(library), "1", shares=share, env=preload) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p:g/own main v=@seen:s32")
        tracing.definitions.define("p:g/far main v=@label:s32 w=@more-2:s16[2] x=+0(@label):u8")
        tracing.definitions.define("p:g/near libplug.so:plug v=@label:s32 w=@seen:s32")
        guest.run(tracing)

        found = sorted(re.sub(r"\(.*?\)", "()", row) for row in guest.events)
        assert found == [
            "far: () v=40 w={0,7} x=0",
            "near: () v=40 w=5",
            "near: () v=41 w=6",
            "own: () v=5",
        ]


WAYS = {"m": 900, "g": 900, "b": 901, "d": 901, "n": 900, "r": 900, "c": 900, "u": 900, "e": 900}
"""Ways to remap code to the hits of a uprobe on work() in the running kernel.

But for "c": there Linux loses the breakpoint with the page, and has 600.
"""
WAYS |= {"o": 900, "l": 600}
FAR = {"m": 1, "g": 1, "b": 2, "d": 1, "e": 1}
"""Those after which the code is somewhere else: how often it was moved."""


@pytest.fixture(scope="module", params=COMPILED)
def mover(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mover")
    return compiled(folder, MOVER, request.param, "-O1")


@pytest.mark.parametrize("technique", ["auto", pytest.param("breakpoint", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_probes_follow_the_code_of_the_program(mover: Path, way: str, technique: str) -> None:
    with loaded(mover, way, technique=technique) as plain:
        plain.session.cpu.count_blocks(True)
        plain.run()
        want = plain.out, plain.session.process.exit, plain.session.cpu.blocks()
    with loaded(mover, way, technique=technique) as guest:
        tracing = guest.tracing()
        for line in ("p:g/in work", "r:g/out work", "p:g/other other", "p:g/kept kept"):
            tracing.definitions.define(line)
        guest.session.cpu.count_blocks(True)
        guest.run(tracing)
        session = guest.session

        assert (guest.out, session.process.exit, session.cpu.blocks()) == want
        rows = [row.partition(":")[0] for row in guest.events]
        assert [rows.count(name) for name in ("in", "out", "other", "kept")] == [
            WAYS[way],
            WAYS[way],
            300,
            1 if way == "l" else 300,
        ]
        told = [text for text in session.probes().notices if "has moved its code" in text]
        assert len(told) == 3 * FAR.get(way, 0)
        left = {item.probe.name for item in session.probes().left_behind()}
        assert left == ({"g/in", "g/out", "g/other"} if way == "l" else set())


@both
@pytest.mark.parametrize(("way", "hits", "kept"), [("c", 600, 900), ("s", 900, 901)])
def test_breakpoints_of_uprobes_go_with_a_dropped_page(
    mover: Path, mode: Mode, way: str, hits: int, kept: int
) -> None:
    """As on Linux (live, 6.18), until the mapping is split; strict mode keeps them."""
    with loaded(mover, way) as plain:
        plain.run()
        want = plain.out
    with loaded(mover, way) as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        place = f"{mover}:{offset_of(mover, 'work'):#x}"
        tracing.definitions.define(f"p:g/in {place}")
        tracing.definitions.define(f"r:g/out {place}")
        tracing.definitions.define("p:g/own other")
        guest.run(tracing)

        assert guest.out == want
        names = [row.partition(":")[0] for row in guest.events]
        kernel = mode is Mode.KERNEL
        for name in ("in", "out"):
            assert names.count(name) == (hits if kernel else kept)
        assert names.count("own") == 300  # a kprobe knows no such thing
        told = [text for text in guest.session.probes().notices if "has dropped its page" in text]
        assert len(told) == (2 if kernel else 0)


@pytest.mark.parametrize("mode", list(Mode), ids=lambda mode: mode.value)
def test_a_call_that_returns_to_code_that_was_away(mover: Path, mode: Mode) -> None:
    """Where returns are watched, its return is not seen any more; that is told."""
    with loaded(mover, "a") as plain:
        plain.run()
        want = plain.out
    with loaded(mover, "a") as guest:
        tracing = guest.tracing(TraceOptions(mode=mode))
        tracing.definitions.define("r:g/out leave")
        reports = guest.run(tracing)

        assert guest.out == want
        strict = mode is Mode.STRICT
        assert len(guest.events) == (0 if strict else 3)
        told = "calls that do not return, or to where no probe can stand:\ng/out: 3 of 3 calls"
        assert heads(reports) == ([told] if strict else [])


def test_a_move_that_fails_leaves_the_probes(mover: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no memory for the copy: the code stays, and so does what stands there."""
    with loaded(mover, "m") as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p:g/in work")

        def none(*words: object) -> None:
            raise MappingError(12)

        monkeypatch.setattr(guest.session.memory.pager, "copy", none)
        guest.run(tracing)
        assert len(guest.events) == 600
        assert guest.session.process.exit is not None
        assert guest.session.process.exit.code == 1
        work = guest.session.probes().where("work")
        assert guest.session.probes().manager.points[work or 0].armed
