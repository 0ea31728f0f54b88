"""Carries gdb's words out: lines, files, blocks, words of the user's own."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from engine.arch.plan import Mode
from engine.errors import CommandError, KprobeTuiError
from engine.image.reader import DamagedError
from engine.language.value_types import INT
from engine.language.values import made
from engine.session.control.control import Control
from engine.session.debugger.command_table import BlockWord, Word, WordTable, split_word
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.output import Put, message
from engine.session.debugger.script import ScriptLine, command_of, commands_of
from engine.session.guest.session import Session
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.config import GuestConfig

if TYPE_CHECKING:
    from engine.session.debugger.completing import Completing

_DEEP: Final = 20
"""Files that source each other, and lines within each other, as behind `thread apply all`."""
_CALLS: Final = 200
_ARGUMENT: Final = re.compile(r"\$arg(\d+|c)\b")


class ScriptError(CommandError):
    """A command of a file fails, which ends the file."""


class _LoopLeftError(CommandError):
    """`loop_break`."""


class _LoopNextError(CommandError):
    """`loop_continue`."""


class Interpreter:
    """Carries commands out one after the other.

    Attributes:
        words: what they are.
        ended: `quit` has been said.
        code: what `quit` says that the exit code is to be.
    """

    def __init__(self, debugger: Debugger, *, has_terminal: bool = True) -> None:
        """Carry out words on a debugger's guest; a shell needs a terminal of its own."""
        self._debugger = debugger
        self._has_terminal = has_terminal
        self._files = self._calls = self._nested = self._lines = 0
        self._acting = False
        self._defined: dict[str, tuple[ScriptLine, ...]] = {}
        self._aliases: dict[str, str] = {}
        self.ended, self.code = False, 0
        self.words = WordTable(
            debugger,
            (
                Word(("source",), self.file, moves=True),
                Word(("quit", "q", "exit"), self._quit),
                Word(("shell", "!"), self._shell),
                Word(("alias",), self._alias),
                Word(("complete",), self._complete),
                Word(("with", "w"), self._with, moves=True),
                Word(("loop_break",), self._loop_break),
                Word(("loop_continue",), self._loop_continue),
                BlockWord(("commands", "comm"), self._commands),
                BlockWord(("define", "def"), self._define),
                BlockWord(("document",), self._document),
                BlockWord(("if",), self._if),
                BlockWord(("while",), self._while),
            ),
            line=self.line,
            defined=self._defined,
            at_stop=lambda: self._hook("hook-stop"),
        )

    @cached_property
    def completing(self) -> "Completing":
        """Completes lines."""
        from engine.session.debugger.completing import Completing  # for those who type

        return Completing(self._debugger, self.words)

    def _complete(self, rest: str) -> None:
        """Print what a line may become: complete LINE."""
        for line in self.completing.lines(rest):
            self._debugger.put(line)

    def line(self, text: str) -> None:
        """Carry a line out that holds no others.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        if self._lines == _DEEP:
            raise CommandError(f"Lines stand within each other, {_DEEP} deep.")
        self._lines += 1
        try:
            self.carry_out(ScriptLine(text.strip()))
        finally:
            self._lines -= 1

    def carry_out(self, command: ScriptLine) -> None:
        """Carry a command out, and then those of the breakpoint that it has led to.

        Raises:
            KprobeTuiError: it cannot be carried out.
        """
        if self._debugger.settings["trace-commands"]:
            self._debugger.put(f"{'+' * (1 + self._nested)}{command.text}")
        try:
            self._one(command)
            self._act()
        except DamagedError as error:
            raise CommandError(message(error)) from None
        except RecursionError:  # a regular expression of a thousand brackets
            raise CommandError("What stands there is nested too deeply.") from None
        except ValueError as error:
            if "integer string conversion" not in str(error):
                raise
            raise CommandError("Numeric constant too large.") from None

    def _one(self, command: ScriptLine) -> None:
        name, rest = split_word(command.text)
        if name == "complete":  # with the blank at its end
            rest = command.text.partition(" ")[2]
        own = self._defined.get(name)
        if own is not None:
            self._call(name, own, rest)
            return
        if name in self._aliases:
            text = f"{self._aliases[name]} {rest}".strip()
            self._one(ScriptLine(text, command.number, command.body, command.otherwise))
            return
        word = self.words.permitted(self.words.find(name))
        self._hook(f"hook-{word.names[0]}")
        before, self._debugger.calls_stay = self._debugger.calls_stay, True
        try:
            if isinstance(word, BlockWord):
                word.carry(command)
            elif word.moves:  # a guest that moves is stopped by itself
                word.carry(rest)
            else:
                with self._debugger.control.sight.reading.listening(self._debugger.output.breathe):
                    word.carry(rest)
        finally:
            self._debugger.calls_stay = before
        self._hook(f"hookpost-{word.names[0]}")

    def _act(self) -> None:
        """Carry out the commands of breakpoints; each that moves the guest puts others there."""
        if self._acting:
            return
        pending = self._debugger.pending
        self._acting = True
        try:
            while pending and not self.ended:
                self._one(pending.pop(0))
        finally:
            self._acting = False
            pending.clear()

    def stopped(self) -> None:
        """The guest has been stopped without a word: say so, and do what is to be done there.

        Raises:
            KprobeTuiError: a command of a breakpoint fails.
        """
        self.words.reports.tell_reached()
        self._act()

    def file(self, path: str) -> None:
        """Carry out the commands of a file; the first that fails ends it: source FILE.

        Raises:
            ScriptError: one has failed, or the file cannot be read.
        """
        path = re.sub(r"^(-\w+\s+)*", "", path)
        if not path:
            raise CommandError("source command requires file name of file to source.")
        if self._files >= _DEEP:
            raise ScriptError(f"{path}: files that source each other")
        try:
            lines = Path(path).read_text(errors="replace").splitlines()
        except OSError as error:
            raise ScriptError(f"{path}: {error.strerror}.") from None
        self._files += 1
        number = 0
        try:
            for command in commands_of(enumerate(lines, 1)):
                number = command.number
                self._debugger.output.breathe()
                self.carry_out(command)
                if self.ended:
                    return
        except ScriptError:
            raise
        except KprobeTuiError as error:
            raise ScriptError(
                f"{path}:{number}: Error in sourced command file:\n{message(error)}"
            ) from None
        finally:
            self._files -= 1

    # -- words that hold lines ----------------------------------------------------------------

    def _body(self, commands: Iterable[ScriptLine]) -> None:
        self._nested += 1
        try:
            for command in commands:
                self.carry_out(command)
                if self.ended:
                    return
        finally:
            self._nested -= 1

    def _commands(self, command: ScriptLine) -> None:
        """Words to carry out when a breakpoint stops the guest: commands [NUMBER] ... end."""
        self.words.breaking.commands(split_word(command.text)[1], command.body)

    def _truth(self, command: ScriptLine) -> bool:
        _, rest = split_word(command.text)
        if not rest:
            raise CommandError("if/while commands require arguments.")
        return self._debugger.value(rest).truth

    def _if(self, command: ScriptLine) -> None:
        """Carry out words only where an expression holds: if EXPR ... [else ...] end."""
        self._body(command.body if self._truth(command) else command.otherwise)

    def _while(self, command: ScriptLine) -> None:
        """Carry out words again and again while an expression holds: while EXPR ... end."""
        while not self.ended and self._truth(command):
            self._debugger.output.breathe()
            try:
                self._body(command.body)
            except _LoopNextError:
                continue
            except _LoopLeftError:
                return

    def _loop_break(self, rest: str) -> None:
        """Leave the loop."""
        raise _LoopLeftError("loop_break stands inside `while`.")

    def _loop_continue(self, rest: str) -> None:
        """Go on with the loop's next round."""
        raise _LoopNextError("loop_continue stands inside `while`.")

    def _define(self, command: ScriptLine) -> None:
        """A word of your own: define NAME ... end; $arg0, $arg1, $argc are what follows it."""
        _, name = split_word(command.text)
        if not re.fullmatch(r"[\w-]+", name):
            raise CommandError(
                "Argument required (name of command to define)."
                if not name
                else f'Junk in argument list: "{name}"'
            )
        self._defined[name] = command.body
        self.words.own[name] = "User-defined."

    def _document(self, command: ScriptLine) -> None:
        """The text of `help` for a word of your own: document NAME ... end."""
        _, name = split_word(command.text)
        if name not in self._defined:
            raise CommandError(
                f'Command "{name}" is not user-defined.' if name else "Argument required."
            )
        self.words.own[name] = "\n".join(command.raw)

    def _call(self, name: str, body: tuple[ScriptLine, ...], rest: str) -> None:
        """Carry out a word of the user's own."""
        if self._calls >= _CALLS:
            raise CommandError("Max user call depth exceeded -- command aborted.")
        words = _arguments(rest)
        self._calls += 1
        try:
            self._body([_filled(one, words) for one in body])
        finally:
            self._calls -= 1

    def _hook(self, name: str) -> None:
        body = self._defined.get(name)
        if body is not None and self._calls < _CALLS:
            self._call(name, body, "")

    def _alias(self, rest: str) -> None:
        """Give a word a further name: alias [-a] [--] NAME = WORD [ARGUMENTS]."""
        match = re.fullmatch(r"(?:-a\s+)?(?:--\s+)?([^=]*?)\s*=\s*(.+)", rest)
        if match is None or not match[1]:
            raise CommandError("Usage: alias [-a] [--] ALIAS = COMMAND [DEFAULT-ARGS...]")
        name, text = match[1], match[2]
        if not re.fullmatch(r"[A-Za-z_.][\w.-]*", name):
            raise CommandError(f"Invalid command name: {name}")
        first, behind = split_word(text)
        if first not in self._defined and first not in self._aliases:
            self.words.find(first)
        if name in self._defined or name in self._aliases or self.words.is_name(name):
            raise CommandError(f"Alias already exists: {name}")
        self._aliases[name] = f"{self._aliases.get(first, first)} {behind}".strip()
        self.words.own[name] = f"Alias of {self._aliases[name]}."

    def _with(self, rest: str) -> None:
        """Carry a word out under a setting: with SETTING [VALUE] -- WORD."""
        self.words.changing.with_(rest, self.line)

    # -- the host -----------------------------------------------------------------------------

    def _quit(self, rest: str) -> None:
        """End: quit [CODE]."""
        self.code = self._debugger.value(rest).number & 0xFF if rest else 0
        self.ended = True

    def _shell(self, rest: str) -> None:
        """Carry out a command of the host's shell: shell COMMAND, or !COMMAND."""
        if not self._has_terminal:
            raise CommandError("the terminal is taken here; ctrl+z goes back to the shell")
        import subprocess  # few ask for a shell

        done = subprocess.run(rest or "sh", shell=True, check=False)
        self._debugger.kept.set("_shell_exitcode", made(INT, done.returncode, "little"))


def _arguments(rest: str) -> list[str]:
    """Words behind a user's own word; quotes and brackets keep spaces together."""
    return re.findall(r"(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|\([^()]*\)|\S)+", rest)


def _filled(command: ScriptLine, words: list[str]) -> ScriptLine:
    """A line of a user's own word with its arguments put in."""

    def one(match: re.Match[str]) -> str:
        if match[1] == "c":
            return str(len(words))
        number = int(match[1])
        if number >= len(words):
            raise CommandError(f"Missing argument {number} in user function.")
        return words[number]

    return ScriptLine(
        _ARGUMENT.sub(one, command.text),
        command.number,
        tuple(_filled(inner, words) for inner in command.body),
        tuple(_filled(inner, words) for inner in command.otherwise),
        command.raw,
    )


class HaltWish:
    """The wish that a guest stops, as its source of commands.

    Attributes:
        wanted: the guest is to stop; its next question takes the wish back.
    """

    def __init__(self) -> None:
        """Want no stop yet."""
        self.wanted = False

    def waiting(self) -> cmd.Command | None:
        """Give the command that stops the guest, if it is to stop."""
        wanted, self.wanted = self.wanted, False
        return cmd.Halt() if wanted else None

    def wait(self) -> cmd.Command | None:
        """Give up: there is nobody to wait for."""
        return None


class Halting:
    """Stops a guest from any thread."""

    def __init__(self, control: Control, wish: HaltWish) -> None:
        """Stop a guest that gets its commands from a wish."""
        self._control, self._wish = control, wish

    def __call__(self) -> None:
        """Stop it where it is."""
        self._wish.wanted = True
        self._control.sight.attention()


def _deaf(end: Callable[[], None]) -> AbstractContextManager[None]:
    """Listen to nothing that could end a word."""
    return nullcontext()


def batch(
    config: GuestConfig,
    steps: Iterable[tuple[str, str]],
    put: Put,
    complain: Put,
    mode: Mode,
    guard: Callable[[Session, Callable[[], None]], AbstractContextManager[None]],
    interrupted: Callable[[Callable[[], None]], AbstractContextManager[None]] = _deaf,
) -> int:
    """Run commands without the interface, as `gdb --batch` does; the exit code.

    As in gdb, one that fails does not keep the next from being carried out; the code is 1 if the
    last one has failed.

    Args:
        config: the guest.
        steps: ("file", PATH) and ("command", LINE), in order.
        put: takes results.
        complain: takes errors.
        mode: strictness of breakpoints.
        guard: listens to the host while the guest moves, given what stops the guest.
        interrupted: listens to the host while it stands, given what ends the word at hand.

    Raises:
        KprobeTuiError: the program cannot be loaded.
    """

    def told(event: ev.SessionEvent) -> None:
        if isinstance(event, ev.Notice):
            complain(f"warning: {event.text}")
        elif isinstance(event, ev.Remark):
            for line in event.lines:
                complain(f"warning: {line}")
        elif isinstance(event, ev.Output) and control.lives_again:
            put(event.data.replace(b"\r\n", b"\n").decode(errors="replace"))

    wish = HaltWish()
    control = Control(_named(config), told, mode=mode, source=wish, is_shown=False)
    halting = Halting(control, wish)

    @contextmanager
    def guarded() -> Iterator[None]:
        with guard(control.session, halting):
            yield

    debugger = Debugger(control, put, guarded, complaints=complain)

    def failed(text: str) -> None:
        debugger.output.log.take(f"{text}\n")
        complain(text)

    interpreter = Interpreter(debugger)
    try:
        interpreter.words.tasks.tell_opened()
        with interrupted(halting):
            return _steps(control, interpreter, steps, failed, wish)
    finally:
        control.close()


def _named(config: GuestConfig) -> GuestConfig:
    """The guest with its whole path as argv[0], as gdb's `run` starts a program."""
    path = Path(config.guest)
    own = config.argv0 is None and config.recording is None and config.core is None
    if not own or path.is_absolute() or not path.is_file():
        return config
    return replace(config, argv0=str(path.parent.resolve() / path.name))


def _steps(
    control: Control,
    interpreter: Interpreter,
    steps: Iterable[tuple[str, str]],
    complain: Put,
    wish: HaltWish,
) -> int:
    code = 0
    queue = iter(list(steps))
    following = ((0, line) for kind, line in queue if kind == "command")
    for kind, text in queue:
        if interpreter.ended:
            break
        cut = _cut(control)
        if cut is not None:
            return cut
        control.queue.cut = False  # what has ended the last word does not end this one
        try:
            if kind == "file":
                interpreter.file(text)
            else:
                command = command_of(text, 0, following)
                if command is not None:
                    interpreter.carry_out(command)
            if wish.waiting() is not None:  # it came while nothing listened
                raise CommandError("Quit")
            code = 0
        except KprobeTuiError as error:
            complain(message(error))
            code = 1
    cut = _cut(control)
    if cut is not None:
        return cut
    return interpreter.code or code


def _cut(control: Control) -> int | None:
    """The exit code of a run that a signal to the tool has ended; None for none."""
    end = control.session.machine.exit
    return None if end is None or not end.by_user else 128 + end.signal
