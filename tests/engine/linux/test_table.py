"""The table of system calls."""

from engine import arch
from engine.linux.table import SEVERAL, build


def test_an_architecture_with_one_thread_has_no_calls_for_more() -> None:
    """What cannot be right is missing, and told as missing."""
    making = {name for family in SEVERAL for name in family}
    assert {"clone", "clone3", "fork", "vfork", "unshare", "setns", "execve", "execveat"} == making
    for name in arch.names():
        table = build(arch.by_name(name).linux)
        assert making & table.keys() == (set() if name == "ia64" else making)
