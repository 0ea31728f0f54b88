"""The guest that `bench` measures on, as an architecture's own code."""

from collections.abc import Callable

from msgspec import Struct


class BenchGuest(Struct, frozen=True):
    """A program that calls a function again and again, and nothing else.

    Attributes:
        main: (its address, how often to call, address of a text, address of the function) to
            the code of a program that gives the function the count that is left, that plus 1,
            the text and the count as arguments, and ends with exit code 0. The count has at
            most 31 bits; the addresses have at most 32.
        work: code of the function: it returns the sum of its first two arguments.
        nop: a no-operation that a uprobe may turn into a call (`engine.arch.nop_call`), to stand
            in front of the function; nothing where there is no such one.
        fetches: eight registers as definitions name them, those of the arguments first.
    """

    main: Callable[[int, int, int, int], bytes]
    work: bytes
    fetches: tuple[str, ...]
    nop: bytes = b""
