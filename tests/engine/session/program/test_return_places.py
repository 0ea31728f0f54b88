"""Return probes by a trampoline where Linux's damage the program.

Linux 6.18 with a uretprobe there: `part` ends with 0 instead of 7; the second `setjmp`,
`sigsetjmp` and `getcontext` are never seen, as SIGILL kills the program; `swapcontext` ends in
SIGSEGV; `dlsym` says "RTLD_NEXT used in code not dynamically loaded".
"""

from pathlib import Path

import pytest
from archkit import COMPILERS, FIRST_COMPILED
from compiled import build
from controlkit import sample
from guestrun import run

from engine.arch.plan import Rules
from engine.session.program.opening import OpenedProgram
from engine.session.program.places import Places
from engine.session.program.return_places import spoiled_return
from engine.session.protocol.config import GuestConfig

SOURCE = Path(__file__).parents[3] / "data" / "uprobes" / "faults.S"
MAINLINE = ("trace", "--returns", "mainline", "-o", "/dev/null")

# `part` begins with `rbx` where a call would have left its return address.
PARTS = """
    .text
    .globl _start, whole, part
    .type _start, @function
    .type whole, @function
    .type part, @function
_start: mov $7, %ebx
    call whole
    mov %ebx, %edi
    mov $231, %eax
    syscall
    .size _start, .-_start
whole:
    .cfi_startproc
    push %rbx
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    jmp part
back: pop %rbx
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size whole, .-whole
part:
    .cfi_startproc
    .cfi_def_cfa_offset 16
    .cfi_offset rbx, -16
    xor %ebx, %ebx
    jmp back
    .cfi_endproc
    .size part, .-part
"""

KEEPERS = r"""
#include <setjmp.h>
#include <stdio.h>
#include <ucontext.h>
static jmp_buf jump;
static sigjmp_buf jump_with_mask;
static ucontext_t context, other, back;
static char stack[65536];
static volatile int times;
static void on_other(void) { puts("other"); swapcontext(&other, &back); puts("again"); }
int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 1) {
        int got = setjmp(jump);
        printf("setjmp %d\n", got);
        if (got < 2) longjmp(jump, got + 1);
        got = sigsetjmp(jump_with_mask, 1);
        printf("sigsetjmp %d\n", got);
        if (got < 2) siglongjmp(jump_with_mask, got + 1);
    }
    if (count == 2) {
        getcontext(&context);
        printf("getcontext %d\n", times);
        if (times++ < 2) setcontext(&context);
    }
    if (count == 3) {
        getcontext(&other);
        other.uc_stack.ss_sp = stack;
        other.uc_stack.ss_size = sizeof stack;
        other.uc_link = &back;
        makecontext(&other, on_other, 0);
        swapcontext(&back, &other);
        puts("here");
        swapcontext(&back, &other);
        puts("end");
    }
    return 0;
}
"""
SAID = (
    "setjmp 0\nsetjmp 1\nsetjmp 2\nsigsetjmp 0\nsigsetjmp 1\nsigsetjmp 2\n",
    "getcontext 0\ngetcontext 1\ngetcontext 2\n",
    "other\nhere\nagain\nend\n",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = SOURCE.read_text().partition("*/\n")[2]
    return build(tmp_path_factory.mktemp("faults"), "faults", source, "-nostdlib", "-static")


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("parts"), "parts", PARTS, "-nostdlib", "-static")


def keepers(folder: Path, arch: str, *flags: str) -> Path:
    return build(folder, "keepers", KEEPERS, "-O2", "-w", *flags, compiler=COMPILERS[arch])


def spoiled(path: Path) -> dict[str, str]:
    """Function to the rule of its fault, for all functions of a program."""
    opened = OpenedProgram.open(GuestConfig(guest=str(path), isolated=True))
    places = Places(opened.arch, opened.inspected())
    found = {p.name: spoiled_return(opened.arch, p) for p in places.matching("*", Rules.KPROBE)}
    return {name.removesuffix("+0x0"): one[0].rule for name, one in found.items() if one}


# -- code that nobody calls -----------------------------------------------------------------


def test_returns_of_code_that_nobody_calls(program: Path) -> None:
    words = ("trace", "-o", "/dev/null", "-e", "r:g/e _start", str(program))
    assert run(*words, cwd=program.parent).code == 1  # its argc: returns are watched
    refused = run(words[0], "--returns", "mainline", *words[1:], cwd=program.parent)
    assert refused.code == 2
    assert "return-no-caller: nobody calls an entry point" in refused.err
    assert "--returns watched" in refused.err
    left_out = run(*MAINLINE, "-r", "_start", str(program), cwd=program.parent)
    assert left_out.code == 1
    assert "no probe on _start" in left_out.err
    kernel = run(words[0], "--mode", "kernel", *words[1:], cwd=program.parent)
    assert kernel.code == 0  # the lowest byte of the trampoline's address
    assert "at an entry point that is argc (return-no-caller)" in kernel.err


@pytest.mark.parametrize("name", ["aarch64", "riscv64"])
def test_a_link_register_holds_nothing_there(name: str) -> None:
    program = str(sample(name, "recursion"))
    done = run(*MAINLINE, "-e", "r:g/e _start", program, cwd=Path(program).parent)
    assert done.code == 0
    assert "return-no-caller" not in done.err


# -- code that is jumped to -----------------------------------------------------------------


def test_returns_of_parts_of_functions(parts: Path) -> None:
    watched = run("trace", "-o", "/dev/null", "-e", "r part", str(parts), cwd=parts.parent)
    assert watched.code == 7
    refused = run(*MAINLINE, "-e", "r part", str(parts), cwd=parts.parent)
    assert refused.code == 2
    assert "return-no-entry: by the unwind table" in refused.err
    left_out = run(*MAINLINE, "-r", "*", str(parts), cwd=parts.parent)
    assert left_out.code == 7
    assert "return-no-entry" in left_out.err
    wanted = run(*MAINLINE, "-e", "!r part", str(parts), cwd=parts.parent)
    assert wanted.code == 0
    kernel = run(
        *("trace", "--mode", "kernel", "-o", "/dev/null", "-e", "r part", str(parts)),
        cwd=parts.parent,
    )
    assert kernel.code == 0
    assert "(return-no-entry)" in kernel.err


def test_returns_of_functions_without_symbols(parts: Path, tmp_path: Path) -> None:
    """A stripped program's functions are its unwind table's, parts of functions among them."""
    stripped = build(tmp_path, "stripped", PARTS, "-nostdlib", "-static", "-s")
    found = spoiled(stripped)
    (name,) = (name for name, rule in found.items() if rule == "return-no-entry")
    assert name == f"func_{address(parts, 'part'):#x}"
    done = run(*MAINLINE, "-r", "*", str(stripped), cwd=tmp_path)
    assert (done.code, "return-no-entry" in done.err) == (7, True)


def address(path: Path, name: str) -> int:
    opened = OpenedProgram.open(GuestConfig(guest=str(path), isolated=True))
    (place,) = Places(opened.arch, opened.inspected()).resolve(name)
    return place.link


# -- functions that keep their return address ------------------------------------------------


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_returns_of_functions_that_keep_their_return_address(arch: str, tmp_path: Path) -> None:
    path = keepers(tmp_path, arch, "-static")
    patterns = tuple(word for name in ("*setjmp", "*context") for word in ("-r", name))
    for more, said in enumerate(SAID):
        done = run(*MAINLINE, *patterns, str(path), *"ab"[:more], cwd=tmp_path)
        assert (done.code, done.out) == (0, said)
        assert "return-kept: " in done.err
        watched = run("trace", "-o", "/dev/null", *patterns, str(path), *"ab"[:more], cwd=tmp_path)
        assert (watched.code, watched.out) == (0, said)
    kernel = run(
        *("trace", "--mode", "kernel", "-o", "/dev/null", "-e", "r _setjmp", str(path)),
        cwd=tmp_path,
    )
    assert kernel.code > 128
    assert kernel.out == "setjmp 0\n"
    assert "(return-kept)" in kernel.err


@pytest.mark.parametrize("arch", FIRST_COMPILED)
def test_no_other_function_of_a_c_library_is_refused(arch: str, tmp_path: Path) -> None:
    """All of a static glibc's."""
    found = spoiled(keepers(tmp_path, arch, "-static"))
    named = [name for name, rule in found.items() if rule == "return-kept"]
    kept = {name.strip("_").removeprefix("GI_").strip("_") for name in named}
    assert {"setjmp", "sigsetjmp", "getcontext", "swapcontext"} <= kept
    parts = {name for name, rule in found.items() if rule == "return-no-entry"}
    odd = ("_dl_runtime_", "__start_context")
    assert all(".cold" in name or name.startswith(odd) for name in parts)
    alone = {name for name, rule in found.items() if rule == "return-no-caller"}
    assert alone == ({"_start", "__start_context", "__restore_rt"} if arch == "x86_64" else set())


def test_functions_of_a_library_that_is_not_mapped_yet_are_left_out(tmp_path: Path) -> None:
    path = keepers(tmp_path, "x86_64")
    done = run(*MAINLINE, "-r", "libc.so.6:*setjmp", str(path), cwd=tmp_path)
    assert (done.code, done.out) == (0, SAID[0])
    assert "return-kept: " in done.err
