"""Names of arguments in definitions where only BTF tells them."""

from pathlib import Path

import pytest
from compiled import build
from msgspec.structs import replace

from engine.arch.program import FetchArg
from engine.errors import ProbeSyntaxError
from engine.session import GuestConfig
from engine.session.program.opening import OpenedProgram
from engine.session.program.verdicts import Verdicts
from engine.trace.definition import Definition, parse

_SOURCE = """
struct path { int mnt; long dentry; };
struct file { struct path f_path; unsigned flags : 3, more : 5; char name[16]; };
__attribute__((noinline)) long
read_it(struct file *file, const char *buf, unsigned short count, long *pos)
{
    return file->name[0] + buf[0] + count + *pos;
}
int main(void)
{
    struct file f = {0};
    long p = 3;
    return read_it(&f, "x", 10, &p);
}
"""


def _parsed(program: Path, line: str) -> list[FetchArg]:
    opened = OpenedProgram.open(GuestConfig(guest=str(program)))
    verdicts = Verdicts(opened.arch, opened.inspected())
    found = parse(line, opened.arch, lookup=verdicts.lookup)
    assert isinstance(found, Definition)
    return [replace(arg, text="") for arg in found.args]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return build(tmp_path, "files", _SOURCE, "-O1", "-gbtf", "-static")


@pytest.mark.parametrize(
    ("named", "by_hand"),
    [
        (
            "p read_it file=file buf=buf count=count pos=pos",
            "p read_it file=%di:x64 buf=%si:x64 count=%dx:u16 pos=%cx:x64",
        ),
        ("p read_it $arg*", "p read_it file=%di:x64 buf=%si:x64 count=%dx:u16 pos=%cx:x64"),
        ("p read_it d=file->f_path.dentry", "p read_it d=+8(%di):s64"),
        ("p read_it n=file->name:string", "p read_it n=+17(%di):string"),
        ("p read_it more=file->more", "p read_it more=+16(%di):b5@3/8"),
    ],
)
def test_names_are_registers_at_the_entry(program: Path, named: str, by_hand: str) -> None:
    assert _parsed(program, named) == _parsed(program, by_hand)


def test_names_are_not_known_inside(program: Path) -> None:
    with pytest.raises(ProbeSyntaxError, match="entry only"):
        _parsed(program, "p read_it+3 count")
