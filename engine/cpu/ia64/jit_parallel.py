"""LLVM text of operations on the elements of general registers, by the names of Python's."""

from collections.abc import Callable, Sequence
from typing import Final

from engine.cpu.ia64.integers import mux1_places
from engine.cpu.ia64.jit_value import JitLines, Unsupported


def _kind(size: int) -> str:
    return f"<{8 // size} x i{8 * size}>"


def _lanes(c: JitLines, value: str, size: int) -> str:
    return c.op(f"bitcast i64 {value} to {_kind(size)}")


def _whole(c: JitLines, value: str, size: int) -> str:
    return c.op(f"bitcast {_kind(size)} {value} to i64")


def _each(c: JitLines, what: str, size: int, left: str, right: str) -> str:
    """`padd`, psub without saturation."""
    left, right = _lanes(c, left, size), _lanes(c, right, size)
    return _whole(c, c.op(f"{what} {_kind(size)} {left}, {right}"), size)


def _compare(c: JitLines, what: str, size: int, left: str, right: str) -> str:
    """`pcmp`."""
    left, right = _lanes(c, left, size), _lanes(c, right, size)
    found = c.op(f"icmp {what} {_kind(size)} {left}, {right}")
    return _whole(c, c.op(f"sext <{8 // size} x i1> {found} to {_kind(size)}"), size)


def _chosen(c: JitLines, first: str, second: str, size: int, places: Sequence[int]) -> str:
    """Elements of two registers, numbered from the lowest of the first one."""
    kind, left, right = _kind(size), _lanes(c, first, size), _lanes(c, second, size)
    order = ", ".join(f"i32 {place}" for place in places)
    picked = c.op(f"shufflevector {kind} {left}, {kind} {right}, <{len(places)} x i32> <{order}>")
    return _whole(c, picked, size)


def _pairs(c: JitLines, starts: range, size: int, left: str, right: str) -> str:
    """`mix`, unpack: elements of both registers in turn."""
    places = [place for at in starts for place in (8 // size + at, at)]
    return _chosen(c, left, right, size, places)


def _mux1(c: JitLines, value: str, kind: int) -> str:
    return _chosen(c, value, value, 1, mux1_places(kind))


def _mux2(c: JitLines, value: str, kind: int) -> str:
    return _chosen(c, value, value, 2, [kind >> 2 * at & 3 for at in range(4)])


def _shift(c: JitLines, value: str, count: str | int, size: int, how: str) -> str:
    """`pshl`, pshr, pshr.u by an immediate."""
    bits = 8 * size
    if isinstance(count, str):
        raise Unsupported
    if count >= bits and how != "r":
        return "0"
    lanes = ", ".join([f"i{bits} {min(count, bits - 1)}"] * (8 // size))
    what = {"l": "shl", "r": "ashr", "u": "lshr"}[how]
    return _whole(c, c.op(f"{what} {_kind(size)} {_lanes(c, value, size)}, <{lanes}>"), size)


def _first_zero(c: JitLines, value: str, size: int, left: bool) -> str:
    """Index of the first element that is 0, from the highest one if `left`, else their number."""
    count = 8 // size
    found = c.op(f"icmp eq {_kind(size)} {_lanes(c, value, size)}, zeroinitializer")
    kind = f"i{count}"
    bits = c.op(f"bitcast <{count} x i1> {found} to {kind}")
    what = f"llvm.{'ctlz' if left else 'cttz'}.{kind}"
    return c.op(f"zext {kind} {c.intrinsic(what, kind, (kind, bits), ('i1', 'false'))} to i64")


CALLS: Final[dict[str, Callable[..., str]]] = {
    "mux1": _mux1,
    "mux2": _mux2,
    "parallel_shift": _shift,
    "count_zero": _first_zero,
}
"""By the name of the function that Python calls; Python does what is not here."""

PAIRWISE: Final[dict[str, tuple[Callable[..., str], object, int]]] = {
    **{f"padd{size}": (_each, "add", size) for size in (1, 2, 4)},
    **{f"psub{size}": (_each, "sub", size) for size in (1, 2, 4)},
    **{f"pcmp{size}.eq": (_compare, "eq", size) for size in (1, 2, 4)},
    **{f"pcmp{size}.gt": (_compare, "sgt", size) for size in (1, 2, 4)},
    **{f"mix{size}.l": (_pairs, range(1, 8 // size, 2), size) for size in (1, 2, 4)},
    **{f"mix{size}.r": (_pairs, range(0, 8 // size, 2), size) for size in (1, 2, 4)},
    **{f"unpack{size}.h": (_pairs, range(4 // size, 8 // size), size) for size in (1, 2, 4)},
    **{f"unpack{size}.l": (_pairs, range(4 // size), size) for size in (1, 2, 4)},
}
"""The same of `integers.PARALLEL`: a function, and what it is given before the operands."""
