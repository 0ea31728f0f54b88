"""Kinds of turns: how long a thread keeps the processor, and who gets it next.

Each kind is plain data, written as in `--turns`; `begin` makes from it and a seed what decides in
one run. A kind looks at ticks, threads and their order alone, so that a run's schedule is a
function of seed and guest.

Priorities are those of PCT (Burckhardt, Kothari, Musuvathi, Nagarakatte: A Randomized Scheduler
with Probabilistic Guarantees of Finding Bugs, ASPLOS 2010): the thread of the highest priority
runs; priorities are random, and at d - 1 random moments that of the running thread falls below
all others. A bug that takes d orderings is found with a probability of at least 1/(n k^(d-1)),
with n threads and k steps. The paper leaves out threads that spin until another does something:
here one that yields, or has run for as long as the whole run should take, goes last.
"""

import random
import re
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from engine.linux.schedule import Choice, Schedule, ScheduleError, Why

if TYPE_CHECKING:  # who only names kinds of turns needs no kernel
    from engine.linux.thread import Thread

_LENGTHS: Final = re.compile(r"(\d{1,12})-(\d{1,12})")
_PRIORITIES: Final = re.compile(r"priority:(\d{1,4})/(\d{1,15})")


class Turns(Protocol):
    """The decisions of one run."""

    def end(
        self, thread: "Thread", now: int, ready: Sequence["Thread"], planned: int | None
    ) -> int | None:
        """The tick at which a turn ends, None if nothing but the thread itself ends it.

        Asked where a turn begins, and again where another thread becomes ready.

        Args:
            thread: whose turn it is.
            now: the present tick.
            ready: the others that can run.
            planned: the answer of before, None at the beginning.
        """

    def take(self, ready: "deque[Thread]", before: "Thread", why: Why, now: int) -> "Thread":
        """Take the thread that runs next out of those that can, of which there is one at least.

        Args:
            ready: those that can run, in the order in which they became ready; the one
                before comes last where it can.
            before: the one that gives the processor up.
            why: it does.
            now: the present tick.
        """


class TurnKind(Protocol):
    """A kind of turns.

    Attributes:
        absolute: it goes by ticks since the start, so that they have to be counted from there.
    """

    @property
    def absolute(self) -> bool:
        """True if ticks have to be counted from the start."""

    def begin(self, seed: int) -> Turns:
        """The decisions of a run."""


class Lengths(Struct, frozen=True):
    """Turns of random lengths, in the order in which threads have become ready.

    Attributes:
        shortest: ticks.
        longest: ticks.
    """

    shortest: int = 10_000
    longest: int = 30_000

    @property
    def absolute(self) -> bool:
        """Ticks count from where the turn began."""
        return False

    def __str__(self) -> str:
        return f"{self.shortest}-{self.longest}"

    def begin(self, seed: int) -> "Turns":
        """The decisions of a run."""
        return _RandomTurns(self, seed)


class _RandomTurns:
    """Round robin, each turn of another length."""

    def __init__(self, kind: Lengths, seed: int) -> None:
        self._random = random.Random(f"schedule {seed}")
        self._range = kind.shortest, kind.longest

    def end(
        self, thread: "Thread", now: int, ready: Sequence["Thread"], planned: int | None
    ) -> int | None:
        if planned is not None or not ready:
            return planned
        return now + self._random.randint(*self._range)

    def take(self, ready: "deque[Thread]", before: "Thread", why: Why, now: int) -> "Thread":
        return ready.popleft()


class Priorities(Struct, frozen=True):
    """Turns by random priorities.

    Attributes:
        depth: one more than the moments at which a priority falls (d of the paper).
        span: ticks among which these are chosen, from the moment at which there is a second
            thread (k of the paper).
    """

    depth: int
    span: int

    @property
    def absolute(self) -> bool:
        """Ticks count from where the second thread began."""
        return False

    def __str__(self) -> str:
        return f"priority:{self.depth}/{self.span}"

    def begin(self, seed: int) -> "Turns":
        """The decisions of a run."""
        return _PriorityTurns(self, seed)


class _PriorityTurns:
    """The thread of the highest priority runs."""

    def __init__(self, kind: Priorities, seed: int) -> None:
        self._random = random.Random(f"priorities {seed}")
        self._span = max(kind.span, 1)
        count = min(kind.depth - 1, self._span)
        self._moments = sorted(self._random.sample(range(1, self._span + 1), count))
        self._moments.reverse()  # the next one last
        self._origin: int | None = None
        self._priorities: dict[Thread, float] = {}
        self._fallen = 0
        self._since: tuple[Thread, int] | None = None

    def _priority(self, thread: "Thread") -> float:
        known = self._priorities.get(thread)
        if known is None:
            known = self._priorities[thread] = self._random.random()
        return known

    def _fall(self, thread: "Thread") -> None:
        self._fallen += 1
        self._priorities[thread] = -float(self._fallen)

    def end(
        self, thread: "Thread", now: int, ready: Sequence["Thread"], planned: int | None
    ) -> int | None:
        own = self._priority(thread)
        if self._since is None or self._since[0] is not thread:
            self._since = thread, now
        if not ready:
            return None
        if self._origin is None:
            self._origin = now
        if any(self._priority(each) > own for each in ready):
            return now + 1  # with a tick between, the place is told by the tick alone
        end = self._since[1] + self._span
        if self._moments:
            end = min(end, self._origin + self._moments[-1])
        return max(end, now + 1)

    def take(self, ready: "deque[Thread]", before: "Thread", why: Why, now: int) -> "Thread":
        since = self._since
        if self._moments and self._origin is not None and now >= self._origin + self._moments[-1]:
            self._moments.pop()
            self._fall(before)
        elif why is Why.YIELDS or (since is not None and now >= since[1] + self._span):
            self._fall(before)
        self._since = None
        thread = max(ready, key=self._priority)
        ready.remove(thread)
        return thread


class Recorded(Struct, frozen=True):
    """The turns of a schedule, and no others."""

    schedule: Schedule

    @property
    def absolute(self) -> bool:
        """A schedule's ticks count from the start."""
        return True

    def __str__(self) -> str:
        return f"as in {self.schedule.name}"

    def begin(self, seed: int) -> "Replay":
        """The decisions of a run."""
        return Replay(self.schedule)


class Replay:
    """Decides as a schedule says.

    Attributes:
        at: number of the next choice.
    """

    def __init__(self, schedule: Schedule) -> None:
        """At the beginning of a schedule."""
        self._schedule = schedule
        self._choices = schedule.choices
        self.at = 0

    def end(
        self, thread: "Thread", now: int, ready: Sequence["Thread"], planned: int | None
    ) -> int | None:
        """The tick at which the schedule has the thread preempted."""
        if self.at < len(self._choices) and self._choices[self.at].why is Why.PREEMPTED:
            return self._choices[self.at].tick
        return None

    def take(self, ready: "deque[Thread]", before: "Thread", why: Why, now: int) -> "Thread":
        """Take the thread that the schedule names.

        Raises:
            ScheduleError: it does not fit.
        """
        if len(ready) == 1 and ready[0] is before and why is not Why.PREEMPTED:
            return ready.popleft()  # nothing to choose
        happens = f"thread {before.tid} {'is ' * (why is Why.PREEMPTED)}{why.value} at tick {now}"
        if self.at >= len(self._choices):
            raise self._misfit(f"it is at its end, and {happens}")
        choice = self._choices[self.at]
        shown = f"'{choice}' does not fit"
        if choice.tick != now or choice.why is not why:
            raise self._misfit(f"{shown}: {happens}")
        for thread in ready:
            if thread.tid == choice.thread:
                ready.remove(thread)
                self.at += 1
                return thread
        raise self._misfit(f"{shown}: thread {choice.thread} cannot run then")

    def _misfit(self, what: str) -> ScheduleError:
        return ScheduleError(f"{self._schedule.where(self.at)}: {what}")

    def rest(self) -> str:
        """The choice that the guest has not come to, in words; "" if it came to all."""
        if self.at >= len(self._choices):
            return ""
        return (
            f"{self._schedule.where(self.at)}: the guest ended before '{self._choices[self.at]}'"
        )


class OwnChoice(Struct, frozen=True):
    """A choice told by the time of the thread that gives the processor up.

    Attributes:
        before: id of that thread.
        own: ticks that passed while it ran.
        why: it gives the processor up.
        thread: id of the one that gets it.
    """

    before: int
    own: int
    why: Why
    thread: int


def own_choices(choices: Sequence[Choice], first: int) -> tuple[OwnChoice, ...]:
    """A schedule by the threads' own ticks.

    Args:
        choices: of a whole run.
        first: id of its first thread.
    """
    passed: dict[int, int] = defaultdict(int)
    before, since, found = first, 0, []
    for choice in choices:
        passed[before] += choice.tick - since
        found.append(OwnChoice(before, passed[before], choice.why, choice.thread))
        before, since = choice.thread, choice.tick
    return tuple(found)


class Chosen(Struct, frozen=True):
    """Threads run until they wait, yield or end, but for some choices.

    To leave a choice out is to let the thread run on: the others keep their places, as they
    go by their own threads' ticks. Those that cannot be made are passed over.
    """

    choices: tuple[OwnChoice, ...]

    @property
    def absolute(self) -> bool:
        """Ticks count as in schedules."""
        return True

    def __str__(self) -> str:
        return f"{len(self.choices)} choices"

    def begin(self, seed: int) -> "ChosenTurns":
        """The decisions of a run."""
        return ChosenTurns(self.choices)


class ChosenTurns:
    """Makes some choices, and none beside them.

    Attributes:
        made: the last choice, if it was one of those; else None.
    """

    def __init__(self, choices: Sequence[OwnChoice]) -> None:
        """Nothing has run."""
        self._of: dict[int, deque[OwnChoice]] = defaultdict(deque)
        for choice in choices:
            self._of[choice.before].append(choice)
        self._passed: dict[Thread, int] = defaultdict(int)
        self._since = 0
        self.made: OwnChoice | None = None

    def _next(self, thread: "Thread", own: int) -> OwnChoice | None:
        waiting = self._of[thread.tid]
        while waiting and (
            waiting[0].own < own or (waiting[0].own == own and waiting[0].why is Why.PREEMPTED)
        ):
            waiting.popleft()
        return waiting[0] if waiting else None

    def end(
        self, thread: "Thread", now: int, ready: Sequence["Thread"], planned: int | None
    ) -> int | None:
        """The tick of the thread's next choice, if it is to be preempted there."""
        if planned is not None:
            return planned
        own = self._passed[thread] + now - self._since
        choice = self._next(thread, own)
        if choice is None or choice.why is not Why.PREEMPTED:
            return None
        return now + choice.own - own

    def take(self, ready: "deque[Thread]", before: "Thread", why: Why, now: int) -> "Thread":
        """Take the thread that was chosen here; else who is first, the one before if it can."""
        own = self._passed[before] = self._passed[before] + now - self._since
        self._since = now
        self.made = None
        waiting = self._of[before.tid]
        while waiting and waiting[0].own < own:
            waiting.popleft()
        if waiting and waiting[0].own == own and waiting[0].why is why:
            choice = waiting.popleft()
            for thread in ready:
                if thread.tid == choice.thread:
                    ready.remove(thread)
                    self.made = choice
                    return thread
        if why is Why.PREEMPTED and before in ready:
            ready.remove(before)
            return before
        return ready.popleft()


PLAIN: Final = Lengths()
"""The lengths of a run that asks for none."""


def turns_of(text: str) -> Lengths | Priorities | None:
    """The kind of turns of a text, LOW-HIGH or priority:DEPTH/TICKS; None for another text."""
    if (match := _LENGTHS.fullmatch(text)) is not None:
        lengths = Lengths(int(match[1]), int(match[2]))
        return lengths if 0 < lengths.shortest <= lengths.longest else None
    if (match := _PRIORITIES.fullmatch(text)) is not None and int(match[1]):
        return Priorities(int(match[1]), int(match[2]))
    return None
