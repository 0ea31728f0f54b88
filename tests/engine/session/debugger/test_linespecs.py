"""Places as users of gdb write them: what each asks for, and what gdb 13 says of wrong ones."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from gdbwords import echoed, of_gdb, said

from engine.errors import CommandError
from engine.session.debugger.linespecs import LineSpecs, WantedPlace
from engine.session.protocol.config import GuestConfig

FILES = ("s.c", "/src/s.c", "vector")
SPECS = LineSpecs(
    lambda: ("/src/s.c", 32),
    lambda: "main",
    lambda expression: int(expression, 16),
    {"$n": 7}.get,
    FILES.__contains__,
)
HERE = "/src/s.c"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("main", WantedPlace("main", "main")),
        ("12", WantedPlace(f"{HERE}:12", file=HERE, line=12, current=True)),
        ("+3", WantedPlace(f"{HERE}:35", file=HERE, line=35, current=True)),
        ("-3", WantedPlace(f"{HERE}:29", file=HERE, line=29, current=True)),
        ("+", WantedPlace(f"{HERE}:37", file=HERE, line=37, current=True)),
        ("-0", WantedPlace(f"{HERE}:27", file=HERE, line=27, current=True)),
        ("$n", WantedPlace(f"{HERE}:7", file=HERE, line=7, current=True)),
        ("s.c:12", WantedPlace("s.c:12", file="s.c", line=12)),
        ("s.c : 12", WantedPlace("s.c:12", file="s.c", line=12)),
        ('"s.c":12', WantedPlace("s.c:12", file="s.c", line=12)),
        ('"s.c:12"', WantedPlace("s.c:12", file="s.c", line=12)),
        ("s.c:-3", WantedPlace("s.c:-3", file="s.c", line=-3)),
        ("s.c:f", WantedPlace("s.c:f", "f", "s.c")),
        ('s.c:"f"', WantedPlace('s.c:"f"', "f", "s.c")),
        ("vector:f", WantedPlace("vector:f", "f", "vector")),
        ("f:again", WantedPlace("f:again", "f", label="again")),
        ("s.c:f:again", WantedPlace("s.c:f:again", "f", "s.c", label="again")),
        ("'geo::f(int, char)'", WantedPlace("geo::f(int, char)", "geo::f(int, char)")),
        ("geo::Box<a::b, c>::f", WantedPlace("geo::Box<a::b, c>::f", "geo::Box<a::b, c>::f")),
        ("Box::operator,(int)", WantedPlace("Box::operator,(int)", "Box::operator,(int)")),
        ("Box::operator->", WantedPlace("Box::operator->", "Box::operator->")),
        ("Box::operator<", WantedPlace("Box::operator<", "Box::operator<")),
        ("::f", WantedPlace("::f", "::f")),
        ("*0x10", WantedPlace("*0x10", address=16)),
        ("-function f", WantedPlace("-function f", "f")),
        ("-q f", WantedPlace("-q f", "f", whole=True)),
        ("-line 33", WantedPlace(f"-source {HERE} -line 33", "", HERE, 33, current=True)),
        ("-li +1", WantedPlace(f"-source {HERE} -line 33", "", HERE, 33, current=True)),
        ("-so s.c -li 4", WantedPlace("-source s.c -line 4", "", "s.c", 4)),
        ("-function f -label out", WantedPlace("-function f -label out", "f", label="out")),
        ("-label out", WantedPlace("-function main -label out", "main", label="out")),
    ],
)
def test_what_is_asked_for(text: str, place: WantedPlace) -> None:
    assert SPECS.read(text) == place


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("5 abc def", 'malformed linespec error: unexpected string, "abc def"'),
        ("5 6 7", 'malformed linespec error: unexpected number, "6"'),
        ("5:6", "malformed linespec error: unexpected colon"),
        ("s.c:5:6", "malformed linespec error: unexpected colon"),
        ("s.c:5 abc", 'malformed linespec error: unexpected string, "abc"'),
        ("s.c:", "malformed linespec error: unexpected end of input"),
        (":", "malformed linespec error: unexpected colon"),
        ('"f" x', 'malformed linespec error: unexpected string, "x"'),
        ('"x', "unmatched quote"),
        ("'x", "unmatched quote"),
        ("f,g", "Garbage ',g' at end of command"),
        (",", "Garbage ',' at end of command"),
        ("*", "Argument required (expression to compute)."),
        ("-line", 'missing argument for "-line"'),
        ("-line x", 'malformed line offset: "x"'),
        ("-function", 'missing argument for "-function"'),
        ("-source s.c", "Source filename requires function, label, or line offset."),
        ("-foo", 'invalid explicit location argument, "-foo"'),
        ("f if a == 3", "Junk at end of line specification: if a == 3"),
    ],
)
def test_what_gdb_says_of_wrong_ones(text: str, error: str) -> None:
    with pytest.raises(CommandError) as caught:
        SPECS.read(text)
    assert str(caught.value) == error


SOURCE = r"""
static int total = 3;

static int f(int a)
{
	int i = 0;
again:
	i += a;
	if (i < 10)
		goto again;
	{
		int k = i + total;
		if (k > 12)
			goto out;
		i++;
	}
out:
	return i;
}

static int twice(int a)
{
	return f(a) * 2;
}

int main(void)
{
	int sum = twice(3);
	sum += twice(4);
	return sum - 42;
}
"""
STOPPED = ("break f", "run")
WORDS = (
    *("break f:again", "tbreak again", "break spec.c:f:out", "break -function f -label out"),
    *("break out", "info breakpoints", "continue", "delete", "list f:out", "list twice", "list"),
    *(
        "list +2",
        "list",
        "list -3",
        "list",
        "list",
        "list spec.c:20",
        "list spec.c:999",
        "list 20,22",
        "list +",
        "list -",
    ),
    *("frame", "forward-search total", "forward-search", "reverse-search total", "frame"),
    *("list -", "frame", "reverse-search total", "list", "forward-search f", "forward-search 77"),
    *("up 9", "down 9", "up -1", "down -1", "up", "up", "up", "down", "down", "down"),
    *(
        "bt 1",
        "bt -1",
        "bt nonsense",
        "bt total",
        "bt full 1",
        "bt 1 2",
        "finish 3",
        "x",
        "output",
    ),
    *("call", "print", "display /x", "x -1", "find total", "find 2", "find 1,2", "info line 999"),
    *("info line spec.c:0", "break 0", "break 5 x", "break f:nope", "break nofile.c:3"),
    *(
        "break g:x",
        "break f(",
        "break -40",
        "set $n = 24",
        "break $n",
        "break $nope",
        "ignore 0",
        "ignore x",
    ),
    *("enable 0", "enable -1", "disable 0", "condition 0", "step 2", "finish", "finish", "next 3"),
    *("stepi 0", "step 0", "stepi 2"),
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("gcc") is None or os.uname().machine != "x86_64":
        pytest.skip("no gcc for x86-64")
    folder = tmp_path_factory.mktemp("spec")
    (folder / "spec.c").write_text(SOURCE)
    command = ["gcc", "-g", "-O0", "-static", "-no-pie", "-fno-pie", "-o", "spec", "spec.c"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "spec"


@pytest.mark.slow
def test_words_and_what_stands_behind_them_read_as_in_gdb(program: Path) -> None:
    lines = echoed((*STOPPED, *WORDS))
    ours = said(GuestConfig(str(program)), *lines).replace("! ", "")
    wanted = re.sub(r"^.*libthread_db.*\n", "", of_gdb(program, *lines), flags=re.MULTILINE)
    for one, other in zip(ours.split(">>> "), wanted.split(">>> "), strict=True):
        assert one == other


def test_a_label_is_a_place(program: Path) -> None:
    text = said(GuestConfig(str(program)), *STOPPED, "break f:again", "tbreak out", "info b")
    again, out = re.findall(r"reakpoint \d at (0x\w+): file \S*spec.c, line (?:7|17)\.", text)
    assert re.search(rf"^2 .* 0x0*{again[2:]} f:again$", text, re.MULTILINE)
    assert re.search(rf"^3 .* del .* 0x0*{out[2:]} f:out$", text, re.MULTILINE)
    assert "f:out" not in said(GuestConfig(str(program)), "break main", "run", "break out")
