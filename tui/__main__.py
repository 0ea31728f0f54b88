"""The `kprobe-tui` command: a subcommand runs headless, else the terminal interface opens."""

import sys

from engine.cli import main as run_command
from engine.cli.interface import InterfaceOptions


def main() -> None:
    """Entry point of the console script."""
    sys.exit(run_command(sys.argv[1:], open_interface))


def open_interface(options: InterfaceOptions) -> int:
    """Open the terminal interface; the exit code."""
    from tui.start import start  # Textual takes a quarter of a second to import

    return start(options)


if __name__ == "__main__":
    main()
