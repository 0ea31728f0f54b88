"""Why a uprobe's no-operation becomes a call, or why not: the conditions, one named rule each.

The first ones are Linux's (arch/x86/kernel/uprobes.c of 6.18: can_optimize, get_uprobe_trampoline)
and alone decide in kernel mode. Linux does not ask what the program has below its stack pointer,
where the call and the trampoline write; in strict mode that decides too.
"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.nop_call import NopCalls
from engine.arch.plan import Mode, Rules
from engine.arch.uprobe_faults import NOP_CALL
from engine.probes.jumpplace import JumpPlace
from engine.probes.placement_rules import Check
from engine.probes.technique import OTHER_PROBE

_NEEDED_BEFORE: Final = frozenset({"nop5-arch", "nop5-nop"})
"""Rules without which the others have nothing to look at."""
_NEAR: Final = 64
"""Instructions to either side that are looked at for a place that would do."""
_EVERYWHERE: Final = frozenset({"nop5-arch", "nop5-uprobe"})


def _calls(place: JumpPlace) -> NopCalls:
    assert place.arch.nop_calls is not None, "the first rule has asked"
    return place.arch.nop_calls()


def _raw(place: JumpPlace) -> bytes:
    found = place.function.around(place.address) if place.function is not None else None
    if found is not None and found[0] == place.address:
        return found[1]
    code = place.code.read(place.address, place.arch.insn_max)
    return code[: place.arch.probes.length(code) or len(code)]


def _arch(place: JumpPlace) -> str:
    if place.arch.nop_calls is not None:
        return ""
    return f"Linux calls no trampoline from a uprobe on {place.arch.name}"


def _uprobe(place: JumpPlace) -> str:
    if place.rules is Rules.UPROBE:
        return ""
    return "it is a kprobe, Linux does this to uprobes: define it as PATH:OFFSET"


def _nop(place: JumpPlace) -> str:
    raw, calls = _raw(place), _calls(place)
    if calls.is_nop(raw):
        return ""
    return f"{place.code.show(place.address, raw)} is no no-operation of {calls.size} bytes"


def _idle(place: JumpPlace) -> str:
    raw = _raw(place)
    if not _calls(place).does_something(raw):
        return ""
    return f"{place.code.show(place.address, raw)} does something, which would be left out"


def _page(place: JumpPlace) -> str:
    calls = _calls(place)
    if place.address % calls.page + calls.size <= calls.page:
        return ""
    return "its bytes lie in two pages, which cannot be written at one time"


def _reach(place: JumpPlace) -> str:
    return "" if place.reach(place.address) else "no trampoline is to be had within 2 GiB"


def _other_probe(place: JumpPlace) -> str:
    found = place.other(place.address + 1, place.address + _calls(place).size)
    return "" if found is None else f"another probe stands at {found:#x}"


def damage(place: JumpPlace) -> str:
    """The program's data that a call there would destroy, in words; "" for none."""
    function = place.function
    used = function.flow.red_zone.get(place.address) if function is not None else None
    lost = _calls(place).lost(used)
    return f"the red zone is in use: {lost} are read later" if lost else ""


class NopCallRule(Struct, frozen=True):
    """A condition of a call in place of a no-operation.

    Attributes:
        id: its name in reports.
        check: what is wrong, "" for nothing.
        title: what holds where nothing is.
        kernel: whether it decides in kernel mode too.
    """

    id: str
    check: Callable[[JumpPlace], str]
    title: str
    kernel: bool = True


RULES: Final[tuple[NopCallRule, ...]] = (
    NopCallRule("nop5-arch", _arch, "the mechanism exists there (Linux 6.18)"),
    NopCallRule("nop5-uprobe", _uprobe, "it is a uprobe"),
    NopCallRule("nop5-nop", _nop, "its instruction is a no-operation of five bytes"),
    NopCallRule("nop5-page", _page, "its bytes lie in one page"),
    NopCallRule("nop5-reach", _reach, "a trampoline is within reach"),
    NopCallRule(OTHER_PROBE, _other_probe, "no other probe stands in its bytes"),
    NopCallRule("nop5-idle", _idle, "its instruction does nothing", kernel=False),
    NopCallRule(NOP_CALL.rule, damage, "nothing that a hit overwrites is in use", kernel=False),
)
"""All rules: the kernel's, then ours."""


def _asked(place: JumpPlace) -> Iterator[tuple[NopCallRule, str]]:
    for rule in RULES:
        if rule.kernel or place.mode is Mode.STRICT:
            wrong = rule.check(place)
            yield rule, wrong
            if wrong and rule.id in _NEEDED_BEFORE:
                return


def checklist(place: JumpPlace) -> tuple[Check, ...]:
    """The rules and how each came out; without a no-operation there is nothing to look at."""
    return tuple(Check(rule.id, not wrong, wrong or rule.title) for rule, wrong in _asked(place))


def first_failure(place: JumpPlace) -> Check | None:
    """The first rule that does not hold; None if the place can have a call."""
    found = next(((rule, wrong) for rule, wrong in _asked(place) if wrong), None)
    return None if found is None else Check(found[0].id, False, found[1])


def failing(place: JumpPlace) -> str:
    """Id of the first rule that does not hold, "" if the place can have a call."""
    failure = first_failure(place)
    return "" if failure is None else failure.rule


def failing_in(place: JumpPlace) -> list[str]:
    """The same of each instruction of the function around a place."""
    assert place.function is not None, "somebody wants to know of a function"
    return [failing(replace(place, address=address)) for address in place.function.starts]


def fitting(place: JumpPlace) -> Iterator[int]:
    """Other instructions of the function that can have a call, the nearest first."""
    failure = failing(place)
    if not failure or failure in _EVERYWHERE:
        return
    for address in place.nearest(_NEAR):
        if not failing(replace(place, address=address)):
            yield address
