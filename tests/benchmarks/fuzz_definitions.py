"""Definitions from arbitrary bytes: the parser takes or refuses each, and none takes long.

Half of the lines are made of the grammar's own pieces and then damaged, the rest of random
characters and of random bytes. Each is read for both architectures and in both modes; what is
taken is listed and read again.

    python tests/benchmarks/fuzz_definitions.py [--inputs N] [--seed N]

The exit code is 1 if a line made the parser fail in a way that is no refusal, or took longer than
`SLOW`.
"""

import argparse
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Final

_HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE.parents[1]), str(_HERE.parent / "support")]

from livekernel import Lines  # noqa: E402

from engine.arch import by_name  # noqa: E402
from engine.arch.plan import Mode  # noqa: E402
from engine.errors import ProbeError, ProbeSyntaxError  # noqa: E402
from engine.fetch.compile import is_identifier  # noqa: E402
from engine.trace.definition import Definition, parse  # noqa: E402

SLOW: Final = 0.1
"""CPU seconds for one line."""

# fmt: off
_PIECES: Final = (
    "p", "r", "p:", "r9:", "p:g/e", "-:", "-:g/e", "!", "#", "/", ".", ":", "=", "%di", "%x0",
    "%return", "$retval", "$stack", "$stack1", "$comm", "$arg1", "$arg*", "$duration", "$entry(",
    "@", "@4", "@+4", "@s", "+", "-", "+0(", "-u8(", "(", ")", "[", "]", "[4]", "\\", '\\"', '"',
    "abc", ":u8", ":x64", ":string", ":symstr", ":symbol", ":b4@2/8", ":char", "work", "work+4",
    "/a/b:4", "main.c:7", "0x40", "0", "-1", "99999999999999999999", "\u00e9", ",", "\t", "\x0b",
    "\0", "\n", " ", "a->b.c[3]", "*p",
)
# fmt: on
_ARCHES: Final = tuple(map(by_name, ("x86_64", "aarch64")))


def line_of(kind: int, draw: random.Random, lines: Lines) -> str:
    """One input."""
    if kind < 4:
        return lines.line()
    if kind < 6:
        text = list(lines.line())
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(text))
            text[at : at + draw.randrange(3)] = draw.choices(_PIECES, k=draw.randrange(3))
        return "".join(text)
    if kind < 9:
        return "".join(draw.choices(_PIECES, k=draw.randrange(40)))
    return draw.randbytes(draw.randrange(120)).decode(errors="surrogateescape")


def read(line: str, arch_number: int, mode: Mode) -> str:
    """What becomes of a line: "nothing", "taken", "deletion", or the id of the error."""
    arch = _ARCHES[arch_number]
    try:
        parsed = parse(line, arch, mode=mode)
    except ProbeSyntaxError as error:
        if not 0 <= error.column <= len(error.command) + 1:
            raise AssertionError(f"the caret is at {error.column}") from error
        return error.code
    except ProbeError:
        return "refused"
    if not isinstance(parsed, Definition):
        return "nothing" if parsed is None else "deletion"
    if not is_identifier(parsed.event):  # of the file's name: the kernel does not read it either
        return "taken"
    again = parse(parsed.listing(), arch, mode=Mode.STRICT)
    if not isinstance(again, Definition) or again.listing() != parsed.listing():
        raise AssertionError(f"listed as {parsed.listing()}")
    return "taken"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--inputs", type=int, default=1_000_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    draw = random.Random(given.seed)
    lines = Lines("/a/kf", "g", given.seed)
    modes = tuple(Mode)
    results: Counter[str] = Counter()
    failures = 0
    longest = 0.0
    spent = 0.0
    for number in range(given.inputs):
        line = line_of(draw.randrange(10), draw, lines)
        start = time.process_time()
        try:
            results[read(line, number & 1, modes[number >> 1 & 1])] += 1
        except Exception:
            failures += 1
            if failures <= 10:
                print(f"{line!r}:", traceback.format_exc(limit=-3), file=sys.stderr)
        took = time.process_time() - start
        spent += took
        longest = max(longest, took)
        if took > SLOW:
            failures += 1
            print(f"{took:.2f} s: {line!r}", file=sys.stderr)
    print(f"{given.inputs} inputs, {given.inputs / max(spent, 1e-9):,.0f}/s of CPU time")
    print(f"longest {longest * 1000:.2f} ms; {len(results)} outcomes, {results['taken']} taken")
    print(f"{failures} failures")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
