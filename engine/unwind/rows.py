"""The one form that every way to describe a frame takes: rules for the caller's registers.

Model: the table of DWARF 5, section 6.4.1, one row of it. What DWARF leaves to the ABI is
settled here: the caller's sp is the CFA; a preserved register without a rule keeps its value;
any other register without a rule is not known any more.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct, field

from engine.arch.base import Arch
from engine.errors import GuestFaultError
from engine.unwind.expression import ExpressionError, ReadMemory, evaluate

__all__ = [
    "AtCfa",
    "AtExpression",
    "AtRegister",
    "Caller",
    "CfaExpression",
    "CfaPlus",
    "CfaRegister",
    "CfiRow",
    "InRegister",
    "Rule",
    "SameValue",
    "Undefined",
    "Unreadable",
    "ValueOfExpression",
    "WhenBit",
]


class Undefined(Struct, frozen=True):
    """The value is gone; for the return address: there is no caller."""


class SameValue(Struct, frozen=True):
    """The register has not been touched."""


class AtCfa(Struct, frozen=True):
    """Saved in memory at CFA + `offset`; `size` bytes, 0 = a word."""

    offset: int
    size: int = 0


class AtRegister(Struct, frozen=True):
    """Saved in memory at the callee's `register` + `offset`; `size` bytes, 0 = a word."""

    register: str
    offset: int
    size: int = 0


class CfaPlus(Struct, frozen=True):
    """The value is CFA + `offset` itself."""

    offset: int


class InRegister(Struct, frozen=True):
    """The value is in another register."""

    register: str


class AtExpression(Struct, frozen=True):
    """Saved in memory where a DWARF expression says; the CFA lies on its stack."""

    code: bytes


class ValueOfExpression(Struct, frozen=True):
    """The value of a DWARF expression; the CFA lies on its stack."""

    code: bytes


class WhenBit(Struct, frozen=True):
    """One rule where bit `bit` of the callee's `register` is set, another where it is not.

    None stands for the untouched register.
    """

    register: str
    bit: int
    then: "Rule"
    otherwise: "Rule | None"


Rule = (
    Undefined
    | SameValue
    | AtCfa
    | AtRegister
    | CfaPlus
    | InRegister
    | AtExpression
    | ValueOfExpression
    | WhenBit
)


class CfaRegister(Struct, frozen=True):
    """The CFA is `register` + `offset`."""

    register: str
    offset: int


class CfaExpression(Struct, frozen=True):
    """The CFA is the value of a DWARF expression."""

    code: bytes


class Caller(Struct, frozen=True):
    """The frame below.

    Attributes:
        cfa: of the frame whose row this was.
        pc: where the caller goes on, without authentication code; None = there is no caller.
        registers: what is known of the caller's registers, pc and sp included.
    """

    cfa: int
    pc: int | None
    registers: Mapping[str, int]


class Unreadable(Struct, frozen=True):
    """A row that could not be carried out, and why."""

    reason: str


class CfiRow(Struct, frozen=True):
    """The rules at one place of a function.

    Attributes:
        cfa: where the canonical frame address is: sp before the call on machines that push
            the return address, sp at the function's entry on the others.
        rules: by register name.
        return_register: the column of the return address.
        signed: the return address carries an authentication code (AArch64 RA_SIGN_STATE).
        signal_frame: the caller was interrupted: its pc is exact, all its registers are there.
    """

    cfa: CfaRegister | CfaExpression
    rules: Mapping[str, Rule] = field(default_factory=dict)
    return_register: str = ""
    signed: bool = False
    signal_frame: bool = False

    def caller(
        self, arch: Arch, registers: Mapping[str, int], read: ReadMemory
    ) -> Caller | Unreadable:
        """Carry the row out.

        Args:
            arch: the architecture, with `unwind`.
            registers: what is known of the frame's own registers.
            read: the guest's memory.
        """
        try:
            return self._caller(_RowFrame(arch, registers, read))
        except GuestFaultError as error:
            return Unreadable(str(error))
        except ExpressionError as error:
            return Unreadable(f"a DWARF expression: {error}")
        except KeyError as error:
            return Unreadable(f"the frame's {error.args[0]} is not known")

    def _caller(self, frame: "_RowFrame") -> Caller:
        arch = frame.arch
        cfa = self._cfa(frame)
        assert arch.unwind is not None, "checked by the unwinder"
        known = frame.registers
        found = {name: known[name] for name in arch.unwind.preserved if name in known}
        found[arch.roles.sp] = cfa
        pc: int | None = None
        for name, rule in self.rules.items():
            while isinstance(rule, WhenBit):
                rule = frame.choose(rule)
            if isinstance(rule, Undefined):
                found.pop(name, None)
                continue
            try:
                found[name] = frame.value(name, rule, cfa)
            except (GuestFaultError, ExpressionError, KeyError):
                if name in (self.return_register, arch.roles.sp):
                    raise
                found.pop(name, None)
        column = self.return_register or arch.roles.link or arch.roles.pc
        if not isinstance(self.rules.get(column), Undefined):
            value = found.get(column, known.get(column) if column not in self.rules else None)
            if value is None:
                raise KeyError(column)
            pc = value
            if self.signed or not self.signal_frame:
                pc = arch.unwind.strip(value)
            found[arch.roles.pc] = pc
            if column != arch.roles.pc and not self.signal_frame:
                # The return has copied it there; the caller's own value was lost in the call.
                found[column] = pc
        if arch.unwind.popped is not None:
            arch.unwind.popped(found, known, frame.read, self.signal_frame)
        return Caller(cfa, pc, found)

    def _cfa(self, frame: "_RowFrame") -> int:
        if isinstance(self.cfa, CfaRegister):
            return frame.registers[self.cfa.register] + self.cfa.offset & frame.mask
        return frame.expression(self.cfa.code, None)


class _RowFrame:
    """The state that a row is carried out on."""

    def __init__(self, arch: Arch, registers: Mapping[str, int], read: ReadMemory) -> None:
        self.arch = arch
        self.registers = registers
        self.read = read
        self.mask = (1 << arch.bits) - 1

    def expression(self, code: bytes, start: int | None) -> int:
        numbers = _dwarf_numbers(self.arch)
        known = {numbers[name]: value for name, value in self.registers.items() if name in numbers}
        order = "<" if self.arch.byteorder == "little" else ">"
        return evaluate(code, start, known, self.read, order)

    def choose(self, rule: WhenBit) -> Rule:
        """The rule that holds of two."""
        if self.registers[rule.register] >> rule.bit & 1:
            return rule.then
        return SameValue() if rule.otherwise is None else rule.otherwise

    def word(self, address: int, size: int = 0) -> int:
        size = size or self.arch.bits // 8
        data = self.read(address & self.mask, size)
        return int.from_bytes(data, "little" if self.arch.byteorder == "little" else "big")

    def value(self, name: str, rule: Rule, cfa: int) -> int:
        if isinstance(rule, AtCfa):
            return self.word(cfa + rule.offset, rule.size)
        if isinstance(rule, AtRegister):
            return self.word(self.registers[rule.register] + rule.offset, rule.size)
        if isinstance(rule, CfaPlus):
            return cfa + rule.offset & self.mask
        if isinstance(rule, InRegister):
            return self.registers[rule.register]
        if isinstance(rule, AtExpression):
            return self.word(self.expression(rule.code, cfa))
        if isinstance(rule, ValueOfExpression):
            return self.expression(rule.code, cfa)
        return self.registers[name]


@lru_cache(maxsize=8)
def _numbers(pairs: tuple[tuple[str, int | None], ...]) -> dict[str, int]:
    return {name: number for name, number in pairs if number is not None}


def _dwarf_numbers(arch: Arch) -> dict[str, int]:
    """Register names to DWARF numbers."""
    return _numbers(tuple((register.name, register.dwarf) for register in arch.registers))
