"""Programs that begin in the place of others."""

from pathlib import Path

from compiled import build
from guestrun import run

BEGIN = r"""
#include <unistd.h>
int main(int argc, char **argv) { execv(argv[1], argv + 1); return 9; }
"""


def test_damage_in_a_program_that_another_one_begins_is_told(tmp_path: Path) -> None:
    first = build(tmp_path, "first", BEGIN, "-static")
    second = build(tmp_path, "second", "int main(void) { __builtin_trap(); }", "-static")
    data = bytearray(second.read_bytes())
    data[62:64] = b"\xf0\xff"  # e_shstrndx
    second.write_bytes(data)
    done = run("run", str(first), str(second), cwd=tmp_path)
    assert done.code == 132
    assert done.err.count("sections have no names") == 1
