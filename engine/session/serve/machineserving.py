"""Serves a booted machine to gdb."""

from collections.abc import Callable, Sequence

from engine.errors import CommandError
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import BootRequest, KernelChoice
from engine.session.serve.machineserver import MachineServer
from engine.session.serve.serving import STDIO, Tell, serve_at


def serve_machine(
    request: BootRequest,
    address: str,
    put: Callable[[bytes], None],
    stdin: int | None,
    tell: Tell,
    *,
    past: bool,
    catches: Sequence[str] = (),
) -> int:
    """Serve a machine to gdb, one client after another; the exit code.

    Args:
        request: what is booted.
        address: see `listening`.
        put: takes what the console writes.
        stdin: descriptor of the console's input.
        tell: takes what the user should know.
        past: gdb may go backwards.
        catches: what the machine stops at by itself.

    Raises:
        KprobeTuiError: the kernel cannot be booted, or nobody could reach the address.
    """
    if address == STDIO:
        raise CommandError(
            "--gdb stdio: the console of a machine is on stdin and stdout; give gdb an address:"
            " --gdb 127.0.0.1:PORT or unix:PATH"
        )

    def make() -> MachineServer:
        booted = Booted(bootable(request), put, stdin, repeats=past)
        if booted.damage:
            tell(booted.damage)
        opened = OpenedKernel(booted.kernel, KernelChoice())
        return MachineServer(booted, opened, tell, past=past, catches=catches)

    return serve_at(address, make, tell)
