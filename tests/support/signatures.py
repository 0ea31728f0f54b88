"""Programs with a function for each of many return types, and what `finish` says behind each."""

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import archkit
import pytest
from gdbwords import said
from runfolder import run_folder
from sysroot import locked

from engine.session.protocol.config import GuestConfig

_COMMON = r"""
#include <complex.h>
#include <stdint.h>
struct s_c1 { char a; };
struct s_c3 { char a[3]; };
struct s_i1 { int a; };
struct s_i3 { int a, b, c; };
struct s_l2 { long a, b; };
struct s_l3 { long a, b, c; };
struct s_f1 { float a; };
struct s_f2 { float a, b; };
struct s_f3 { float a, b, c; };
struct s_f4 { float a, b, c, d; };
struct s_f5 { float a[5]; };
struct s_d1 { double a; };
struct s_d2 { double a, b; };
struct s_d3 { double a, b, c; };
struct s_d4 { double a[4]; };
struct s_di { double a; int b; };
struct s_id { int a; double b; };
struct s_fi { float a; int b; };
struct s_ifd { int a; float b; double c; };
struct s_cf { char a; float b; };
struct s_fff_i { float a, b, c; int d; };
struct s_df { double a; float b; };
struct s_bits { unsigned a : 3; int b : 7; unsigned long c : 40; };
struct s_fbits { float a; int b : 5; };
struct s_bool { _Bool a; char b; short c; };
struct s_nested { struct { short a; } x; struct s_i1 y; struct s_f1 z; };
struct s_ptr { const char *a; int *b; };
union u_if { int a; float b; };
union u_fd { float a; double b; };
union u_ff { float a; float b[3]; };
union u_big { char a[24]; long b; };
struct s_union { union u_if a; float b; };
struct s_ld { long double a; };
struct s_big { char a[40]; };
struct __attribute__((packed)) s_pack { char a; int b; };
struct __attribute__((packed)) s_packd { char a; double b; };
struct s_al { _Alignas(16) int a; };
struct s_arr { short a[7]; };
struct s_arrd { double a[1]; };
struct s_cplx { float _Complex a; };
enum colour { RED, GREEN = 5, BLUE = -1 };
enum flags { ONE = 1, TWO = 2, FOUR = 4 };
typedef struct s_di named;
typedef int (*callback)(int);
typedef float v4f __attribute__((vector_size(16)));
typedef int v2i __attribute__((vector_size(8)));
struct s_v4 { v4f a; };
static int number = 42;
static int twice(int n) { return 2 * n; }
"""
_C_RETURNS = (
    *(("char", "'x'"), ("signed char", "-5"), ("unsigned char", "200"), ("short", "-1234")),
    *(("unsigned short", "54321"), ("int", "-123456"), ("unsigned", "4000000000u")),
    *(("long", "-1234567890123L"), ("unsigned long", "0xfedcba9876543210ul")),
    *(("long long", "-5"), ("_Bool", "1"), ("float", "1.25f"), ("double", "-2.1")),
    *(("long double", "1.0L / 3"), ("float _Complex", "1.5f + 2.5f * I")),
    *(("double _Complex", "3 - 4 * I"), ("long double _Complex", "3.5L + 4 * I")),
    *(
        ("const char *", '"text"'),
        ("int *", "&number"),
        ("void *", "&number"),
        ("callback", "twice"),
    ),
    *(("enum colour", "GREEN"), ("enum colour", "BLUE"), ("enum flags", "3")),
    *(("struct s_c1", "{'q'}"), ("struct s_c3", '{"ab"}'), ("struct s_i1", "{7}")),
    *(("struct s_i3", "{1, -2, 3}"), ("struct s_l2", "{-1, 2}"), ("struct s_l3", "{1, 2, 3}")),
    *(("struct s_f1", "{1.5f}"), ("struct s_f2", "{1.5f, 2.5f}"), ("struct s_f3", "{1, 2, 3.5f}")),
    *(("struct s_f4", "{1, 2, 3, 4.5f}"), ("struct s_f5", "{{1, 2, 3, 4, 5.5f}}")),
    *(("struct s_d1", "{1.5}"), ("struct s_d2", "{1.5, 2.5}"), ("struct s_d3", "{1, 2, 3.5}")),
    *(
        ("struct s_d4", "{{1, 2, 3, 4.5}}"),
        ("struct s_di", "{1.5, -2}"),
        ("struct s_id", "{-2, 1.5}"),
    ),
    *(
        ("struct s_fi", "{1.5f, -2}"),
        ("struct s_ifd", "{1, 2.5f, 3.5}"),
        ("struct s_cf", "{'a', 2.5f}"),
    ),
    *(("struct s_fff_i", "{1, 2, 3.5f, 4}"), ("struct s_df", "{1.5, 2.5f}")),
    *(("struct s_bits", "{5, -33, 1234567890123ul}"), ("struct s_fbits", "{1.5f, -7}")),
    *(("struct s_bool", "{1, 'z', -300}"), ("struct s_nested", "{{-7}, {8}, {9.5f}}")),
    *(("struct s_ptr", '{"tail", &number}'), ("union u_if", "{.b = 1.5f}")),
    *(
        ("union u_fd", "{.b = 2.5}"),
        ("union u_ff", "{.b = {1, 2, 3.5f}}"),
        ("union u_big", '{"big"}'),
    ),
    *(
        ("struct s_union", "{{3}, 4.5f}"),
        ("struct s_ld", "{1.0L / 7}"),
        ("struct s_big", '{"forty"}'),
    ),
    *(("struct s_pack", "{'p', 77}"), ("struct s_packd", "{'p', 77.5}"), ("struct s_al", "{99}")),
    *(("struct s_arr", "{{1, 2, 3, 4, 5, 6, -7}}"), ("struct s_arrd", "{{8.5}}")),
    *(("struct s_cplx", "{1.5f + 2 * I}"), ("named", "{4.5, 6}"), ("v4f", "{1, 2, 3, 4.5f}")),
    *(
        ("v2i", "{-1, 2}"),
        ("struct s_v4", "{{1, 2, 3, 4.5f}}"),
        ("__int128", "((__int128)3 << 70) + 5"),
    ),
)
_CPP_ONLY = r"""
struct Copied { int a; Copied(int n) : a(n) {} Copied(const Copied &o) : a(o.a) {} };
struct Defaulted { int a; Defaulted(int n) : a(n) {} Defaulted(const Defaulted &) = default; };
struct Moved { int a; Moved(int n) : a(n) {} Moved(Moved &&) = default; };
struct Destroyed { long a; ~Destroyed() {} };
struct Virtual { int a; virtual int get() { return a; } Virtual(int n) : a(n) {} };
struct Holder { Copied a; double b; };
struct Row { Destroyed a[1]; };
struct Empty {};
struct Derived : Empty { int k; };
struct DerivedF : Empty { float k, l; };
struct Two : s_f1 { float b; Two() {} };
struct Member { Empty e; int k; };
struct MemberD { Empty e; double k; };
struct Privately { Privately(int n) : a(n), b(n / 2.0) {} private: int a; double b; };
enum class Scoped : unsigned char { LOW = 1, HIGH = 200 };
template <class T> struct Pair { T first, second; };
namespace geo { struct Point { float x, y; static int count; int norm(int n) { return n; } };
int Point::count = 3; }
"""
_CPP_RETURNS = (
    *(("Copied", "Copied(3)"), ("Defaulted", "Defaulted(4)"), ("Moved", "Moved(5)")),
    *(("Destroyed", "{6}"), ("Virtual", "Virtual(7)"), ("Holder", "{Copied(8), 2.5}")),
    *(
        ("Row", "{{{9}}}"),
        ("Empty", "{}"),
        ("Derived", "{{}, 10}"),
        ("DerivedF", "{{}, 1.5f, 2.5f}"),
    ),
    *(("Two", "[]{ Two t; t.a = 1.5f; t.b = 2.5f; return t; }()"), ("Member", "{{}, 11}")),
    *(("MemberD", "{{}, 1.5}"), ("Privately", "Privately(12)"), ("Scoped", "Scoped::HIGH")),
    *(("Pair<int>", "{1, 2}"), ("Pair<double>", "{1.5, 2.5}"), ("Pair<float>", "{1.5f, 2.5f}")),
    *(("geo::Point", "{1.5f, -2.5f}"), ("int &", "number"), ("const geo::Point &", "point")),
    *(("float geo::Point::*", "&geo::Point::x"), ("bool", "true")),
    *(("struct s_l2", "{-1, 2}"), ("struct s_di", "{1.5, -2}")),
)


_TAKERS = """
__attribute__((noinline)) void t{number}(int before, {kind} value, double behind, char last) {{}}
__attribute__((noinline)) void u{number}(long a, long b, long c, long d, long e, double f,
    double g, double h, double i, double j, double k, {kind} value, {kind} again,
    short last) {{}}"""
_TAKEN = (
    "t{number}(-7, f{number}(), 2.5, 'z');"
    " u{number}(1, 2, 3, 4, 5, .5, 1.5, 2.5, 3.5, 4.5, 5.5, f{number}(), f{number}(), -9);"
)


def source(language: str) -> tuple[str, int]:
    """The program's text, and how many functions it has."""
    rows = _C_RETURNS if language == "c" else _CPP_RETURNS
    head = _COMMON
    if language == "c++":
        head = head.replace("#include <complex.h>\n", "").replace("_Bool", "bool")
        head = head.replace("_Alignas(16)", "alignas(16)") + _CPP_ONLY
        head += "static geo::Point point = {3.5f, 4.5f};\n"
    lines = [head]
    for number, (kind, value) in enumerate(rows):
        if "&" in kind or "*" in kind or (language == "c++" and not value.startswith("{")):
            body = f"return {value};"
        else:
            body = f"{kind} result = {value}; return result;"
        lines.append(f"__attribute__((noinline)) {kind} f{number}(void) {{ {body} }}")
        lines.append(_TAKERS.format(number=number, kind=kind))
    calls = " ".join(f"f{number}();" for number in range(len(rows)))
    taken = " ".join(_TAKEN.format(number=number) for number in range(len(rows)))
    lines.append(f"static void take(void) {{ {taken} }}")
    lines.append("int main(void) { number += twice(1) - 2; " + calls + " take(); return 0; }")
    return "\n".join(lines) + "\n", len(rows)


@cache
def program(arch: str, language: str) -> tuple[Path, int]:
    """The program of a language, compiled once, and how many functions it has."""
    compiler = archkit.compiler(arch)
    if language == "c++":
        compiler = re.sub(r"gcc$", "g++", compiler)
        if shutil.which(compiler) is None:
            pytest.skip(f"no {compiler}")
    text, count = source(language)
    name = f"signatures-{arch}-{language}"
    folder = run_folder("signatures") / name
    with locked(folder):
        folder.mkdir(exist_ok=True)
        if not (folder / name).exists():
            (folder / f"s.{'c' if language == 'c' else 'cc'}").write_text(text)
            command = [compiler, "-g", "-O0", "-w", "-static", "-o", name]
            command.append("s.c" if language == "c" else "s.cc")
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.fail(f"{compiler}: {done.stderr}")
    return folder / name, count


def returns(language: str) -> list[str]:
    """The type that each function of a language's program returns."""
    return [kind for kind, _ in (_C_RETURNS if language == "c" else _CPP_RETURNS)]


def words(count: int) -> list[str]:
    """Words that print each function's result behind a line of its own."""
    found: list[str] = []
    for number in range(count):
        found += [f"tbreak f{number}", "continue", f"echo @{number}\\n", "finish"]
    return found


def told(text: str) -> dict[int, str]:
    """What was said of each result, addresses of the stack aside, by the function's number."""
    found: dict[int, str] = {}
    for part in text.split("\n@")[1:]:
        number, _, rest = part.partition("\n")
        values = re.search(r"^Value returned (?:is \$\d+ = |has)(.*)$", rest, re.MULTILINE)
        if values is not None:
            found[int(number)] = values[1]
    return found


def ours(path: Path, count: int) -> dict[int, str]:
    """What our debugger says."""
    lines = ["tbreak main", "run", *words(count)]
    return told(said(GuestConfig(str(path)), *lines))


def gdbs(path: Path, arch: str, count: int) -> dict[int, str]:
    """What gdb says: natively, or of a program that QEMU runs; skips the test without them."""
    return told(_by_gdb(path, arch, words(count)))


def _by_gdb(path: Path, arch: str, asked: Sequence[str]) -> str:
    """What gdb says to lines behind the start of main."""
    native = os.uname().machine == arch
    gdb = shutil.which("gdb" if native else "gdb-multiarch")
    if gdb is None:
        pytest.skip("no gdb" if native else "no gdb-multiarch")
    lines: list[str] = ["set pagination off", "set confirm off", "set print entry-values no"]
    if native:
        return _asked(gdb, path, [*lines, "tbreak main", "run", *asked])
    qemu = shutil.which(f"qemu-{arch}") or shutil.which(f"qemu-{arch}-static")
    if qemu is None:
        pytest.skip(f"no qemu-{arch}")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([qemu, "-g", str(port), path], stderr=subprocess.DEVNULL) as stub:
        try:
            there = [f"target remote :{port}", "tbreak main", "continue"]
            return _asked(gdb, path, [*lines, *there, *asked])
        finally:
            stub.send_signal(signal.SIGKILL)


def gdbs_arguments(path: Path, arch: str, count: int) -> dict[str, list[str]]:
    """What gdb's `info args` says in each function that takes values."""
    lines: list[str] = []
    for name in takers(count):
        lines += [f"tbreak {name}", "continue", f"echo @{name}\\n", "info args"]
    text = _by_gdb(path, arch, lines)
    return {
        part.partition("\n")[0]: [
            line for line in part.splitlines()[1:] if re.match(r"\w+ = ", line)
        ]
        for part in text.split("\n@")[1:]
    }


def takers(count: int) -> list[str]:
    """The functions that take values, in the order of their calls."""
    return [f"{letter}{number}" for number in range(count) for letter in "tu"]


def _asked(gdb: str, path: Path, lines: Sequence[str]) -> str:
    arguments = [part for line in lines for part in ("-ex", line)]
    without_core = ("sh", "-c", 'ulimit -c 0; exec "$@"', "sh")  # gdb 13 may crash
    done = subprocess.run(
        [*without_core, gdb, "-nx", "-batch", *arguments, str(path)],
        cwd=path.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if "ptrace" in done.stderr:
        pytest.skip(f"gdb does not run the program here: {done.stderr[-200:]}")
    return done.stdout
