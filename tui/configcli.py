"""`kprobe-tui config`: where the settings are, what they are, a file to begin with.

Imports wait until a command runs: the list of subcommands must not cost Textual's import.
"""

import click


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def config() -> None:
    """Settings of the terminal interface: where, what, a file to begin with."""


@config.command()
def path() -> None:
    """Print the file of settings."""
    from tui.settings import settings_path

    click.echo(str(settings_path()))


@config.command()
def show() -> None:
    """Print what is in force."""
    from tui.keymap import ACTIONS
    from tui.settings import load_settings

    settings = load_settings()
    click.echo(f"theme  {settings.theme or 'textual-dark'}")
    click.echo(f"ascii  {str(settings.ascii).lower()}")
    for action in ACTIONS:
        keys = settings.keys.get(action.id, action.keys)
        click.echo(f"{keys:<28} {action.id:<16} {action.help}")


@config.command()
def init() -> None:
    """Write a file of settings with everything in it, commented out."""
    from tui.settings import write_template

    click.echo(str(write_template()))
