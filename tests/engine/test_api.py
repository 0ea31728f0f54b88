"""The engine for programs of others: what the handbook shows, `engine.__all__` promises."""

import re
from pathlib import Path

import pytest
from compiled import build
from sysroot import CHECKOUT

import engine

SAMPLES = CHECKOUT / "samples" / "bin"
EVENT = {
    "x86_64": "p:demo/ack ackermann m=%di:u32 n=%si:u32",
    "aarch64": "p:demo/ack ackermann m=%x0:u32 n=%x1:u32",
}


@pytest.mark.parametrize("arch", EVENT)
def test_a_guest_probed_run_and_looked_at(arch: str) -> None:
    with engine.open_guest(str(SAMPLES / arch / "recursion")) as guest:
        assert guest.arch == arch
        guest.place(EVENT[arch])
        guest.stop_at("factorial")
        stop = guest.run()
        assert stop.hit
        assert not stop.ended
        assert stop.location == "factorial+0x0"
        frames = guest.backtrace()
        assert [frame.function for frame in frames][:2] == ["factorial", "main"]
        assert frames[1].file.endswith("recursion.c")
        assert list(guest.events()) == []
        argument = "rdi" if arch == "x86_64" else "x0"
        assert guest.registers[argument] == 20
        code = guest.read(stop.pc, 8)
        assert (SAMPLES / arch / "recursion").read_bytes().count(code) >= 1
        guest.set_register(argument, 3)
        assert guest.step().pc != stop.pc
        stack = guest.registers["rsp" if arch == "x86_64" else "sp"] - 256
        guest.write(stack, b"abc")
        assert guest.read(stack, 3) == b"abc"
        assert guest.command("print 6 * 7") == "$1 = 42\n"
        guest.stop_at("factorial")
        end = guest.run()
        assert end.ended
        assert end.exit_code == 0
        assert guest.output.startswith(b"factorial(20) = 6\n")
        assert guest.errors == b""
        events = list(guest.events())
        assert len(events) == 20
        first = events[0]
        assert (first.group, first.name, first["m"], first["n"]) == ("demo", "ack", 2, 3)
        assert re.fullmatch(r"ackermann\+0x0/0x[0-9a-f]+", first.symbol)
        assert [event.time for event in events] == sorted(event.time for event in events)
        assert list(guest.events()) == []
        with pytest.raises(engine.KprobeTuiError, match="has ended"):
            guest.run()


def test_streams_and_errors() -> None:
    with engine.open_guest("/bin/cat", stdin=b"some\nlines\n") as guest:
        assert guest.run().exit_code == 0
        assert guest.output == b"some\nlines\n"
    with engine.open_guest("/bin/cat", "/no/such/file") as guest:
        assert guest.run().exit_code == 1
        assert b"No such file" in guest.errors
        with pytest.raises(engine.KprobeTuiError, match="cannot be read"):
            guest.read(16, 4)
    with pytest.raises(engine.KprobeTuiError):
        engine.open_guest("/no/such/program")
    with (
        engine.open_guest(str(SAMPLES / "x86_64" / "recursion")) as guest,
        pytest.raises(engine.KprobeTuiError, match="instruction boundary"),
    ):
        guest.place("p fibonacci+1")


def test_signals_stop_first(tmp_path: Path) -> None:
    text = "int main(void) { return *(volatile int *)8; }"
    with engine.open_guest(str(build(tmp_path, "crash", text))) as guest:
        stop = guest.run()
        assert (stop.signal, stop.ended) == (11, False)
        end = guest.run()
        assert (end.ended, end.exit_code) == (True, 128 + 11)


def test_what_is_promised_is_there() -> None:
    assert all(getattr(engine, name).__doc__ for name in engine.__all__)
    with pytest.raises(AttributeError):
        _ = engine.nothing
