"""Registers by name, and all of them at once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from engine.arch.ia64.floatformats import (
    pack,
    unpack,
)
from engine.cpu.ia64.alat import Alat
from engine.cpu.ia64.state import EC, FPSR, MASK, PFS, RSC, SOL, State

APPLICATION: Final[Mapping[str, int]] = {
    **{f"kr{number}": number for number in range(8)},
    "rsc": 16,
    "fcr": 21,
    "eflag": 24,
    "csd": 25,
    "ssd": 26,
    "cflg": 27,
    "fsr": 28,
    "fir": 29,
    "fdr": 30,
    "ccv": 32,
    "unat": 36,
    "fpsr": 40,
    "pfs": 64,
    "lc": 65,
    "ec": 66,
}
_MASKS: Final = {RSC: 0x3FFF001F, FPSR: (1 << 58) - 1, PFS: 0xC3F0003FFFFFFFFF, EC: 63}

Get = Callable[[], int]
Put = Callable[[int], None]


class Registers:
    """Read and write by name: values are unsigned integers.

    Names: ip (bundle plus slot), r0 to r127 of the current frame, nat0 to nat127, out0 to out7
    (the frame's output registers), f0 to f127 (82 bits), p0 to p63 and pr as rotation has
    them, b0 to b7, cfm, psr (its user mask), bsp, bspstore, rnat, and the application
    registers: kr0 to kr7, rsc, csd, ccv, unat, fpsr, pfs, lc, ec and those of IA-32.
    """

    def __init__(self, state: State, alat: Alat) -> None:
        self._state, self._alat = state, alat
        self._accessors: dict[str, tuple[Get, Put]] = _accessors(state)

    def read_register(self, name: str) -> int:
        """Value of a register; KeyError for an unknown name."""
        return self._accessors[name][0]()

    def read_registers(self, names: Sequence[str]) -> tuple[int, ...]:
        """Several registers at once."""
        accessors = self._accessors
        return tuple(accessors[name][0]() for name in names)

    def read_block(self, names: Sequence[str], size: int) -> bytes:
        """Registers one after another, little endian, each in so many bytes."""
        return b"".join(self.read_register(name).to_bytes(size, "little") for name in names)

    def write_block(self, names: Sequence[str], size: int, data: bytes) -> None:
        """Set registers from such bytes."""
        for number, name in enumerate(names):
            piece = data[size * number : size * (number + 1)]
            self.write_register(name, int.from_bytes(piece, "little"))

    def getters(self, names: Sequence[str]) -> tuple[Get, ...]:
        """Functions that read registers, for whoever reads them again and again."""
        return tuple(self._accessors[name][0] for name in names)

    def write_register(self, name: str, value: int) -> None:
        """Set a register; KeyError for an unknown name. Constant ones stay as they are."""
        self._accessors[name][1](value)

    def with_stack(self, address: int, data: bytes) -> bytes:
        """Bytes of memory with the stacked registers that are not written there yet.

        A collection of NaT bits is ar.rnat until its registers are all written.
        """
        s = self._state
        first, end = max(address, s.bspstore), min(address + len(data), s.bsp)
        if first >= end:
            return data
        found = bytearray(data)
        for at in range(first & -8, end, 8):
            word = self._stacked_word(at).to_bytes(8, "little")
            low, high = max(at, first), min(at + 8, end)
            found[low - address : high - address] = word[low - at : high - at]
        return bytes(found)

    def _stacked_word(self, address: int) -> int:
        """A word of the backing store between bspstore and bsp."""
        s = self._state
        words, slot = (address - s.bspstore) // 8, s.bspstore >> 3 & 63
        index = words - (slot + words) // 64
        if address >> 3 & 63 != 63:
            return s.stack[index]
        if not s.nats:
            return s.rnat & (1 << slot) - 1 if index < 63 else 0
        known = s.rnat & (1 << slot) - 1 if index < 63 else 0
        for back in range(1, min(index, 63) + 1):
            known |= s.stack_nats[index - back] << 63 - back
        return known

    def float_flags(self) -> int:
        """Sticky exceptions that no register shows: none, as ar.fpsr has them."""
        return 0

    def clear_float_flags(self) -> None:
        """Nothing to forget."""

    def save(self, into: object = None) -> object:
        """All registers as an opaque value, always a new one."""
        s = self._state
        lists = tuple(tuple(part) for part in (s.g, s.n, s.p, s.f, s.b, s.a, s.frame, s.um))
        stack = (tuple(s.stack), tuple(s.stack_nats))
        return lists, stack, (s.ip, s.nats, s.bsp, s.bspstore, s.rnat, s.below), dict(self._alat)

    def restore(self, state: object) -> None:
        """Go back to a value of `save`."""
        s = self._state
        assert isinstance(state, tuple)
        lists, (stack, nats), values, alat = state
        parts: tuple[list[object], ...] = (s.g, s.n, s.p, s.f, s.b, s.a, s.frame, s.um)  # type: ignore[assignment]
        for part, kept in zip(parts, lists, strict=True):
            part[:] = kept
        s.stack[:], s.stack_nats[:] = stack, nats
        s.ip, s.nats, s.bsp, s.bspstore, s.rnat, s.below = values
        self._alat.clear()
        self._alat.update(alat)


def _of_list(values: list[int], index: int, mask: int = MASK) -> tuple[Get, Put]:
    def put(value: int) -> None:
        values[index] = value & mask

    return lambda: int(values[index]), put


def _constant(value: int) -> tuple[Get, Put]:
    return lambda: value, lambda _: None


def _of_state(state: State, name: str, mask: int = MASK) -> tuple[Get, Put]:
    def put(value: int) -> None:
        setattr(state, name, value & mask)

    return lambda: int(getattr(state, name)), put


def _output(state: State, index: int) -> tuple[Get, Put]:
    def put(value: int) -> None:
        state.g[32 + state.frame[SOL] + index] = value & MASK

    return lambda: state.g[32 + state.frame[SOL] + index], put


def _nat(state: State, index: int) -> tuple[Get, Put]:
    def put(value: int) -> None:
        if value:
            state.watch_nats()
        state.n[index] = value & 1

    return lambda: state.n[index] if state.nats else 0, put


def _float(state: State, index: int) -> tuple[Get, Put]:
    def put(value: int) -> None:
        state.f[index] = unpack(value)

    return lambda: pack(state.f[index]), put


def _predicates(state: State) -> tuple[Get, Put]:
    def put(value: int) -> None:
        for at in range(1, 64):
            state.p[at] = value >> at & 1

    return lambda: sum(1 << at for at, bit in enumerate(state.p) if bit), put


def _stack_pointer(state: State) -> tuple[Get, Put]:
    """`bsp` moves with bspstore: what is between them is not in memory."""

    def put(value: int) -> None:
        state.place_stack(value)

    return lambda: state.bsp, put


def _accessors(state: State) -> dict[str, tuple[Get, Put]]:
    return {
        "ip": _of_state(state, "ip"),
        "r0": _constant(0),
        **{f"r{at}": _of_list(state.g, at) for at in range(1, 128)},
        "nat0": _constant(0),
        **{f"nat{at}": _nat(state, at) for at in range(1, 128)},
        **{f"out{at}": _output(state, at) for at in range(8)},
        "f0": _constant(0),
        "f1": _constant(0xFFFF << 64 | 1 << 63),
        **{f"f{at}": _float(state, at) for at in range(2, 128)},
        "p0": _constant(1),
        **{f"p{at}": _of_list(state.p, at, 1) for at in range(1, 64)},
        "pr": _predicates(state),
        **{f"b{at}": _of_list(state.b, at) for at in range(8)},
        "cfm": (lambda: state.cfm, state.set_cfm),
        "psr": _of_list(state.um, 0, 0x3C),
        "bsp": _stack_pointer(state),
        "bspstore": _of_state(state, "bspstore"),
        "rnat": _of_state(state, "rnat"),
        **{name: _of_list(state.a, at, _MASKS.get(at, MASK)) for name, at in APPLICATION.items()},
    }
