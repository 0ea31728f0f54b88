"""Words that carry out other words: frame apply, thread apply, faas, taas, tfaas, pipe, with."""

import re
import subprocess
from collections.abc import Callable, Iterable

from msgspec import Struct

from engine.errors import CommandError, KprobeTuiError
from engine.language.value_types import INT
from engine.language.values import made
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.frame_words import FrameWords
from engine.session.debugger.looking import Looking
from engine.session.debugger.named_threads import listed_numbers
from engine.session.debugger.output import message
from engine.session.debugger.tasks import ThreadVisit, ThreadWords


class ApplyFlags(Struct):
    """The flags in front of a word that is carried out several times.

    Attributes:
        quiet: nothing is said of the frame or thread.
        go_on: an error is printed, and the next one follows.
        silent: errors are not printed, and nothing is said where nothing is printed.
    """

    quiet: bool = False
    go_on: bool = False
    silent: bool = False


def split_flags(text: str) -> tuple[ApplyFlags, str]:
    """The flags at the begin of a text, -q, -c, -s and --, and what follows them.

    Raises:
        CommandError: they exclude each other.
    """
    flags = ApplyFlags()
    while match := re.match(r"-(-|[qcs])(?:\s+|$)", text):
        text = text[match.end() :]
        if match[1] == "-":
            break
        flags.quiet = flags.quiet or "q" in match[1]
        flags.go_on = flags.go_on or "c" in match[1]
        flags.silent = flags.silent or "s" in match[1]
    if flags.go_on and flags.silent:
        raise CommandError("-c and -s are mutually exclusive")
    return flags, text.strip()


class ApplyWords:
    """Carries words out for frames and threads, and into pipes."""

    def __init__(
        self,
        debugger: Debugger,
        looking: Looking,
        tasks: ThreadWords,
        frames: FrameWords,
        line: Callable[[str], object],
    ) -> None:
        """Apply words to a debugger's guest; `line` carries one out."""
        self._debugger, self._looking, self._tasks = debugger, looking, tasks
        self._frames, self._line = frames, line

    # -- one word, several times ------------------------------------------------------------

    def _carried(self, flags: ApplyFlags, heading: Callable[[], str], text: str) -> None:
        """Carry a word out under a heading, which is left out where it has nothing to say."""
        debugger = self._debugger
        trouble: KprobeTuiError | None = None
        with debugger.output.captured() as printed:
            try:
                self._line(text)
            except KprobeTuiError as error:
                trouble = error
        if trouble is not None and flags.silent:
            return
        if not flags.quiet and (printed or trouble is not None or not flags.silent):
            for line in heading().split("\n"):
                debugger.put(line)
        debugger.write("".join(printed))
        if trouble is None:
            return
        if not flags.go_on:
            raise trouble
        debugger.put(message(trouble))

    def frame(self, rest: str) -> None:
        """Look at a frame: frame [N|level N|function NAME|address A]; frame apply ... WORD."""
        word, _, behind = rest.partition(" ")
        behind = behind.strip()
        if word == "apply":
            self._frame_apply(behind)
            return
        self._looking.frame(str(self._frames.number(rest)) if rest else "")

    def _frame_apply(self, rest: str) -> None:
        if not self._debugger.started or not self._debugger.frames.all:
            raise CommandError("No stack.")
        debugger = self._debugger
        count = len(debugger.frames.all)
        match = re.match(r"(\S+)\s*(.*)$", rest, re.DOTALL)
        if match is None:
            raise CommandError("Missing COUNT argument.")
        which, behind = match[1], match[2]
        numbers: Iterable[int] = range(count)
        if which == "level":
            numbers, behind = self._levels(behind, count)
        elif which != "all":
            if not re.fullmatch(r"-?\d{1,9}", which):
                raise CommandError("Invalid COUNT argument.")
            many = int(which)
            numbers = range(min(many, count)) if many >= 0 else range(max(count + many, 0), count)
        self._apply_to(numbers, behind)

    def _levels(self, rest: str, count: int) -> tuple[list[int], str]:
        numbers: list[int] = []
        found = False
        while match := re.match(r"(\d{1,9})(?:-(\d{1,9}))?(?:\s+|$)", rest):
            rest = rest[match.end() :]
            first, last = int(match[1]), int(match[2] or match[1])
            if last < first:
                raise CommandError("inverted range")
            numbers += range(first, min(last + 1, count))
            found = True
        if not found:
            raise CommandError("Missing or invalid LEVEL... argument")
        return numbers, rest

    def _apply_to(self, numbers: Iterable[int], rest: str) -> None:
        flags, text = split_flags(rest)
        if not text:
            raise CommandError("Please specify a command to apply on the selected frames")
        debugger = self._debugger
        selected = debugger.frames.selected
        try:
            for number in numbers:
                debugger.output.breathe()
                if number >= len(debugger.frames.all):
                    break  # the word has let the guest move
                debugger.frames.select(number)

                def heading(at: int = number) -> str:
                    return debugger.frames.heading(at)

                self._carried(flags, heading, text)
        finally:
            if selected < len(debugger.frames.all):
                debugger.frames.selected = selected

    def faas(self, rest: str) -> None:
        """Carry a word out for all frames, without errors: frame apply all -s WORD."""
        if not rest:
            raise CommandError("Please specify a command to apply on all frames")
        self._frame_apply(f"all -s {rest}")

    # -- threads ----------------------------------------------------------------------------

    def thread(self, rest: str) -> None:
        """Look at another thread: thread NUMBER; thread apply NUMBER...|all WORD.

        `thread name NAME` names the one that is looked at, `thread find REGEXP` finds by name.
        """
        if rest.startswith("apply"):
            self._thread_apply(rest.removeprefix("apply").strip())
        else:
            self._tasks.thread(rest)

    def _thread_apply(self, rest: str) -> None:
        """Carry a word out for several threads, the newest first as gdb does for all."""
        debugger = self._debugger
        match = re.match(
            r"(all(?:\s+-ascending)?|(?:[\d.]+(?:-\d+)?\s+)+)\s*(.*)$", rest, re.DOTALL
        )
        if match is None:
            if not rest:
                raise CommandError("Please specify a thread ID list")
            raise CommandError(
                "Please specify a command following the thread ID list"
                if re.fullmatch(r"all.*|[\d.\s-]+", rest)
                else f"Invalid thread ID: {rest}"
            )
        flags, text = split_flags(match[2])
        if not text:
            raise CommandError(
                "Please specify a command following the thread ID list"
                if match[1][:3] != "all"
                else "Please specify a command at the end of 'thread apply all'"
            )
        every = debugger.threads.numbers() if debugger.started else {}
        chosen = list(every)
        if match[1] == "all":
            chosen = chosen[::-1]
        elif not match[1].startswith("all"):
            chosen = listed_numbers(match[1])
        for number in chosen:
            debugger.output.breathe()
            tid = every.get(number)
            if tid is None:
                debugger.complain(f"warning: Unknown thread {number}")
                continue
            if tid not in debugger.control.session.machine.threads:
                continue  # a word before has let it end
            with ThreadVisit(debugger, tid):
                title = f"\nThread {number} ({debugger.threads.text(with_name=True)}):"
                self._carried(flags, lambda title=title: title, text)  # type: ignore[misc]

    def taas(self, rest: str) -> None:
        """Carry a word out for all threads, without errors: thread apply all -s WORD."""
        if not rest:
            raise CommandError("Please specify a command to apply on all threads")
        self._thread_apply(f"all -s {rest}")

    def tfaas(self, rest: str) -> None:
        """Carry a word out for all frames of all threads, without errors."""
        if not rest:
            raise CommandError("Please specify a command to apply on all frames of all threads")
        self._thread_apply(f"all -s -- frame apply all -s {rest}")

    # -- the host ---------------------------------------------------------------------------

    def pipe(self, rest: str) -> None:
        """Send what a word prints to a command of the host: pipe [-d DELIMITER] WORD | COMMAND."""
        mark = "|"
        if match := re.match(r"-d\s+(\S+)\s+", rest):
            mark, rest = match[1], rest[match.end() :]
        if not rest:
            raise CommandError("Missing COMMAND")
        word, found, command = rest.partition(mark)
        if not found:
            raise CommandError("Missing delimiter before SHELL_COMMAND")
        if not word.strip():
            raise CommandError("Missing COMMAND")
        if not command.strip():
            raise CommandError("Missing SHELL_COMMAND")
        debugger = self._debugger
        with debugger.output.captured() as printed:
            self._line(word)
        done = subprocess.run(
            command,
            shell=True,
            check=False,
            input="".join(printed).encode(errors="surrogateescape"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        debugger.write(done.stdout.decode(errors="replace"))
        debugger.kept.set("_shell_exitcode", made(INT, done.returncode, "little"))
