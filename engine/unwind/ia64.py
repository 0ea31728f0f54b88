"""Rows from .IA_64.unwind: where a function's saved registers are, slot by slot.

Source: Intel Itanium Software Conventions and Runtime Architecture Guide, chapter 11. A save
is in force behind the slot that makes it.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Struct, field
from msgspec.structs import replace

from engine.arch.base import Arch
from engine.errors import ImageError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.image.ia64unwind import Descriptor, UnwindEntry, find_entry, info_of, parse_info
from engine.unwind.rows import (
    AtCfa,
    AtRegister,
    CfaExpression,
    CfaRegister,
    CfiRow,
    InRegister,
    Rule,
    SameValue,
    Undefined,
    WhenBit,
)

_ROWS: Final = 1 << 16
"""Rows of one image that are kept."""
_NEVER: Final = 1 << 62
_SP: Final = "r12"
_DEREF: Final = 0x06
_BREG_SP: Final = 0x70 + 12
_WIDE: Final = 16
"""Bytes of a spilled floating-point register."""
_PREDICATES: Final = "pr"

_NAMES: Final = {
    "rp": "b0",
    "pfs": "pfs",
    "preds": "pr",
    "unat": "unat",
    "lc": "lc",
    "fpsr": "fpsr",
    "bsp": "bsp",
    "bspstore": "bspstore",
    "rnat": "rnat",
}
"""Names of the conventions' special registers."""
_R2: Final = ("rp", "pfs", "psp", "preds")
_FLOATS: Final = tuple(f"f{number}" for number in (*range(2, 6), *range(16, 32)))
_BRANCHES: Final = tuple(f"b{number}" for number in range(1, 6))
_GENERALS: Final = tuple(f"r{number}" for number in range(4, 8))


class _Save(Struct):
    """The place of a register from behind slot `when` on.

    `where`: "fixed" (psp is sp + value), "psprel", "sprel", a register's name, "home" (its place
    in the spill area, once that is laid out) or "" (the register itself again).
    """

    when: int
    where: str
    value: int = 0
    qp: int | None = None
    timed: bool = True


_State = dict[str, tuple[_Save, ...]]


class _UnwindRegion(Struct):
    start: int = 0
    length: int = 0
    body: bool = True
    spill_base: int = 16
    mask: bytes | None = None
    pending: dict[str, int] = field(default_factory=dict)
    homes: dict[str, _Save] = field(default_factory=dict)
    epilogue: int = _NEVER
    leaves: int = 0

    @property
    def end(self) -> int:
        """The region's last slot."""
        return self.start + self.length - 1


class _DescriptorWalk:
    """The state at one slot of a function."""

    def __init__(self, target: int, found: tuple[Descriptor, ...]) -> None:
        self.target = target
        self.state: _State = {}
        self.stack: list[_State] = []
        self.labels: dict[int, tuple[_State, list[_State]]] = {}
        self.region = _UnwindRegion()
        self.abi: tuple[int, int] | None = None
        for descriptor in found:
            if descriptor.kind in ("prologue", "prologue_gr", "body"):
                if not self._enter(descriptor):
                    break
            else:
                self._apply(descriptor)
        self._finish()

    @property
    def epilogue(self) -> bool:
        """True if the stack frame has been taken down again."""
        return self.target > self.region.epilogue

    def _enter(self, head: Descriptor) -> bool:
        """Begin a region; False where the target lies in the one before it."""
        old = self.region
        if self.target < old.start + old.length:
            return False
        self._finish()
        for _ in range(min(old.leaves, len(self.stack))):
            self.state = self.stack.pop()
        body = head.kind == "body"
        self.region = _UnwindRegion(old.start + old.length, head.value, body)
        if not body:
            self.stack.append(dict(self.state))
        if head.kind == "prologue_gr":
            number = int(head.register[1:])
            for bit, name in enumerate(_R2):
                if head.mask & 8 >> bit:
                    self._save(name, _Save(self.region.end, f"r{number}", timed=False))
                    number += 1
        return True

    def _save(self, name: str, save: _Save) -> None:
        self.state[name] = (*self.state.get(name, ()), save)

    def _apply(self, descriptor: Descriptor) -> None:
        region, kind, name = self.region, descriptor.kind, descriptor.register
        when = region.start + descriptor.t
        if kind == "when":
            self._when(name, when)
        elif kind in ("gr", "br"):
            self._located(name, f"{'r' if kind == 'gr' else 'b'}{descriptor.value}")
        elif kind == "psprel":
            self._located(name, "psprel", 16 - 4 * descriptor.value)
        elif kind == "sprel":
            self._located(name, "sprel", 4 * descriptor.value)
        elif kind == "mem_stack_f":
            self._save("psp", _Save(when, "fixed", descriptor.value))
        elif kind == "mem_stack_v":
            self._when("psp", when)
        elif kind == "spill_base":
            region.spill_base = 16 - 4 * descriptor.value
        elif kind == "spill_mask":
            region.mask = descriptor.data
        elif kind == "unwabi":
            self.abi = descriptor.value, descriptor.mask
        elif kind == "epilogue":
            region.epilogue = region.end - descriptor.t
            region.leaves = descriptor.value + 1
        elif kind == "label_state":
            self.labels[descriptor.value] = dict(self.state), list(self.stack)
        elif kind == "copy_state":
            if descriptor.value in self.labels:
                state, stack = self.labels[descriptor.value]
                self.state, self.stack = dict(state), list(stack)
        elif kind in ("spill_reg", "restore"):
            self._save(name, _Save(when, descriptor.target, qp=descriptor.qp))
        elif kind == "spill_psprel":
            offset = 16 - 4 * descriptor.value
            self._save(name, _Save(when, "psprel", offset, descriptor.qp))
        elif kind == "spill_sprel":
            self._save(name, _Save(when, "sprel", 4 * descriptor.value, descriptor.qp))
        else:
            self._many(descriptor)

    def _many(self, descriptor: Descriptor) -> None:
        """Descriptors that speak of several registers."""
        kind, mask = descriptor.kind, descriptor.mask
        if kind in ("br_gr", "gr_gr"):
            names = _BRANCHES if kind == "br_gr" else _GENERALS
            number = descriptor.value
            for name in (name for bit, name in enumerate(names) if mask >> bit & 1):
                self._save(name, _Save(self.region.end, f"r{number}"))
                number += 1
            return
        names = {
            "br_mem": _BRANCHES,
            "gr_mem": _GENERALS,
            "fr_mem": _FLOATS,
            "frgr_mem": _GENERALS + _FLOATS,
        }[kind]
        for name in (name for bit, name in enumerate(names) if mask >> bit & 1):
            home = self.region.homes[name] = _Save(self.region.end, "home")
            self._save(name, home)

    def _when(self, name: str, when: int) -> None:
        """The time of a save: of the one before if that has none, else of the next one."""
        saves = self.state.get(name, ())
        if saves and not saves[-1].timed:
            self.state[name] = (*saves[:-1], _Save(when, saves[-1].where, saves[-1].value))
        else:
            self.region.pending[name] = when

    def _located(self, name: str, where: str, value: int = 0) -> None:
        when = self.region.pending.pop(name, None)
        if where.startswith("b") and when is None:
            # Another branch register holds the return address throughout.
            self._save(name, _Save(-1, where))
            return
        timed = when is not None
        self._save(
            name, _Save(self.region.end if when is None else when, where, value, None, timed)
        )

    def _finish(self) -> None:
        """Lay the spill area of a prologue out, from its base downwards."""
        region = self.region
        for name, saves in self.state.items():
            if not saves[-1].timed:
                self.state[name] = (*saves[:-1], _settled(saves[-1]))
        if region.body or not region.homes:
            return
        homes = region.homes
        if region.mask is not None:
            _time(region, homes)
        place = region.spill_base
        for names, size in ((_FLOATS, 16), (_BRANCHES, 8), (_GENERALS, 8)):
            for name in reversed([name for name in names if name in homes]):
                place -= size
                homes[name].where, homes[name].value = "psprel", place
        region.homes = {}

    # -- the result ---------------------------------------------------------------------

    def in_force(self, name: str) -> list[_Save]:
        """The saves of a register that have been made, the one that holds last.

        With more than one all but the first are predicated.
        """
        found: list[_Save] = []
        saves = self.state.get(name, ())
        for save in sorted(saves, key=lambda save: save.when):  # stable: later ones win
            if save.when >= self.target:
                break
            if self.epilogue and save.where in ("psprel", "sprel"):
                save = _Save(save.when, "", qp=save.qp)
            found = [*found, save] if save.qp is not None else [save]
        return found


def _settled(save: _Save) -> _Save:
    return replace(save, timed=True)


def _time(region: _UnwindRegion, homes: dict[str, _Save]) -> None:
    """Give spills the slots that the mask of a region names, each kind in order."""
    assert region.mask is not None, "asked for with a mask only"
    queues = {
        1: [name for name in _FLOATS if name in homes],
        2: [name for name in _GENERALS if name in homes],
        3: [name for name in _BRANCHES if name in homes],
    }
    for slot in range(region.length):
        queue = queues.get(region.mask[slot // 4] >> 6 - 2 * (slot % 4) & 3)
        if queue:
            homes[queue.pop(0)].when = region.start + slot


def _rule(name: str, save: _Save) -> Rule:
    size = _WIDE if name[0] == "f" and name != "fpsr" else 0
    if save.where == "psprel":
        return AtCfa(save.value, size)
    if save.where == "sprel":
        return AtRegister(_SP, save.value, size)
    if not save.where:
        return SameValue()
    if name == "rp" and save.where == "r0":
        return Undefined()
    return InRegister(save.where)


def _cfa(walk: _DescriptorWalk) -> CfaRegister | CfaExpression:
    saves = [] if walk.epilogue else walk.in_force("psp")
    if not saves or not saves[-1].where:
        return CfaRegister(_SP, 0)
    save = saves[-1]
    if save.where == "fixed":
        return CfaRegister(_SP, save.value)
    if save.where == "sprel":
        return CfaExpression(bytes((_BREG_SP, *_sleb(save.value), _DEREF)))
    return CfaRegister(save.where, 0)


def _sleb(value: int) -> bytes:
    found = bytearray()
    while value > 0x3F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def row_at(found: tuple[Descriptor, ...], slot: int) -> CfiRow:
    """The rules in front of a slot of a function, counted from its first."""
    walk = _DescriptorWalk(slot, found)
    rules: dict[str, Rule] = {}
    for name in walk.state:
        register = _NAMES.get(name, name)
        if name == "psp" or name.startswith("priunat"):
            continue
        rule: Rule | None = None
        for save in walk.in_force(name):
            made = _rule(name, save)
            rule = made if save.qp is None else WhenBit(_PREDICATES, save.qp, made, rule)
        if rule is not None and not isinstance(rule, SameValue):
            rules[register] = rule
    return CfiRow(_cfa(walk), rules, "b0")


@lru_cache(maxsize=64)
def described(info: bytes, distance: int) -> CfiRow:
    """The rules so many bytes and slots behind the start of what a block describes.

    Raises:
        ImageError: it is not such a block.
    """
    return row_at(parse_info(info).descriptors, _slot(distance))


def _slot(distance: int) -> int:
    return 3 * (distance >> 4) + (distance & 3)


class Ia64Tables:
    """The unwind tables of all files in a guest."""

    def __init__(self, arch: Arch, module_at: Callable[[int], Module | None]) -> None:
        """Nothing is read before the first question."""
        self._arch = arch
        self._module_at = module_at
        self._rows: WeakKeyDictionary[ElfImage, dict[int, CfiRow | None]] = WeakKeyDictionary()

    def row(self, pc: int, exact: bool) -> CfiRow | None:
        """The rules at a slot; None where nobody can tell.

        Args:
            pc: guest address of a bundle plus the number of a slot. Return addresses are
                looked up as they are: compilers leave a bundle behind a last call.
            exact: an instruction about to be executed, not a return address.
        """
        module = self._module_at(pc)
        if module is None:
            return None
        link = pc - module.bias
        rows = self._rows.setdefault(module.image, {})
        if link not in rows:
            if len(rows) >= _ROWS:
                rows.clear()
            entry = find_entry(module.image, link & ~15)
            rows[link] = None if entry is None else _entry_row(module.image, entry, link)
        return rows[link]


def _entry_row(image: ElfImage, entry: UnwindEntry, link: int) -> CfiRow | None:
    try:
        info = info_of(image, entry)
    except ImageError:
        return None
    return row_at(info.descriptors, _slot(link - (entry.start & ~15)))
