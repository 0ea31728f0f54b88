"""Opens the interface: the guest's, or first the picker of samples."""

from engine.cli.interface import InterfaceOptions
from engine.errors import CommandError
from tui.app import KprobeApp


def start(options: InterfaceOptions) -> int:
    """Run the interface to its end; the exit code.

    Raises:
        ImageError: the guest cannot be run.
        CommandError: an option cannot be carried out.
    """
    if options.config is None:
        raise CommandError("no GUEST given")
    app = KprobeApp(
        options.config,
        definitions=options.definitions,
        kernel_rules=options.kernel_rules,
        ascii_only=options.ascii_only,
    )
    result = app.run()
    return result if isinstance(result, int) else 0
