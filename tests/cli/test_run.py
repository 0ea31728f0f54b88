"""The contract of `kprobe-tui run`: options, their order, exit codes, messages."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from archkit import HOSTILE
from cguest import CHECKOUT
from guestrun import Outcome, guest, run
from warmed import SAME_CODE

each_arch = pytest.mark.parametrize("arch", HOSTILE)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The current directory: a copy of the guest called `run`, and something beside it."""
    path = tmp_path / "home"
    path.mkdir()
    (path / "run").write_bytes(Path(guest("x86_64", "process")).read_bytes())
    (path / "run").chmod(0o755)
    (tmp_path / "secret").write_text("secret\n")
    return path


def process(home: Path, *words: str, env: dict[str, str] | None = None) -> Outcome:
    return run("run", *words, cwd=home, env=env)


X86 = guest("x86_64", "process")
FILES = guest("x86_64", "files")


# -- exit codes ---------------------------------------------------------------------------


@each_arch
@pytest.mark.parametrize("code", [0, 1, 2, 42, 99, 124, 125, 126, 127, 255])
def test_exit_code_is_the_guests(home: Path, arch: str, code: int) -> None:
    done = process(home, guest(arch, "process"), "exit", str(code))

    assert (done.code, done.out, done.err) == (code, "", "")


@each_arch
@pytest.mark.parametrize("number", [1, 2, 6, 9, 11, 13, 15, 31, 40])
def test_a_signal_counts_from_128(home: Path, arch: str, number: int) -> None:
    done = process(home, guest(arch, "process"), "exit", "0", str(number))

    assert done.code == 128 + number
    quiet = number in (1, 2, 13, 15)
    assert quiet == ("killed by" not in done.err)


def test_limits_are_124(home: Path) -> None:
    assert process(home, "--timeout", "0.5", X86, "spin").code == 124
    assert process(home, "--max-blocks", "100", X86, "spin").code == 124
    assert process(home, "--timeout", "inf", X86, "exit", "4").code == 4


# -- words --------------------------------------------------------------------------------


def test_words_behind_the_guest_are_the_guests(home: Path) -> None:
    words = ["--seed", "7", "-x", "--", "--help", "run", "", "a b", "--version", "ü"]

    done = process(home, X86, "echo", *words)

    assert done.out.splitlines() == words
    assert done.err == ""


def test_options_end_at_two_dashes(home: Path) -> None:
    assert process(home, "--seed", "3", "--", "./run", "echo", "--", "-x").out == "--\n-x\n"


def test_a_file_called_run(home: Path) -> None:
    assert process(home, "./run", "exit", "5").code == 5
    assert process(home, "run", "exit", "5").code == 5


def test_arguments_need_not_be_text(home: Path) -> None:
    raw = b"\xff\xfe"
    done = process(home, X86, "arguments", os.fsdecode(raw))

    assert done.facts == {"arguments": 1, "bytes": 2}


# -- what the guest gets ------------------------------------------------------------------


def self_lines(home: Path, *options: str, env: dict[str, str] | None = None) -> list[str]:
    return process(home, *options, "./run", "self", env=env).out.splitlines()


def test_argv0_is_as_typed_or_as_told(home: Path) -> None:
    assert self_lines(home)[0] == "./run"
    assert self_lines(home, "--argv0", "other")[0] == "other"
    assert self_lines(home, "--argv0", "")[0] == ""


def test_environment(home: Path) -> None:
    secret = {"SECRET_TOKEN": "x", "LC_TIME": "C", "LINES": "24", "LD_PRELOAD": ""}
    plain = self_lines(home, "--env", "A=1", "--env", "B=x=y", "--env", "E=", env=secret)
    assert {"A=1", "B=x=y", "E=", "LC_TIME=C", "LINES=24"} <= set(plain)
    assert not {"SECRET_TOKEN=x", "LD_PRELOAD="} & set(plain)
    assert "SECRET_TOKEN=x" in self_lines(home, "--env-all", env=secret)
    page = {"TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "80"}
    told = self_lines(home, "--env-all", env=page)
    assert not [line for line in told if line.startswith(("TEXTUAL_", "COLUMNS="))]
    both = process(home, "--env-all", "--clean-env", "./run", "self")
    assert (both.code, "one of them" in both.err) == (2, True)

    clean = self_lines(home, "--clean-env", "--env", "A=1", "--env", "A=2", env={"HERE": "x"})
    assert [line for line in clean if "=" in line] == ["A=2"]


def test_working_directory(home: Path) -> None:
    assert self_lines(home)[1] == str(home)
    assert self_lines(home, "--cwd", "/tmp")[1] == "/tmp"
    assert self_lines(home, "--isolated")[1] == "/"

    done = process(home, "--cwd", "/no/such", "./run", "self")
    assert done.code == 2
    assert "--cwd /no/such: the guest has no such directory" in done.err


def test_seed(home: Path) -> None:
    one, same, other = (self_lines(home, "--seed", seed)[-3:-1] for seed in ("1", "1", "2"))

    assert one == same
    assert one[0] != other[0]
    assert one[1] != other[1]


def test_clock(home: Path) -> None:
    def seconds(*options: str) -> int:
        return process(home, *options, "./run", "self").facts["time"]

    first = seconds()
    assert first == seconds("--clock", "guest")
    assert 0 < first - time.time() <= 7 * 86_400
    assert time.gmtime(first)[3:7] == (0, 0, 0, 0)  # a Monday begins
    assert seconds("--isolated") == 1_767_225_600
    before = int(time.time())
    assert before <= seconds("--clock", "host") <= time.time()
    assert seconds("--start", "@1800000000.5") == 1_800_000_000
    assert seconds("--start", "2027-01-15T09:00:00+01:00") == 1_800_000_000
    assert seconds("--start", "2027-01-15T08:00") == 1_800_000_000
    assert before <= seconds("--start", "now") <= time.time()


def test_root_is_the_whole_tree(home: Path) -> None:
    root = home / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "files").write_bytes(Path(FILES).read_bytes())
    (root / "inside").write_text("inside\n")
    (root / "out").symlink_to("/inside")
    names = ("/inside", "/out", "/etc/passwd", "/../secret")

    done = process(home, "--root", "root", "root/bin/files", "read", *names)

    assert done.out.count("inside\n") == 2
    assert done.facts[names[2]] == done.facts[names[3]] == -2


def test_isolated_takes_the_current_directory_away(home: Path) -> None:
    (home / "mine").write_text("mine\n")

    assert "mine\n" in process(home, FILES, "read", str(home / "mine")).out
    done = process(home, "--isolated", FILES, "read", str(home / "mine"))
    assert done.facts[str(home / "mine")] == -2


def test_programs_of_the_system_are_shown(home: Path) -> None:
    passwd, shadow = "/etc/passwd", "/etc/shadow"
    done = process(home, FILES, "read", passwd, shadow)
    assert Path(passwd).read_text().splitlines()[0] in done.out
    assert done.facts[shadow] == -13

    done = process(home, "--isolated", FILES, "read", passwd)
    assert done.facts[passwd] == -2
    assert "--share /etc/passwd" in done.err


@pytest.mark.skipif(not os.access("/usr/bin/lscpu", os.X_OK), reason="no lscpu")
def test_the_processor_has_one_core_with_one_thread(home: Path) -> None:
    done = process(home, "/usr/bin/lscpu")
    told = dict(re.split(r":\s+", line, maxsplit=1) for line in done.out.splitlines())
    for name in ("CPU(s)", "Thread(s) per core", "Core(s) per socket", "Socket(s)"):
        assert told[name] == "1"
    assert "64-bit" in told["CPU op-mode(s)"]


def test_share(home: Path) -> None:
    secret = home.parent / "secret"

    shown = process(home, "--share", str(secret), FILES, "write", str(secret))
    assert "overwritten" in shown.out
    assert secret.read_text() == "secret\n"

    through = process(home, "--share", f"{secret}:rw", FILES, "write", str(secret))
    assert "overwritten" in through.out
    assert secret.read_text() == "overwritten"


def test_memory(home: Path) -> None:
    touch = guest("x86_64", "memory")
    for words in (("--memory", "32M"), ("--memory=33554432",), ("--memory", "32MiB")):
        done = process(home, *words, touch, "touch")
        assert done.code == 137
        assert "32 MiB" in done.err


def test_standard_input_is_the_guests(home: Path) -> None:
    data = bytes(range(32, 127)) * 5000

    done = run("run", X86, "copy", cwd=home, stdin=data)

    assert done.out.encode() == data


# -- help and messages --------------------------------------------------------------------


def test_color(home: Path) -> None:
    for when, colored in (("auto", False), ("never", False), ("always", True)):
        done = process(home, "--color", when, X86, "exit", "0", "11")
        assert done.code == 139
        assert ("\033[" in done.err) == colored


def test_debug_shows_figures(home: Path) -> None:
    done = process(home, "--debug", X86, "exit", "3")

    assert done.code == 3
    assert "system calls" in done.err
    assert "time went" in done.err
    assert done.out == ""


def test_version_and_help(home: Path) -> None:
    version = run("--version", cwd=home)
    assert version.code == 0
    assert version.out.startswith("kprobe-tui")

    for words in (("--help",), ("run", "--help")):
        done = run(*words, cwd=home)
        assert done.code == 0
        assert "Usage: kprobe-tui" in done.out
    options = """--root --share --isolated --env --env-all --clean-env --cwd --argv0 --seed
    --max-blocks --timeout --memory --clock --start --color --debug"""
    assert all(option in done.out for option in options.split())


def test_the_locale_is_the_users_not_pythons(home: Path) -> None:
    """Python sets LC_CTYPE for itself where the locale is C, when a process of its own starts."""
    words = [sys.executable, "-m", "tui", "run", "/usr/bin/env"]
    for given in ({"LANG": "C"}, {}, {"LC_CTYPE": "C.UTF-8"}, {"LC_ALL": "C"}):
        done = subprocess.run(
            words, cwd=home, env={"A": "b", **given}, capture_output=True, text=True, check=True
        )
        assert dict(line.split("=", 1) for line in done.stdout.splitlines()) == given


BAD = {
    "no guest": ((), "GUEST"),
    "unknown option": (("--nonsense", X86), "--nonsense"),
    "misspelt option": (("--sed", "1", X86), "--seed"),
    "seed": (("--seed", "x", X86), "'x' is not a valid integer"),
    "negative seed": (("--seed", "-1", X86), "-1 is not in the range"),
    "no value": (("--seed",), "--seed"),
    "timeout": (("--timeout", "0", X86), "--timeout"),
    "negative timeout": (("--timeout", "-1", X86), "--timeout"),
    "timeout nan": (("--timeout", "nan", X86), "'nan' is not a positive number of seconds"),
    "blocks": (("--max-blocks", "0", X86), "--max-blocks"),
    "memory": (("--memory", "much", X86), "'much' is not a size such as 512M or 2G"),
    "no memory": (("--memory", "4K", X86), "'4K' is not a size such as 512M or 2G"),
    "clock": (("--clock", "sun", X86), "'sun' is not one of"),
    "start": (("--start", "noon", X86), "'noon' is not a time such as now"),
    "start before 1970": (("--start", "1969-12-31", X86), "'1969-12-31' is not a time"),
    "color": (("--color", "pink", X86), "'pink' is not one of"),
    "env": (("--env", "NOVALUE", X86), "--env NOVALUE: not of the form K=V"),
    "root": (("--root", "nothing", X86), "--root nothing: not a directory"),
    "root is a file": (("--root", "run", X86), "--root run: not a directory"),
    "share of /proc": (("--share", "/proc:rw", X86), "the guest's /proc is the engine's own"),
    "share in /sys": (("--share", "/sys/kernel", X86), "the guest's /sys is the engine's own"),
    "share": (("--share", "nothing", X86), "--share nothing: no such file or directory"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage_is_2_with_a_clear_message(home: Path, case: str) -> None:
    words, message = BAD[case]

    done = process(home, *words)

    assert done.code == 2
    assert message in done.err
    assert done.out == ""
    assert len(done.err.splitlines()) <= 4


def test_an_unknown_subcommand_is_told(home: Path) -> None:
    done = run("runn", cwd=home)

    assert done.code == 2
    assert "runn" in done.err


def test_closed_standard_streams_do_not_hang_it(home: Path) -> None:
    words = f"exec {sys.executable} -m tui run --timeout 5 {FILES} full >&- <&-"
    done = subprocess.run(
        ["sh", "-c", words],
        cwd=home,
        env={**os.environ, **SAME_CODE},
        stderr=subprocess.PIPE,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_limit_of_addresses_leaves_the_emulator_its_own(tmp_path: Path) -> None:
    script = f"ulimit -v $0; exec {sys.executable} -m tui run {X86} exit 7"
    codes = [
        subprocess.run(
            ["sh", "-c", script, str(size)],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        for size in (4_000_000, 1_000_000)
    ]
    assert codes[0].returncode == 7, codes[0].stderr
    assert codes[1].returncode == 2
    assert "no address space for a guest" in codes[1].stderr
    assert codes[1].stderr.count("\n") == 1
