"""Completion at the prompt of real shells, and what fits where."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from compiled import build
from guestrun import run
from shellkit import SHELLS, Shell

from engine.cli.main import cli
from engine.cli.shell_words import ShellWords
from engine.cli.shells import CLASSES
from engine.cli.shells import SHELLS as KNOWN

SOURCE = """
__attribute__((noinline)) int sorted_by_name(int x) { return x + 1; }
__attribute__((noinline)) int summed(int count) { return count * 2; }
int main(int argc, char **argv) { return sorted_by_name(summed(argc)); }
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shells")
    build(folder, "funny", SOURCE, "-O1", "-g")
    (folder / "my file.txt").touch()
    (folder / "lines.def").touch()
    (folder / "sizes.bt").touch()
    (folder / "outer" / "inner").mkdir(parents=True)
    (folder / "outer" / "inner" / "prog").touch()
    return folder


@pytest.fixture(scope="module", params=SHELLS)
def shell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, home: Path
) -> Iterator[Shell]:
    folder = tmp_path_factory.mktemp(request.param)
    for each in home.iterdir():
        (folder / each.name).symlink_to(each)
    made = Shell(request.param, folder)
    yield made
    made.close()


def test_files_are_completed(shell: Shell) -> None:
    assert shell.completed("kprobe-tui ./fun") == ["./funny"]
    assert shell.completed("kprobe-tui trace -o lin") == ["trace", "-o", "lines.def"]
    assert shell.completed("kprobe-tui run my") == ["run", "my file.txt"]
    assert shell.completed("kprobe-tui run outer/inn") == ["run", "outer/inner/"]


def test_subcommands_options_and_choices_are_completed(shell: Shell) -> None:
    assert shell.completed("kprobe-tui disa") == ["disasm"]
    assert shell.completed("kprobe-tui trace --maxact") == ["trace", "--maxactive-default"]
    assert shell.completed("kprobe-tui trace --format perfe") == ["trace", "--format", "perfetto"]
    assert shell.completed("kprobe-tui trace --format=perfe") == ["trace", "--format=perfetto"]


def test_functions_are_those_of_the_program_in_front_of_the_cursor(shell: Shell) -> None:
    assert shell.completed("kprobe-tui disasm funny summ") == ["disasm", "funny", "summed"]


def test_functions_are_those_of_the_program_behind_the_cursor(shell: Shell) -> None:
    shell.needs_what_is_behind()
    words = shell.completed("kprobe-tui graph -f sorted_", back=" funny")
    assert words == ["graph", "-f", "sorted_by_name", "funny"]


def test_definitions_are_completed_in_quotes(shell: Shell) -> None:
    shell.needs_what_is_behind()
    found = shell.completed("kprobe-tui trace -e 'p sorted_", back="' ./funny")
    assert [word.rstrip() for word in found] == ["trace", "-e", "p sorted_by_name", "./funny"]


def test_the_event_of_a_filter_and_its_fields(shell: Shell) -> None:
    shell.needs_what_is_behind()
    begin = "kprobe-tui trace -e 'p:mine/one summed count' --filter "
    assert shell.completed(f"{begin}mi", back=" ./funny")[-2:] == ["mine/one:", "./funny"]
    assert shell.completed(f"{begin}mine/one:cou", back=" ./funny")[-2:] == [
        "mine/one:count",
        "./funny",
    ]


@pytest.mark.slow
def test_scripts_of_bpftrace_are_completed_in_quotes(shell: Shell) -> None:
    found = shell.completed(
        "kprobe-tui bpftrace -e 'begin { @one = 1; print(@o", back="' -- ./funny"
    )
    assert [word.rstrip() for word in found][:3] == [
        "bpftrace",
        "-e",
        "begin { @one = 1; print(@one",
    ]


@pytest.mark.slow
def test_probes_of_scripts_are_those_of_the_program_behind_the_cursor(shell: Shell) -> None:
    shell.needs_what_is_behind()
    found = shell.completed("kprobe-tui bpftrace -e 'uprobe:./funny:sorted_", back="' -- ./funny")
    words = ["bpftrace", "-e", "uprobe:./funny:sorted_by_name", "--", "./funny"]
    assert [word.rstrip() for word in found] == words
    found = shell.completed("kprobe-tui bpftrace -l uprobe:summ", back=" -- ./funny")
    assert found == ["bpftrace", "-l", "uprobe:summed", "--", "./funny"]


# -- what fits, without a shell ------------------------------------------------------------


def fits(home: Path, line: str, typed: str, after: str = "") -> list[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        found = ShellWords(cli, line.split(), after.split()).fitting(typed)
        return [each.word for each in found]


def test_a_program_of_path_is_a_guest(home: Path) -> None:
    assert "env" in fits(home, "run", "env")
    assert "env" not in fits(home, "run", "./env")
    assert "env" not in fits(home, "run env", "env")  # its arguments are files
    assert fits(home, "run env", "fun") == ["funny", "funny.c"]


@pytest.mark.parametrize(
    ("before", "after", "word"),
    [
        ("trace -e 'p:a/b sorted_", " ./funny", "p:a/b sorted_by_name"),
        ("trace -e 'p:a/b sorted_", "' ./funny", "p:a/b sorted_by_name"),
        ("trace -e 'p:a/b sorted_", " -e 'r summed' ./funny", "p:a/b sorted_by_name"),
        ('trace -e "p sorted_', " ./funny", "p sorted_by_name"),
        ("graph -f it\\'s -f summ", " ./funny", "summed"),
    ],
)
def test_a_quote_that_is_not_closed_ends_at_the_cursor(
    home: Path, before: str, after: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    monkeypatch.setenv("KPROBE_TUI_BEFORE", f"kprobe-tui {before}")
    monkeypatch.setenv("KPROBE_TUI_AFTER", after)
    zsh = next(each for each in CLASSES if each.name == "zsh")
    assert zsh(cli, {}, "kprobe-tui", "_KPROBE_TUI_COMPLETE").complete() == f"space\n{word}"


@pytest.mark.parametrize(
    ("line", "typed", "words"),
    [
        ("graph --report --sort", "self,self-m", ["self,self-min", "self,self-max"]),
        ("graph --report --fields", "al", ["all"]),
        ("graph --report --diff-policy", "abs,no-p", ["abs,no-percent"]),
        ("graph --option", "nofuncgraph-t", ["nofuncgraph-tail"]),
        ("trace --option", "sym-o", ["sym-offset"]),
        ("strace -S", "err", ["errors", "error"]),
        ("strace -e", "tra", ["trace="]),
        ("strace -e", "%statf", ["%statfs"]),
        ("strace -e", "trace=!munm", ["trace=!munmap"]),
        ("strace -e", "raw=read,preadv", ["raw=read,preadv", "raw=read,preadv2"]),
        ("strace -e", "status=f", ["status=failed"]),
        ("strace -e", "quiet=att", ["quiet=attach"]),
        ("strace -e", "signal=!SIGUSR", ["signal=!SIGUSR1", "signal=!SIGUSR2"]),
        ("strace -e", "inject=mkdir:err", ["inject=mkdir:error="]),
        ("strace -e", "fault=mkdir:error=ENOSP", ["fault=mkdir:error=ENOSPC"]),
        ("strace -e", "inject=mkdir:signal=SIGU", [
            "inject=mkdir:signal=SIGUSR1", "inject=mkdir:signal=SIGUSR2",
            "inject=mkdir:signal=SIGURG",
        ]),
        ("strace -e", "nosuch=", []),
        ("trace -e", "sched:sched_sw", ["sched:sched_switch"]),
        ("check -V", "summ", ["summed"]),
        ("check -L", "summ", ["summed"]),
        ("check -D", "summ", ["summed"]),
    ],
)  # fmt: skip
def test_words_of_lists_and_sets(home: Path, line: str, typed: str, words: list[str]) -> None:
    assert fits(home, line, typed, "./funny") == words


def test_system_calls_are_known_without_a_guest(home: Path) -> None:
    assert fits(home, "trace -e", "syscalls/sys_enter_openat") == [
        "syscalls/sys_enter_openat", "syscalls/sys_enter_openat2"
    ]  # fmt: skip
    assert fits(home, "trace -e", "syscalls/sys_enter_openat", "./my.txt") == []


def test_words_behind_the_guest_are_no_options_of_ours(home: Path) -> None:
    assert fits(home, "run ./funny", "--max") == []
    assert "--max-blocks" in fits(home, "run", "--max")


def test_the_first_word_is_a_subcommand_or_a_guest(home: Path) -> None:
    found = fits(home, "", "fun")
    assert "funny" in found
    assert {"trace", "true"} <= set(fits(home, "", "tr"))
    assert {"--version", "-V", "--completion", "--batch", "--help"} <= set(fits(home, "", "-"))
    assert "trace" not in fits(home, "--seed 3", "x")
    assert fits(home, "--seed", "") == []


def test_other_flags_have_other_options(home: Path) -> None:
    assert "--initrd" in fits(home, "trace --boot", "--ini")
    assert "--initrd" not in fits(home, "trace", "--ini")


def test_events_of_the_kernel_and_their_fields(home: Path) -> None:
    assert fits(home, "trace -e", "sched/sched_process_f") == ["sched/sched_process_fork"]
    assert "syscalls/sys_enter_openat" in fits(home, "trace -e", "syscalls/sys_enter_op", "funny")
    line = "trace -e syscalls/sys_enter_openat --filter"
    assert fits(home, line, "syscalls/sys_enter_openat:fla", "funny") == [
        "syscalls/sys_enter_openat:flags"
    ]
    line = "trace -e sched/sched_switch --trigger"
    assert fits(home, line, "sched/sched_switch:hist:keys=next_c") == [
        "sched/sched_switch:hist:keys=next_comm"
    ]
    assert "sched/sched_switch:stacktrace" in fits(home, line, "sched/sched_switch:")
    assert fits(home, "trace -e", "@li") == ["@lines.def"]


def test_functions_of_libraries_have_their_name_in_front(home: Path) -> None:
    assert fits(home, "graph -f", "libc", "funny") == ["libc.so.6:"]
    assert "libc.so.6:malloc" in fits(home, "graph -f", "libc.so.6:mallo", "funny")


def test_words_of_a_script_stand_in_front_of_the_guest(home: Path) -> None:
    assert fits(home, "bpftrace", "") == ["outer/", "sizes.bt"]
    assert fits(home, "bpftrace", "fun") == ["funny", "funny.c"]  # no script has such a name
    assert fits(home, "bpftrace", "--dry") == ["--dry-run"]
    assert fits(home, "bpftrace sizes.bt", "")[:1] == ["--"]
    assert fits(home, "bpftrace -e x", "")[:1] == ["--"]
    assert fits(home, "bpftrace sizes.bt --", "./fun") == ["./funny", "./funny.c"]
    assert fits(home, "trace --bpftrace", "s") == ["sizes.bt"]
    assert fits(home, "bpftrace sizes.bt -- funny", "--dry") == []
    assert fits(home, "bpftrace -lv", "uprobe:s", "-- ./funny") == [
        "uprobe:sorted_by_name",
        "uprobe:summed",
    ]
    assert fits(home, "bpftrace -l", "t:sched:sched_process_f") == ["t:sched:sched_process_fork"]


def test_libraries_are_known_without_a_guest(home: Path) -> None:
    assert fits(home, "bpftrace -e", "uprobe:libc:mallop") == ["uprobe:libc:mallopt"]
    assert fits(home, "bpftrace -e", "uprobe:main") == []


@pytest.mark.parametrize(
    "line", ["graph -f", "trace -e x --filter", "trace --instance", "graph -f x --root /nowhere"]
)
@pytest.mark.parametrize("guest", ["", "nowhere", "lines.def", "outer", "-", "--"])
def test_what_cannot_be_read_has_no_words(home: Path, line: str, guest: str) -> None:
    assert fits(home, line, "zz", guest) == []


@pytest.mark.slow
def test_every_subcommand_can_be_asked(home: Path) -> None:
    import click

    context = click.Context(cli)
    for name in cli.list_commands(context):
        assert "--help" in fits(home, name, "--he"), name
        fits(home, name, "")
        command = cli.get_command(context, name)
        assert command is not None
        for param in command.params:
            if isinstance(param, click.Option) and not param.is_flag:
                fits(home, f"{name} {param.opts[0]}", "f", "funny")


def test_the_script_of_each_shell_is_printed(home: Path) -> None:
    assert [each.name for each in CLASSES] == list(KNOWN)
    for name in KNOWN:
        done = run("--completion", name, cwd=home)
        assert (done.code, done.err) == (0, "")
        assert "_KPROBE_TUI_COMPLETE" in done.out
    done = run("--completion", "tcsh", cwd=home)
    assert done.code == 2
    assert "tcsh" in done.err
    # What profiles have from before.
    old = run(cwd=home, env={"_KPROBE_TUI_COMPLETE": "bash_source"})
    assert old.out == run("--completion", "bash", cwd=home).out


# -- mistyped -----------------------------------------------------------------------------


def test_a_mistyped_subcommand_names_the_nearest(home: Path) -> None:
    done = run("trase", "x", cwd=home)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "kprobe-tui: trase: no subcommand, no file here, no program in PATH; did you mean "
        "trace or strace or bpftrace?\n"
    )
    done = run("zzzzz", cwd=home)
    assert done.err.endswith("no program in PATH; 'kprobe-tui help' lists subcommands\n")
    assert run("./zzzzz", cwd=home).err.startswith("kprobe-tui: ./zzzzz: No such file")


def test_which_file_a_name_is_where_that_is_not_obvious(home: Path, tmp_path: Path) -> None:
    (tmp_path / "ls").write_bytes((home / "funny").read_bytes())
    done = run("run", "ls", cwd=tmp_path)
    assert done.code == 3
    assert done.err.startswith("kprobe-tui: ls is the file here, not /")
    (tmp_path / "true").symlink_to("/bin/true")
    assert run("run", "true", cwd=tmp_path).err == ""


def test_a_short_option_shows_the_version(home: Path) -> None:
    assert run("-V", cwd=home).out == run("--version", cwd=home).out != ""
