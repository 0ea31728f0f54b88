"""Why a probe is, or is not, a jump: the conditions, one named rule each.

The first rules are the kernel's, in the order in which it looks (arch/x86/kernel/kprobes/opt.c,
kernel/kprobes.c); they alone decide in kernel mode. In strict mode one of them is stricter or
wider where Linux is too careless or too careful for programs, and rules of our own follow. A rule
returns what is wrong, "" for nothing. What only a running guest can say (reach, other probes,
what the probes there want) is asked through `JumpPlace`, and passes where there is no guest.

Of a whole function each rule tells at once where it finds something (`JumpRule.among`), without
a word of what: that is what verdicts on all of a program need.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.jump import Leaves, Movable
from engine.arch.plan import Mode, Rules
from engine.image.cfi import find_fde, span_at
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import Check
from engine.probes.site import SHORT_REACH, FunctionCode, ImageCode
from engine.probes.technique import OTHER_PROBE

if TYPE_CHECKING:
    from engine.probes.jumpwindows import JumpWindows

__all__ = ["RULES", "Check", "JumpPlace", "JumpRule", "checklist", "first_failure", "fitting"]

COMPUTED_ENTRY: Final = "computed-entry"
"""Rule of a point into whose window the program has come."""

Wrong = str | Callable[[], str]

_NEAR: Final = 64
"""Instructions to either side that are looked at for a place that would do."""


# -- the kernel's ------------------------------------------------------------------------


def _arch(place: JumpPlace) -> str:
    if place.arch.jumps is None:
        return f"there are no jump probes on {place.arch.name}"
    if place.mode is Mode.KERNEL and not place.jumps.linux:
        return f"Linux has no jump probes on {place.arch.name}"
    if place.mode is Mode.KERNEL and place.rules is Rules.UPROBE:
        return "Linux turns only a uprobe on a five-byte nop into a call"
    return ""


def _post_handler(place: JumpPlace) -> str:
    return place.wants


def _symbol_size(place: JumpPlace) -> str:
    function = place.function
    if function is None:
        return "it is in no function whose size is known"
    left = function.start + len(function.data) - place.address
    if left < place.jumps.least:
        return f"{left} bytes are left of the function, a jump takes {place.jumps.least}"
    return ""


def _decodes(place: JumpPlace) -> str:
    function = place.function
    if function is None or function.bad is None:
        return ""
    return f"what stands at {function.bad:#x} is no instruction"


def _jump_target(place: JumpPlace) -> Wrong:
    """As in the kernel the byte behind a jump of five counts, also where the window ends there."""
    function = place.function
    alone = place.mode is Mode.STRICT and len(place.window) == 1
    if function is None or alone:
        return ""
    last = place.address + place.jumps.least
    if place.mode is Mode.STRICT:
        last = max(place.end - 1, last)
    found = function.inward.into(place.address + 1, last + 1)
    if found is None:
        return ""
    target, source = found
    return lambda: f"{place.show(source)} at {source:#x} jumps to {target:#x}"


def _indirect_jump(place: JumpPlace) -> Wrong:
    function = place.function
    strict = place.mode is Mode.STRICT
    if function is None or (strict and len(place.window) == 1):
        return ""
    jumps = place.jumps
    if strict:
        found = function.matching(jumps.indirect, unless=jumps.fixed)
    else:
        found = function.matching(jumps.indirect)
    if not found:
        return ""
    at = found[0]
    return lambda: f"{place.show(at)} at {at:#x} may jump to anywhere in the function"


def _copies(place: JumpPlace) -> Wrong:
    function, jumps = place.function, place.jumps
    if function is None or place.size < jumps.least:
        return "too few whole instructions"
    for address, raw in place.window:
        moved = function.told(jumps.movable, address, raw)
        if isinstance(moved, str):
            return partial(_shown, place, address, f": {moved}")
        if place.mode is Mode.KERNEL:
            if not jumps.copyable(raw):
                return partial(_shown, place, address, " is not boostable")
        elif moved.leaves is not Leaves.NEVER and (address, raw) != place.window[-1]:
            return partial(_shown, place, address, " may leave the window before its end")
    return ""


def _shown(place: JumpPlace, address: int, wrong: str) -> str:
    """An instruction of the window and what is wrong with it."""
    return f"{place.show(address)} at {address:#x}{wrong}"


def _reach(place: JumpPlace) -> str:
    if place.reach(place.address):
        return ""
    return f"no detour is to be had within {place.jumps.reach >> 20} MiB"


def _other_probe(place: JumpPlace) -> str:
    found = place.other(place.address + 1, place.end)
    return "" if found is None else f"another probe stands at {found:#x}"


# -- ours --------------------------------------------------------------------------------


def _window_size(place: JumpPlace) -> str:
    if place.size <= place.jumps.most:
        return ""
    return f"the window has {place.size} bytes, a jump at the most {place.jumps.most}"


def _other_entry(place: JumpPlace) -> str:
    for address, _ in place.window[1:]:
        names = place.code.names_at(address)
        if names:
            return f"{names[0]} begins at {address:#x}"
    return ""


def _cross_jump(place: JumpPlace) -> str:
    """Parts of a function that stand elsewhere (.cold) jump back into it."""
    from engine.probes.near_jumps import near_jumps  # for detours only

    function = place.function
    if function is None or len(place.window) <= 1:
        return ""
    inner = range(place.address + 1, place.end)
    entered = _entered(place.code, function)
    at = bisect_left(entered, inner.start)
    if at == len(entered) or entered[at] >= inner.stop:
        return ""
    end = function.start + len(function.data)
    far = near_jumps(place.code.image).into(inner.start, inner.stop, place.code.bias)
    for target, source in far:
        if not function.start <= source < end:
            return f"what looks like a jump at {source:#x} goes to {target:#x}"
    for neighbour in _neighbours(place, function):
        found = neighbour.outward.into(inner.start, inner.stop)
        if found is not None:
            return f"the jump at {found[1]:#x} goes to {found[0]:#x}"
    return ""


def _entered(code: ImageCode, function: FunctionCode) -> Sequence[int]:
    """Addresses in a function that jumps elsewhere may go to, those of all neighbours too."""
    if function.entered is None:
        function.entered = _entries(code, function)
    return function.entered


def _entries(code: ImageCode, function: FunctionCode) -> list[int]:
    from engine.probes.near_jumps import near_jumps

    start, end = function.start, function.start + len(function.data)
    far = near_jumps(code.image).into(start, end, code.bias)
    found = {target for target, source in far if not start <= source < end}
    for neighbour in code.neighbours(start, end):
        targets = neighbour.outward.targets
        found.update(targets[bisect_left(targets, start) : bisect_left(targets, end)])
    return sorted(found)


def _neighbours(place: JumpPlace, function: FunctionCode) -> list[FunctionCode]:
    """Functions that a short jump could come from."""
    found: dict[int, FunctionCode] = {}
    for at in (place.address - SHORT_REACH, function.start - 1, place.end + SHORT_REACH):
        for start, end, _ in place.code.functions_at(at):
            if start != function.start:
                found[start] = place.code.function(start, end - start)
    return list(found.values())


def _landing_pad(place: JumpPlace) -> str:
    """An exception may continue in the middle of a function; nothing is thrown to its entry."""
    function = place.function
    if function is None or len(place.window) <= 1:
        return ""
    pad = place.arch.probes.landing_pad(function.data[:16])
    if place.address in (function.start, function.start + pad):
        return ""
    fde = find_fde(place.code.image, place.address - place.code.bias)
    if fde is None or fde.lsda is None:
        return ""
    return "the function catches exceptions: they may land in the window"


def _screened(place: JumpPlace) -> Wrong:
    function = place.function
    if function is None:
        return ""
    suspicious = function.suspicious
    for address, _ in place.window:
        if address in suspicious:
            return partial(_shown, place, address, ": the emulator has to look at it first")
    return ""


def _registers(place: JumpPlace) -> str:
    function = place.function
    if function is None:
        return ""
    return place.jumps.needs(function.data, function.start)


def _recorder(place: JumpPlace) -> str:
    return place.unfit(place)


def _red_zone(place: JumpPlace) -> str:
    return ""


def _computed_entry(place: JumpPlace) -> str:
    return ""


# -- of all of a function at once --------------------------------------------------------

_Ask = Callable[[JumpPlace], Wrong]
Among = Callable[["JumpWindows", _Ask], Iterable[int]]
"""(the windows of a function, the rule's own question) to the numbers of those it objects to."""


def _all_or_none(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    """A rule that says the same of all places of a function."""
    return windows.everywhere(bool(check(windows.place)))


def _nowhere(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    """One that only a guest can break."""
    return ()


def _cut_off(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    return windows.cut_off(windows.jumps.least)


def _branched_into(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    return windows.branched_into()


def _computed(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    function, jumps = windows.function, windows.jumps
    if windows.strict:
        return windows.long() if function.matching(jumps.indirect, unless=jumps.fixed) else ()
    return windows.everywhere(bool(function.matching(jumps.indirect)))


def _unmoved(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    return windows.unmoved()


def _too_large(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    return windows.too_large()


def _named(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    function = windows.function
    begun = windows.code.begun(function.start + 1, function.start + len(function.data))
    return windows.containing(begun, behind=1)


def _crossed(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    entered = _entered(windows.code, windows.function)
    return windows.asked(windows.spanning(entered), check) if entered else ()


def _catching(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    code, starts = windows.code, windows.starts
    caught: set[int] = set()  # where the unwind entry has a table of landing pads
    at = 0
    while at < len(starts):
        link = starts[at] - code.bias
        fde, (_, high) = find_fde(code.image, link), span_at(code.image, link)
        after = max(bisect_left(starts, high + code.bias), at + 1)
        if fde is not None and fde.lsda is not None:
            caught.update(range(at, after))
        at = after
    if not caught:
        return ()
    function = windows.function
    pad = windows.place.arch.probes.landing_pad(function.data[:16])
    entries = (function.start, function.start + pad)
    return (one for one in windows.long() if one in caught and starts[one] not in entries)


def _suspect(windows: "JumpWindows", check: _Ask) -> Iterable[int]:
    return windows.containing(windows.function.suspicious)


class JumpRule(Struct, frozen=True):
    """A condition of a jump probe.

    Attributes:
        id: its name in reports.
        check: what is wrong, "" for nothing, or what says it: instructions in it are decoded.
        title: what holds where nothing is.
        among: where it finds something in all of a function, as far as the file tells.
        kernel: whether it decides in kernel mode too.
        late: whether only a running guest can say.
    """

    id: str
    check: Callable[[JumpPlace], Wrong]
    title: str
    among: Among = _nowhere
    kernel: bool = True
    late: bool = False


RULES: Final[tuple[JumpRule, ...]] = (
    JumpRule("jump-arch", _arch, "the mechanism exists there", _all_or_none),
    JumpRule("post-handler", _post_handler, "nothing runs behind it", late=True),
    JumpRule("symbol-size", _symbol_size, "its function goes on behind the jump", _cut_off),
    JumpRule("decodes", _decodes, "the whole function decodes", _all_or_none),
    JumpRule(
        "jump-target",
        _jump_target,
        "nothing in the function jumps into the window",
        _branched_into,
    ),
    JumpRule(
        "indirect-jump",
        _indirect_jump,
        "no jump of the function goes to a computed place",
        _computed,
    ),
    JumpRule("copies", _copies, "its instructions do the same in a detour", _unmoved),
    JumpRule("reach", _reach, "a detour is within reach", late=True),
    JumpRule(OTHER_PROBE, _other_probe, "no other probe stands in the window", late=True),
    JumpRule(
        "window-size",
        _window_size,
        "a jump can take the whole window",
        _too_large,
        kernel=False,
    ),
    JumpRule("other-entry", _other_entry, "no other function begins there", _named, kernel=False),
    JumpRule(
        "cross-jump",
        _cross_jump,
        "nothing elsewhere jumps into the window",
        _crossed,
        kernel=False,
    ),
    JumpRule(
        "exceptions",
        _landing_pad,
        "no exception lands in the window",
        _catching,
        kernel=False,
    ),
    JumpRule(
        "screened",
        _screened,
        "the emulator executes it all by itself",
        _suspect,
        kernel=False,
    ),
    JumpRule(
        "free-registers",
        _registers,
        "the detour has registers to use",
        _all_or_none,
        kernel=False,
    ),
    JumpRule("recorder", _recorder, "code in the guest can record it", kernel=False, late=True),
    JumpRule(
        "untouched-stack",
        _red_zone,
        "the detour touches neither the stack nor what is below it",
        kernel=False,
    ),
    JumpRule(
        COMPUTED_ENTRY,
        _computed_entry,
        "a computed jump into the window, were there one, is noticed",
        kernel=False,
        late=True,
    ),
)
"""All rules: the kernel's in its order, then ours."""

_EVERYWHERE: Final = frozenset({"jump-arch", "decodes", "post-handler", "recorder"})
"""Rules that fail in all of a function, if they fail at one place of it."""

_NEEDED_BEFORE: Final = frozenset({"jump-arch", "symbol-size", "decodes"})
"""Rules without which there is no window for the others to look at."""


_OURS_ALWAYS: Final = frozenset({"window-size", "screened", "recorder"})
"""Rules not of Linux's but of how it is done here, which decide in kernel mode too."""

_KERNEL: Final = tuple(rule for rule in RULES if rule.kernel or rule.id in _OURS_ALWAYS)
_HOLDS: Final = {rule.id: Check(rule.id, True, rule.title) for rule in RULES}


def checklist(place: JumpPlace) -> tuple[Check, ...]:
    """All rules and how each came out; rules without a window to look at are left out."""
    found: list[Check] = []
    for rule in _rules(place):
        wrong = rule.check(place)
        found.append(_failed(rule, wrong) if wrong else _HOLDS[rule.id])
        if wrong and rule.id in _NEEDED_BEFORE:
            break
    return tuple(found)


def first_failure(place: JumpPlace) -> Check | None:
    """The first rule that does not hold; None if the place can have a jump."""
    found = _first_wrong(place)
    return None if found is None else _failed(*found)


def failing(place: JumpPlace) -> str:
    """Id of the first rule that does not hold, "" if the place can have a jump."""
    found = _first_wrong(place)
    return "" if found is None else found[0].id


def failing_in(place: JumpPlace) -> list[str]:
    """The answers of `failing` for all of the function around a place, without a guest."""
    function = place.function
    assert function is not None, "somebody wants to know of a function"
    if place.arch.jumps is None:
        return [failing(place)] * len(function.starts)
    from engine.probes.jumpwindows import JumpWindows  # for all of a program only

    found = [""] * len(function.starts)
    windows = JumpWindows(replace(place, address=function.start), function)
    left = len(found)
    for rule in _rules(place):
        if not left:
            break
        for number in rule.among(windows, rule.check):
            if not found[number]:
                found[number] = rule.id
                left -= 1
    return found


def _rules(place: JumpPlace) -> tuple[JumpRule, ...]:
    return RULES if place.mode is Mode.STRICT else _KERNEL


def _first_wrong(place: JumpPlace) -> tuple[JumpRule, Wrong] | None:
    for rule in _rules(place):
        wrong = rule.check(place)
        if wrong:
            return rule, wrong
    return None


def _failed(rule: JumpRule, wrong: Wrong) -> Check:
    return Check(rule.id, False, wrong if isinstance(wrong, str) else wrong())


def fitting(place: JumpPlace) -> Iterator[int]:
    """Other instructions of the function that can have a jump, the nearest first."""
    failure = failing(place)
    if not failure or failure in _EVERYWHERE:
        return
    for address in place.nearest(_NEAR):
        if not failing(replace(place, address=address)):
            yield address


def moved(place: JumpPlace, bias: int) -> list[tuple[int, Movable]]:
    """The instructions of a window that passed, by guest address, and how each is moved."""
    found: list[tuple[int, Movable]] = []
    function, movable = place.function, place.jumps.movable
    for address, raw in place.window:
        if bias or function is None:
            one = movable(raw, address + bias)
        else:  # a rule has asked
            one = function.told(movable, address, raw)
        assert not isinstance(one, str), "the window has passed"
        found.append((address + bias, one))
    return found
