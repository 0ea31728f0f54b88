"""Help texts of commands: their commonest uses in front, options in groups."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import click
import pytest
from guestrun import run

from engine.cli import COMMANDS
from engine.cli.grouped import Group, GroupedCommand, GroupedOption
from engine.cli.interface import interface
from engine.cli.main import cli

ROOT = Path(__file__).parents[2]


def command_of(name: str) -> GroupedCommand:
    found = getattr(import_module(f"engine.cli.{name}"), name)
    assert isinstance(found, GroupedCommand)
    return found


USES = [(name, words) for name in COMMANDS for _, words in command_of(name).uses]
RUNNING = ("run", "trace", "graph", "bt", "check", "diff", "disasm", "record")
QUICK = [(name, words) for name, words in USES if "samples/bin" in words and name in RUNNING]
"""Commands whose examples need nothing but the checkout."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_text_begins_with_three_uses(name: str) -> None:
    command = command_of(name)
    assert len(command.uses) == 3
    parent = click.Context(cli, info_name="kprobe-tui", terminal_width=80)
    text = click.Context(command, info_name=name, parent=parent).get_help()
    lines = text.splitlines()
    assert lines[0].startswith(f"Usage: kprobe-tui {name}")
    heads = [at for at, line in enumerate(lines) if line[:1].strip() and line.endswith(":")]
    purposes = [f"  {purpose}:" for purpose, _ in command.uses]
    assert [line for line in lines if line in purposes] == purposes
    assert lines.index(purposes[-1]) < heads[0]
    # An example is one command for a shell, also where it goes on in another line.
    shown = re.findall(r"(?m)^    (kprobe-tui .*)", text.replace("\\\n", ""))[:3]
    assert [shlex.split(line) for line in shown] == [
        shlex.split(f"kprobe-tui {name} {words}") for _, words in command.uses
    ]
    assert all(len(line) <= 80 for line in lines[: heads[0]])


@pytest.mark.parametrize("command", [*map(command_of, COMMANDS), interface], ids=lambda c: c.name)
def test_every_option_has_a_group(command: click.Command) -> None:
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert isinstance(parameter, GroupedOption), parameter.name
            assert isinstance(parameter.group, Group)


def test_groups_are_sections_in_their_order() -> None:
    text = run("trace", "--help", cwd=ROOT).out
    heads = re.findall(r"(?m)^(\S.*):$", text)
    assert heads == [str(group) for group in Group if group not in (Group.WORKERS, Group.PERF)]
    sections = dict(zip(heads, re.split(r"(?m)^\S.*:$", text)[1:], strict=True))
    for group, option in (
        ("Events and probes", "-e DEF"),
        ("Output", "--format"),
        ("Guest", "--root DIR"),
        ("Limits", "--memory SIZE"),
        ("Kernel images", "--debug-file"),
    ):
        assert f"\n  {option}" in sections[group]


@pytest.mark.parametrize(("name", "words"), USES)
def test_a_use_is_a_command_line(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "help":
        return
    monkeypatch.chdir(ROOT)
    context = click.Context(cli, info_name="kprobe-tui")
    with command_of(name).make_context(name, shlex.split(words), parent=context):
        pass


@pytest.mark.slow
@pytest.mark.parametrize(("name", "words"), QUICK)
def test_a_use_works(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    done = run(name, *shlex.split(words), cwd=tmp_path)
    assert done.code == 0, done.err
    assert "Usage" not in done.err
