"""Programs of functions that return values of random structures, classes and unions.

Each function leaves a copy of what it returns in a variable, so that the program itself is the
oracle: what is found behind the function must read as the variable does. Where the compiler puts
the bytes is not asked of anybody.
"""

import random

_SCALARS = (
    *("char", "short", "int", "long", "unsigned char", "unsigned", "float", "double", "float"),
    *("double", "void *", "enum colour", "float _Complex", "double _Complex", "long double"),
    *("__int128", "v2i", "v4f", "float", "double", "int"),
)
_HEAD = """
#include <string.h>
enum colour { RED, GREEN = 5, BLUE = -1 };
typedef float v4f __attribute__((vector_size(16)));
typedef int v2i __attribute__((vector_size(8)));
"""


class RandomTypes:
    """Makes types of C or C++ from a seed."""

    def __init__(self, seed: int, *, is_cpp: bool) -> None:
        self._random = random.Random(seed)
        self._is_cpp = is_cpp
        self._lines: list[str] = []
        self._records: list[str] = []

    def program(self, count: int) -> str:
        """A program with functions f0, f1, ... that leave what they return in g0, g1, ..."""
        lines = []
        for number in range(count):
            name = self._record(f"t{number}", depth=0)
            data = ", ".join(str(self._random.randrange(1, 256)) for _ in range(64))
            lines += [
                f"static const unsigned char p{number}[256] = {{{data}}};",
                f"{name} g{number};",
                f"__attribute__((noinline)) {name} f{number}(void) {{ {name} r; "
                f"memcpy((void *)&r, p{number}, sizeof r); "
                f"memcpy((void *)&g{number}, p{number}, sizeof r); return r; }}",
            ]
        calls = " ".join(f"f{number}();" for number in range(count))
        return _HEAD + "\n".join([*self._lines, *lines, f"int main(void) {{ {calls} }}", ""])

    def _record(self, name: str, depth: int, *, in_union: bool = False) -> str:
        """Define a structure, class or union; what it is called."""
        choice = self._random
        word = "union" if choice.random() < 0.12 else "struct"
        members = [
            self._member(f"{name}m{number}", depth, in_union=in_union or word == "union")
            for number in range(choice.choice((1, 1, 2, 2, 2, 3, 4)))
        ]
        marks, bases, more = "", "", ""
        if choice.random() < 0.1:
            marks = "__attribute__((packed)) "
        if self._is_cpp and word == "struct" and not in_union:
            kinds = [one for one in self._records if one.startswith("struct")]
            found = choice.sample(kinds, min(len(kinds), choice.choice((0, 0, 1, 2))))
            bases = " : " + ", ".join(one.partition(" ")[2] for one in found) if found else ""
            if choice.random() < 0.1:
                more = f" {name}() {{}} {name}(const {name} &) {{}}"
            elif choice.random() < 0.05:
                more = f" ~{name}() {{}}"
            elif choice.random() < 0.1 and not found:
                members = []
        body = " ".join(members)
        self._lines.append(f"{word} {marks}{name}{bases} {{ {body}{more} }};")
        if depth == 0 and (not more or choice.random() < 0.2) and "m0m" not in name:
            self._records = [*self._records, f"{word} {name}"][-4:]
        return f"{word} {name}"

    def _member(self, name: str, depth: int, *, in_union: bool) -> str:
        choice = self._random
        kind = choice.choice(_SCALARS)
        roll = choice.random()
        if roll < 0.12 and depth < 2:
            kind = self._record(name + "s", depth + 1, in_union=in_union)
        elif roll < 0.22:
            kind = choice.choice(("int", "unsigned", "long", "char"))
            return f"{kind} {name} : {choice.randrange(1, 8)};"
        elif roll < 0.25:
            return f"unsigned long {name} : {choice.randrange(9, 60)};"
        if choice.random() < 0.15:
            return f"{kind} {name}[{choice.choice((1, 2, 2, 3))}];"
        return f"{kind} {name};"
