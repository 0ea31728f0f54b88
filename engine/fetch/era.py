"""The rules of the definition language that changed between versions of Linux.

One record says what a kernel's parser knows; nothing else compares versions. Each rule is named
after what is true of the later kernels, and `_SINCE` says with which version it came. Rules
that distributions carry in older kernels (the type `symstr`, the limit of an event's size, the
refusal of symbols that are not unique) hold for all eras.

Read in kernel/trace/trace_probe.c, trace_kprobe.c and trace_fprobe.c, and measured on Debian's
6.1.192, 6.12.117 and, of programs' probes, on 6.18. What came later was read alone, on no running
kernel: 7.3 as merged for 7.3-rc1 (commit 6439079365dc, the tag probes-v7.3) and as Debian's 7.3.4
has it, 7.2 in what that merge took away and in Debian's 7.2.13. All that differs between 6.12.117
and 7.2.13 in trace_probe.[ch], trace_kprobe.c, trace_uprobe.c, trace_fprobe.c and trace_dynevent.c
is a rule here or changes no answer. The dates of their patches tell the versions: events of
functions on the function graph are of December 2024 (6.14), the text of unknown types is of
November 2025 (6.19), a kernel's own symbols are of April 2026 (7.1), casts of May 2026 (7.2). 7.0
brought no rule of its own.
"""

from typing import Final

from msgspec import Struct

Version = tuple[int, int, int]
"""Version of a kernel: (6, 1, 192)."""


class Era(Struct, frozen=True):
    """The rules of one kernel.

    Attributes:
        char: the type `char`.
        btf: `$arg*`, and names of parameters as arguments.
        btf_fields: `a->b.c`, `$retval->f`, strings of variables, no `$retval` of a void function.
        function_events: `f:` and `t:` lines in dynamic_events; texts shared with them.
        caret_moves: an error found after the body counts from behind its outermost dereference.
        size_after_body: the size of an event is judged once the body is known to be good.
        own_folders: an event called `enable` or `filter` has a folder in spite of the files of
            these names beside it.
        comm_type_said: a type of `$comm` that is no string has a text.
        return_args: `$argN` and parameters in return events.
        long_is_e2big: an argument that is too long, or has too many steps, is E2BIG.
        dentry_types: the types `%pd` and `%pD`.
        symbol_checked_first: symbols, those of modules too, are looked for before the place of a
            return probe is judged, and are EINVAL if unknown or not unique.
        arguments_counted: more than 128 arguments are refused; earlier they were dropped.
        functions_without_maxactive: events of functions have none: nothing but a colon may follow
            the letter.
        functions_sought: a function that ftrace cannot trace is a place that is not there, and
            what a function's event fails with is EINVAL.
        count_said: that refusal has a text.
        late_tracepoints: a `t:` line may name a tracepoint that is not there, which a module may
            bring later.
        casts: a bracket begins the cast of a variable.
        unknown_type_said: a line of dynamic_events that is of no kind of event has a text.
        own_symbols_alone: a symbol of the kernel itself is unique whatever modules have; they were
            counted together before (and in 7.0 up to its stable release of May 2026).
        event_casts: such a cast is refused as one of eprobes alone.
        function_casts: `(STRUCT[,MEMBER])ARG->MEMBER` at the entry and the return of functions.
        task_and_cpu: `$current`, `this_cpu_ptr(ARG)` and `this_cpu_read(ARG)`.
        nesting_counted: at most eight dereferences and casts within each other.
        long_arguments: an argument may have 255 bytes; 63 before.
        member_columns: an error behind a member counts from that member.
        file_offsets_of_kernels: the refusal of `@+OFF` speaks of all kernel probes.
    """

    char: bool = True
    btf: bool = True
    btf_fields: bool = True
    function_events: bool = True
    caret_moves: bool = True
    size_after_body: bool = True
    own_folders: bool = True
    comm_type_said: bool = True
    return_args: bool = True
    long_is_e2big: bool = True
    dentry_types: bool = True
    symbol_checked_first: bool = True
    arguments_counted: bool = True
    functions_without_maxactive: bool = True
    functions_sought: bool = True
    count_said: bool = True
    late_tracepoints: bool = True
    casts: bool = True
    unknown_type_said: bool = True
    own_symbols_alone: bool = True
    event_casts: bool = True
    function_casts: bool = True
    task_and_cpu: bool = True
    nesting_counted: bool = True
    long_arguments: bool = True
    member_columns: bool = True
    file_offsets_of_kernels: bool = True

    def text(self, code: str, usual: str) -> str:
        """The words of an error, where they were others earlier."""
        if code == "BAD_MAXACT_TYPE" and not self.function_events:
            return "Maxactive is not for kprobe"
        if code == "NOFENTRY_ARGS" and not self.return_args:
            return "$arg* can be used only on function entry"
        if code == "FILE_ON_KPROBE" and not self.file_offsets_of_kernels:
            return "File offset is not available with kprobe"
        return usual


_SINCE: Final[dict[str, Version]] = {
    "char": (6, 4, 0),
    "btf": (6, 5, 0),
    "function_events": (6, 5, 0),
    "caret_moves": (6, 5, 0),
    "size_after_body": (6, 5, 0),
    "btf_fields": (6, 6, 0),
    "own_folders": (6, 6, 0),
    "comm_type_said": (6, 8, 0),
    "return_args": (6, 9, 0),
    "long_is_e2big": (6, 9, 0),
    "dentry_types": (6, 10, 0),
    "symbol_checked_first": (6, 12, 0),
    "arguments_counted": (6, 12, 0),
    "late_tracepoints": (6, 12, 0),
    "functions_without_maxactive": (6, 14, 0),
    "functions_sought": (6, 14, 0),
    "count_said": (6, 15, 0),
    "casts": (6, 18, 0),
    "unknown_type_said": (6, 19, 0),
    "own_symbols_alone": (7, 1, 0),
    "event_casts": (7, 2, 0),
    "function_casts": (7, 3, 0),
    "task_and_cpu": (7, 3, 0),
    "nesting_counted": (7, 3, 0),
    "long_arguments": (7, 3, 0),
    "member_columns": (7, 3, 0),
    "file_offsets_of_kernels": (7, 3, 0),
}


def era_of(version: Version) -> Era:
    """The rules of a version."""
    return Era(**{rule: version >= since for rule, since in _SINCE.items()})


MEASURED: Final = era_of((6, 18, 0))
"""The language of Linux 6.18, the last one that was asked: that of a program's probes."""
