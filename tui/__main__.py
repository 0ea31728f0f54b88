"""The `kprobe-tui` command: a subcommand runs headless, else the terminal interface opens."""

import sys


def main() -> None:
    """Entry point of the console script."""
    from engine.cli import main as run_command

    sys.exit(run_command(sys.argv[1:]))


if __name__ == "__main__":
    main()
