"""Serves a booted machine to gdb."""

from collections.abc import Callable

from engine.errors import CommandError
from engine.session.headless.booting import Booted, BootRequest
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import KernelChoice
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
) -> int:
    """Serve a machine to gdb, one client after another; the exit code.

    Args:
        request: what is booted.
        address: see `listening`.
        put: takes what the console writes.
        stdin: descriptor of the console's input.
        tell: takes what the user should know.
        past: gdb may go backwards.

    Raises:
        KprobeTuiError: the kernel cannot be booted, or nobody could reach the address.
    """
    if address == STDIO:
        raise CommandError(
            "--gdb stdio: the console of a machine is on stdin and stdout; give gdb an address:"
            " --gdb 127.0.0.1:PORT or unix:PATH"
        )

    def make() -> MachineServer:
        booted = Booted(request, put, stdin, repeats=past)
        return MachineServer(booted, OpenedKernel(booted.kernel, KernelChoice()), tell, past=past)

    return serve_at(address, make, tell)
