"""Parallel and bit operations of the integer units, on plain 64-bit integers."""

from collections.abc import Callable
from typing import Final

_M: Final = 0xFFFFFFFFFFFFFFFF


def lanes(value: int, size: int) -> list[int]:
    """Elements of `size` bytes, the lowest first, unsigned."""
    mask, step = (1 << 8 * size) - 1, 8 * size
    return [value >> at & mask for at in range(0, 64, step)]


def join(values: list[int], size: int) -> int:
    """The reverse; each element is cut to its size."""
    mask, step = (1 << 8 * size) - 1, 8 * size
    return sum((value & mask) << index * step for index, value in enumerate(values))


def signed(value: int, bits: int) -> int:
    """Two's complement."""
    return value - (1 << bits) if value >> (bits - 1) else value


def _clamp(value: int, low: int, high: int) -> int:
    return low if value < low else high if value > high else value


def _limits(size: int, sign: str) -> tuple[int, int]:
    bits = 8 * size
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if sign == "s" else (0, (1 << bits) - 1)


def _each(size: int, what: Callable[[int, int], int]) -> Callable[[int, int], int]:
    return lambda x, y: join(
        [what(a, b) for a, b in zip(lanes(x, size), lanes(y, size), strict=True)], size
    )


def _saturating(size: int, kinds: str, factor: int) -> Callable[[int, int], int]:
    bits = 8 * size
    low, high = _limits(size, kinds[0])

    def one(a: int, b: int) -> int:
        left = signed(a, bits) if kinds[1] == "s" else a
        right = signed(b, bits) if kinds[2] == "s" else b
        return _clamp(left + factor * right, low, high)

    return _each(size, one)


def _average(a: int, b: int) -> int:
    total = a + b
    return total >> 1 | total & 1


def _average_difference(bits: int) -> Callable[[int, int], int]:
    def one(a: int, b: int) -> int:
        difference = a - b
        return difference >> 1 | difference & 1

    return one


def _compare(size: int, greater: bool) -> Callable[[int, int], int]:
    bits = 8 * size
    if greater:
        return _each(size, lambda a, b: -(signed(a, bits) > signed(b, bits)))
    return _each(size, lambda a, b: -(a == b))


def _mix(size: int, left: bool) -> Callable[[int, int], int]:
    def run(x: int, y: int) -> int:
        a, b = lanes(x, size), lanes(y, size)
        result = []
        for at in range(int(left), len(a), 2):
            result += [b[at], a[at]]
        return join(result, size)

    return run


def _unpack(size: int, high: bool) -> Callable[[int, int], int]:
    def run(x: int, y: int) -> int:
        a, b = lanes(x, size), lanes(y, size)
        half = len(a) // 2
        start = half if high else 0
        return join([v for at in range(start, start + half) for v in (b[at], a[at])], size)

    return run


def _pack(size: int, sign: str) -> Callable[[int, int], int]:
    low, high = _limits(size // 2, sign)

    def run(x: int, y: int) -> int:
        both = lanes(x, size) + lanes(y, size)
        return join([_clamp(signed(v, 8 * size), low, high) for v in both], size // 2)

    return run


def _multiply(odd: int) -> Callable[[int, int], int]:
    def run(x: int, y: int) -> int:
        a, b = lanes(x, 2), lanes(y, 2)
        return join([signed(a[at], 16) * signed(b[at], 16) for at in (odd, odd + 2)], 4)

    return run


def multiply_shift(x: int, y: int, count: int, unsigned: bool) -> int:
    """`pmpyshr2`."""
    pairs = zip(lanes(x, 2), lanes(y, 2), strict=True)
    if unsigned:
        return join([a * b >> count for a, b in pairs], 2)
    return join([signed(a, 16) * signed(b, 16) >> count for a, b in pairs], 2)


def shift_add(x: int, count: int, y: int, left: bool) -> int:
    """`pshladd2`, pshradd2: saturating; a shift that overflows alone decides."""
    result = []
    for a, b in zip(lanes(x, 2), lanes(y, 2), strict=True):
        value = signed(a, 16)
        shifted = value << count if left else value >> count
        if left and not -0x8000 <= shifted <= 0x7FFF:
            result.append(_clamp(shifted, -0x8000, 0x7FFF))
        else:
            result.append(_clamp(shifted + signed(b, 16), -0x8000, 0x7FFF))
    return join(result, 2)


def parallel_shift(x: int, count: int, size: int, kind: str) -> int:
    """pshl, pshr, pshr.u by any 64-bit count; `kind` is "l", "r" or "u"."""
    bits = 8 * size
    if kind == "l":
        return join([a << count for a in lanes(x, size)], size) if count < bits else 0
    if kind == "u":
        return join([a >> count for a in lanes(x, size)], size) if count < bits else 0
    count = min(count, bits)
    return join([signed(a, bits) >> count for a in lanes(x, size)], size)


_PERMUTATIONS: Final = {
    0: (0,) * 8,
    8: (0, 4, 2, 6, 1, 5, 3, 7),
    9: (0, 4, 1, 5, 2, 6, 3, 7),
    10: (0, 2, 4, 6, 1, 3, 5, 7),
    11: (7, 6, 5, 4, 3, 2, 1, 0),
}


def mux1(x: int, kind: int) -> int:
    """A permutation of bytes."""
    a = lanes(x, 1)
    return join([a[at] for at in _PERMUTATIONS[kind]], 1)


def mux1_places(kind: int) -> tuple[int, ...]:
    """The element that each one of the result is, from the lowest on."""
    return tuple(_PERMUTATIONS[kind])


def mux1_known(kind: int) -> bool:
    """True if there is such a permutation."""
    return kind in _PERMUTATIONS


def mux2(x: int, kind: int) -> int:
    """A choice of 16-bit elements."""
    a = lanes(x, 2)
    return join([a[kind >> 2 * at & 3] for at in range(4)], 2)


def count_zero(x: int, size: int, left: bool) -> int:
    """czx: index of the first zero element from one end; their number if there is none."""
    a = lanes(x, size)
    if left:
        a.reverse()
    return a.index(0) if 0 in a else len(a)


def sum_differences(x: int, y: int) -> int:
    """psad1."""
    return sum(abs(a - b) for a, b in zip(lanes(x, 1), lanes(y, 1), strict=True))


PARALLEL: Final[dict[str, Callable[[int, int], int]]] = {
    **{f"padd{size}": _each(size, lambda a, b: a + b) for size in (1, 2, 4)},
    **{f"psub{size}": _each(size, lambda a, b: a - b) for size in (1, 2, 4)},
    **{
        f"{name}{size}.{kinds}": _saturating(size, kinds, factor)
        for name, factor in (("padd", 1), ("psub", -1))
        for size in (1, 2)
        for kinds in ("sss", "uuu", "uus")
    },
    **{f"pavg{size}": _each(size, _average) for size in (1, 2)},
    **{f"pavg{size}.raz": _each(size, lambda a, b: a + b + 1 >> 1) for size in (1, 2)},
    **{f"pavgsub{size}": _each(size, _average_difference(8 * size)) for size in (1, 2)},
    **{f"pcmp{size}.eq": _compare(size, False) for size in (1, 2, 4)},
    **{f"pcmp{size}.gt": _compare(size, True) for size in (1, 2, 4)},
    **{f"mix{size}.l": _mix(size, True) for size in (1, 2, 4)},
    **{f"mix{size}.r": _mix(size, False) for size in (1, 2, 4)},
    **{f"unpack{size}.h": _unpack(size, True) for size in (1, 2, 4)},
    **{f"unpack{size}.l": _unpack(size, False) for size in (1, 2, 4)},
    "pack2.uss": _pack(2, "u"),
    "pack2.sss": _pack(2, "s"),
    "pack4.sss": _pack(4, "s"),
    "pmin1.u": _each(1, min),
    "pmax1.u": _each(1, max),
    "pmin2": _each(2, lambda a, b: min(signed(a, 16), signed(b, 16))),
    "pmax2": _each(2, lambda a, b: max(signed(a, 16), signed(b, 16))),
    "pmpy2.r": _multiply(0),
    "pmpy2.l": _multiply(1),
    "psad1": sum_differences,
    "mpy4": lambda a, b: (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF),
    "mpyshl4": lambda a, b: (a >> 32) * (b & 0xFFFFFFFF) << 32 & _M,
}
"""Two-operand forms by mnemonic."""
