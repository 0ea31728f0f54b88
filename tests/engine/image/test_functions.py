"""Functions by name: namespaces, templates, overloads, inlined copies."""

import shutil
import subprocess
from pathlib import Path

import pytest

from engine.image.elf import ElfImage
from engine.image.functions import NamedFunctions, WantedFunction, canonical, without_result
from engine.image.variables import Variables

STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"
_DATA = Path(__file__).resolve().parents[2] / "data" / "debugger"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ElfImage:
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    path = tmp_path_factory.mktemp("functions") / "many"
    sources = [str(_DATA / name) for name in ("many.cpp", "many_second.cpp")]
    subprocess.run(["g++", "-g", "-O0", "-o", str(path), *sources], check=True)
    return ElfImage.open(str(path))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("grow", ["geo::Shape::grow(int)", "geo::Shape::grow(double)"]),
        ("Shape::grow(double)", ["geo::Shape::grow(double)"]),
        ("::Shape::grow", []),
        ("::geo::twice(long)", ["geo::twice(long)"]),
        ("Shape::Shape", ["geo::Shape::Shape()", "geo::Shape::Shape(int, int)"]),
        ("hidden", ["hidden(int)", "hidden(int)"]),
        ("push", ["Stack<int>::push(int)", "Stack<char>::push(char)"]),
        ("Stack<char>::push", ["Stack<char>::push(char)"]),
        ("largest< double >", ["largest<double>(double, double)"]),
        ("area() const", ["geo::Shape::area() const"]),
        ("row", []),
    ],
)
def test_names(program: ElfImage, text: str, names: list[str]) -> None:
    info = Variables(program).info
    assert info is not None
    found = {(block.start, block.name) for block in NamedFunctions(info).find(text)}
    assert sorted(name for _, name in found) == sorted(names)


@pytest.mark.parametrize(
    ("text", "name", "fits"),
    [
        ("f(const char *)", "f(char const*)", True),
        ("f(long int, unsigned int)", "f(long, unsigned int)", True),
        ("f(const std::vector<int> &)", "f(std::vector<int> const&)", True),
        ("f(std::string)", f"f({STRING})", True),
        ("f(void)", "f()", True),
        ("f", "f(int)", True),
        ("f(int)", "f(long)", False),
        ("f(char *)", "f(char const*)", False),
    ],
)
def test_parameters_are_equal_in_all_spellings(text: str, name: str, fits: bool) -> None:
    assert WantedFunction(text).fits_parameters(name) is fits


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("int geo::f<int>(int)", "geo::f<int>(int)"),
        (
            "std::pair<int, char> (anonymous namespace)::f<int>()",
            "(anonymous namespace)::f<int>()",
        ),
        ("geo::operator new(unsigned long)", "geo::operator new(unsigned long)"),
        ("f(int, int (*)(int))", "f(int, int (*)(int))"),
    ],
)
def test_results_are_left_out(name: str, bare: str) -> None:
    assert without_result(name) == bare


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("const char *", "char const*"),
        (
            "const std::vector<int, std::allocator<int> > &",
            "std::vector<int, std::allocator<int> > const&",
        ),
        ("const unsigned long", "unsigned long const"),
        ("int &&", "int&&"),
        ("volatile int *", "int volatile*"),
    ],
)
def test_parameters_are_written_as_gdbs_parser_does(text: str, shown: str) -> None:
    assert canonical(text) == shown
