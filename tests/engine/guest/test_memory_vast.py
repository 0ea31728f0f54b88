"""Memory that gets pages where it is touched first: recorded, stepped, probed, sanitized."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cguest import compiled, natively
from compiled import build, tool
from guestrun import run

PUT = """
#include <stdio.h>
#include <sys/mman.h>
char *volatile at;
__attribute__((noinline)) void put(char *p, int v) { *p = v; }
__attribute__((naked, noinline)) void pushed(char *p) {
    __asm__("xchg %rdi, %rsp; push %rax; xchg %rdi, %rsp; ret");
}
int main(void) {
    at = mmap(0, 1UL << 44, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < 5; i++) put(at + (1UL << 40) * i, i + 1);
    pushed(at + (1UL << 41) + (1 << 30));
    return at[1UL << 40];
}
"""


@pytest.fixture(scope="module")
def put(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("put"), "put", PUT, "-O1", "-g")


def test_a_first_touch_is_no_second_hit(put: Path, tmp_path: Path) -> None:
    """The displaced instruction goes on in its slot, as with a page fault of Linux."""
    for technique in ("breakpoint", "jump"):
        words = ("--technique", technique, "--every-insn", "put", "--every-insn", "pushed")
        done = run("diff", *words, str(put), cwd=tmp_path)
        assert done.err.endswith("no effect\n"), done.err
        assert re.search(r"\b14 hits", done.err), done.err  # put 5 times 2, pushed once


def test_a_step_passes_a_first_touch(put: Path, tmp_path: Path) -> None:
    words = ("break put", "record", "run", "stepi", "x/1xb at", "continue", "stepi",
             "x/1xb at+0x10000000000", "reverse-stepi", "x/1xb at+0x10000000000", "continue",
             "x/i $pc", "x/1xb at+0x10000000000")  # fmt: skip
    done = run("--batch", *(word for one in words for word in ("-ex", one)), str(put),
               cwd=tmp_path)  # fmt: skip
    bytes_seen = re.findall(r"^0x[0-9a-f]+:\t(0x[0-9a-f]+)$", done.out, re.M)
    assert bytes_seen == ["0x01", "0x02", "0x00", "0x02"], done.out
    assert done.out.count("Breakpoint 1, put") == 2  # each place once


@pytest.mark.parametrize("probes", [(), ("-e", "p:a/b areas")])
def test_a_recording_has_the_pages(probes: tuple[str, ...], tmp_path: Path) -> None:
    program, record = compiled("vast", "x86_64"), str(tmp_path / "vast.rec")
    done = run("record", "-o", record, str(program), cwd=tmp_path)
    assert f"{done.out}exit code {done.code}\n" == natively(program, tmp_path)
    again = run("replay", *probes, record, cwd=tmp_path)
    assert again.code == 0, again.err
    if probes:
        assert (again.out + again.err).count("areas+0x0") >= 5
    else:
        assert again.out == done.out


@pytest.mark.slow
def test_too_many_places_are_told_as_that(tmp_path: Path) -> None:
    source = """
    #include <sys/mman.h>
    int main(void) {
        char *at = mmap(0, 1UL << 46, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        for (long i = 0; i < 20000; i++) at[i << 31] = 1;
        return 0;
    }
    """
    done = run("run", str(build(tmp_path, "places", source, "-O1")), cwd=tmp_path)
    assert done.code == 137
    assert "touched its vast mappings in too many places" in done.err
    assert done.rss < 300


SANITIZED = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int shared, table[4];
__attribute__((noinline)) int at(int i) { return table[i]; }
__attribute__((noinline)) int sum(int a, int b) { return a + b; }
/* A pointer that is lost, and no copy of it on the stack. */
__attribute__((noinline)) void leaves(int again) {
    char room[8192];
    memset(room, 0, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    if (!again) return;
    char *lost = malloc(77);
    __asm__ volatile("" : "+r"(lost));
    lost = 0;
    leaves(0);
}
static void *count(void *p) { for (int i = 0; i < 100; i++) shared++; return p; }
int main(int argc, char **argv) {
    int mode = argc > 1 ? atoi(argv[1]) : 0;
    char *text = malloc(10);
    strcpy(text, "hello");
    printf("%s %d\\n", text, sum(at(2), mode));
    fflush(stdout);
    if (mode == 1) printf("%d\\n", text[10]);
    if (mode == 2) { free(text); printf("%d\\n", text[0]); }
    if (mode == 3) printf("%d\\n", at(argc + 3));
    if (mode == 4) printf("%d\\n", sum(0x7fffffff, argc));
    if (mode == 5) {
        pthread_t one, two;
        pthread_create(&one, 0, count, 0);
        pthread_create(&two, 0, count, 0);
        pthread_join(one, 0);
        pthread_join(two, 0);
    }
    if (mode == 6) leaves(1);
    if (mode == 7 && text[argc + 6]) puts("not known");
    if (mode != 2) free(text);
    puts("end");
    return 0;
}
"""


def reports(text: str) -> list[str]:
    """The lines of a sanitizer without ids, addresses and bytes of the heap."""
    text = re.sub(r"0x[0-9a-f]+|==\d+==|\(pid=\d+\)|\(tid=\d+", "", text)
    return [line for line in text.splitlines() if line and not line.startswith(" 00 ")]


@pytest.mark.slow
@pytest.mark.parametrize("mode", range(7))
@pytest.mark.parametrize("sanitizer", ["address", "undefined", "thread", "leak"])
def test_a_sanitizer_reports_what_it_does_natively(
    sanitizer: str, mode: int, tmp_path: Path
) -> None:
    _same_reports(sanitizer, mode, tmp_path, "gcc")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sanitizer", "mode"),
    [
        *(("address", 1), ("address", 2), ("address", 6), ("undefined", 3), ("undefined", 4)),
        *(("thread", 5), ("leak", 6), ("memory", 0), ("memory", 7)),
    ],
)
def test_so_do_those_of_clang(sanitizer: str, mode: int, tmp_path: Path) -> None:
    _same_reports(sanitizer, mode, tmp_path, "clang")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sanitizer", "mode"),
    [("address", 1), ("address", 2), ("undefined", 4), ("thread", 5), ("leak", 6)],
)
def test_on_aarch64_they_find_what_they_find_natively(
    sanitizer: str, mode: int, tmp_path: Path
) -> None:
    """Frames are another architecture's; qemu-user has neither threads' nor leaks' reports."""
    native = _natively(build(tmp_path, "sanitized", SANITIZED, *_flags(sanitizer)), mode)
    program, source = tmp_path / "other", tmp_path / "sanitized.c"
    gcc = tool("aarch64-linux-gnu-gcc")
    subprocess.run([gcc, "-o", program, source, *_flags(sanitizer)], check=True)
    done = run("run", "--root", "/usr/aarch64-linux-gnu", "--clean-env", str(program), str(mode),
               cwd=tmp_path, deadline=300)  # fmt: skip
    assert (done.code, done.out) == (native.returncode, native.stdout), done.err
    found = re.findall(_FINDINGS, done.err, re.M)
    assert found == re.findall(_FINDINGS, native.stderr, re.M) != []


_FINDINGS = r"^SUMMARY: .*|^(?:Direct|Indirect) leak .*|^.* runtime error: .*"


def _flags(sanitizer: str) -> tuple[str, ...]:
    return "-g", "-O1", "-w", f"-fsanitize={sanitizer}", "-pthread"


def _natively(program: Path, mode: int) -> subprocess.CompletedProcess[str]:
    setarch = shutil.which("setarch")
    if setarch is None:
        pytest.skip("no setarch")
    native = subprocess.run(
        [setarch, "-R", str(program), str(mode)],
        capture_output=True, text=True, check=False, cwd=program.parent, timeout=300,
        env={"PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    if "unexpected memory mapping" in native.stderr or "ptrace" in native.stderr:
        pytest.skip(f"it does not run here: {native.stderr[:200]}")
    return native


def _same_reports(sanitizer: str, mode: int, tmp_path: Path, compiler: str) -> None:
    program = build(tmp_path, "sanitized", SANITIZED, *_flags(sanitizer), compiler=compiler)
    native = _natively(program, mode)
    done = run("run", "--root", "/", "--clean-env", "--env", "PATH=/usr/bin:/bin", str(program),
               str(mode), cwd=tmp_path)  # fmt: skip
    code = native.returncode if native.returncode >= 0 else 128 - native.returncode
    own = "\n".join(line for line in done.err.splitlines() if not line.startswith("kprobe-tui:"))
    assert (done.code, done.out) == (code, native.stdout)
    ours, theirs = reports(own), reports(native.stderr)
    if mode == 5:  # whose turn it was, is luck natively
        heads = ("WARNING", "SUMMARY", "  Location", "ThreadSanitizer")
        ours, theirs = ([one for one in each if one.startswith(heads)] for each in (ours, theirs))
    assert ours == theirs
