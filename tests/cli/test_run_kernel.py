"""Kernel images as guests of the commands that run one: their arguments are calls."""

import json

import pytest
from guestrun import called
from kernelimages import AMD64_61, ARM64_61, image_path, module_path

pytestmark = pytest.mark.slow

KSTRDUP = 'kstrdup("abc", GFP_KERNEL)'


def test_events_are_recorded_in_functions_that_are_called() -> None:
    done = called("trace", "-e", "p:m/d kstrdup s", "-e", "r:m/l strlen n=$retval:u64",
               image_path(AMD64_61), KSTRDUP)  # fmt: skip
    assert done.returncode == 0
    assert done.stdout.startswith(f"{KSTRDUP} = (char *) 0xffff8880")
    rows = [line.split(": ", 1)[1] for line in done.stderr.splitlines() if line[:1] != "#"]
    assert [row.partition("=")[0] for row in rows] == [
        "d: (kstrdup+0x0/0x60) s",
        "l: (kstrdup+0x19/0x60 <- strlen) n",
        "r:m/l strlen n",
    ]
    assert rows[1].endswith("n=3")
    assert "refuses it (EINVAL): strlen is notrace: it has no site of ftrace" in rows[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("image", "length"),
    [
        (AMD64_61, "strlen(); /* ret=3 */"),
        # The assembler tells of its functions without types: BTF has them as void f(void).
        (ARM64_61, "__pi_strlen();"),
    ],
)
def test_all_functions_of_a_kernel_are_traced(image: str, length: str) -> None:
    done = called("graph", "-f", "*", "--retval", image_path(image), KSTRDUP, "gcd(48, 180)")
    assert done.returncode == 0
    rows = [line for line in done.stderr.splitlines() if line.startswith(" ")]
    calls = [row.split("|  ", 1)[1] for row in rows]
    assert calls[0] == "kstrdup() {"
    assert length in [line.strip() for line in calls]
    assert any(line.startswith(("gcd()", "} /* gcd ")) and "ret=12" in line for line in calls)


@pytest.mark.slow
@pytest.mark.parametrize("image", [AMD64_61, ARM64_61])
def test_probes_leave_what_is_called_as_it_is(image: str) -> None:
    call = 'snprintf(&out[40], 40, "%s %pI4", "abc", (u8[]){1,2,3,4})'
    done = called("diff", "--every-insn", "vsnprintf", "-r", "str*", image_path(image), call)
    assert done.stderr.splitlines()[-1] == "kprobe-tui: no effect"
    assert done.returncode == 0


def test_a_call_that_fails_ends_the_run_with_its_backtrace() -> None:
    done = called("run", image_path(AMD64_61), "kstrdup(0x10, 0)", "gcd(1, 2)")
    assert done.returncode == 1
    assert done.stdout == (
        "kstrdup(0x10, 0) did not return: read of 0x10, where nothing is mapped, at strlen+0x0\n"
    )
    names = [line.split(" in ")[1].split("+")[0] for line in done.stderr.splitlines()[1:]]
    assert names == ["strlen", "kstrdup"]


def test_a_module_is_called_with_its_kernel() -> None:
    words = "--kernel", image_path(AMD64_61), module_path("crc16"), 'crc16(0, "123456789", 9)'
    done = called("trace", "-e", "p:m/c crc16 len", *words)
    assert done.stdout == 'crc16(0, "123456789", 9) = (u16) 47933\n'
    assert done.stderr.splitlines()[-1].endswith("c: (crc16+0x0/0x2c) len=9")


def test_the_backtrace_of_a_place_ends_with_the_call() -> None:
    done = called("bt", "--json", "--at", "memcpy_erms", image_path(AMD64_61), KSTRDUP)
    found = json.loads(done.stdout)
    assert [frame["function"] for frame in found["frames"]] == ["memcpy_erms", "kstrdup"]
    assert found["end"] == "the outermost frame has no caller"


def test_what_is_no_call_is_refused_before_anything_runs() -> None:
    for call, why in (("gcd", "a call is needed"), ("nosuch()", "no function nosuch")):
        done = called("run", image_path(AMD64_61), "gcd(1, 2)", call)
        assert (done.returncode, done.stdout) == (2, "")
        assert why in done.stderr
