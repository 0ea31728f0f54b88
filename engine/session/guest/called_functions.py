"""Functions of a kernel image that are called: what they are served, what is told of them."""

from collections.abc import Callable

from engine.arch.plan import Mode
from engine.errors import ProbeRejectedError
from engine.escaping import escaped
from engine.linux.thread import Thread
from engine.probes.kprobe import Kprobe
from engine.probes.manager import ProbeManager
from engine.probes.regs import PtRegs
from engine.session.kernel.call_results import CallResult
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.services import KernelServices, Service
from engine.session.kernel.supervisor import KernelSupervisor


class ServedFunction(Kprobe):
    """A probe at a function that is served in place of its own code; nobody has asked for it."""

    machinery = True

    __slots__ = ("_service",)

    def __init__(self, address: int, name: str, service: Service) -> None:
        """Serve a function.

        Args:
            address: of its first instruction.
            name: of it.
            service: does its work.
        """
        super().__init__(addr=address, pre_handler=self._hit, mode=Mode.KERNEL, name=name)
        self._service = service

    def _hit(self, probe: Kprobe, regs: PtRegs) -> int:
        return int(self._service())


class CalledFunctions:
    """The calls of one run: serves what they lack, and tells of them on the guest's output."""

    def __init__(
        self, opened: OpenedKernel, supervisor: KernelSupervisor, manager: ProbeManager
    ) -> None:
        """Plant what serves.

        Args:
            opened: the image.
            supervisor: of the calls.
            manager: of probes in it.
        """
        self._supervisor = supervisor
        for address, name, service in KernelServices(opened, supervisor).all():
            try:
                manager.register(ServedFunction(address, name, service))
            except ProbeRejectedError:
                continue  # as code that was freed: nobody gets there

    def speak(self, thread: Thread) -> None:
        """Have results, and what the kernel prints, written to a thread's standard output."""

        def write(line: str) -> None:
            file = thread.files.peek(1)
            if file is not None:
                file.write(f"{line}\n".encode("utf-8", "replace"))

        def tell(result: CallResult) -> None:
            for line in result.lines():
                write(escaped(line))

        self._supervisor.returned = tell
        self._supervisor.print = lambda line: write(f"printk: {escaped(line)}")

    def end_with(self, thread: Thread, failed: Callable[[str], object]) -> None:
        """Have the run end with the last call, and with one that fails.

        Args:
            thread: that runs the calls.
            failed: told why a call has failed, as it stands there.
        """

        def fail(why: str) -> None:
            failed(why)
            thread.process.finish(1)

        self._supervisor.idle = lambda: thread.process.finish(0)
        self._supervisor.failed = fail
