"""Arguments and results of IA-64 functions as gcc passes them: its programs say what they are.

No debugger of IA-64 is at hand. The guests were compiled by gcc 12.2, and their sources (`args.c`,
`fp.c`) have the values; the programs print the results themselves. Debug information of -g1 has no
types: prototypes tell of the scalars, and the convention of the structures.
"""

import re
from pathlib import Path

import pytest
from gdbwords import said
from ia64returns import GUESTS
from typedgraph import graph_lines

from engine.session.protocol.config import GuestConfig

HEADERS = {
    "args": """
unsigned long ten(unsigned long a, unsigned long b, unsigned long c, unsigned long d,
    unsigned long e, unsigned long f, unsigned long g, unsigned long h, unsigned long i,
    unsigned long j);
double mh(double q); double hfa(double x, double y, double z, double k);
unsigned long vla(int n); void put(const char *s);
""",
    "fp": """
double poly(double x); double dvd(double a, double b); float dvf(float a, float b);
double dot(const double *a, const double *b, int n); long toi(double d);
unsigned long tou(double d); double fri(long i); double fru(unsigned long i); float ffi(long i);
int cmpd(double a, double b); double sq(double a);
""",
}
CALLS = {
    "args": [
        "ten(a=1, b=2, c=3, d=4, e=5, f=6, g=7, h=8, i=9, j=10); /* ret=385 */",
        "mh(q=2.5); /* ret=2.5 */",  # the first of three numbers
        "hfa(x=2.5, y=3.5, z=5, k=1.25); /* ret=14.6875 */",  # the first three are a structure
        'put(s="."); /* ret=0 */',
        'put(s="nine"); /* ret=0 */',
        'put(s="."); /* ret=0 */',
        "vla(n=5); /* ret=1583 */",
        "vla(n=11); /* ret=8060198 */",
    ],
    "fp": [
        "poly(x=1.5); /* ret=7.75 */",
        "dvd(a=1, b=3); /* ret=0.33333333333333331 */",
        "dvd(a=22, b=-7); /* ret=-3.1428571428571428 */",
        "dvf(a=1, b=3); /* ret=0.333333343 */",
        "dvf(a=355, b=113); /* ret=3.14159298 */",
        "sq(a=2); /* ret=1.4142135623730949 */",
        "dot(a=0x, b=0x, n=9); /* ret=151.80000000000001 */",
        "toi(d=-12345.9); /* ret=-12345 */",
        "tou(d=1.8e+19); /* ret=18000000000000000000 */",
        "fri(i=-77); /* ret=-77 */",
        "fru(i=18446744073709551615); /* ret=1.8446744073709552e+19 */",
        "ffi(i=16777217); /* ret=16777216 */",
        "cmpd(a=1, b=2); /* ret=11 */",
        "cmpd(a=-nan(0x), b=1); /* ret=8 */",
        "cmpd(a=2, b=2); /* ret=38 */",
        "sq(a=3); /* ret=1.7320508075688772 */",
    ],
}


@pytest.mark.parametrize("name", ["args", pytest.param("fp", marks=pytest.mark.slow)])
def test_scalars_are_where_gcc_passes_them(name: str, tmp_path: Path) -> None:
    header = tmp_path / "mine.h"
    header.write_text(HEADERS[name])
    functions = re.findall(r"(\w+)\(", HEADERS[name])
    found = graph_lines(str(GUESTS / f"{name}_O2.elf"), *functions, prototypes=str(header))
    found = [re.sub(r"0x[0-9a-f]{5,}", "0x", line) for line in found]
    wanted = [line.replace("; /* ret=0 */", ";") for line in CALLS[name]]
    assert found == wanted


def test_structures_take_words_in_a_row_and_on_the_stack() -> None:
    """take(struct of 12 words, struct of 3, number): 16 words, eight of them in registers."""
    registers = [f"p $r{number}" for number in range(32, 40)]
    stack = [f"p *(long *)($r12 + {16 + 8 * number})" for number in range(8)]
    text = said(GuestConfig(str(GUESTS / "args_O2.elf")), "break *take", "run", *registers, *stack)
    assert re.findall(r"^\$\d+ = (.*)$", text, re.MULTILINE) == [
        str(number) for number in (*range(0, 60, 5), 7, 7 * 7, 7 ^ 9, 99)
    ]


def test_results_of_several_words_and_numbers() -> None:
    """mk: three words in r8 to r10; mh: three numbers in f8 to f10; mb: at r8's address."""
    lines: list[str] = []
    for name, words in {
        "mk": [f"p $r{number}" for number in (8, 9, 10)],
        "mb": [f"p ((long *)$r8)[{number}]" for number in (1, 11)],
        "mh": [f"p $f{number}" for number in (8, 9, 10)],
    }.items():
        lines += [f"tbreak *{name}", "continue" if lines else "run"]
        lines += ["tbreak *$b0", "continue", *words]
    text = said(GuestConfig(str(GUESTS / "args_O2.elf")), *lines)
    assert re.findall(r"^\$\d+ = (.*)$", text, re.MULTILINE) == [
        *("7", "49", "14"), *("5", "55"), *("2.5", "3.5", "5"),
    ]  # fmt: skip
