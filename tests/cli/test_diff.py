"""The contract of `kprobe-tui diff`: exit codes, what is shown, what it refuses."""

import os
import subprocess
from pathlib import Path

import archkit
import pytest
from archkit import FIRST_COMPILED
from compiled import build
from guestrun import run
from ia64returns import GUESTS, RETURNS, WAYS
from sysroot import CHECKOUT

from engine.image import ElfImage
from engine.image.symbols import SymbolTable

RELOAD = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(void)
{
    int sum = 0;
    for (int n = 1; n <= 20; n++) {
        void *plug = dlopen("./plug.so", RTLD_NOW);
        int (*work)(int) = (int (*)(int))dlsym(plug, "work");
        sum += work(n);
        dlclose(plug);
    }
    return printf("%d\n", sum) != 4;
}
"""

SAMPLES = CHECKOUT / "samples" / "bin"

# Prints a checksum of the first bytes of one of its functions.
READS_ITSELF = r"""
#include <stdio.h>
__attribute__((noinline)) int work(int a) { __asm__ volatile("nop; nop"); return a * 3; }
int main(void) {
    unsigned sum = work(1);
    const volatile unsigned char *text = (const volatile unsigned char *)work;
    for (int i = 0; i < 4; i++) sum = sum * 31 + text[i];
    printf("%08x\n", sum);
    return 0;
}
"""


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_a_guest_that_reads_its_own_text(arch: str, tmp_path: Path) -> None:
    compiler = archkit.compiler(arch)
    (tmp_path / "self.c").write_text(READS_ITSELF)
    command = [compiler, "-O1", "-static", "-o", "self", "self.c"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"{compiler}: {built.stderr.splitlines()[-1]}")

    plain = run("run", "self", cwd=tmp_path)
    done = run("diff", "-e", "p:w work", "self", cwd=tmp_path)

    assert done.code == 1
    assert done.out == plain.out
    assert "the probes have an effect" in done.err
    assert " differs" in done.err  # the output, or already a register at a system call before it
    assert run("diff", "-e", "p:m main", "self", cwd=tmp_path).code == 0


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_standard_input_is_given_twice(arch: str, tmp_path: Path) -> None:
    guest = str(SAMPLES / arch / "lines")
    text = b"a foo b\nnothing\nfoo\n" * 300
    done = run("diff", "-f", "*", guest, "foo", cwd=tmp_path, stdin=text)

    assert (done.code, done.out.splitlines()[-1]) == (0, "600 of 900 lines, longest 7")
    assert done.out == run("run", guest, "foo", cwd=tmp_path, stdin=text).out


def test_usage(tmp_path: Path) -> None:
    guest = str(SAMPLES / "x86_64" / "sort")
    for words, text in (
        ((), "nothing to probe"),
        (("-f", "nosuch*"), "-f nosuch*: no function matches"),
        (("--every-insn", "nosuch*"), "no function matches"),
        (("--clock", "host", "-f", "*"), "--clock host makes two runs differ"),
        (("--share", f"{tmp_path}:rw", "-f", "*"), "the second run would see"),
    ):
        done = run("diff", *words, guest, cwd=tmp_path)
        assert done.code == 2, words
        assert text in done.err


# Does something else if the low bits of the address it returns to are those of a page.
LOOKS_AT_ITS_RETURN = r"""
#include <stdio.h>
__attribute__((noinline)) long where(void) { return (long)__builtin_return_address(0); }
int main(void) {
    long at = where();
    puts((at & 0xfff) == 0 ? "a trampoline" : "a caller");
    return 0;
}
"""


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_what_trampolines_declare_to_change_is_no_effect(arch: str, tmp_path: Path) -> None:
    for name in ("recursion", "sort", "structs"):
        guest = str(SAMPLES / arch / name)
        done = run("diff", "-r", "*", "--returns", "mainline", guest, cwd=tmp_path)
        assert (done.code, "no effect" in done.err) == (0, True), done.err


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_what_follows_from_a_trampoline_is_an_effect(arch: str, tmp_path: Path) -> None:
    compiler = archkit.compiler(arch)
    (tmp_path / "looks.c").write_text(LOOKS_AT_ITS_RETURN)
    command = [compiler, "-O1", "-static", "-o", "looks", "looks.c"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"{compiler}: {built.stderr.splitlines()[-1]}")
    codes = [
        run("diff", "-r", name, "--returns", way, "looks", cwd=tmp_path).code
        for name, way in (("where", "mainline"), ("where", "watched"), ("main", "mainline"))
    ]
    assert codes == [1, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_both_trampolines_of_ia64(way: str, tmp_path: Path) -> None:
    guests = [SAMPLES / "ia64" / "recursion"]
    guests += [GUESTS / f"{name}.elf" for name in ("a_rse", "tail_O0")]
    for guest in guests:
        done = run("diff", "-r", "*", "--returns", way, str(guest), cwd=tmp_path)
        assert (done.code, "no effect" in done.err) == (0, True), (guest, done.err)
    # Functions like setjmp do not survive that their return address is another one.
    done = run("diff", "-r", "*", "--returns", way, str(RETURNS), cwd=tmp_path)
    assert done.code == int(way != "watched"), done.err


def test_times_of_access_are_those_of_the_first_run(tmp_path: Path) -> None:
    """The plain run reads the file, from which on the host shows another time."""
    source = """
    #include <fcntl.h>
    #include <stdio.h>
    #include <sys/stat.h>
    #include <unistd.h>
    __attribute__((noinline)) long seen(const char *path) {
        struct stat found;
        return stat(path, &found) ? -1 : found.st_atime;
    }
    int main(int argc, char **argv) {
        char byte;
        printf("%ld\\n", seen(argv[1]));
        return read(open(argv[1], O_RDONLY), &byte, 1) != 1;
    }
    """
    program = build(tmp_path, "seen", source, "-O1")
    read = tmp_path / "read"
    read.write_text("text")
    os.utime(read, (1_500_000_000, read.stat().st_mtime))
    done = run("diff", "-e", "p seen", str(program), str(read), cwd=tmp_path)
    assert (done.code, done.out) == (0, "1500000000\n"), done.err


@pytest.mark.parametrize(
    "probes",
    [
        ("-e", "p told"),
        pytest.param(
            ("--technique", "jump", "-f", "libc.so.6:*"), marks=pytest.mark.slow, id="jumps"
        ),
        pytest.param(("-f", "*", "-r", "told"), marks=pytest.mark.slow, id="returns"),
    ],
)
def test_a_guest_is_told_of_no_memory_of_the_engines(
    tmp_path: Path, probes: tuple[str, ...]
) -> None:
    """By /proc, sysinfo and statfs, in a process and in its child."""
    source = r"""
    #include <stdio.h>
    #include <sys/statfs.h>
    #include <sys/sysinfo.h>
    #include <sys/wait.h>
    #include <unistd.h>
    __attribute__((noinline)) void told(const char *who) {
        struct sysinfo info;
        struct statfs space;
        char line[100];
        FILE *file = fopen("/proc/meminfo", "r");
        sysinfo(&info);
        statfs("/tmp", &space);
        printf("%s %lu %ld\n", who, info.freeram, (long)space.f_bfree);
        for (int i = 0; i < 3 && fgets(line, sizeof line, file); i++) fputs(line, stdout);
        fclose(file);
        fflush(stdout);
    }
    int main(void) {
        told("parent");
        if (!fork()) { told("child"); return 0; }
        wait(0);
        told("parent");
        return 0;
    }
    """
    program = build(tmp_path, "told", source, "-O1")
    done = run("diff", *probes, str(program), cwd=tmp_path)
    assert done.code == 0, done.err


def test_hits_of_code_that_is_gone_count(tmp_path: Path) -> None:
    build(tmp_path, "plug.so", "int work(int n) { return n * 3; }", "-O1", "-shared", "-fPIC")
    image = ElfImage.open(tmp_path / "plug.so")
    offset = image.file_offset(SymbolTable(image).find_all("work")[0].address)
    program = build(tmp_path, "reload", RELOAD, "-O1")
    done = run("diff", "-e", f"p:m/w {tmp_path}/plug.so:{offset:#x}", str(program), cwd=tmp_path)
    assert (done.out, done.code) == ("630\n", 0)
    assert "kprobe-tui: 1 probed places, 20 hits," in done.err
