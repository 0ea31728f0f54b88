"""The answers to words that are not carried out here: what to use in place of one of gdb's."""

from difflib import get_close_matches
from typing import Final

from engine.errors import CommandError

_PYTHON: Final = (
    "there is no Python in these words; `define` makes words of your own, and the chapter"
    ' "Python" of the handbook shows this program as a library'
)
_TRACEPOINTS: Final = (
    "probes record events here: kprobe-tui trace -e DEFINITION GUEST, or the probes of the"
    " interface"
)
_CHECKPOINT: Final = (
    "after `record` a run can be gone back: `mark NAME` keeps a moment, `goto NAME` returns to"
    " it, `branch` lives on from it in another way"
)
_PROGRAM: Final = "the program is the one of the command line: kprobe-tui [--batch] GUEST"
_CORE: Final = "a core file stands behind its program on the command line: kprobe-tui GUEST CORE"
_OTHER_PROCESSES: Final = (
    "the program runs in an emulator, in which no processes of this machine are"
)
_PROCESSES: Final = (
    "all processes of the program are followed: `info threads` lists their threads, `thread N`"
    " looks at one"
)
_INTERFACE: Final = "the interface is kprobe-tui GUEST, without --batch"
_FOLDER: Final = (
    "files are looked for in the folder that `pwd` says, in which all began; --cwd DIR is the"
    " program's"
)
_HOST: Final = "`shell COMMAND` runs it"

_WORDS: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("python", "py", "python-interactive", "pi", "guile", "gu", "guile-repl", "gr"), _PYTHON
    ),
    **dict.fromkeys(
        (
            *("trace", "tp", "tr", "tra", "trac", "ftrace", "strace", "tstart", "tstop"),
            *(
                "tstatus",
                "tfind",
                "tdump",
                "tsave",
                "tvariable",
                "collect",
                "actions",
                "passcount",
            ),
        ),
        _TRACEPOINTS,
    ),
    **dict.fromkeys(("checkpoint", "restart"), _CHECKPOINT),
    **dict.fromkeys(
        ("file", "exec-file", "symbol-file", "add-symbol-file", "remove-symbol-file", "load"),
        _PROGRAM,
    ),
    **dict.fromkeys(("core-file", "core"), _CORE),
    **dict.fromkeys(("attach", "target"), _OTHER_PROCESSES),
    **dict.fromkeys(
        ("inferior", "add-inferior", "clone-inferior", "remove-inferiors"), _PROCESSES
    ),
    **dict.fromkeys(
        ("tui", "layout", "focus", "refresh", "winheight", "winwidth", "winname"), _INTERFACE
    ),
    "compile": "`print` and `call` evaluate expressions, calls of functions included",
    "explore": "`print` shows a value with its parts, `ptype` its type",
    "maintenance": "`info files` lists sections, `info line` shows line tables",
    "mt": "`info files` lists sections, `info line` shows line tables",
    **dict.fromkeys(("make", "edit"), _HOST),
    "cd": _FOLDER,
    "sharedlibrary": "symbols of all libraries are read when they are asked for",
    "nosharedlibrary": "symbols of all libraries are read when they are asked for",
    "stop": "`define hook-stop` is carried out at each stop",
    **dict.fromkeys(
        ("checksec", "telescope", "hexdump", "context", "heap"),
        "that is no word of gdb's own: `vmmap`, `x/16gx $sp`, `x/i $pc`",
    ),
}
_INFO: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("tracepoints", "tp", "static-tracepoint-markers", "tvariables"), _TRACEPOINTS
    ),
    "checkpoints": _CHECKPOINT,
    "os": _OTHER_PROCESSES,
    "win": _INTERFACE,
    **dict.fromkeys(("auto-load", "type-printers", "pretty-printer", "frame-filter"), _PYTHON),
    **dict.fromkeys(("tasks", "exceptions", "selectors"), "there is no Ada and no Objective C"),
    "copying": "the license of this program is in its file LICENSE",
    "warranty": "the license of this program is in its file LICENSE",
    "terminal": "`show inferior-tty` says which the program has",
    "dcache": "memory is read where it is, without a cache",
    "sources": "`info source` tells of the file in sight, `info functions` names files",
    "connections": _OTHER_PROCESSES,
}
_SETTINGS: Final[dict[str, str]] = {
    "sysroot": "--root DIR is the file system of the program",
    "solib-search-path": "--root DIR is the file system of the program",
    "architecture": "the program's own is known",
    "radix": "`set output-radix N` says how numbers are printed; they are typed as in C",
    "debug-file-directory": "separate debug information is looked for beside the file and in"
    " /usr/lib/debug",
    "endian": "the program's own is known",
    "cwd": "--cwd DIR is the program's working directory",
    "exec-wrapper": "the program is started as it is: give the wrapper as GUEST",
    "exec-direction": "reverse-step, reverse-continue and their like go backwards",
}


def unavailable(before: str, text: str) -> str:
    """Say what to use in place of a word of gdb's that is not there; "" for other words.

    Args:
        before: "" for a word, "info " or "set " for one behind them.
        text: the line from the word on.
    """
    table = {"": _WORDS, "info ": _INFO, "set ": _SETTINGS, "show ": _SETTINGS}[before]
    words = text.split()
    use = table.get(words[0], "") if words else ""
    return f'"{before}{words[0]}" is not there: {use}.' if use else ""


def unknown(word: str, words: tuple[str, ...], before: str = "") -> CommandError:
    """The error of a word that means nothing, with the nearest that does.

    Args:
        word: the word as it was typed.
        words: those there are.
        before: the word that it stands behind, with a space.
    """
    elsewhere = unavailable(before, word) if before in ("", "info ") else ""
    if elsewhere:
        return CommandError(elsewhere)
    near = get_close_matches(word, words, 1)
    if near:
        return CommandError(
            f'Undefined {before}command: "{word}".  Did you mean "{before}{near[0]}"?'
        )
    shown = f"help {before}".strip()
    return CommandError(f'Undefined {before}command: "{word}".  Try "{shown}".')
