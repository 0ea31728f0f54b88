"""Objects that functions take by value: their classes copy them, as in gdb."""

import subprocess
from pathlib import Path

from compiled import tool
from gdbwords import said

from engine.session.protocol.config import GuestConfig

PROGRAM = """\
struct Point {
    int x, y;
    static int copies, gone;
    Point(int a, int b) : x(a), y(b) {}
    Point(const Point &o) : x(o.x), y(o.y + 100) { copies++; }
    ~Point() { gone++; }
};
int Point::copies = 0, Point::gone = 0;
struct Plain { long a, b, c; };
int take(Point p) { return p.x++ * 1000 + p.y; }
Point moved(Point p) { p.x++; return p; }
long sum(Plain p) { return p.a++ + p.b + p.c; }
int main()
{
    Point p(1, 2);
    Plain q{1, 2, 3};
    return take(p) + moved(p).x + sum(q) == 1110;
}
"""


def test_an_object_is_copied_by_its_class_for_a_call(tmp_path: Path) -> None:
    (tmp_path / "copied.cpp").write_text(PROGRAM)
    command = [tool("g++"), "-g", "-O0", "-static", "-o", "copied", "copied.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    out = said(
        GuestConfig(str(tmp_path / "copied")),
        *("break 17", "run", "p take(p)", "p p", "p moved(p)", "p p.x", "p sum(q)", "p q.a"),
        *("set calls-on-copy on", "p take(p)"),
    )
    assert [line.partition(" = ")[2] for line in out.splitlines() if line[:1] == "$"] == [
        "1102",
        "{x = 1, y = 2, static copies = 1, static gone = 1}",
        "{x = 2, y = 202, static copies = 3, static gone = 2}",
        *("1", "6", "1", "1002"),
    ]
