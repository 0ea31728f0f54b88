"""The instructions with a VEX prefix that there are: AVX, AVX2, FMA, F16C, BMI, AES, PCLMULQDQ.

What is in no row is no instruction (Intel SDM volume 2, chapters 3 to 5 and appendix A). Vectors
of 512 bits, their masks and later extensions are left out.
"""

from functools import cache
from typing import Final

from msgspec import Struct

_ROWS: Final = (
    (
        "**v rm x",
        "1.0: 14 15 54-59 5c-5f c2 c6; "
        "1.1: 14 15 54-59 5c-6d 74-76 7c 7d c2 c6 d0 d4 d5 d8-e0 e3-e5 e8-ef f4-f6 f8-fe; "
        "1.3: 7c 7d d0; "
        "2.1: 00-0b 28 29 2b 37-40 45 47 96-98 9a 9c 9e a6-a8 aa ac ae b6-b8 ba bc be; "
        "3.1: 0c-0f 40 42",
    ),
    (
        "**. rm x",
        "1.0: 10 51-53 5b; 1.1: 10 51 5a 5b 70 e6; 1.2: 12 16 5b 6f 70; 1.3: 70 e6; "
        "2.1: 17 1c-1e; 3.1: 08 09",
    ),
    ("**v rm w", "1.2: 2a; 1.3: 2a; 2.1: 99 9b 9d 9f a9 ab ad af b9 bb bd bf"),
    ("**v rm 4", "1.2: 51-53 58-5a 5c-5f c2; 3.1: 0a"),
    ("**v rm 8", "1.3: 51 58-5a 5c-5f c2; 3.1: 0b"),
    ("*0v rm w", "2.0: f2 f5 f7; 2.1: f7; 2.2: f5 f7; 2.3: f5-f7; 3.1: 22"),
    ("**. rm x/2", "1.0: 5a; 1.2: e6; 2.1: 20 23 25 30 33 35"),
    ("**v rm 16", "1.1: d1-d3 e1 e2 f1-f3"),
    ("*0. rm 16", "2.1: 41 db; 3.1: 60-63 df"),
    ("0*v rm x", "2.1: 0c 0d 46; 3.1: 02 4a-4c"),
    ("*0v rm 16", "2.1: dc-df; 3.1: 41 44"),
    ("**. r", "1.0: 50; 1.1: 50 d7"),
    ("**. rm 4", "1.0: 2e 2f; 1.2: 2c 2d"),
    ("**. rm 8", "1.1: 2e 2f; 1.3: 2c 2d"),
    ("**. rm x/4", "2.1: 21 24 31 34"),
    ("**v m gather", "2.1: 90-93"),
    ("**v r", "1.2: 10 11; 1.3: 10 11"),
    ("*0. m 8<", "1.0: 13 17; 1.1: 13 17"),
    ("0*. rm x", "2.1: 0e 0f; 3.1: 04 05"),
    ("01v rm 32", "2.1: 16 36; 3.1: 06 46"),
    ("**. m x!<", "1.0: 2b; 1.1: 2b e7"),
    ("**. rm x!", "1.0: 28; 1.1: 28 6f"),
    ("**. rm x!<", "1.0: 29; 1.1: 29 7f"),
    ("**. rm x<", "1.0: 11; 1.1: 11; 1.2: 7f"),
    ("**. rm x/8", "2.1: 22 32"),
    ("**v r/246", "1.1: 71 72"),
    ("*0. r", "1.1: c5 f7"),
    ("*0. rm w", "1.1: 6e; 3.3: f0"),
    ("*0. rm w<", "1.1: 7e; 3.1: 16"),
    ("*0v m 8", "1.1: 12 16"),
    ("*0v rm 8", "1.0: 12 16"),
    ("0*. rm 4", "2.1: 18 58"),
    ("0*v m x", "2.1: 2c 2d"),
    ("0*v m x<", "2.1: 2e 2f"),
    ("01. m 16", "2.1: 1a 5a"),
    ("01. rm 16<", "3.1: 19 39"),
    ("01v rm 16", "3.1: 18 38"),
    ("11. rm 32", "3.1: 00 01"),
    ("**. m 4", "1.2: 10"),
    ("**. m 4<", "1.2: 11"),
    ("**. m 8", "1.3: 10"),
    ("**. m 8<", "1.3: 11"),
    ("**. m x", "1.3: f0"),
    ("**. m x!", "2.1: 2a"),
    ("**. rm d", "1.3: 12"),
    ("**v m x", "2.1: 8c"),
    ("**v m x<", "2.1: 8e"),
    ("**v r/2367", "1.1: 73"),
    ("*0. m/23 4<", "1.0: ae"),
    ("*0. rm 1<", "3.1: 14"),
    ("*0. rm 2<", "3.1: 15"),
    ("*0. rm 4<", "3.1: 17"),
    ("*0. rm 8", "1.2: 7e"),
    ("*0. rm 8<", "1.1: d6"),
    ("*0v rm 1", "3.1: 20"),
    ("*0v rm 2", "1.1: c4"),
    ("*0v rm 4", "3.1: 21"),
    ("*0v rm/123 w", "2.0: f3"),
    ("0*. rm 1", "2.1: 78"),
    ("0*. rm 2", "2.1: 79"),
    ("0*. rm 8", "2.1: 59"),
    ("0*. rm x/2", "2.1: 13"),
    ("0*. rm x/2<", "3.1: 1d"),
    ("01. rm 8", "2.1: 19"),
)
"""Forms, and the opcodes that have them as "map.prefix: opcodes" with the prefix none, 66, F3, F2.

A form is VEX.W, VEX.L and VEX.vvvv ("0", "1", "*" for either; "v" for a register, "." for none);
then "r", "m" or "rm" for a register or memory as the operand of ModRM.rm, with the values of
ModRM.reg where they are opcodes; then the operand's bytes in memory: x of the vector, w of W,
d of movddup; "!" where the address must be a multiple of them, "<" where they are written.
"""


class VexForm(Struct, frozen=True):
    """One form of an instruction.

    Attributes:
        wide: the value that VEX.W must have; None for either.
        long: the same of VEX.L.
        has_register: VEX.vvvv names a register.
        groups: values of ModRM.reg where that is no register; None where it is one.
        size: bytes of the operand in memory, "x", "w", "d" or "gather" where it depends.
        aligned: its address must be a multiple of them.
        stores: it is written.
    """

    wide: bool | None
    long: bool | None
    has_register: bool
    groups: frozenset[int] | None
    size: str
    aligned: bool
    stores: bool

    def bytes(self, wide: bool, long: bool) -> int:
        """Bytes of the operand in memory, 0 where it has none of a fixed size."""
        vector = 32 if long else 16
        match self.size.partition("/"):
            case "x", _, part:
                return vector // int(part or 1)
            case "w", _, _:
                return 8 if wide else 4
            case "d", _, _:
                return 32 if long else 8
            case "" | "gather", _, _:
                return 0
        return int(self.size)


def form_of(key: int, prefix: int, memory: bool) -> VexForm | None:
    """A form by opcode; None where there is none.

    Args:
        key: opcode map << 8 | opcode.
        prefix: VEX.pp.
        memory: ModRM.rm is memory.
    """
    return all_forms().get((key, prefix, memory))


@cache
def all_forms() -> dict[tuple[int, int, bool], VexForm]:
    """All of them, by what `form_of` is asked."""
    found = {}
    for words, opcodes in _ROWS:
        places, form = _parsed(words)
        for part in opcodes.split("; "):
            where, _, listed = part.partition(": ")
            for span in listed.split():
                first, _, last = span.partition("-")
                for opcode in range(int(first, 16), int(last or first, 16) + 1):
                    for place in places:
                        found[int(where[0]) << 8 | opcode, int(where[2]), place == "m"] = form
    return found


def _parsed(words: str) -> tuple[str, VexForm]:
    """The letters of a row's operand, and its form."""
    bits, places, size = (*words.split(), "")[:3]
    places, _, groups = places.partition("/")
    choice = {"0": False, "1": True, "*": None}
    form = VexForm(
        wide=choice[bits[0]],
        long=choice[bits[1]],
        has_register=bits[2] == "v",
        groups=frozenset(map(int, groups)) if groups else None,
        size=size.rstrip("!<"),
        aligned="!" in size,
        stores="<" in size,
    )
    return places, form
