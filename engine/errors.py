"""All errors the engine raises on purpose.

Each carries text for the user and a class-level `hint`: the way out.
Control flow ("not mine", "end of stack", a guest's errno) never uses these.
"""

from typing import ClassVar


class KprobeTuiError(Exception):
    """Root of all errors of the engine; front ends show it without a traceback."""

    hint: ClassVar[str] = ""


class ImageError(KprobeTuiError):
    """The ELF file cannot be loaded: damaged, not ELF, or for an unsupported machine."""

    hint = "readelf -lW FILE shows what the file claims"


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


class EngineError(KprobeTuiError):
    """The engine itself failed: a defect of ours or of the emulator, never of the guest."""

    hint = "please report it with the guest and --debug output"
