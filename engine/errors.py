"""All errors the engine raises on purpose.

Each carries text for the user and a class-level `hint`: the way out.
Control flow ("not mine", "end of stack", a guest's errno) never uses these.
"""

from typing import ClassVar, Final

from engine.escaping import escaped

TIMED_OUT: Final = "stopped: the time limit (--timeout) ran out"


class KprobeTuiError(Exception):
    """Root of all errors of the engine; front ends show it without a traceback.

    Attributes:
        before: lines of a remark that may explain it, to be shown before it.
    """

    hint: ClassVar[str] = ""
    before: tuple[str, ...] = ()


class SourceError(KprobeTuiError):
    """A text of the user's is wrong; the error's own text shows the places, line by line."""


class ImageError(KprobeTuiError):
    """The ELF file cannot be loaded: damaged, not ELF, or for an unsupported machine."""

    hint = "readelf -lW FILE shows what the file claims"


class ModuleKernelError(ImageError):
    """A kernel module needs the image of its kernel, and has none or that of another."""

    hint = "--kernel FILE names the image of the module's kernel"


class NotElfError(ImageError):
    """The file is something else altogether: a script, text, a directory."""

    hint = ""


class GuestFaultError(KprobeTuiError):
    """The engine touched guest memory that is not there.

    Attributes:
        address: first guest address that could not be accessed.
        access: "read", "write" or "execute".
    """

    def __init__(self, address: int, access: str) -> None:
        super().__init__(f"cannot {access} guest memory at {address:#x}")
        self.address = address
        self.access = access


class CommandError(KprobeTuiError):
    """A command or option cannot be carried out as given."""


class ProbeError(KprobeTuiError):
    """A probe cannot be placed or changed."""


class ProbeSyntaxError(ProbeError):
    """A definition that the kernel's parser refuses, with the place.

    Attributes:
        code: the kernel's id of the error ("BAD_REG_NAME").
        text: its words.
        command: the definition as the kernel's error_log shows it.
        column: column of the caret in it, from 0.
        subsystem: "trace_kprobe", "trace_uprobe", ...
        why: what we know beyond the kernel's words, "" if nothing.
        errno: name of the error that the writer of the line gets.
    """

    def __init__(self, code: str, text: str, command: str, column: int, subsystem: str) -> None:
        before = command.encode(errors="surrogateescape")[:column].decode(errors="surrogateescape")
        caret = " " * (column + len(escaped(before)) - len(before)) + "^"
        lines = f"{subsystem}: error: {text}", f"  Command: {escaped(command)}"
        super().__init__("\n".join((*lines, f"           {caret}")))
        self.code = code
        self.text = text
        self.command = command
        self.column = column
        self.subsystem = subsystem
        self.why = ""
        self.errno = "EINVAL"

    def explain(self, why: str) -> None:
        """Add what the kernel does not say."""
        self.why = why

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\n  {escaped(self.why)}" if self.why else text


class UnloggedError(ProbeError):
    """A definition that the kernel refuses without an entry in error_log.

    Attributes:
        errno: name of the error that the writer of the line gets.
    """

    def __init__(self, text: str, errno: str = "EINVAL") -> None:
        super().__init__(f"{text} ({errno})")
        self.errno = errno


class ProbeRejectedError(ProbeError):
    """No probe can stand at a place.

    Attributes:
        address: the guest address (link address where the file is not mapped yet).
        reason: why, in words.
        errno: name of the error the kernel gives ("EILSEQ").
        rule: id of the rule that refused.
    """

    hint = "'kprobe-tui check' shows what each place would take"

    def __init__(self, address: int, reason: str, errno: str = "EINVAL", rule: str = "") -> None:
        super().__init__(f"no probe at {address:#x}: {reason} ({errno})")
        self.address = address
        self.reason = reason
        self.errno = errno
        self.rule = rule


class CutOff(BaseException):
    """The user ends the run, and the engine's thread was in the middle of something.

    Attributes:
        code: the process exit code that stands for it.
    """

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class EngineError(KprobeTuiError):
    """The engine itself failed: a defect of ours or of the emulator, never of the guest."""

    hint = "please report it with the guest and --debug output"


def take_nothing(name: str, rest: str) -> None:
    """Refuse what stands behind a word that takes nothing; raises `CommandError` as gdb has it."""
    if rest:
        raise CommandError(f'The "{name}" command does not take any arguments.')
