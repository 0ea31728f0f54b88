"""Scripts of gdb's words, carried out in this process."""

from contextlib import nullcontext

from engine.arch.plan import Mode
from engine.session.debugger.interpreter import batch
from engine.session.protocol.config import GuestConfig


def said(config: GuestConfig, *lines: str) -> str:
    """What gdb's words print; a complaint stands in its place behind "! "."""
    out: list[str] = []
    batch(
        config,
        [("command", line) for line in lines],
        out.append,
        lambda text: out.append(f"! {text}\n"),
        Mode.KERNEL,
        lambda session, halt: nullcontext(),
    )
    return "".join(out)
