"""The processor of --guest-cpu v3, against this machine's own, and what refuses it."""

import re
import subprocess
from pathlib import Path

import pytest
from compiled import build, tool
from guestrun import run
from sessionkit import SAMPLES
from sysroot import CHECKOUT

from engine.arch import by_name
from engine.arch.x86_64 import haswell
from engine.cpu import native

_XSTATE = Path(__file__).parents[3] / "data" / "avx" / "xstate.c"
needs_vectors = pytest.mark.skipif(
    not native.lends(), reason="the host has no AVX2 to lend, or its code is not wanted"
)

LEAVES = r"""
#include <cpuid.h>
#include <stdio.h>
int main(void)
{
    unsigned firsts[] = {0, 0x40000000, 0x80000000}, lasts[] = {0xe, 0x40000001, 0x80000009};
    for (int range = 0; range < 3; range++)
        for (unsigned leaf = firsts[range]; leaf <= lasts[range]; leaf++)
            for (int sub = 0; sub < 5; sub++) {
                unsigned a, b, c, d;
                __cpuid_count(leaf, sub, a, b, c, d);
                printf("%x.%d %08x %08x %08x %08x\n", leaf, sub, a, b, c, d);
            }
    return 0;
}
"""


SEARCHES = r"""
#include <math.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    static char text[5000], copy[5000];
    unsigned long found = 0;
    double sum = 0;
    memset(text, 'a', sizeof text - 1);
    for (int at = 1; at < 900; at++) {
        text[at] = 'b';
        found += (char *)memchr(text, 'b', sizeof text) - text + strlen(text + at);
        memcpy(copy, text, sizeof text);
        found += strcmp(copy, text) == 0;
        text[at] = 'a';
        sum += exp(at / 90.0) * sin(at);
    }
    printf("%lu\n%a\n", found, sum);
    return 0;
}
"""


@needs_vectors
def test_its_state_is_saved_and_restored_as_here(tmp_path: Path) -> None:
    options = ("-O1", "-mavx2", "-mxsave", "-mxsaveopt", "-w", "-static")
    program = build(tmp_path, "xstate", _XSTATE.read_text(), *options)
    natively = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    assert len(natively.splitlines()) > 80

    assert run("run", "--guest-cpu", "v3", str(program), cwd=tmp_path).out == natively


@needs_vectors
def test_cpuid_tells_of_more_and_of_nothing_else(tmp_path: Path) -> None:
    program = build(tmp_path, "leaves", LEAVES, "-static")
    usual, later = (
        run("run", "--guest-cpu", level, str(program), cwd=tmp_path).out.splitlines()
        for level in ("v2", "v3")
    )
    assert len(usual) == len(later)
    differing = {two.split()[0] for one, two in zip(usual, later, strict=True) if one != two}
    # Where there is no leaf the highest answers: that of the state's size.
    assert {name.split(".")[0] for name in differing} == {
        *("1", "7", "d", "e", "80000001", "80000002", "80000003", "80000004", "80000009")
    }
    told = {line.split()[0]: [int(word, 16) for word in line.split()[1:]] for line in later}
    assert told["1.0"][2] & (1 << 12 | 1 << 22 | 7 << 27) == 1 << 12 | 1 << 22 | 7 << 27
    assert told["7.0"][1] & 0x128 == 0x128
    assert told["80000001.0"][2] & 0x20


@needs_vectors
def test_glibc_and_the_kernel_see_it(tmp_path: Path) -> None:
    loader = Path("/lib64/ld-linux-x86-64.so.2")
    if not loader.exists():
        pytest.skip("no glibc")
    done = run("run", "--guest-cpu", "v3", str(loader), "--help", cwd=tmp_path)
    assert "x86-64-v3 (supported, searched)" in done.out
    assert "x86-64-v4 (supported" not in done.out
    flags = run("run", "--guest-cpu", "v3", "/bin/cat", "/proc/cpuinfo", cwd=tmp_path).out
    assert {"avx2", "fma", "bmi2", "abm", "movbe", "f16c"} <= set(flags.split())


@needs_vectors
def test_programs_use_it(tmp_path: Path) -> None:
    program = build(tmp_path, "searches", SEARCHES, "-fno-builtin", "-lm")
    natively = subprocess.run([program], capture_output=True, check=True, text=True).stdout
    usual, later = (
        run("run", "--debug", "--guest-cpu", level, str(program), cwd=tmp_path)
        for level in ("v2", "v3")
    )
    assert later.out == natively
    assert usual.out.splitlines()[0] == natively.splitlines()[0]
    assert "AVX" not in usual.err
    counted = re.search(r"(\d+) AVX, FMA and BMI instructions", later.err)
    assert counted is not None
    assert int(counted[1]) > 10_000


@needs_vectors
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "least"),
    [
        (("openssl", "dgst", "-sha256", "data"), 10_000_000),
        (("openssl", "dgst", "-sha512", "data"), 10_000_000),
        (("openssl", "enc", "-chacha20", "-K", "00", "-iv", "00", "-in", "data"), 1_000_000),
        (("bash", "-c", "for i in {1..99}; do echo $((i * i)) ${i/9/x}; done | sort -r"), 10_000),
        (
            (
                "/usr/bin/python3",
                "-c",
                "import json; print(json.dumps([n / 3 for n in range(999)]))",
            ),
            10_000,
        ),
    ],
)
def test_real_programs_do_what_they_do_here(
    words: tuple[str, ...], least: int, tmp_path: Path
) -> None:
    (tmp_path / "data").write_bytes(bytes(range(256)) * 8192)
    program = [tool(words[0]), *words[1:]]
    natively = subprocess.run(program, cwd=tmp_path, capture_output=True, check=True).stdout
    done = run("run", "--debug", "--guest-cpu", "v3", *program, cwd=tmp_path)
    assert done.out == natively.decode(errors="replace")
    counted = re.search(r"(\d+) AVX, FMA and BMI instructions", done.err)
    assert counted is not None
    assert int(counted[1]) > least


@needs_vectors
@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["float", "memstr", "qsort"])
def test_what_a_compiler_makes_for_it_does_what_it_does_here(kernel: str, tmp_path: Path) -> None:
    source = CHECKOUT / "tests" / "benchmarks" / "src" / "bench.c"
    program = build(
        tmp_path, "bench", source.read_text(), "-O3", "-march=x86-64-v3", "-static", "-lm"
    )
    natively = subprocess.run([program, kernel, "300"], capture_output=True, check=True, text=True)
    for level in ("v2", "v3"):
        done = run(
            "run", "--debug", "--guest-cpu", level, str(program), kernel, "300", cwd=tmp_path
        )
        assert done.out == natively.stdout
    assert "AVX, FMA and BMI instructions" in done.err


@needs_vectors
def test_a_recording_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("record", "-o", "run.rec", "--guest-cpu", "v3", "/bin/echo", "seen")
    assert run(*words, cwd=tmp_path).out == "seen\n"
    assert run("replay", "run.rec", cwd=tmp_path).out == "seen\n"

    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    done = run("replay", "run.rec", cwd=tmp_path)
    assert done.code == 2
    assert "recorded with --guest-cpu v3: this machine lends no AVX2" in done.err


def test_who_cannot_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("run", "--guest-cpu", "v3", str(SAMPLES / "aarch64" / "sort"), cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "kprobe-tui: --guest-cpu v3: aarch64 has the usual processor only\n",
    )
    monkeypatch.setenv("KPROBE_TUI_PORTABLE", "1")
    done = run("run", "--guest-cpu", "v3", str(SAMPLES / "x86_64" / "sort"), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "--guest-cpu v3: this machine lends no AVX2" in done.err


def test_records_have_names() -> None:
    record = by_name("x86_64-v3")
    assert (record.name, record.full_name, by_name("x86_64").full_name) == (
        *("x86_64", "x86_64-v3", "x86_64"),
    )
    for name in ("x86_64-v4", "aarch64-v3", "vax", "vax-v3", "x86_64-v3-v3"):
        with pytest.raises(KeyError):
            by_name(name)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("0fa2", "cpuid"),
        ("0f01d0", "xgetbv"),
        ("0fae21", "xsave"),
        ("480fae6910", "xrstor"),
        ("0faeb100010000", "xsaveopt"),
        ("660fae31", ""),  # clwb
        ("f30fae21", ""),
        ("0faee8", ""),  # lfence
        ("0f01d1", ""),  # xsetbv
        ("0fae29", "xrstor"),
    ],
)
def test_instructions_of_its_own(code: str, what: str) -> None:
    record = by_name("x86_64-v3")
    raw = bytes.fromhex(code)
    assert haswell.own(raw) == what
    assert not (what and record.clears(b"\x90" + raw))
