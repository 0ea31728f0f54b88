"""A program without DWARF whose types are told by BTF, as kernels' are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from controlkit import Held, held

from engine.session.debugger.console import Console
from engine.session.protocol import commands as cmd
from engine.session.protocol import events as ev

_SOURCE = """
#include <stdio.h>
struct path { int mnt; long dentry; };
enum mode { READ, WRITE = 5 };
struct file {
    struct path f_path;
    unsigned int flags : 3, more : 5;
    char name[16];
    int (*op)(struct file *, long);
    struct { int a; union { int b; unsigned c; }; };
    enum mode mode;
};
static struct file f = { {1, 2}, 3, 4, "hello", 0, {7, {8}}, WRITE };
__attribute__((noinline)) long
read_it(struct file *file, char *buf, unsigned long count, long *pos)
{
    buf[0] = file->name[0];
    *pos += count;
    return count + file->flags;
}
int main(void)
{
    char b[4];
    long p = 3;
    printf("%ld\\n", read_it(&f, b, 10, &p));
    return 0;
}
"""


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Held]:
    program = build(tmp_path, "files", _SOURCE, "-O1", "-gbtf", "-static")
    with held(str(program)) as found:
        Console(found.control, found._tell)
        yield found


def say(guest: Held, text: str) -> str:
    guest.do(cmd.TypedLine(text))
    return guest.all(ev.Done)[-1].text


def test_types_functions_and_values(guest: Held) -> None:
    assert say(guest, "ptype struct file").splitlines() == [
        "type = struct file {",
        "    struct path f_path;",
        "    unsigned int flags : 3;",
        "    unsigned int more : 5;",
        "    char name[16];",
        "    int (*op)(struct file *, long);",
        "    struct {",
        "        int a;",
        "        union {...};",
        "    };",
        "    enum mode mode;",
        "}",
    ]
    prototype = "type = long (struct file *, char *, unsigned long, long *)"
    assert say(guest, "whatis read_it") == prototype
    assert say(guest, "ptype read_it") == prototype
    assert say(guest, "ptype enum mode") == "type = enum mode {READ, WRITE = 5}"
    assert say(guest, "print sizeof(struct file)") == "$1 = 64"
    assert say(guest, "print WRITE") == "$2 = WRITE"
    assert say(guest, "break read_it").startswith("Breakpoint 1 at ")
    guest.do(cmd.Continue())
    assert say(guest, "print *file") == (
        "$3 = {f_path = {mnt = 1, dentry = 2}, flags = 3, more = 4,"
        ' name = "hello\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000", op = 0x0,'
        " {a = 7, {b = 8, c = 8}}, mode = WRITE}"
    )
    assert say(guest, "print file->f_path.dentry + file->b") == "$4 = 10"
    assert say(guest, "print *(struct path *) file") == "$5 = {mnt = 1, dentry = 2}"
    assert [line.split(" = ")[0] for line in say(guest, "info args").splitlines()] == [
        "file",
        "buf",
        "count",
        "pos",
    ]
    assert "long read_it(struct file *, char *, unsigned long, long *);" in say(
        guest, "info functions read_it"
    )
    assert "Value returned is $6 = 13" in say(guest, "finish")
