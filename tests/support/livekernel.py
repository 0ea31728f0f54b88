"""A running kernel's `uprobe_events`, asked without leaving anything behind.

Events are never enabled, so that no program notices. Those of others are left alone: lines are
appended, and only events on a file of our own are deleted.
"""

import errno
import os
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LIVE_KERNEL: Final = "KPROBE_TUI_LIVE_KERNEL"
"""Environment variable that allows to ask the running kernel."""

TRACING: Final = Path("/sys/kernel/tracing")
_LOGGED: Final = re.compile(r"\] (\w+): error: (.*)\n  Command: (.*)\n( *)\^")
_BEFORE_COMMAND: Final = len("  Command: ")


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a line.

    Attributes:
        errno: name of the error, "" if the line was taken.
        text: what error_log has got, "" for nothing.
        column: of the caret in the command.
        command: as error_log shows it.
        subsystem: who complains.
        listed: lines of the listing on our file, afterwards.
    """

    errno: str = ""
    text: str = ""
    column: int = 0
    command: str = ""
    subsystem: str = ""
    listed: tuple[str, ...] = ()


class LiveUprobes:
    """`uprobe_events` for probes on one file of our own."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def ask(self, line: str) -> Answer:
        """Write a line."""
        before = self._log()
        failure = _append(line)
        logged = self._log()
        listed = tuple(self.listed())
        if not failure:
            return Answer(listed=listed)
        if logged == before:
            return Answer(failure, listed=listed)
        subsystem, text, command, blanks = _LOGGED.findall(logged)[-1]
        column = len(blanks) - _BEFORE_COMMAND
        return Answer(failure, text, column, command, subsystem, listed)

    def listed(self) -> list[str]:
        """The events on the file."""
        lines = (TRACING / "uprobe_events").read_text(errors="surrogateescape").splitlines()
        return [line for line in lines if f" {self.path}:" in line]

    def clear(self) -> None:
        """Delete them."""
        for line in self.listed():
            _append("-:" + line.split()[0].partition(":")[2])

    def _log(self) -> str:
        return (TRACING / "error_log").read_text(errors="surrogateescape")


@contextmanager
def live_uprobes(path: Path) -> Iterator[LiveUprobes]:
    """The running kernel, for probes on `path`; no event is left on it afterwards.

    Raises:
        OSError: there is none to ask.
    """
    if not (TRACING / "uprobe_events").exists():
        raise OSError(f"no {TRACING}/uprobe_events")
    kernel = LiveUprobes(path)
    try:
        yield kernel
    finally:
        kernel.clear()


def _append(line: str) -> str:
    # Plain calls: the file refuses the seek of `open`. Without O_APPEND all events would go.
    events = os.open(TRACING / "uprobe_events", os.O_WRONLY | os.O_APPEND)
    try:
        os.write(events, f"{line}\n".encode(errors="surrogateescape"))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    finally:
        os.close(events)
    return ""


# fmt: off
_BODIES: Final = [
    "%di", "%si", "%ip", "%orig_ax", "%eax", "%", "$stack", "$stack0", "$stack12",
    "$stack99999999", "$stackx", "$retval", "$retvalx", "$comm", "$COMM", "$arg1", "$arg0",
    "$arg*", "$x", "$", "@0x4040c0", "@0x4040zz", "@+0x10", "@+-8", "@+x", "@", "@sym", "@sym+8",
    "\\1", "\\-1", "\\0x", "\\++1", "\\\"abc\"", "\\\"abc", "\\\"", "name", "name->f", "a->", "9",
    "", "=", "&x", "\u00e9",
]
_TYPES: Final = [
    "", "", "", ":u8", ":s16", ":x32", ":u64", ":char", ":string", ":ustring", ":symbol",
    ":symstr", ":b1@0/8", ":b4@4/8", ":b9@0/8", ":b0@0/32", ":b1@1", ":u8[4]", ":u8[0]", ":u8[65]",
    ":u8[x]", ":u8[4", ":u8[4]x", ":string[2]", ":", ":[4]", ":u9", ":x", ":%pd", ":b64@0/64[3]",
]
_OFFSETS: Final = [
    "+0", "-8", "+0x10", "+u8", "-u010", "+", "+x", "++8", "+-8", "8",
]
_NAMES: Final = [
    "", "", "", "a=", "b=", "v=", "=", "common_pid=", "1a=", "a.b=", "__probe_ip=", "arg2=",
    "n" * 32 + "=", "n" * 33 + "=", "a==", "if=",
]
_HEADS: Final = [
    "p:{g}/{e}", "r:{g}/{e}", "p:{g}/", "p:{g}.{e}", "p:/{e}", "p:{g}/1e", "p:{g}-1/{e}",
    "p:1{g}/{e}", "p:{g}/{e}.x", "r4:{g}/{e}", "r0:{g}/{e}", "p2:{g}/{e}", "pq:{g}/{e}",
    "p:{g}{long}/{e}", "p:{g}/{long}", "p:{g}//{e}", "p:{g}/{e}/x", "rx:{g}/{e}", "p:",
]
_PLACES: Final = [
    "{f}:0x1156", "{f}:0x1258", "{f}:0x1171", "{f}:4438", "{f}:010526", "{f}:0x1156%return",
    "{f}:0x1156(0x3130)", "{f}:0x1156%return(0x3130)", "{f}:0x1156(0)", "{f}:0x1156(x)",
    "{f}:0x1156(0x3130", "{f}:0x1156(0x3130)x", "{f}:0x1156(0x3130)%return", "{f}:0x1156%exit",
    "{f}:0x", "{f}:08", "{f}:0xfffffffffffffffff", "{f}:-1", "{f}:x", "{f}:", "{f}",
    "{f}:0x1156+4", "{f}:0x1156%", "{f}:0x1156()", "{f}:0x1156(-1)", "{f}::0x1156", "{f}x:0x1156",
    "{f}/:0x1156", "/dev/null:0x10", "/tmp:0x10", "/none/of/it:0x10",
]
# fmt: on
_CHARACTERS: Final = 'p0123456789xabu+-@%$\\():[]/="#,._ \t'


class Lines:
    """Makes up definitions, most of them nearly right; the same ones for a seed."""

    def __init__(self, path: str, group: str, seed: int) -> None:
        self._path = path
        self._group = group
        self._random = random.Random(seed)

    def line(self) -> str:
        """One more. It never deletes, and its place always has a '/'."""
        pick, chance = self._random.choice, self._random.random
        head = "p:{g}/{e}" if chance() < 0.6 else pick(_HEADS)
        event = pick(["base", "e", "e"])
        head = head.format(g=self._group, e=event, long="l" * pick([40, 62, 63, 64]))
        place = "{f}:0x1156" if chance() < 0.6 else pick(_PLACES)
        args = [self._arg() for _ in range(pick([0, 1, 1, 1, 2, 2, 3]))]
        if event == "base" and chance() < 0.5:
            args = pick([["v=%si:s32"], ["v=%si:s32", "w=+0(%di):u8"], ["v=%si:s32", "w=%di:u8"]])
        words = [head, place.format(f=self._path), *args]
        if chance() < 0.02:
            words += ["%di"] * pick([120, 128, 130])
        if chance() < 0.03:
            words += [f"s{n}=+0(%di):u64[64]" for n in range(pick([5, 6, 7]))]
        if words[2:] and chance() < 0.3:
            number = self._random.randrange(2, len(words))
            words[number] = self._damaged(words[number])
        return pick([" ", " ", " ", "  ", "\t "]).join(words)

    def _arg(self) -> str:
        pick, chance = self._random.choice, self._random.random
        body = pick([*_BODIES[:4], "@0x4040c0"]) if chance() < 0.6 else pick(_BODIES)
        for _ in range(pick([0, 0, 0, 1, 1, 2, 3, 13, 14, 15]) if chance() < 0.5 else 0):
            offset = pick(_OFFSETS[:2]) if chance() < 0.8 else pick(_OFFSETS)
            body = f"{offset}({body})"
        name = pick(["", "a=", "b=", "v="]) if chance() < 0.7 else pick(_NAMES)
        return name + body + pick(_TYPES)

    def _damaged(self, word: str) -> str:
        """The word with a character more, less or changed."""
        at = self._random.randrange(len(word) + 1)
        skipped = self._random.choice([0, 1])
        new: str = self._random.choice(["", *_CHARACTERS])
        return word[:at] + new + word[at + skipped :]
