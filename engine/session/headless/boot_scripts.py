"""Boots with scripts of bpftrace, and lists of what scripts can be attached to in a kernel."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec.structs import replace

from engine.errors import CommandError, ProbeError
from engine.machine.machine import BootEnd, MachineEnd
from engine.session.booted.script.attached_boot import AttachedBootScript, CheckedBoot
from engine.session.booted.script.kernel_listing import KernelListing
from engine.session.guest.outputs import OutputFiles
from engine.session.headless.bootable import bootable
from engine.session.headless.booting import BEGAN, Booted
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.kernels import BootRequest, KernelChoice
from engine.session.protocol.report import Report
from engine.session.protocol.scripts import BootScriptRequest
from engine.session.tracing.script.output import ScriptSink
from engine.session.tracing.script.script_source import script_source

Write = Callable[[bytes], object]


class ScriptedBoot:
    """A machine with a script attached, before its first instruction.

    Attributes:
        booted: the machine.
    """

    def __init__(self, booted: Booted, script: AttachedBootScript) -> None:
        """Take what belongs together; `opened_boot_script` makes it."""
        self.booted = booted
        self._script = script

    @property
    def incomplete(self) -> bool:
        """True if the output could not take all of what the script prints."""
        return self._script.incomplete

    @property
    def exit_code(self) -> int | None:
        """The code of the script's exit(); None if it has called none."""
        return self._script.run.code & 0xFF if self._script.run.over else None

    def run(self) -> MachineEnd:
        """Run the machine to its end, or to where the script ends it, then the script's own.

        Raises:
            CommandError: a file that the run writes cannot be created.
        """
        self._script.begin()
        try:
            end = self.booted.run()
        finally:
            over = self._script.run.over
            self._script.finish()
        return replace(end, reason=BootEnd.OFF) if over else end

    def remarks(self) -> list[Report]:
        """Remarks about the run, once it is over."""
        return self._script.remarks()


@contextmanager
def opened_boot_script(
    boot: BootRequest,
    request: BootScriptRequest,
    put: Callable[[bytes], None],
    stdin: int | None,
    write: Write,
    write_error: Write,
) -> Iterator[ScriptedBoot]:
    """The machine of a request with its script attached, closed at the end.

    Args:
        boot: what is booted.
        request: the script.
        put: takes what the console writes.
        stdin: the descriptor of the console's input; None for none.
        write: takes what the script prints, where no file is named.
        write_error: takes its warnings.

    Raises:
        WrongScriptError: the script is wrong.
        ImageError: the kernel cannot be booted.
        CommandError: the output cannot be written.
    """
    text, tree = script_source(request.name, request.text, request.parameters)
    parts = bootable(boot)
    opened = OpenedKernel(parts.kernel, request.kernel)
    script = CheckedBoot(opened, request, text, tree, parts.files)
    outputs = OutputFiles(boot.kernel, *filter(None, (boot.initrd, boot.init)), *boot.disks)
    try:
        sink = ScriptSink(outputs, request.output, write, write_error)
        booted = Booted(parts.with_words(script.words(boot.append)), put, stdin)
        began = int(BEGAN.timestamp()) * 10**9
        attached = AttachedBootScript(script, booted.machine, sink, request, began)
        outputs.create()
        yield ScriptedBoot(booted, attached)
    finally:
        outputs.close()  # the machine stays: where a command is cut off it still runs


def list_kernel_probes(
    boot: BootRequest, choice: KernelChoice, patterns: Sequence[str], *, verbose: bool
) -> Iterator[str]:
    """List the probes of a kernel that is booted, line by line.

    Args:
        boot: the image, and the files of the system that it boots.
        choice: the rules that places are judged by.
        patterns: as attach points are written, with globs; "" for all but functions; see
            `bpftrace.list_probes`.
        verbose: arguments follow.

    Raises:
        ImageError: the kernel cannot be booted.
        CommandError: there is no provider of that name.
    """
    parts = bootable(boot)
    listing = KernelListing(OpenedKernel(parts.kernel, choice), parts.files)
    for pattern in patterns:
        try:
            yield from listing.lines(pattern, verbose=verbose)
        except ProbeError as error:
            raise CommandError(f"-l {pattern}: {error}") from error
