"""The places behind prologues, against those at which gdb sets breakpoints."""

import re
import subprocess
from pathlib import Path

import pytest
from compiled import build, tool

from engine.arch.x86_64.frames import UNWIND
from engine.guest.modules import Module
from engine.image.elf import ElfImage
from engine.image.names import GlobalNames
from engine.image.variables import Variables
from engine.session.debugger.bodies import FunctionBodies

C = r"""
#include <stdio.h>
#include <string.h>
int leaf(int a) { return a + 1; }
static int array(int n) { int v[n]; memset(v, 0, sizeof v); return v[n - 1]; }
void nothing(void) { }
double real(double x, int y) { double z = x * y; return z; }
struct large { int a[30]; };
struct large big(int q) { struct large s = {{q}}; return s; }
int loop(int n) { int s = 0; for (int i = 0; i < n; i++) s += leaf(i); return s; }
inline __attribute__((always_inline)) int copied(int k) { return k * 3; }
int user(int z) { return copied(z) + 1; }
int many(int a, int b, int c, int d, int e, int f, int g, int h) { return a + b + c + g + h; }
int aligned(int n) { int v[8] __attribute__((aligned(64))); memset(v, n, sizeof v); return v[3]; }
int main(int argc, char **argv)
{
    printf("%d %d %f %d\n", leaf(argc), array(argc + 3), real(1, 2), loop(3) + user(4)
           + many(1, 2, 3, 4, 5, 6, 7, 8) + big(3).a[0] + aligned(argc));
    nothing();
    return 0;
}
"""
CPP = r"""
#include <string>
#include <vector>
struct A { int x; A(int y) : x(y) {} virtual ~A() {} virtual int f(int z) { return x + z; } };
struct B : A { std::string s; B(int y) : A(y), s("q") {} int f(int z) override { return x * z; } };
template <class T> T add(T a, T b) { return a + b; }
int main()
{
    std::vector<int> v{1, 2, 3};
    B b(3);
    A *a = &b;
    auto l = [&](int k) { return k + v[0]; };
    return a->f(2) + add(1, 2) + int(add(1.0, 2.0)) + l(4);
}
"""
RUST = r"""
#[inline(never)]
fn greet(name: &str, n: u32, o: Option<i32>) -> usize {
    let k = name.len() + 1;
    println!("{} {} {:?}", name, n, o);
    k
}
#[inline(never)]
fn twice<T: Clone>(value: &T) -> (T, T) { (value.clone(), value.clone()) }
fn main() {
    let s = String::from("apple");
    println!("{} {:?}", greet(&s, 7, Some(4)), twice(&s));
}
"""


def of_rust(folder: Path, *flags: str) -> Path:
    (folder / "guest.rs").write_text(RUST)
    command = [tool("rustc"), "-g", *flags, "-o", str(folder / "guest"), str(folder / "guest.rs")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"rustc cannot build: {done.stderr[-200:]}")
    return folder / "guest"


def both(program: Path, step: int = 1) -> tuple[dict[str, int], dict[str, int]]:
    """Where breakpoints of a program's functions are: ours, and gdb's."""
    gdb = tool("gdb")
    image = ElfImage.open(str(program))
    module, variables = Module(str(program), image, 0), Variables(image)
    assert variables.info is not None
    bodies = FunctionBodies(
        UNWIND.frame_made, lambda one: variables, lambda one, link: variables.block_at(link)
    )
    listed = GlobalNames(variables.info).listed("function")
    starts = {entry.address for entry in listed if entry.address}
    names = {each.address: each.name for each in module.symbols if each.is_function}
    wanted = {names[at]: at for at in sorted(starts & names.keys())[::step]}
    script = program.parent / "breaks.gdb"
    lines = [f"echo @{name}\\n\nbreak -qualified -function {name}\n" for name in wanted]
    script.write_text("".join(lines))
    told = subprocess.run(
        [gdb, "-batch", "-nx", "-x", script, program], capture_output=True, text=True, check=False
    ).stdout
    theirs = {
        name: int(at, 16)
        for name, at in re.findall(
            r"@(\S+)\nBreakpoint \d+ at (0x[0-9a-f]+)(?:: file |\.\n)", told
        )
    }
    return {name: bodies.of(module, wanted[name]) for name in theirs}, theirs


@pytest.mark.parametrize("flags", [("-O0",), ("-O2",), ("-O1", "-fno-var-tracking")], ids=str)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_functions_of_c(tmp_path: Path, compiler: str, flags: tuple[str, ...]) -> None:
    ours, theirs = both(build(tmp_path, "c", C, "-g", *flags, compiler=compiler))
    assert ours == theirs
    assert {"main", "loop", "many", "real"} <= ours.keys()


@pytest.mark.slow  # the library's templates are compiled, and read by gdb
def test_functions_of_cpp(tmp_path: Path) -> None:
    ours, theirs = both(build(tmp_path, "cpp", CPP, "-g", "-O0", compiler="g++"))
    assert ours == theirs
    assert len(ours) > 50


@pytest.mark.slow  # a program is linked with all of Rust's library
@pytest.mark.parametrize("flags", [(), ("-O",)], ids=str)
def test_functions_of_rust(tmp_path: Path, flags: tuple[str, ...]) -> None:
    ours, theirs = both(of_rust(tmp_path, *flags), 3)
    # gdb takes a mark just behind the last instruction of a function for one of its own.
    beyond = {name for name in ours if theirs[name] > ours[name] and "flush_buf8BufGuard" in name}
    assert {name: at for name, at in ours.items() if name not in beyond} == {
        name: at for name, at in theirs.items() if name not in beyond
    }
    assert len(ours) > 100
