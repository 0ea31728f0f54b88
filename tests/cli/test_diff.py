"""The contract of `kprobe-tui diff`: exit codes, what is shown, what it refuses."""

import subprocess
from pathlib import Path

import archkit
import pytest
from archkit import COMPILED
from guestrun import run
from sysroot import CHECKOUT

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


@pytest.mark.parametrize("arch", COMPILED)
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


@pytest.mark.parametrize("arch", COMPILED)
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
