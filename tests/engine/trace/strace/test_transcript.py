"""Lines of several threads in one stream."""

from engine.trace.strace.names import signal_mask, signal_name
from engine.trace.strace.quoting import quoted
from engine.trace.strace.signalargs import signal_info
from engine.trace.strace.transcript import CallTranscript


def test_lines_are_interrupted_and_resumed() -> None:
    found: list[str] = []
    transcript = CallTranscript(found.append, lambda thread: f"[pid {thread}] ", 20)
    transcript.begin(1, "read(3, ")
    transcript.begin(2, "close(3")
    transcript.end(2, "close", ")", "0")
    transcript.end(1, "read", '"x", 1)', "1")
    transcript.begin(1, "pause(")
    transcript.line(2, "+++ exited with 0 +++")
    transcript.close()
    assert "".join(found) == (
        "[pid 1] read(3,  <unfinished ...>\n"
        "[pid 2] close(3)    = 0\n"
        '[pid 1] <... read resumed>"x", 1) = 1\n'
        "[pid 1] pause( <unfinished ...>\n"
        "[pid 2] +++ exited with 0 +++\n"
    )


def test_bytes_in_quotes() -> None:
    assert quoted(b'a"\\\n\t\x001\x7f\xff') == '"a\\"\\\\\\n\\t\\0001\\177\\377"'
    assert quoted(b"a\xff", 1) == '"\\x61\\xff"'
    assert (quoted(b"ab", 1), quoted(b"ab", 2)) == ('"ab"', '"\\x61\\x62"')


def test_signals_by_name() -> None:
    assert [signal_name(number) for number in (11, 32, 34, 65)] == [
        "SIGSEGV", "SIGRTMIN", "SIGRT_2", "65"
    ]  # fmt: skip
    assert signal_mask((1 << 1 | 1 << 16).to_bytes(8, "little")) == "[INT CHLD]"
    assert signal_mask(((1 << 64) - 1 - 0x100).to_bytes(8, "little")) == "~[KILL]"


def test_siginfo() -> None:
    fault = (11).to_bytes(8, "little") + (1).to_bytes(8, "little") + (0x10).to_bytes(8, "little")
    assert signal_info(fault) == "{si_signo=SIGSEGV, si_code=SEGV_MAPERR, si_addr=0x10}"
