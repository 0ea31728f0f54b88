"""What Linux 7.2 and 7.3 say of casts, nesting, the running task and CPU, in kernel definitions.

Derived by reading kernel/trace/trace_probe.c and .h of the merge for 7.3 (6439079365dc): none of
these kernels was asked. Names and types are those of a 6.12.
"""

import copy

import pytest
from btfkit import BtfMaker
from kernelkit import GoldenKernel, golden_kernel

from engine.fetch.era import Version, era_of
from engine.image.kernel.btf import Btf
from engine.trace.kprobe_events import KprobeEvents

V7_1, V7_2, V7_3 = (7, 1, 0), (7, 2, 0), (7, 3, 0)
EINVAL, ENOENT, E2BIG, EOPNOTSUPP = -22, -2, -7, -95


def _kernel(monkeypatch: pytest.MonkeyPatch, version: Version) -> GoldenKernel:
    """A kernel of that version with a task_struct { unsigned int state, pid; }."""
    made = BtfMaker()
    word = made.integer("unsigned int", 4)
    made.record("task_struct", 16, ("state", word, 0), ("pid", word, 64))
    kernel = copy.copy(golden_kernel("amd64-6.12"))
    kernel.refusal, kernel.traceable = "", True
    kernel.types = (*kernel.types, Btf(made.data(), "made"))
    monkeypatch.setattr(GoldenKernel, "era", era_of(version))
    return kernel


def _answer(
    monkeypatch: pytest.MonkeyPatch, version: Version, line: str
) -> tuple[int, str | None, int | None]:
    outcome = KprobeEvents(_kernel(monkeypatch, version)).take(line)
    return outcome.rc, outcome.text, outcome.column


@pytest.mark.parametrize(
    "line",
    [
        "p vfs_read x=(file)$arg1->f_flags",
        "p vfs_read x=(file)buf->f_path.dentry",
        "p vfs_read x=(file)%di->f_flags:x32",
        "p vfs_read x=(file)(%di)->f_flags",
        "p vfs_read x=(file)+8(%di)->f_flags",
        "p vfs_read x=(file)$stack1->f_flags",
        "p vfs_read x=(file)@jiffies->f_flags",
        "p vfs_read x=(file)(@jiffies+8)->f_flags",
        "p vfs_read x=(file)this_cpu_ptr(%di)->f_flags",
        "p vfs_read x=(file,f_path.dentry)%di->f_flags",
        "p vfs_read x=(dentry)((file)buf->f_path.dentry)->d_name.name:string",
        "r vfs_read x=(file)$retval->f_flags",
        "r vfs_read x=(file)buf->f_flags",
        "p vfs_read x=+0((file)buf->f_path.dentry)",
        "p vfs_read $current",
        "p vfs_read x=$current->pid",
        "p vfs_read+5 x=$current->state:x32",
        "p vfs_read x=(file)$current->f_flags",
        "p vfs_read x=this_cpu_read(@jiffies):u64",
        "p vfs_read x=this_cpu_ptr(@jiffies)",
        "p vfs_read x=this_cpu_read(%di):string",
        "p vfs_read x=+0(+0(+0(+0(+0(+0(+0(+0(%di))))))))",
        f"p vfs_read x=+0x{'0' * 100}8(%di)",
    ],
)
def test_what_is_taken_since_7_3(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    assert _answer(monkeypatch, V7_3, line) == (0, None, None)


NOT_EVENT = "Typecasts are only for eprobe fields"
NO_BTF = "BTF is not available or not supported"
NO_STRUCT = "This is not a pointer to union/structure."
NEEDS_FIELD = "Typecast requires a field access"
NO_FIELD = "This field is not found."
NOT_CLOSED = "Dereference brace is not closed"
BAD_VAR = "Invalid $-variable specified"
NESTED = "Too many nested typecasts/dereferences"


@pytest.mark.parametrize(
    ("version", "line", "answer"),
    [
        # a cast of what is no field of an event
        (V7_1, "p vfs_read x=(file)buf->f_flags", (EINVAL, NO_BTF, 13)),
        (V7_2, "p vfs_read x=(file)buf->f_flags", (EINVAL, NOT_EVENT, 13)),
        (V7_2, "p vfs_read x=+0((file)buf->f_flags)", (EINVAL, NOT_EVENT, 16)),
        (V7_3, "p vfs_read+5 x=(file)%di->f_flags", (EOPNOTSUPP, NO_BTF, 15)),
        # its parts
        (V7_3, "p vfs_read (file", (EINVAL, NOT_CLOSED, 16)),
        (V7_3, "p vfs_read (file)", (EINVAL, NEEDS_FIELD, 17)),
        (V7_3, "p vfs_read (file)buf", (EINVAL, NEEDS_FIELD, 20)),
        (V7_3, "p vfs_read (file)(%di)f", (EINVAL, NEEDS_FIELD, 22)),
        (V7_3, "p vfs_read (file)(%di->f_flags", (EINVAL, NOT_CLOSED, 17)),
        (V7_3, "p vfs_read (file)+8(%di)", (EINVAL, NEEDS_FIELD, 24)),
        (V7_3, "p vfs_read (file)+8->f_flags", (EINVAL, "Dereference needs a brace", 17)),
        (V7_3, "p vfs_read (file)+8(%di->f_flags", (EINVAL, NOT_CLOSED, 32)),
        (
            V7_3,
            "p vfs_read (file)@jiffies+8->f_flags",
            (EINVAL, "@SYM+/-OFFSET with typecast needs parentheses", 17),
        ),
        # its names, from the inside to the outside
        (V7_3, "p vfs_read (nosuch)buf->x", (EINVAL, NO_STRUCT, 12)),
        (
            V7_3,
            "p vfs_read (nosuch)nobody->x",
            (ENOENT, "This variable is not found at this probe point", 19),
        ),
        (V7_3, "p vfs_read (file)buf->nosuch", (ENOENT, NO_FIELD, 22)),
        (V7_3, "p vfs_read (file)buf->f_path.nosuch", (ENOENT, NO_FIELD, 29)),
        (V7_3, "p vfs_read (file)buf->f_flags->x", (EINVAL, NO_STRUCT, 31)),
        (V7_3, "p vfs_read (file,nosuch)%di->f_flags", (ENOENT, NO_FIELD, 17)),
        (
            V7_3,
            "p vfs_read (file,f_path->dentry)%di->f_flags",
            (EINVAL, "Typecast field option does not support -> operator", 23),
        ),
        # at most eight within each other
        (V7_3, f"p vfs_read x={'+0(' * 9}%di{')' * 9}", (E2BIG, NESTED, 37)),
        (V7_2, f"p vfs_read x={'+0(' * 9}%di{')' * 9}", (0, None, None)),
        (V7_3, f"p vfs_read x={'+0(' * 8}this_cpu_ptr(%di{')' * 9}", (E2BIG, NESTED, 37)),
        # the running task and CPU
        (V7_2, "p vfs_read $current", (EINVAL, BAD_VAR, 11)),
        (V7_3, "p vfs_read $currently", (EINVAL, BAD_VAR, 11)),
        (V7_3, "p vfs_read $current.pid", (EINVAL, BAD_VAR, 11)),
        (V7_3, "p vfs_read $current->nosuch", (ENOENT, NO_FIELD, 21)),
        (
            V7_3,
            "p vfs_read $current-pid",
            (EINVAL, "Failed to parse single hyphen. Forgot '>'?", 19),
        ),
        (V7_3, "p vfs_read this_cpu_ptr(%di", (EINVAL, NOT_CLOSED, 27)),
        (V7_3, "p vfs_read this_cpu_ptr($comm)", (EINVAL, "$comm can not be dereferenced", 24)),
        (
            V7_3,
            "p vfs_read this_cpu_ptr(%di):string",
            (EINVAL, "String accepts only memory argument", 42),
        ),
        # texts, lengths, columns
        (V7_2, "p vfs_read @+8", (EINVAL, "File offset is not available with kprobe", 11)),
        (V7_3, "p vfs_read @+8", (EINVAL, "File offset is not available for kernel probes", 11)),
        (V7_2, f"p vfs_read +{'0' * 60}(%di)", (E2BIG, "Argument expression is too long", 11)),
        (V7_3, f"p vfs_read +{'0' * 60}(%di)", (0, None, None)),
        (V7_3, f"p vfs_read +{'0' * 250}(%di)", (E2BIG, "Argument expression is too long", 11)),
        (
            V7_3,
            "p vfs_read file->f_path.dentry->d_flags:string",
            (EINVAL, "This type does not fit for string.", 32),
        ),
    ],
)
def test_what_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    version: Version,
    line: str,
    answer: tuple[int, str | None, int | None],
) -> None:
    assert _answer(monkeypatch, version, line) == answer


def test_a_kernel_without_types_has_no_casts(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = _kernel(monkeypatch, V7_3)
    kernel.types = ()
    outcome = KprobeEvents(kernel).take("p vfs_read x=(file)%di->f_flags")
    assert (outcome.rc, outcome.text, outcome.column) == (EOPNOTSUPP, NO_BTF, 13)
