"""gdb's words typed at the interface: carried out on the guest that its panes show."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from engine.errors import CommandError
from engine.language.evaluation import evaluate
from engine.language.format_letters import FORMATS
from engine.language.reach import Reach
from engine.language.value_types import CType
from engine.session.control.control import Control
from engine.session.debugger.command_table import Word, split_word
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.interpreter import Interpreter
from engine.session.debugger.output import TROUBLE, message
from engine.session.debugger.returned import ReturnedValue
from engine.session.debugger.saving import restore_stops, saved_stops
from engine.session.debugger.script import commands_of
from engine.session.inspect.frame_variables import parts_of
from engine.session.inspect.object_layout import layout, object_of
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from engine.session.protocol.frames import VariableView
from engine.session.protocol.views import DisplayView, LayoutView, PartsView, RunState

_SYSCALL: Final = "syscall"
_IN_MEMORY: Final = re.compile(r"[is\d]")
"""In the letters of a display: it shows memory, as `x` does, and no value."""


class Console:
    """The words of one control, whose guest is moved and changed by others, too.

    What they number are the rows of the list of probes: `delete 2` and `condition 2 n==5` mean
    the second row, whoever placed it.
    """

    def __init__(self, control: Control, tell: Callable[[ev.SessionEvent], object]) -> None:
        """Take the words of a control.

        Args:
            control: the guest.
            tell: takes what is printed.
        """
        self._control = control
        self._tell = tell
        self._pending: list[str] = []
        self._said: list[str] = []
        self._debugger = Debugger(control, self._pending.append, self._moving, attached=True)
        # Keys have their own ways with signals; who wants to stop at one says so. Those that gdb
        # keeps for itself are the program's here: kernels in user mode live by SIGTRAP.
        self._debugger.signals.handle(
            ["all", "SIGINT", "SIGTRAP", "SIGKILL", "nostop", "noprint", "pass"]
        )
        self._interpreter = Interpreter(self._debugger, has_terminal=False)
        self._session = control.session
        self._moves = control.sight.moves
        self._speaking = False
        self._laid_out: dict[str, tuple[CType, int]] = {}
        control.sight.words = self

    def words(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Names of all words, and what `help` says of them."""
        return self._interpreter.words.listed()

    def moves(self, line: str) -> bool:
        """True if a line may let the guest move, which the end of a blocked call is waited for."""
        try:
            word = self._interpreter.words.find(split_word(line.strip())[0])
        except CommandError:
            return False
        applies = re.match(r"\w+\s+apply\b", line.strip()) is not None
        return not isinstance(word, Word) or word.moves or applies

    def complete(self, line: str) -> list[str]:
        """Whole lines that a line may become."""
        if not self._speaking and self._control.state is not RunState.RUNNING:
            self._settle()
        return self._interpreter.completing.lines(line)

    def carry_out(self, text: str) -> str:
        """Carry a line out, or several of which the first holds the others; what it printed.

        Raises:
            CommandError: it fails; that was told already.
        """
        self._said.clear()
        self._speaking = True
        self._settle()
        try:
            for command in commands_of(enumerate(text.splitlines(), 1)):
                self._interpreter.carry_out(command)
        except TROUBLE as error:
            self._pending.append(f"{message(error)}\n")
            raise CommandError(message(error)) from None
        finally:
            self._flush()
            self._show_frame()
            self._speaking = False
            self._interpreter.ended = False  # the interface ends by its own keys
        return "".join(self._said).rstrip("\n")

    def moved(self) -> None:
        """The guest has moved without these words: say what they have to say at a stop."""
        debugger = self._debugger
        if self._speaking or self._control.state is not RunState.STOPPED:
            return
        call = debugger.calls.returned()
        if call is not None:
            debugger.calls.leave(call)
            return
        if not debugger.stops.reached and not debugger.displays:
            return
        self._said.clear()
        self._speaking = True
        self._settle()
        try:
            self._interpreter.stopped()
        except TROUBLE as error:
            self._pending.append(f"{message(error)}\n")
        finally:
            self._speaking = False
            self._flush()
            self._show_frame()

    def returning(self) -> Callable[[], str]:
        """Note what the innermost call loses at its return: tells its value behind it."""
        self._settle()
        debugger = self._debugger
        if not debugger.frames.all:
            return str
        returned = ReturnedValue(debugger, 0)

        def told() -> str:
            self._settle()
            with debugger.output.captured() as found:
                try:
                    returned.tell()
                except TROUBLE as error:
                    debugger.put(message(error))
            text = "".join(found)
            self._pending.append(text)
            self._flush()
            return text.rstrip("\n")

        return told

    def branched(self) -> None:
        """Follow a switch to another branch of the run."""
        self._session = self._control.session
        self._debugger.branched()

    def begins_to_move(self) -> None:
        """Forget what held for the place where the guest stood."""
        self._follow()
        self._debugger.stops.reached.clear()

    def remark(self, row: int) -> str:
        """The conditions under which a row of the list stops the guest, in words."""
        stop = self._debugger.stops.of_row(row)
        if stop is None:
            return ""
        words = []
        if stop.temporary:
            words.append("once")
        if stop.condition:
            words.append(f"if {stop.condition}")
        if stop.ignore:
            words.append(f"ignore {stop.ignore}")
        if stop.commands:
            words.append("commands")
        return ", ".join(words)

    def saved(self) -> tuple[cmd.SavedStop, ...]:
        """The stops that words know more of than the list of probes, for another session."""
        return saved_stops(self._debugger.stops)

    def restore(self, stops: tuple[cmd.SavedStop, ...]) -> list[str]:
        """Ask it again; what cannot be done, in words."""
        self._settle()
        try:
            return restore_stops(self._debugger, self._interpreter.carry_out, stops)
        finally:
            self._pending.clear()  # nobody has typed these words

    def displays(self) -> tuple[DisplayView, ...]:
        """The expressions that are shown at each stop."""
        return tuple(
            DisplayView(one.number, f"/{one.form} {one.text}" if one.form else one.text)
            for one in self._debugger.displays.values()
            if one.on and not _IN_MEMORY.search(one.form)
        )

    def display_parts(self, branch: cmd.Branch) -> PartsView | None:
        """The value of one of them where the user looks, and what is in it."""
        if self._speaking:  # the program waits for input within a line of words
            return None
        self._settle()
        debugger = self._debugger
        display = debugger.displays.get(branch.number)
        if display is None:
            return None
        scope = debugger.scope
        try:
            value = evaluate(display.text, scope)
        except TROUBLE as error:
            own = VariableView(display.text, f"<{message(error)}>", "")
            return PartsView(own, (), trouble=message(error))
        letter = display.form if display.form in FORMATS else ""
        return parts_of(scope, display.text, value, branch.steps, 0, branch.count, letter)

    def layout(self, text: str, *, again: bool) -> LayoutView:
        """The parts of an object in memory.

        Args:
            text: an expression: the object, or a pointer to it.
            again: the object that the same text meant the last time, whatever it means now.

        Raises:
            CommandError: it means none, or it cannot be read.
        """
        if self._speaking:
            raise CommandError("the program waits for input within a line of words")
        self._settle()
        scope = self._debugger.scope
        try:
            found = self._laid_out.get(text) if again else None
            if found is None:
                value = object_of(evaluate(text, scope), scope)
                found = value.type, value.address or 0
                self._laid_out = {text: found}
            return layout(Reach(scope).at(*found), scope)
        except TROUBLE as error:
            raise CommandError(message(error)) from None

    # -- keeping up -------------------------------------------------------------------------

    @contextmanager
    def _moving(self) -> Iterator[None]:
        """Show what was printed so far while the guest runs."""
        self._flush()
        yield

    def _flush(self) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        if text:
            self._said.append(text)
            self._tell(ev.Printed(text))

    def _follow(self) -> None:
        """Look at the run at hand."""
        if self._control.session is not self._session:
            self._session = self._control.session
            self._debugger.renew()

    def _settle(self) -> None:
        """Take note of what others have done to the guest, and where they look."""
        control, debugger = self._control, self._debugger
        self._follow()
        if control.sight.moves != self._moves:
            self._moves = control.sight.moves
            debugger.frames.moved()
        else:
            debugger.refresh()
        debugger.stops.adopt(debugger.places.at)
        if debugger.frames.all:
            shown = self._shown()
            if control.sight.frame in shown:
                debugger.frames.selected = shown.index(control.sight.frame)

    def _shown(self) -> list[int]:
        """Numbers, in the backtrace of the panes, of the frames that words know."""
        frames = self._control.view().frames
        shown = [n for n, frame in enumerate(frames) if frame.source != _SYSCALL]
        known = self._debugger.frames
        count = len(known.all)  # which finds what is skipped
        return shown[known.skipped :][:count]

    def _show_frame(self) -> None:
        """Panes look at the frame that words look at."""
        self._moves = self._control.sight.moves
        if not self._debugger.started:
            return
        selected = self._debugger.frames.selected
        if not selected and not self._control.sight.frame:
            return
        shown = self._shown()
        if selected < len(shown):
            self._control.sight.look_at(shown[selected])
