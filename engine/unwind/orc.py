"""Rows from ORC, the unwind tables of kernels and their modules."""

from collections.abc import Callable, Iterator
from typing import Final
from weakref import WeakKeyDictionary

from engine.arch.base import Arch
from engine.arch.frames import Flow
from engine.errors import ImageError
from engine.guest.modules import Module
from engine.image import ElfImage
from engine.image.kernel.orc import ENTRIES, OrcEntry, OrcKind, OrcTable
from engine.unwind.expression import signed
from engine.unwind.prologue import ReadCode
from engine.unwind.rows import (
    AtCfa,
    AtRegister,
    CfaExpression,
    CfaRegister,
    CfiRow,
    Rule,
    Undefined,
)

_BREG, _DEREF, _CONSTS, _PLUS = 0x70, 0x06, 0x11, 0x22
_ROWS: Final = 1 << 16
"""Different rows of one image that are kept; a kernel has a few hundred."""


class OrcTables:
    """The ORC tables of all files in a guest."""

    source: Final = "orc"

    def __init__(
        self,
        arch: Arch,
        module_at: Callable[[int], Module | None],
        code: ReadCode = lambda address, size: b"",
        outside: Callable[[int], OrcEntry | None] = lambda address: None,
    ) -> None:
        """Nothing is read before the first question.

        Args:
            arch: of the guest.
            module_at: the file around an address.
            code: the guest's code, for what tables say nothing of.
            outside: the entry at an address in no file.
        """
        self._arch, self._outside = arch, outside
        self._code = code
        self._numbers = arch.unwind.orc if arch.unwind is not None else None
        self._module_at = module_at
        self._tables: WeakKeyDictionary[ElfImage, OrcTable | None] = WeakKeyDictionary()
        self._rows: dict[tuple[OrcEntry, bool], CfiRow | None] = {}
        self._thunks: dict[int, CfiRow | None] = {}

    def row(self, pc: int, exact: bool) -> CfiRow | None:
        """The rules at a place; None where no table has any.

        Args:
            pc: guest address.
            exact: an instruction about to be executed, not a return address.
        """
        if self._numbers is None:
            return None
        lookup = pc if exact else pc - 1
        module = self._module_at(lookup)
        if module is None:
            found = self._outside(lookup)
            return self._known((found, True)) if found is not None else None
        table = self._table(module.image)
        if table is None:
            return None
        entry = table.at(lookup - module.bias)
        if entry is None:
            return None
        if lookup not in self._thunks:
            if len(self._thunks) >= _ROWS:
                self._thunks.clear()
            self._thunks[lookup] = self._in_thunk(module, lookup)
        thunk = self._thunks[lookup]
        if thunk is not None:
            return thunk
        return self._known(self._key(entry, table))

    def rows(self, image: ElfImage) -> Iterator[tuple[int, CfiRow | None]]:
        """All rules of a file: the link address from which each holds, ascending."""
        table = self._table(image)
        if table is None or self._numbers is None:
            return
        made: dict[int, tuple[OrcEntry, CfiRow | None]] = {}  # equal entries are one object
        for address, entry in table.entries():
            known = made.get(id(entry))
            if known is None:
                known = made[id(entry)] = entry, self._known(self._key(entry, table))
            yield address, known[1]

    def _key(self, entry: OrcEntry, table: OrcTable) -> tuple[OrcEntry, bool]:
        return entry, table.reads_before_moving if self._is_indirect(entry) else True

    def _known(self, key: tuple[OrcEntry, bool]) -> CfiRow | None:
        """The rules of an entry, made once."""
        if key not in self._rows:
            if len(self._rows) >= _ROWS:
                self._rows.clear()
            self._rows[key] = self._made(*key)
        return self._rows[key]

    def _in_thunk(self, module: Module, at: int) -> CfiRow | None:
        """The rules in code that stands for a computed jump; None elsewhere.

        It calls a place in itself and overwrites the return address, to be returned to it. The
        tables say that nobody has called there, or that the jump's target has.
        """
        numbers, unwind, roles = self._numbers, self._arch.unwind, self._arch.roles
        if numbers is None or unwind is None or not numbers.thunks:
            return None
        names = module.symbols.covering(at - module.bias)
        thunk = next((one for one in names if one.name.startswith(numbers.thunks)), None)
        if thunk is None:
            return None
        start = thunk.address + module.bias
        first = unwind.read(self._code(start, self._arch.insn_max), start)
        called = first is not None and first.flow is Flow.CALL and at > start
        word = self._arch.bits // 8
        rules: dict[str, Rule] = {roles.pc: AtCfa(-word)}
        return CfiRow(CfaRegister(roles.sp, 2 * word if called else word), rules, roles.pc)

    def _table(self, image: ElfImage) -> OrcTable | None:
        if image not in self._tables:
            found = None
            if image.section(ENTRIES) is not None:
                try:
                    found = image.once(OrcTable)
                except ImageError as error:
                    image.damage.note(str(error))
            self._tables[image] = found
        return self._tables[image]

    def _is_indirect(self, entry: OrcEntry) -> bool:
        assert self._numbers is not None, "asked by `row`"
        source = self._numbers.stack.get(entry.stack)
        return source is not None and source.behind

    def _made(self, entry: OrcEntry, read_first: bool) -> CfiRow | None:
        """An entry as rules; None where it has none."""
        assert self._numbers is not None, "asked by `row`"
        roles, numbers = self._arch.roles, self._numbers
        if entry.kind is OrcKind.UNKNOWN:
            return None
        if entry.kind is OrcKind.END:
            return CfiRow(CfaRegister(roles.sp, 0), {roles.pc: Undefined()}, roles.pc)
        cfa = self._cfa(entry, read_first)
        if cfa is None:
            return None
        if entry.kind is OrcKind.REGS:
            saved: dict[str, Rule] = {
                name: AtCfa(offset) for name, offset in numbers.saved.items()
            }
            return CfiRow(cfa, saved, roles.pc, signal_frame=entry.signal)
        # Nobody says where a function has put the other registers of its caller.
        rules: dict[str, Rule] = {
            name: Undefined()
            for name in (self._arch.unwind.preserved if self._arch.unwind is not None else ())
            if name != roles.fp
        }
        if entry.frame == numbers.in_frame:
            rules[roles.fp] = AtCfa(entry.frame_offset)
        elif entry.frame == numbers.by_pointer:
            rules[roles.fp] = AtRegister(roles.fp, entry.frame_offset)
        elif entry.frame:
            return None
        if entry.kind is OrcKind.PARTIAL:
            rules |= {name: AtCfa(offset) for name, offset in numbers.partial.items()}
            return CfiRow(cfa, rules, roles.pc, signal_frame=entry.signal)
        rules[roles.pc] = AtCfa(-self._arch.bits // 8)
        return CfiRow(cfa, rules, roles.pc, signal_frame=entry.signal)

    def _cfa(self, entry: OrcEntry, read_first: bool) -> CfaRegister | CfaExpression | None:
        assert self._numbers is not None, "asked by `row`"
        source = self._numbers.stack.get(entry.stack)
        if source is None:
            return None
        offset = entry.stack_offset if source.moved else 0
        if not source.indirect:
            return CfaRegister(source.register, offset)
        number = next(r.dwarf for r in self._arch.registers if r.name == source.register)
        assert number is not None, "what frames are found by has a number"
        behind = source.behind and read_first
        code = bytes((_BREG + number, *signed(0 if behind else offset), _DEREF))
        if behind:
            code += bytes((_CONSTS, *signed(offset), _PLUS))
        return CfaExpression(code)
