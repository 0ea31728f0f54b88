"""The numbers of what a guest's kernel is asked for, against the headers of this machine."""

from pathlib import Path

import pytest
from compiled import build

from engine.linux.world import names

HEADERS = (
    *("stddef.h", "linux/prctl.h", "linux/futex.h", "asm-generic/mman-common.h", "asm/ioctls.h"),
    *("asm/termbits.h", "asm/sockios.h", "linux/sockios.h", "linux/fs.h", "linux/fiemap.h"),
    *("asm/socket.h", "linux/fcntl.h", "linux/time.h", "linux/seccomp.h", "linux/io_uring.h"),
    *("linux/tcp.h", "linux/sched.h", "linux/socket.h"),
)
NUMBERED = {
    **{
        name: number
        for table in (
            *(names.PRCTL, names.FUTEX, names.MADVISE, names.FCNTL, names.CLOCKS, names.IOCTL),
            *(names.SOCKET_OPTIONS, names.TCP_OPTIONS, names.NAMESPACES),
        )
        for name, number in table.items()
    },
    **{f"SECCOMP_RET_{name}": number for name, number in names.SECCOMP_ACTIONS.items()},
    **{f"IORING_OP_{name}": number for number, name in enumerate(names.URING)},
}
OF_THE_C_LIBRARY = {**names.FAMILIES, **names.SOCKETS}


@pytest.mark.parametrize(
    ("headers", "numbers"),
    [(HEADERS, NUMBERED), (("sys/socket.h",), OF_THE_C_LIBRARY)],
    ids=["kernel", "library"],
)
def test_numbers_are_those_of_the_headers(
    tmp_path: Path, headers: tuple[str, ...], numbers: dict[str, int]
) -> None:
    """A wrong number does not compile: the compiler compares, nothing has to run."""
    lines = [f"#include <{header}>" for header in headers]
    lines += [
        f'_Static_assert((unsigned)({name}) == {number}u, "{name}");'
        for name, number in numbers.items()
    ]
    build(tmp_path, "numbers", "\n".join((*lines, "int main(void) { return 0; }")))
