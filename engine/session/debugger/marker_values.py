"""Arguments of the static probe (USDT) that a frame stands at: `$_probe_argc`, `$_probe_arg0`...

What gdb's stap-probe.c says of them; that reads no `%r11b`, no `symbol(%rip)` and no floating
number, and then knows none of the operands that follow.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from engine.arch.marker_operands import MarkerOperand, operands
from engine.errors import CommandError
from engine.guest.modules import Module
from engine.image.datatypes import TypeKind
from engine.image.sdt import static_probes
from engine.language import value_types as ct
from engine.language.values import TypedValue, made

if TYPE_CHECKING:
    from engine.session.debugger.debugger import Debugger

_MOST: Final = 12
"""Variables `$_probe_argN` that gdb has."""


class MarkerValues:
    """Reads the arguments of static probes.

    Attributes:
        variables: makes the value of each, by name without the dollar.
    """

    def __init__(self, debugger: "Debugger") -> None:
        """Read those of a debugger's frame."""
        self._debugger = debugger

        def argument(number: int) -> Callable[[], TypedValue]:
            return lambda: self._argument(number)

        self.variables: Mapping[str, Callable[[], TypedValue]] = {
            "_probe_argc": lambda: made(ct.INT, len(self._here()[1]), debugger.scope.order),
            **{f"_probe_arg{number}": argument(number) for number in range(_MOST)},
        }

    def _here(self) -> tuple[Module, tuple[MarkerOperand, ...]]:
        """The file and the operands of the probe at the frame's address.

        Raises:
            CommandError: there is none.
        """
        debugger = self._debugger
        frame, arch = debugger.frame, debugger.control.session.arch
        if frame is None:
            raise CommandError("No frame selected")
        module = debugger.frames.seen.modules.at(frame.pc)
        syntax = arch.markers
        for probe in static_probes(module.image) if module is not None else ():
            if module is not None and probe.address + module.bias == frame.pc:
                if syntax is None:
                    raise CommandError(f"Operands of {arch.name} are not read.")
                return module, operands(probe.arguments, syntax(), arch.bits // 8)
        raise CommandError(f"No probe at PC 0x{frame.pc:0{arch.bits // 4}x}")

    def _argument(self, number: int) -> TypedValue:
        module, found = self._here()
        if number >= len(found):
            raise CommandError(
                f"Invalid probe argument {number} -- probe has {len(found)} arguments available"
            )
        operand, order = found[number], self._debugger.scope.order
        if operand.problem:
            raise CommandError(f"Probe argument {number} is `{operand.text}': {operand.problem}.")
        raw = self._raw(operand, module)
        return TypedValue(_type(operand), lambda: raw, order=order, _raw=raw)

    def _raw(self, operand: MarkerOperand, module: Module) -> bytes:
        """The bytes of an operand.

        Raises:
            CommandError: its symbol or register is not there.
            GuestFaultError: its memory is not.
        """
        scope = self._debugger.scope
        if operand.memory:
            at = self._whole(operand.base) + self._whole(operand.index) * operand.scale
            at += operand.number + self._symbol(operand, module)
            return scope.read(at % (1 << 64), operand.size)
        value = self._whole(operand.base) >> 8 * operand.first if operand.base else operand.number
        return (value % (1 << 8 * operand.size)).to_bytes(operand.size, scope.order)

    def _whole(self, name: str) -> int:
        """A register's value; 0 for "".

        Raises:
            CommandError: it was not saved.
        """
        if not name:
            return 0
        found = self._debugger.scope.register(name)
        if found is None:
            raise CommandError(f"Register {name} is not known here.")
        return int.from_bytes(found.raw, found.order)

    def _symbol(self, operand: MarkerOperand, module: Module) -> int:
        if not operand.symbol:
            return 0
        found = {
            one.address for one in module.symbols.find_all(operand.symbol) if one.kind != "tls"
        }
        if len(found) != 1:
            why = "is not in the symbol table" if not found else "stands at several addresses"
            raise CommandError(f"{operand.symbol} {why}.")
        return found.pop() + module.bias


def _type(operand: MarkerOperand) -> ct.MadeType:
    """The type of an argument, as gdb calls it: int32_t, uint64_t; float and double."""
    if operand.real and operand.size in (4, 8):
        return ct.FLOAT if operand.size == 4 else ct.DOUBLE
    kind = TypeKind.SIGNED if operand.signed else TypeKind.UNSIGNED
    return ct.number(kind, operand.size, f"{'' if operand.signed else 'u'}int{8 * operand.size}_t")
