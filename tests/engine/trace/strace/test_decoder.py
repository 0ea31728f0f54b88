"""Calls as text: arguments and structures of every architecture, and bad memory."""

import struct
from random import Random

import pytest

from engine.arch import by_name
from engine.errors import GuestFaultError
from engine.trace.strace import netlink
from engine.trace.strace.call import CallStyle, GuestFacts, TracedCall
from engine.trace.strace.decoder import ShownCall, call_forms
from engine.trace.strace.kinds import KINDS, RESULTS

BASE = 0x10000


def shown(
    name: str,
    *arguments: int,
    result: int = 0,
    memory: bytes = b"",
    arch: str = "x86_64",
    style: CallStyle | None = None,
    stored: bytes | None = None,
) -> str:
    """The line of a call over memory at `BASE`; `stored` is what the call leaves there."""
    held = [memory]

    def read(address: int, size: int) -> bytes:
        at = address - BASE
        if at < 0 or at + size > len(held[0]):
            raise GuestFaultError(address, "read")
        return held[0][at : at + size]

    facts = GuestFacts("<", by_name(arch).linux)
    values = (*arguments, *(0,) * (6 - len(arguments)))
    call = TracedCall(name, values, facts, style or CallStyle(), read, lambda fd: f"/file{fd}")
    line = ShownCall(call, len(arguments))
    text = line.begin()
    if stored is not None:
        held[0] = stored
    call.result = result
    return f"{text}{line.finish()} = {line.result()}"


def test_every_kind_of_the_table_is_there() -> None:
    forms = call_forms()
    kinds = {each.kind for form in forms.values() for each in form.arguments} - {"skip"}
    assert kinds <= set(KINDS)
    assert {form.result for form in forms.values()} <= set(RESULTS)


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_every_call_survives_bad_memory(arch: str) -> None:
    """Wild numbers, pointers to nowhere, and memory full of ones: a line comes of each."""
    for name in call_forms():
        for value in (0, 1, BASE, (1 << 64) - 1):
            for memory in (b"", b"\xff" * 4096, bytes(4096)):
                for result in (7, -14):
                    line = shown(name, *(value,) * 6, result=result, memory=memory, arch=arch)
                    assert line.startswith(f"{name}(")
                    assert len(line) < 200_000
                    assert "\n" not in line


@pytest.mark.parametrize(
    ("arch", "flags", "text"),
    [
        ("x86_64", 0x90000, "O_RDONLY|O_CLOEXEC|O_DIRECTORY"),
        ("aarch64", 0x84000, "O_RDONLY|O_CLOEXEC|O_DIRECTORY"),
        ("riscv64", 0x90000, "O_RDONLY|O_CLOEXEC|O_DIRECTORY"),
        ("x86_64", 0o100 | 1, "O_WRONLY|O_CREAT, 0640"),
        ("aarch64", 0x404002, "O_RDWR|O_TMPFILE, 0640"),
    ],
)
def test_flags_of_open(arch: str, flags: int, text: str) -> None:
    line = shown(
        "openat", -100, BASE, flags, 0o640, result=3, memory=b"/x\0" + bytes(4096), arch=arch
    )
    assert line == f'openat(AT_FDCWD, "/x", {text}) = 3'


@pytest.mark.parametrize("arch", ["x86_64", "aarch64", "riscv64"])
def test_stat_and_epoll_by_architecture(arch: str) -> None:
    linux = by_name(arch).linux
    size = struct.calcsize("<" + linux.stat_layout.form)
    values = {"mode": 0o100644, "size": 77}
    fields: list[int] = []
    for name in linux.stat_layout.fields:
        fields += [0, 0] if name.endswith("time") else [values.get(name, 0)]
    stored = struct.pack("<" + linux.stat_layout.form, *fields)
    line = shown("fstat", 3, BASE, memory=bytes(size), stored=stored, arch=arch)
    assert line == "fstat(3, {st_mode=S_IFREG|0644, st_size=77, ...}) = 0"
    event = struct.pack("<IQ" if linux.epoll_packed else "<I4xQ", 1, 5 << 32 | 3)
    line = shown("epoll_wait", 3, BASE, 4, -1, result=1, memory=event, arch=arch)
    assert line.startswith(
        "epoll_wait(3, [{events=EPOLLIN, data={u32=3, u64=21474836483}}], 4, -1) = 1"
    )


def test_a_handler_has_a_restorer_where_the_abi_has() -> None:
    flags = 0x14000000
    x86 = struct.pack("<QQQQ", 0x401000, flags, 0x402000, 1 << 9)
    riscv = struct.pack("<QQQ", 0x401000, 0x10000000, 1 << 9)
    assert shown("rt_sigaction", 2, BASE, 0, 8, memory=x86) == (
        "rt_sigaction(SIGINT, {sa_handler=0x401000, sa_mask=[USR1], "
        "sa_flags=SA_RESTORER|SA_RESTART, sa_restorer=0x402000}, NULL, 8) = 0"
    )
    assert shown("rt_sigaction", 2, BASE, 0, 8, memory=riscv, arch="riscv64") == (
        "rt_sigaction(SIGINT, {sa_handler=0x401000, sa_mask=[USR1], sa_flags=SA_RESTART}, "
        "NULL, 8) = 0"
    )


def test_the_order_of_clones_arguments() -> None:
    flags = 0x00080000 | 0x01000000 | 17
    line = shown("clone", flags, 0, 0, 0xC1, 0x715, result=9)
    assert line == (
        "clone(child_stack=NULL, flags=CLONE_SETTLS|CLONE_CHILD_SETTID|SIGCHLD, tls=0x715, "
        "child_tidptr=0xc1) = 9"
    )
    line = shown("clone", flags, 0, 0, 0x715, 0xC1, result=9, arch="aarch64")
    assert line.endswith("tls=0x715, child_tidptr=0xc1) = 9")


def test_strings_are_cut_and_errors_have_texts() -> None:
    assert shown("write", 1, BASE, 40, result=40, memory=b"ab" * 20) == (
        f'write(1, "{"ab" * 16}"..., 40) = 40'
    )
    style = CallStyle(string_max=2, paths=1)
    assert shown("write", 1, BASE, 3, result=-9, memory=b"\0\x31\xff", style=style) == (
        'write(1</file1>, "\\0001"..., 3) = -1 EBADF (Bad file descriptor)'
    )
    assert shown("read", 3, 0x10, 5, result=-14) == "read(3, 0x10, 5) = -1 EFAULT (Bad address)"


def test_an_unknown_call_shows_numbers() -> None:
    assert shown("syscall_0x1f4", 1, 2, result=-38) == (
        "syscall_0x1f4(0x1, 0x2) = -1 ENOSYS (Function not implemented)"
    )
    style = CallStyle(raw=lambda name: True)
    assert shown("close", 3, style=style) == "close(0x3) = 0"


def test_netlink_of_any_bytes_is_a_line() -> None:
    """Errors about errors without end, attributes within attributes, and what is cut anywhere."""
    facts = GuestFacts("<", by_name("x86_64").linux)
    source = Random(9)

    def sent(data: bytes) -> str:
        def read(address: int, size: int) -> bytes:
            return data[address - BASE :][:size]

        values = (3, BASE, len(data), 0, 0, 0)
        call = TracedCall("sendto", values, facts, CallStyle(), read, lambda fd: "/")
        call.netlink_of = lambda number: 0
        return netlink.messages_text(call, BASE, len(data))

    error = b"".join(
        struct.pack("<IHHIIi", 20_000 - 20 * at, 2, 0, 1, 1, -2) for at in range(1000)
    )
    assert sent(error).startswith("[{nlmsg_len=20000, nlmsg_type=NLMSG_ERROR, ")
    for kind in (16, 20, 24, 28, 36, 66, 3, 2):
        for _ in range(60):
            body = bytearray(source.randbytes(source.randrange(200)))
            for at in range(16, len(body) - 4, source.choice((8, 12, 36))):
                size = source.choice((4, 8, len(body) - at, 0xFFFF))
                struct.pack_into("<HH", body, at, size & 0xFFFF, source.randrange(64))
            head = struct.pack("<IHHII", 16 + len(body), kind, 1, 1, 0)
            assert sent(head + body).startswith(("[{nlmsg_len=", "{nlmsg_len="))
