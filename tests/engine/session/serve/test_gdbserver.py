"""gdb's remote protocol: by gdb itself, by a client that is no gdb, and by garbage."""

import os
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from compiled import build
from sysroot import CHECKOUT
from warmed import SAME_CODE

from engine.errors import CommandError
from engine.session.protocol.config import GuestConfig
from engine.session.serve.address import listening
from engine.session.serve.answering import LeaveError
from engine.session.serve.connection import GdbConnection
from engine.session.serve.gdbserver import GdbServer
from engine.session.serve.packet_streams import SocketLink
from engine.session.serve.packets import (
    INTERRUPT,
    ForeignBytesError,
    PacketReader,
    escaped,
    packet,
    unescaped,
)
from engine.session.serve.peers import peer_user

SAMPLE = str(CHECKOUT / "samples" / "bin" / "x86_64" / "recursion")
PROGRAM = """
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
long table[4];
volatile long counter;
static void on(int number) { counter += number; }
__attribute__((noinline)) long set(int i, long v) { table[i & 3] = v; return v + 1; }
static void *worker(void *arg) { set(1, 100); return arg; }
int main(int argc, char **argv) {
    pthread_t other;
    signal(SIGUSR1, on);
    for (int i = 0; i < 8; i++)
        set(i, i * 11);
    pthread_create(&other, 0, worker, 0);
    pthread_join(other, 0);
    raise(SIGUSR1);
    while (argc > 1)
        counter++;
    return 7;
}
"""
SCRIPT = """
set confirm off
set sysroot /
{target}
break main
{run}
break set if i == 5
continue
backtrace
info args
print table
print $rip == &set
x/3i $pc
stepi
set var $rdi = 4
finish
print table[0]
delete
watch counter
print set(3, 77)
print table[3]
continue
info signals SIGUSR1
continue
backtrace 1
continue
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("served"), "served", PROGRAM, "-O1", "-g", "-pthread")


@contextmanager
def served(where: str, *guest: str, cwd: Path) -> Iterator["subprocess.Popen[str]"]:
    """A server that listens."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tui", "serve", "--gdb", where, *guest],
        cwd=cwd, env={**os.environ, **SAME_CODE}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        assert "listening on" in line, line
        yield server
        server.communicate(timeout=60)
    finally:
        server.kill()
        server.communicate()


def gdb(script: str, program: Path, reader: str = "gdb") -> str:
    found = shutil.which(reader)
    if found is None:
        pytest.skip(f"no {reader}")
    path = program.with_name("script.gdb")
    path.write_text(script)
    done = subprocess.run(
        [found, "-nx", "-batch", "-x", str(path), str(program)],
        capture_output=True, check=False, text=True, timeout=180, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout + done.stderr


def told(text: str) -> list[str]:
    """What gdb says of the program, without what differs between a process and a target."""
    found = []
    for line in text.splitlines():
        if re.match(r"warning|\[New|\[Thread|Using host|Program stopped|$|\[Switch", line):
            continue
        if " in _start" in line:
            continue
        line = re.sub(r"\[Inferior 1 \(.*?\)", "[Inferior 1", line)
        line = re.sub(r'Thread (\d+) "served" (hit )?', "", line).replace(
            "Program received", "received"
        )
        line = re.sub(r"0x7f[0-9a-f]{10}", "0x7f", line)
        found.append(re.sub(r"Run till exit.*", "Run till exit", line))
    return found


@pytest.mark.slow
def test_gdb_sees_what_it_sees_of_a_process(program: Path) -> None:
    path = program.with_name("socket")
    with served(f"unix:{path}", str(program), cwd=program.parent) as server:
        mine = gdb(SCRIPT.format(target=f"target remote {path}", run="continue"), program)
    native = gdb(SCRIPT.format(target="starti", run="continue"), program)
    if "Breakpoint 1, main" not in native:
        pytest.skip("gdb cannot run programs here")
    assert told(mine) == told(native)
    assert "exited with code 07" in mine
    assert server.returncode == 7
    assert not path.exists()


BACK = """
set confirm off
set sysroot /
target remote {}
break set if i == 5
continue
print table
break *set if i == 2
reverse-continue
print table
reverse-stepi
print $pc < &main
delete
reverse-continue
continue
print i
kill
"""


@pytest.mark.slow
def test_gdb_goes_back_in_a_dynamic_program(program: Path) -> None:
    """It stops in the dynamic linker on the way, as it does in each such program."""
    path = program.with_name("back")
    with served(f"unix:{path}", "--record", str(program), cwd=program.parent):
        text = gdb(BACK.format(path), program)
    assert "$1 = {44, 11, 22, 33}" in text
    assert "set (i=i@entry=2, v=v@entry=22)" in text
    assert "$2 = {0, 11, 0, 0}" in text
    assert text.count("No more reverse-execution history.") == 2  # begin, and end
    assert "set (i=i@entry=5, v=v@entry=55)" in text.rpartition("No more reverse")[2]
    assert "$4 = 5" in text


@pytest.mark.slow
def test_gdb_drives_aarch64(tmp_path: Path) -> None:
    gcc = shutil.which("aarch64-linux-gnu-gcc")
    if gcc is None:
        pytest.skip("no aarch64-linux-gnu-gcc")
    (tmp_path / "served.c").write_text(PROGRAM)
    guest = tmp_path / "served"
    command = [gcc, "-O1", "-g", "-static", "-pthread", "-o", str(guest), "served.c"]
    subprocess.run(command, cwd=tmp_path, check=True)
    script = """
set confirm off
target remote {}
break set if i == 5
continue
backtrace
print/x $cpsr & 0x0fffffff
stepi
finish
print table
kill
"""
    path = tmp_path / "socket"
    with served(f"unix:{path}", str(guest), cwd=tmp_path):
        text = gdb(script.format(path), guest, "gdb-multiarch")
    assert "set (i=i@entry=5, v=v@entry=55)" in text
    assert "Value returned is $2 = 56" in text
    assert "$3 = {44, 55, 22, 33}" in text


class Client:
    """A client that is no gdb."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        link.settimeout(60)

    def ask(self, body: bytes) -> bytes:
        self.link.sendall(packet(body))
        return self.answer()

    def answer(self) -> bytes:
        while (byte := self.link.recv(1)) != b"$":
            assert byte in (b"+", b"-"), byte
        body = bytearray()
        while (byte := self.link.recv(1)) != b"#":
            body += byte
        self.link.recv(2, socket.MSG_WAITALL)
        with suppress(BrokenPipeError):
            self.link.sendall(b"+")
        return unescaped(bytes(body))


def test_an_interrupt_stops_a_guest_that_runs(program: Path) -> None:
    path = program.with_name("spinning")
    with served(f"unix:{path}", str(program), "x", cwd=program.parent):
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(path))
            client = Client(link)
            assert b"qXfer:features:read+" in client.ask(b"qSupported:swbreak+")
            assert client.ask(b"QPassSignals:1e") == b"OK"  # SIGUSR1 as gdb counts
            link.sendall(packet(b"vCont;c"))
            link.sendall(INTERRUPT)
            stop = client.answer()
            assert stop.startswith((b"T02thread:", b"T05"))
            before = client.ask(b"g")
            assert len(before) > 1000
            assert client.ask(b"vCont;s:3e8").startswith(b"T05thread:")
        # It is there for the next one, who ends it.
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(str(path))
            client = Client(link)
            assert b"PacketSize" in client.ask(b"qSupported")
            assert client.ask(b"vKill;3e8") == b"OK"


def test_what_is_written_is_read_and_what_is_planted_is_not_seen() -> None:
    server = GdbServer(GuestConfig(SAMPLE))
    try:
        main = 0x400760
        text = server.answer(b"m400760,10")
        assert server.answer(b"Z0,400760,1") == b"OK"
        assert server.answer(b"vCont;c").startswith(b"T05swbreak:;thread:3e8;")
        assert server.answer(b"m400760,10") == text
        registers = server.answer(b"g")
        (rip,) = struct.unpack_from("<Q", bytes.fromhex(registers.decode()), 8 * 16)
        assert rip == main
        assert server.answer(b"p10") == struct.pack("<Q", main).hex().encode()
        assert server.answer(b"P1=8877665544332211") == b"OK"
        assert server.answer(b"p1") == b"8877665544332211"
        (stack,) = struct.unpack("<Q", bytes.fromhex(server.answer(b"p7").decode()))
        assert server.answer(b"M%x,2:abcd" % (stack - 64)) == b"OK"
        assert server.answer(b"X%x,3:" % (stack - 62) + b"\x01}#") == b"OK"
        assert server.answer(b"m%x,5" % (stack - 64)) == b"abcd017d23"
        assert server.answer(b"m10,4") == b"E0e"
        assert server.answer(b"z0,400760,1") == b"OK"
        assert server.answer(b"vCont;c") == b"W00"
        assert server.answer(b"g") == b"E.the program has ended"
        assert server.ended
    finally:
        server.close()


def test_words_and_gdb_stop_at_one_place_and_delete_each_their_own() -> None:
    server = GdbServer(GuestConfig(SAMPLE))
    said: list[bytes] = []

    def monitor(line: str) -> str:
        said.clear()
        server.put = said.append
        assert server.answer(b"qRcmd," + line.encode().hex().encode()) == b"OK"
        return "".join(bytes.fromhex(one[1:].decode()).decode() for one in said)

    def runs_on(packet: bytes = b"vCont;c") -> str:
        return server.answer(packet).decode().partition("thread")[0]

    try:
        assert "Breakpoint 1 at 0x400760" in monitor("break *0x400760")
        assert server.answer(b"Z0,400760,1") == b"OK"
        assert runs_on() == "T05swbreak:;"
        # A word deletes what a word has set, and gdb what is gdb's.
        monitor("delete")
        assert runs_on() == "T05swbreak:;"
        assert "Breakpoint" in monitor("break *0x400760")
        assert server.answer(b"z0,400760,1") == b"OK"
        assert runs_on() == "T05"
        monitor("disable")
        assert server.answer(b"Z0,400760,1") == b"OK"
        assert runs_on() == "T05swbreak:;"
        assert server.answer(b"z0,400760,1") == b"OK"
        (stack,) = struct.unpack("<Q", bytes.fromhex(server.answer(b"p7").decode()))
        assert server.answer(b"Z2,%x,8" % (stack - 8)) == b"OK"
        assert runs_on().startswith("T05watch:")
        monitor("delete")
        assert runs_on().startswith("T05watch:")
        assert server.answer(b"z2,%x,8" % (stack - 8)) == b"OK"
        assert runs_on() == "W00"
    finally:
        server.close()


def test_documents_come_in_pieces() -> None:
    server = GdbServer(GuestConfig(SAMPLE))
    try:
        whole, offset = b"", 0
        while True:
            piece = server.answer(b"qXfer:features:read:target.xml:%x,333" % offset)
            whole += unescaped(piece[1:])
            offset = len(whole)
            if piece[:1] == b"l":
                break
        assert whole.endswith(b"</target>\n")
        assert whole.count(b"<reg ") == len(server._registers)
        assert server.answer(b"qXfer:features:read:other.xml:0,10") == b"E16"
        assert b'id="3e8"' in server.answer(b"qXfer:threads:read::0,1000")
        assert server.answer(b"qXfer:exec-file:read:3e8:0,1000")[1:] == SAMPLE.encode()
        assert server.answer(b"vFile:open:" + SAMPLE.encode().hex().encode() + b",0,0") == b"F3"
        assert server.answer(b"vFile:pread:3,4,0") == b"F4;\x7fELF"
        assert server.answer(b"vFile:pread:9,4,0") == b"F-1,9"
        assert (
            server.answer(b"vFile:open:" + SAMPLE.encode().hex().encode() + b",1,0")[:3] == b"F-1"
        )
        said: list[bytes] = []
        server.put = said.append
        assert server.answer(b"qRcmd," + b"p 6*7".hex().encode()) == b"OK"
        assert bytes.fromhex(said[0][1:].decode()) == b"$1 = 42\n"
        for line in (b"p:demo/ack ackermann m=%di:u32", b"events 5"):
            assert server.answer(b"qRcmd," + line.hex().encode()) == b"OK"
        server.answer(b"vCont;c")
        said.clear()
        assert server.answer(b"qRcmd," + b"events 2".hex().encode()) == b"OK"
        assert [b"ack: (ackermann" in bytes.fromhex(one[1:].decode()) for one in said] == [
            True
        ] * 2
        assert server.answer(b"qRcmd," + b"continue".hex().encode()) == b"OK"
        assert b"behind gdb's back" in bytes.fromhex(said[-1][1:].decode())
    finally:
        server.close()


def test_backwards() -> None:
    server = GdbServer(GuestConfig(SAMPLE, history=True))

    def pc() -> int:
        return int(struct.unpack("<Q", bytes.fromhex(server.answer(b"p10").decode()))[0])

    def first_arguments() -> tuple[int, ...]:
        found = (server.answer(b"p%x" % number) for number in (5, 4))  # rdi, rsi
        return tuple(struct.unpack("<I4x", bytes.fromhex(one.decode()))[0] for one in found)

    try:
        assert b"ReverseContinue+" in server.answer(b"qSupported")
        start = pc()
        assert server.answer(b"Z0,400760,1") == b"OK"
        calls = []
        for _ in range(3):
            assert server.answer(b"vCont;c").startswith(b"T05swbreak:;")
            calls.append(first_arguments())
        assert len(set(calls)) == 3
        assert server.answer(b"bs").startswith(b"T05thread:")
        assert pc() == 0x400783  # the call of the third
        for wanted in (calls[1], calls[0]):
            assert server.answer(b"bc").startswith(b"T05swbreak:;")
            assert (pc(), first_arguments()) == (0x400760, wanted)
        assert server.answer(b"bc").startswith(b"T05replaylog:begin;")
        assert pc() == start
        assert server.answer(b"bs").startswith(b"T05replaylog:begin;")
        assert server.answer(b"z0,400760,1") == b"OK"
        assert server.answer(b"vCont;c").startswith(b"T05replaylog:end;")
        assert first_arguments() == calls[2]
        assert server.answer(b"vCont;c") == b"W00"
    finally:
        server.close()


def garbage(rng: random.Random) -> bytes:
    starts = (b"g", b"G", b"p", b"P", b"m", b"M", b"X", b"H", b"T", b"Z0,", b"z0,", b"Z2,",
              b"vCont;",
              b"vFile:open:", b"vFile:pread:", b"vFile:", b"q", b"qXfer:", b"qXfer:features:read:",
              b"qRcmd,", b"QPassSignals:", b"qThreadExtraInfo,", b"", b"v", b"!")  # fmt: skip
    alphabet = b"0123456789abcdef,;:=-" if rng.random() < 0.7 else bytes(range(256))
    return rng.choice(starts) + bytes(rng.choices(alphabet, k=rng.randrange(24)))


def test_garbage_has_an_answer_and_no_traceback() -> None:
    rng = random.Random(25)
    server = GdbServer(GuestConfig(SAMPLE, max_blocks=20_000))
    try:
        for _ in range(4000):
            body = garbage(rng)
            if body[:1] in (b"c", b"C") or body.startswith(b"vCont;c"):
                continue
            try:
                answer = server.answer(body)
            except LeaveError:
                continue
            assert isinstance(answer, bytes)
            assert not re.search(rb"[#$]", answer), body
        if not server.ended:
            assert server.answer(b"?")[:1] == b"T"
    finally:
        server.close()


def test_packets_come_in_any_pieces() -> None:
    rng = random.Random(1)
    bodies = [bytes(rng.choices(range(256), k=rng.randrange(40))) for _ in range(200)]
    bodies.insert(0, b"qSupported")
    stream = b"+++".join(packet(escaped(body)) for body in bodies)
    reader, found = PacketReader(), []
    while stream:
        size = rng.randrange(1, 9)
        found += list(reader.take(stream[:size]))
        stream = stream[size:]
    assert found == bodies
    assert set(reader.answers) == {b"+"}
    broken = PacketReader()
    assert broken.take(packet(b"?")) == [b"?"]
    assert broken.take(b"$abc#00$def#" + b"%02x" % (sum(b"def") & 255)) == [b"def"]
    assert list(broken.answers) == [b"+", b"-", b"+"]
    assert broken.take(b"+-\x03$g#67") == [INTERRUPT, b"g"]


SHELL = packet(b"qRcmd," + b"shell id".hex().encode())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "HTTP"),
        (b"POST /x HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n" + SHELL, "HTTP"),
        # A method may hold what a packet begins and ends with (RFC 9110, section 5.6.2).
        (b"$qSupported#37$k#6b / HTTP/1.1\r\n\r\n", "HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01", "bytes that begin"),
        (b"\r\n" + SHELL, "bytes that begin"),
        (INTERRUPT + packet(b"?"), "bytes that begin"),
        (SHELL, "first packet"),
        (b"$qSupported#00", "first packet"),
        (packet(b"qSupported") + b"junk" + SHELL, "bytes that begin"),
        (b"$" + bytes(1 << 21), "more than"),
    ],
)
def test_what_is_not_the_protocol_ends_it_and_none_of_it_is_taken(data: bytes, why: str) -> None:
    reader = PacketReader()
    with pytest.raises(ForeignBytesError, match=why) as caught:
        reader.take(data)
    assert caught.value.is_http is (why == "HTTP")
    # Later, too, behind packets that were good.
    reader = PacketReader()
    assert reader.take(packet(b"qSupported")) == [b"qSupported"]
    if why == "bytes that begin" and not data.startswith((b"$", INTERRUPT)):
        with pytest.raises(ForeignBytesError):
            reader.take(packet(b"g") + data)


WORDS_FOR_CLIENTS = (
    "print output x display undisplay whatis ptype backtrace frame up down disassemble info break"
    " tbreak hbreak thbreak rbreak dprintf skip watch rwatch awatch macro find vmmap printf catch"
    " tcatch handle delete clear enable disable condition ignore mark unmark diff compare-sections"
    " set unset show echo help apropos"
)


REFUSALS = "not for clients|behind gdb's back|[Uu]ndefined command|mbiguous|guest sees no"


def test_words_that_clients_may_say_are_these_and_no_others(tmp_path: Path) -> None:
    """A word that is new is closed to them until somebody has thought of it."""
    server = GdbServer(GuestConfig(SAMPLE))
    said: list[bytes] = []
    server.put = said.append
    secret, victim = tmp_path / "secret", tmp_path / "victim"
    secret.write_text("echo leaked\n")

    def monitor(line: str) -> str:
        said.clear()
        assert server.answer(b"qRcmd," + line.encode().hex().encode()) == b"OK"
        return "".join(bytes.fromhex(one[1:].decode()).decode() for one in said)

    try:
        words = server._interpreter.words
        assert [word.names[0] for word in words.all if word.remote] == WORDS_FOR_CLIENTS.split()
        assert [word.names[0] for word in words.info if not word.remote] == ["source"]
        assert [word.names[0] for word in words.settings if not word.remote] == [
            "args", "inferior-tty", "substitute-path",
        ]  # fmt: skip
        refused = (
            *(word.names[0] for word in words.all if not word.remote),
            "! touch {victim}",
            "shell touch {victim}",
            "she touch {victim}",
            "source {secret}",
            "gcore {victim}",
            "record save {victim}",
            "set args > {victim}",
            "set inferior-tty {victim}",
            "set tty {victim}",
            "tty {victim}",
            "define x",
            "document x",
            "commands",
            "while 1",
            "if 1",
            "list",
            "list 1",
            "info source",
            "thread apply all -- shell touch {victim}",
            "frame apply all shell touch {victim}",
            "faas shell touch {victim}",
            "taas shell touch {victim}",
            "tfaas shell touch {victim}",
            "with print pretty on -- shell touch {victim}",
            "pipe p 1 | touch {victim}",
            "| p 1 | touch {victim}",
            "alias harmless = shell",
            "dump memory {victim} $sp $sp+8",
            "dump value {victim} 1",
            "append value {victim} 1",
            "restore {secret} binary $sp",
            "save breakpoints {victim}",
            "directory /",
            "set substitute-path / /etc",
            "forward-search root",
            "search root",
            "reverse-search root",
            "run > {victim}",
            "quit",
            "write x {victim}",
            "export {victim}",
            "handlers {secret}",
            "p:a/b {secret}:0",
        )
        for line in refused:
            text = monitor(line.format(victim=victim, secret=secret))
            assert text, line
            assert "leaked" not in text
            assert re.search(
                "not for clients|behind gdb's back|[Uu]ndefined command|mbiguous|guest sees no",
                text,
            ), (line, text)
        assert not victim.exists()
        assert server._control.config.args == ()
        assert server._control.config.tty == ""
        assert "shell" in monitor("help shell")
        assert monitor("set var $rax = 7") == ""
        assert monitor("p $rax") == "$1 = 7\n"
        assert monitor("set env A=b") == ""
        assert "A=b" in monitor("show env")
        assert server.answer(b"vRun;") == b"T05thread:3e8;core:0;"
        assert "A=b" in monitor("show env")
    finally:
        server.close()


def test_lines_of_source_stay_on_the_host(program: Path) -> None:
    """The guest names these files; a client could have it name any."""
    server = GdbServer(GuestConfig(str(program)))
    said: list[bytes] = []
    server.put = said.append
    try:
        assert server.answer(b"qRcmd," + b"break main".hex().encode()) == b"OK"
        assert server.answer(b"vCont;c").startswith(b"T05")
        said.clear()
        assert server.answer(b"qRcmd," + b"frame".hex().encode()) == b"OK"
        text = bytes.fromhex(said[-1][1:].decode()).decode()
        assert re.fullmatch(r"\d+\tin .*served\.c\n", text)
    finally:
        server.close()


@contextmanager
def listener() -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """A server on a port; ended in any case."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tui", "serve", "--gdb", "127.0.0.1:0", SAMPLE],
        env={**os.environ, **SAME_CODE}, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        found = re.search(r"listening on 127\.0\.0\.1:(\d+)", line)
        assert found, line
        yield int(found[1]), server
    finally:
        server.kill()
        server.communicate()


def test_a_browser_and_strange_bytes_are_sent_away_and_told(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    shell = packet(b"qRcmd," + f"shell touch {victim}".encode().hex().encode())
    request = b"POST / HTTP/1.1\r\nContent-Type: text/plain\r\n\r\n" + shell
    with listener() as (port, server):
        assert server.stderr is not None
        for data, told_, answered in (
            (request, "HTTP", b"HTTP/1.1 403"),
            (shell, "first packet", b""),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
                link.sendall(data)
                got = b""
                with suppress(ConnectionResetError):
                    while piece := link.recv(4096):
                        got += piece
            assert got.startswith(answered)
            assert b"$" not in got
            assert told_ in server.stderr.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as link:
            client = Client(link)
            assert b"PacketSize" in client.ask(b"qSupported")
            assert client.ask(b"vKill;3e8") == b"OK"
        assert server.wait(60) == 0
    assert not victim.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_client_of_another_user_is_sent_away(tmp_path: Path) -> None:
    victim = Path(f"/tmp/kprobe-tui-{os.getpid()}.victim")
    shell = packet(b"qRcmd," + f"shell touch {victim}".encode().hex().encode())
    stranger = (
        "import os, socket, sys\n"
        "os.setgid(65534); os.setuid(65534)\n"
        "link = socket.socket()\n"
        "link.settimeout(60)\n"
        "link.connect(('127.0.0.1', int(sys.argv[1])))\n"
        "try:\n"
        "    link.sendall(bytes.fromhex(sys.argv[2])); sys.exit(len(link.recv(100)))\n"
        "except (ConnectionResetError, BrokenPipeError):\n"
        "    pass\n"
    )
    data = packet(b"qSupported") + shell
    with listener() as (port, server):
        assert server.stderr is not None
        command = [sys.executable, "-c", stranger, str(port), data.hex()]
        assert subprocess.run(command, check=False, timeout=60).returncode == 0
        assert "was sent away: this server is for user root" in server.stderr.readline()
    assert not victim.exists()


def test_a_client_that_says_nothing_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.serve.connection._PATIENCE", 0.2)
    server, told_ = GdbServer(GuestConfig(SAMPLE)), list[str]()
    try:
        for sent in (b"", b"+", b"$qSupp"):
            ours, theirs = socket.socketpair()
            with ours:
                ours.sendall(sent)
                connection = GdbConnection(SocketLink(theirs), server, told_.append)
                assert connection.serve() is None
                assert not connection.begun
                assert ours.recv(100) == b""
        assert len(told_) == 3
        assert all("said nothing" in text for text in told_)
    finally:
        server.close()


def test_the_kernel_tells_who_has_connected() -> None:
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            server = socket.create_server((host, 0), family=family)
        except OSError:
            continue  # a machine without IPv6
        with server, socket.create_connection(server.getsockname()[:2]) as client:
            link, _ = server.accept()
            with link:
                assert peer_user(link) == os.geteuid()
                assert peer_user(client) == os.geteuid()
                client.close()
                assert peer_user(link) is None  # listed as user 0, which it need not be
    one, other = socket.socketpair()
    with one, other:
        assert peer_user(one) == os.geteuid()


STDIO = """
set confirm off
set sysroot /
set remotetimeout 3
target remote | sleep {late}; {python} -m tui serve --gdb stdio {guest}
break set if i == 5
continue
print table
monitor print 6 * 7
monitor shell id
delete
handle SIGUSR1 nostop noprint
continue
"""


@pytest.mark.slow
@pytest.mark.parametrize("late", [0, 7])
def test_gdb_starts_the_server_itself_and_shows_what_the_guest_writes(
    program: Path, late: int
) -> None:
    """Where the server is late, gdb sends its first packet again, which has one answer still."""
    source = PROGRAM.replace(
        "return 7;", 'puts("out");fprintf(stderr, "err %d\\n", getchar());return 7;'
    )
    guest = build(program.parent, "piped", source, "-O1", "-g", "-pthread")
    text = gdb(STDIO.format(python=sys.executable, guest=guest, late=late), guest)
    assert "$1 = {44, 11, 22, 33}" in text
    assert "$1 = 42" in text
    assert '"shell" is not for clients' in text
    assert "out\n" in text
    assert "err -1\n" in text
    assert "exited with code 07" in text


def test_over_pipes_output_comes_as_packets_and_the_end_of_input_ends_it(program: Path) -> None:
    command = [sys.executable, "-m", "tui", "serve", "--gdb", "stdio", SAMPLE]
    data = b"".join(map(packet, (b"qSupported", b"QStartNoAckMode", b"vCont;c")))
    server = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, **SAME_CODE},
    )  # fmt: skip
    with server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(data)
        server.stdin.flush()
        answers = b""
        while not re.search(rb"\$W..#..", answers):
            piece = os.read(server.stdout.fileno(), 1 << 16)
            assert piece, answers
            answers += piece
        server.stdin.close()
        errors = server.stderr.read()
    native = subprocess.run([SAMPLE], capture_output=True, check=False)
    pieces = [unescaped(one) for one in re.findall(rb"\$([^#]*)#", answers)]
    shown = b"".join(
        bytes.fromhex(one[1:].decode()) for one in pieces if one[:1] == b"O" and one != b"OK"
    )
    assert shown == native.stdout
    assert pieces[-1] == b"W%02x" % native.returncode
    assert server.returncode == native.returncode
    assert errors == b""
    foreign = subprocess.run(
        command, input=b"hello", capture_output=True, check=False, timeout=120,
        env={**os.environ, **SAME_CODE},
    )  # fmt: skip
    assert b"not gdb's protocol" in foreign.stderr


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0.0.0.0:1", "listens on 127.0.0.1"),
        ("[::]:1", "listens on 127.0.0.1"),
        ("example.com:7", "listens on 127.0.0.1"),
        ("nothing", "not of the form"),
        ("127.0.0.1:99999", "not of the form"),
        ("unix:/nowhere/at/all", "No such file"),
    ],
)
def test_addresses_that_are_refused(text: str, why: str) -> None:
    with pytest.raises(CommandError, match=why):
        listening(text)


def test_a_socket_file_is_this_users_and_a_dead_one_goes(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first, _ = listening(f"unix:{path}")
    assert path.stat().st_mode & 0o77 == 0
    with pytest.raises(CommandError, match="in use"):
        listening(f"unix:{path}")
    first.close()
    again, where = listening(f"unix:{path}")
    assert where == f"unix:{path}"
    again.close()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CommandError, match="in use"):
        listening(f"unix:{tmp_path / 'file'}")
