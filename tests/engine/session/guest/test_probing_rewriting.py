"""Probes of code that the program writes: its own bytes again, other ones, by whatever way."""

from pathlib import Path

import pytest
from archkit import COMPILED
from graphkit import compiled
from sessionkit import Guest, loaded

# Writes into the page of work() and other() five times; a capital letter: after mprotect, so that
# it is never writable and executable at once.
WRITER = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#define P 4096ul
#define WRITTEN __attribute__((noinline, section(".text.written")))
extern char __executable_start;
__attribute__((aligned(4096))) WRITTEN long work(long x) {
    __asm__ volatile("" ::: "memory");
    return x * 3 + 1;
}
WRITTEN long other(long x) { __asm__ volatile("" ::: "memory"); return work(x) * 5 + 2; }
__attribute__((noinline, aligned(4096), section(".text.kept"))) long kept(long x) {
    __asm__ volatile("" ::: "memory");
    return x + 4;
}
static unsigned char own[64];
int main(int argc, char **argv) {
    char way = *argv[1] | 32, opens = *argv[1] < 'a';
    unsigned char *page = (unsigned char *)((unsigned long)work & -P);
    volatile unsigned char *bytes = page;
    long sum = 0, offset = (char *)work - &__executable_start;
    int fd = open("/proc/self/exe", O_RDONLY);
    pread(fd, own, 64, offset);
    for (int i = 0; i < 300; i++)
        sum += work(i) + other(i);
    mprotect(page, P, PROT_READ | PROT_WRITE | (opens ? 0 : PROT_EXEC));
    for (int round = 0; round < 5; round++) {
        struct iovec parts[2] = {{page, 4}, {page + 4, 20}};
        switch (way) {
        case 'w': memcpy(page, own, 64); break;
        case 'b': for (int i = 0; i < 16; i++) bytes[i] = own[i]; break;
        case 'f': bytes[0] = own[0]; break;
        case 's': bytes[1] = own[1]; break;
        case 'p': bytes[3000] = round; break;
        case 'r': pread(fd, page, 64, offset); break;
        case 'v': preadv(fd, parts, 2, offset); break;
        case 'x': memcpy(own, page, 64); memcpy(page, own, 64); break;
        }
        if (opens)
            mprotect(page, P, PROT_READ | PROT_EXEC);
        for (int i = 0; i < 60; i++)
            sum = sum * 7 + work(i) + other(i) + kept(i);
        if (opens)
            mprotect(page, P, PROT_READ | PROT_WRITE);
    }
    printf("%ld\n", sum);
    return 0;
}
"""


@pytest.fixture(scope="module", params=COMPILED)
def writer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("writer"), WRITER, request.param, "-O1")


def end(guest: Guest) -> tuple[object, ...]:
    """All that a probe may not change."""
    session = guest.session
    return guest.out, session.process.exit, session.cpu.blocks(), session.machine.syscall_count


@pytest.mark.parametrize("technique", ["auto", pytest.param("breakpoint", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["w", "W", "b", "f", "F", "s", "p", "P", "r", "R", "v", "x", "X"])
def test_its_own_bytes_again(writer: Path, way: str, technique: str) -> None:
    """Of a whole function, of a part, elsewhere on its page; what it has read before ("x")."""
    with loaded(writer, way, technique=technique) as plain:
        plain.session.cpu.count_blocks(True)
        plain.run()
        want = end(plain)
    with loaded(writer, way, technique=technique) as guest:
        tracing = guest.tracing()
        for line in ("p:g/in work", "r:g/out work", "p:g/other other", "p:g/kept kept"):
            tracing.definitions.define(line)
        guest.session.cpu.count_blocks(True)
        guest.run(tracing)

        assert end(guest) == want
        rows = [row.partition(":")[0] for row in guest.events]
        found = [rows.count(name) for name in ("in", "out", "other", "kept")]
        assert found == [1200, 1200, 600, 300]
        assert guest.session.probes().notices == []


# Writes a page over itself, the very instruction that writes among it.
ITSELF = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#define PAGE __attribute__((noinline, section(".text.written")))
extern char __executable_start;
__attribute__((aligned(4096))) PAGE int work(int x) { __asm__ volatile(""); return x * 3 + 1; }
PAGE void words(void *to, void *from, long n) {
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(n) :: "memory");
}
PAGE void bytes(void *to, void *from, long n) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) :: "memory");
}
PAGE void loop(char *to, char *from, long n) {
    for (long i = 0; i < n; i++) ((volatile char *)to)[i] = from[i];
}
static char own[4096];
int main(int argc, char **argv) {
    char *page = (char *)((unsigned long)work & -4096ul);
    int fd = open("/proc/self/exe", O_RDONLY), sum = 0;
    pread(fd, own, 4096, page - &__executable_start);
    mprotect(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
    for (int i = 0; i < 3; i++) {
        sum = sum * 7 + work(i);
        switch (*argv[1]) {
        case 'w': words(page, own, 32); break;
        case 'b': bytes(page, own, 256); break;
        case 'l': loop(page, own, 256); break;
        }
    }
    printf("%d\\n", sum);
    return 0;
}
"""


@pytest.fixture(scope="module")
def itself(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("itself"), ITSELF, "x86_64", "-O1")


@pytest.mark.parametrize("technique", ["auto", "breakpoint"])
@pytest.mark.parametrize(("way", "name"), [("w", "words"), ("b", "bytes"), ("l", "loop")])
def test_the_writing_instruction_itself(itself: Path, way: str, name: str, technique: str) -> None:
    """It gets on, and the probes stay."""
    with loaded(itself, way) as plain:
        plain.run()
        want = plain.out
    with loaded(itself, way, technique=technique, max_blocks=200_000) as guest:
        tracing = guest.tracing()
        tracing.definitions.define("p:g/work work x=%di:s32")
        tracing.definitions.define("r:g/done work v=$retval:s32")
        tracing.definitions.define(f"p:g/write {name}")
        guest.run(tracing)

        assert guest.session.process.exit == plain.session.process.exit
        assert guest.out == want != ""
        names = [row.partition(":")[0] for row in guest.events]
        assert names == ["work", "done", "write"] * 3
