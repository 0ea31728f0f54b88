"""Ways to moments of the recorded run."""

from typing import Final

from engine.errors import CommandError
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev
from tui.body import Body
from tui.desk import Desk
from tui.motions import Motions
from tui.panes.registry import Panes
from tui.widgets.bars import Question

_STEPS: Final = 50
"""Steps of a key from the begin of the run to its end."""
_DIGITS: Final = 20
"""Of a tick or an event's number, at the most."""


class HistoryWalk:
    """Goes to events, pieces of output, bookmarks and other moments of the run."""

    def __init__(self, desk: Desk, body: Body, panes: Panes, motions: Motions) -> None:
        """Nothing is gone to yet."""
        self._desk = desk
        self._body = body
        self._panes = panes
        self._motions = motions
        self._found: ev.OriginFound | None = None
        self._link = 0  # of them, the one that was gone to last
        self._leap = -1, 0  # the moment that was left last by a key, and the tick to go to

    def go_to(self, clock: int | None, pc: int | None) -> None:
        """Have the guest stand at a moment.

        Args:
            clock: a tick of its clock, None for the present.
            pc: the instruction of it, None for the first.
        """
        self._need()
        self._motions.run(cmd.Seek(clock, pc))

    def _need(self) -> None:
        """Refuse what only a recorded run can do.

        Raises:
            CommandError: it is not recorded.
        """
        if self._desk.view.history is None:
            raise CommandError("the run is not recorded (--no-history)")

    def who_wrote(self, register: str, address: int, size: int) -> None:
        """Go back to what has last written to a register of the thread in sight, or to memory.

        Args:
            register: its name; "" for bytes of memory.
            address: of the bytes.
            size: how many.
        """
        try:
            self._need()
        except CommandError as error:
            self._desk.say(str(error), "warning")
            return
        view = self._desk.view
        if register:
            self._motions.run(cmd.LastRegisterWrite(register, view.thread))
        else:
            self._motions.run(cmd.LastWrite(address, size))

    def where_from(self, register: str, address: int, size: int) -> None:
        """Follow a value backwards; arguments are those of `who_wrote`."""
        try:
            self._need()
        except CommandError as error:
            self._desk.say(str(error), "warning")
            return
        thread = self._desk.view.thread
        if register:
            asked = cmd.Origin(f"${register}", register, 0, size, thread)
        else:
            asked = cmd.Origin(f"{address:#x}", "", address, size, thread)
        self._motions.run(asked)

    def found_links(self, found: ev.OriginFound) -> None:
        """Show where a value came from."""
        self._found, self._link = found, 0
        self.links()

    def restarted(self) -> None:
        """The run is another one: its moments are not those of the last."""
        self._found = None

    def links(self) -> None:
        """Show the links that were found last, to go to one."""
        found = self._found
        if found is None or not found.links:
            self._desk.say(
                "no value has been followed: X on a register or on memory, :origin EXPR"
            )
            return
        from tui.screens.origin import OriginScreen  # not for the first screen

        self._desk.open(
            OriginScreen(found.text, found.links, cut=found.cut, first=self._link), self._to_link
        )

    def _to_link(self, number: int | None) -> None:
        found = self._found
        if number is not None and found is not None:
            self._link = number
            link = found.links[number]
            self.go_to(link.clock, link.pc)

    def row(self) -> None:
        """Go to the moment of the row at the cursor."""
        pane = self._body.focused
        moment = pane.moment if pane is not None else None
        try:
            self._need()
        except CommandError as error:
            self._desk.say(str(error), "warning")
            return
        if moment is None:
            self._desk.say("this row is of no moment of the run: events, calls, output are")
            return
        self.go_to(*moment)

    def event(self, number: int) -> None:
        """Go to the moment of an event, by its number from 1 on; the log shows it, too.

        Raises:
            CommandError: the run is not recorded, or the event is not kept.
        """
        self._need()
        store = self._panes.events.store
        if not store.first <= number - 1 < store.end:
            kept = f"#{store.first + 1} to #{store.end} are kept" if len(store) else "none is kept"
            raise CommandError(f"there is no event #{number}: {kept}")
        self._panes.events.goto(number)
        self.go_to(*store.moment(number - 1))

    def neighbour(self, step: int) -> None:
        """Go to the moment of the event before this one, or of the next."""
        store, history = self._panes.events.store, self._desk.view.history
        if history is None or not len(store):
            self._desk.say("no event is recorded to go to", "warning")
            return
        now, pc = history.now, self._desk.view.pc
        first = store.at(now)
        behind = store.at(now + 1)
        same = [n for n in range(first, behind) if store.moment(n)[1] == pc]
        before, following = (same[0], same[-1] + 1) if same else (first, behind)
        wanted = before - 1 if step < 0 else following
        if not store.first <= wanted < store.end:
            self._desk.say("no event before this moment" if step < 0 else "no event behind it")
            return
        self.event(wanted + 1)

    def leap(self, step: int) -> None:
        """Go on the timeline by a stretch."""
        history = self._desk.view.history
        if history is None:
            self._desk.say("the run is not recorded (--no-history)", "warning")
            return
        moment, clock = self._leap
        if moment != self._desk.view.moment:  # else it is not there yet
            clock = history.now
        clock = min(max(clock + step * max(history.end // _STEPS, 1), 0), history.end)
        self._leap = self._desk.view.moment, clock
        self.go_to(clock if clock < history.end else None, None)

    def mark(self) -> None:
        """Ask for the name of a bookmark at the moment at hand."""
        self._desk.ask(
            Question(
                "bookmark",
                "NAME; empty: a number",
                lambda text: self._mark(text.strip()),
                empty=True,
            )
        )

    def _mark(self, name: str) -> None:
        self._need()
        self._desk.post(cmd.SetMark(name))

    def branch(self) -> None:
        """Ask for the name of a branch that goes on from the moment at hand."""
        self._desk.ask(
            Question(
                "branch",
                "NAME of the run that goes on from here; empty: a number",
                lambda text: self._branch(text.strip()),
                empty=True,
            )
        )

    def _branch(self, name: str) -> None:
        self._need()
        self._motions.run(cmd.StartBranch(name))

    def switch(self, name: str) -> None:
        """Go to another branch of the run."""
        self._motions.run(cmd.SwitchBranch(name))

    def branches(self) -> tuple[str, ...]:
        """The branches that there are beside the one at hand."""
        history = self._desk.view.history
        if history is None:
            return ()
        return tuple(name for name in history.branches if name != history.branch)

    def ask(self) -> None:
        """Ask for a moment to go to."""
        hint = "BOOKMARK, #EVENT, 40%, TICK, start, end"
        self._desk.ask(Question("go to moment", hint, self.go, "", self.complete))

    def complete(self, text: str) -> list[str]:
        """Bookmarks that a text may become."""
        history = self._desk.view.history
        names = [one.name for one in history.marks] if history is not None else []
        return [name for name in (*names, "start", "end") if name.startswith(text)]

    def go(self, text: str) -> None:
        """Go to a moment as it is typed.

        Raises:
            CommandError: there is none.
        """
        text = text.strip()
        if not text:
            raise CommandError("which? a moment is missing: a bookmark, #EVENT, 40%, a tick, end")
        self._need()
        number = text.removeprefix("#").removesuffix("%").strip()
        history = self._desk.view.history
        assert history is not None
        if number.isdigit() and len(number) > _DIGITS:
            raise CommandError(f"{number[:_DIGITS]}...: no run is as long as that")
        if text[0] == "#":
            if not (number.isascii() and number.isdigit()):
                raise CommandError(f"{text}: #N, the number of an event")
            self.event(int(number))
        elif number.isascii() and number.isdigit():
            clock = int(number)
            if text.endswith("%"):
                clock = history.end * min(clock, 100) // 100
            self.go_to(clock if clock < history.end else None, None)
        elif text in ("start", "begin", "end"):
            self.go_to(None if text == "end" else 0, None)
        else:
            self._motions.run(cmd.SeekMark(text))
