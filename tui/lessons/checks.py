"""Conditions of a lesson's steps: words that look at what the interface shows.

A condition is a line of words: the first one names a function of `CHECKS`, the others are its
arguments. `!` in front of it asks for the opposite.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from engine.session.protocol.probes import ProbeView
from engine.session.protocol.views import GuestView


class Seen(Struct, frozen=True):
    """A moment of the interface, as far as lessons look at it.

    Attributes:
        view: the guest.
        place: the cursor of the code, as SYMBOL+OFF.
        pane: id of the pane that has the focus.
        dialog: class of the screen above the panes, "" where there is none.
        typed: lines of the command line so far, the last one at the end.
        copied: what was copied last.
        printed: the last lines of the console.
    """

    view: GuestView
    place: str = ""
    pane: str = ""
    dialog: str = ""
    typed: tuple[str, ...] = ()
    copied: str = ""
    printed: str = ""


Check: TypeAlias = Callable[[Seen, list[str]], bool]


def _probes(seen: Seen, place: str, kinds: str = "prb") -> Iterator[ProbeView]:
    """The probes of some kinds at a place, which may leave its +0x0 out."""
    for probe in seen.view.probes:
        name = probe.place.removesuffix("+0x0").removesuffix("+0")
        if probe.kind in kinds and place in (name, probe.place):
            yield probe


def _probe(seen: Seen, words: list[str]) -> bool:
    """`probe KIND PLACE`: a probe is there; KIND is p, r, or b for a breakpoint."""
    kind, place = words
    return any(_probes(seen, place, kind))


def _stops(seen: Seen, words: list[str]) -> bool:
    """`stops PLACE`: a probe there stops the guest."""
    return any(probe.row.stops for probe in _probes(seen, words[0]))


def _hits(seen: Seen, words: list[str]) -> bool:
    """`hits PLACE N`: a probe there was hit so often, or oftener."""
    place, least = words
    return any(probe.hits >= int(least) for probe in _probes(seen, place))


def _misses(seen: Seen, words: list[str]) -> bool:
    """`misses PLACE N`: hits whose handlers did not run."""
    place, least = words
    return any(probe.misses >= int(least) for probe in _probes(seen, place))


def _complete(seen: Seen, words: list[str]) -> bool:
    """`complete PLACE N`: a probe there was hit so often and has missed nothing."""
    place, least = words
    return any(probe.hits >= int(least) and not probe.misses for probe in _probes(seen, place))


def _technique(seen: Seen, words: list[str]) -> bool:
    """`technique PLACE NAME`: a probe there is of this technique."""
    place, name = words
    return any(probe.technique == name for probe in _probes(seen, place))


def _defined(seen: Seen, words: list[str]) -> bool:
    """`defined REGEX`: the definition of a probe has this in it."""
    return any(re.search(words[0], probe.row.line) for probe in seen.view.probes)


def _filtered(seen: Seen, words: list[str]) -> bool:
    """`filtered`: an event has a filter."""
    return any(probe.row.rules.filter for probe in seen.view.probes)


def _state(seen: Seen, words: list[str]) -> bool:
    """`state NAME`: of the guest."""
    return seen.view.state.value in words


def _at(seen: Seen, words: list[str]) -> bool:
    """`at FUNCTION...`: the guest stands in one of these functions."""
    view = seen.view
    return view.state.value == "stopped" and view.location.partition("+")[0] in words


def _phase(seen: Seen, words: list[str]) -> bool:
    """`phase NAME...`: one of these phases of the hit at hand was carried out last."""
    hit = seen.view.hit
    return hit is not None and bool(hit.done) and hit.done[-1].name in words


def _hit(seen: Seen, words: list[str]) -> bool:
    """`hit PLACE`: a hit there is at hand, or comes next."""
    view = seen.view
    return view.at_hit and view.location.removesuffix("+0x0") == words[0]


def _reason(seen: Seen, words: list[str]) -> bool:
    """`reason REGEX`: why the guest stands."""
    return re.search(words[0], seen.view.reason) is not None


def _exit(seen: Seen, words: list[str]) -> bool:
    """`exit N`: the guest has ended with this code."""
    return seen.view.exit_code == int(words[0])


def _past(seen: Seen, words: list[str]) -> bool:
    """`past`: the moment that is looked at lies before the end of what has run."""
    history = seen.view.history
    return history is not None and history.past


def _tick(seen: Seen, words: list[str]) -> bool:
    """`tick N`: the guest stands at this tick of its clock."""
    return seen.view.time == int(words[0])


def _location(seen: Seen, words: list[str]) -> bool:
    """`location SYMBOL+OFF`: the guest stands there."""
    return seen.view.location in words


def _cursor(seen: Seen, words: list[str]) -> bool:
    """`cursor REGEX`: the cursor of the code is at this place."""
    return re.fullmatch(words[0], seen.place) is not None


def _zombies(seen: Seen, words: list[str]) -> bool:
    """`zombies N`: so many detour buffers wait to be freed, or more."""
    return seen.view.detours.zombies >= int(words[0])


def _route(seen: Seen, words: list[str]) -> bool:
    """`route HOW`: the hit at hand is emulated, xol, boosted, detour or called."""
    hit = seen.view.hit
    return hit is not None and hit.how in words


def _branch(seen: Seen, words: list[str]) -> bool:
    """`branch`: the run has more than one branch."""
    history = seen.view.history
    return history is not None and len(history.branches) > 1


def _frames(seen: Seen, words: list[str]) -> bool:
    """`frames N`: so many frames, or more."""
    return len(seen.view.frames) >= int(words[0])


def _frame(seen: Seen, words: list[str]) -> bool:
    """`frame FUNCTION`: the frame that is looked at is one of this function."""
    view = seen.view
    return view.frame < len(view.frames) and view.frames[view.frame].function in words


def _unwinder(seen: Seen, words: list[str]) -> bool:
    """`unwinder NAME`: backtraces are this one's."""
    return seen.view.unwinder in words


def _register(seen: Seen, words: list[str]) -> bool:
    """`register NAME VALUE`: a register has a value."""
    name, value = words
    return any(one.name == name and one.value == int(value, 0) for one in seen.view.registers)


def _detours(seen: Seen, words: list[str]) -> bool:
    """`detours N`: so many detour buffers are in use, or more."""
    return seen.view.detours.standing >= int(words[0])


def _freed(seen: Seen, words: list[str]) -> bool:
    """`freed N`: so many detour buffers were freed, or more."""
    return seen.view.detours.freed >= int(words[0])


def _thread(seen: Seen, words: list[str]) -> bool:
    """`thread N...`: one of these threads is looked at."""
    return str(seen.view.thread) in words


def _threads(seen: Seen, words: list[str]) -> bool:
    """`threads N`: so many threads, or more."""
    return seen.view.threads >= int(words[0])


def _events(seen: Seen, words: list[str]) -> bool:
    """`events N`: so many events were recorded, or more."""
    return seen.view.events >= int(words[0])


def _pane(seen: Seen, words: list[str]) -> bool:
    """`pane ID...`: one of these panes has the focus."""
    return seen.pane in words


def _dialog(seen: Seen, words: list[str]) -> bool:
    """`dialog CLASS`: a screen of this class is open."""
    return seen.dialog in words


def _typed(seen: Seen, words: list[str]) -> bool:
    """`typed REGEX`: a line was typed that begins like this."""
    return any(re.match(words[0], line) for line in seen.typed)


def _copied(seen: Seen, words: list[str]) -> bool:
    """`copied REGEX`: this is in what was copied last."""
    return re.search(words[0], seen.copied) is not None


def _printed(seen: Seen, words: list[str]) -> bool:
    """`printed REGEX`: the console has printed this."""
    return re.search(words[0], seen.printed) is not None


CHECKS: Final[dict[str, Check]] = {
    "at": _at,
    "branch": _branch,
    "complete": _complete,
    "copied": _copied,
    "cursor": _cursor,
    "defined": _defined,
    "detours": _detours,
    "dialog": _dialog,
    "events": _events,
    "exit": _exit,
    "filtered": _filtered,
    "frame": _frame,
    "frames": _frames,
    "freed": _freed,
    "hit": _hit,
    "hits": _hits,
    "location": _location,
    "misses": _misses,
    "pane": _pane,
    "past": _past,
    "phase": _phase,
    "printed": _printed,
    "probe": _probe,
    "reason": _reason,
    "register": _register,
    "route": _route,
    "state": _state,
    "stops": _stops,
    "technique": _technique,
    "thread": _thread,
    "threads": _threads,
    "tick": _tick,
    "typed": _typed,
    "unwinder": _unwinder,
    "zombies": _zombies,
}
"""All conditions by their names."""


def holds(condition: str, seen: Seen) -> bool:
    """True if a condition holds.

    Raises:
        KeyError: the condition's name is not one of `CHECKS`.
    """
    name, *words = shlex.split(condition.removeprefix("!"))
    return CHECKS[name](seen, words) is not condition.startswith("!")
