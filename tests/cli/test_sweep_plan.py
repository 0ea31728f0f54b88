"""The file of a sweep: the cells that it stands for, and what is said of a bad one."""

import os
import shlex
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from engine.cli.sweep_cells import MODES, CellRequests
from engine.cli.sweep_file import SweepFileError
from engine.cli.sweep_plan import SweepPlan, sweep_plan
from engine.errors import CommandError
from engine.session.protocol.requests import ExploreRequest

SAMPLES = Path(__file__).parents[2] / "samples" / "bin"
WORDS = SAMPLES / "x86_64" / "words"


def plan(folder: Path, text: str) -> SweepPlan:
    """The plan of a file with this text; @W is the path of a guest."""
    (folder / "s.toml").write_text(text.replace("@W", str(WORDS)))
    return sweep_plan(str(folder / "s.toml"))


def lines(found: SweepPlan) -> list[str]:
    """The cells' options, without the command and the guest."""
    shown = []
    for cell in found.cells:
        line = cell.repeat.removeprefix("kprobe-tui ").replace(str(SAMPLES) + "/", "")
        shown.append(line)
    return shown


def test_a_cell_is_a_command_line(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a b\n")
    found = plan(
        tmp_path,
        """
        mode = ["trace", "check", "explore"]
        output = "out"
        [limits]
        seconds = 2.5
        memory = "1G"
        [matrix]
        guest = "@W"
        args = ["a 'b c'", ["d"]]
        input = "in"
        seed = ["0-1", 7]
        technique = ["jump", "breakpoint"]
        [matrix.definitions]
        main = ["p:t/m main", "r:t/r main"]
        [options]
        env = ["A=1", "B=2"]
        [options.trace]
        stack = true
        profile = false
        [options.explore]
        seeds = 5
        [[exclude]]
        seed = 1
        args = [["d"]]
        """,
    )
    shown = lines(found)
    # check has no arguments, inputs and seeds; explore has no definitions and techniques
    assert [sum(line.startswith(mode) for line in shown) for mode in ("trace", "check")] == [10, 2]
    assert len(shown) == 10 + 2 + 5
    assert shown[0] == (
        f"trace --timeout 2.5 --env=A=1 --env=B=2 --stack --technique=jump --seed 0 "
        f"-e 'p:t/m main' -e 'r:t/r main' x86_64/words a 'b c' < {tmp_path}/in"
    )
    assert shown[10] == (
        "check --env=A=1 --env=B=2 --technique=jump -e 'p:t/m main' -e 'r:t/r main' x86_64/words"
    )
    first = found.cells[0]
    assert first.labels == {
        "mode": "trace",
        "guest": str(WORDS),
        "guest_sha256": dict(first.files)[str(WORDS)],
        "arch": "x86_64",
        "args": ("a", "b c"),
        "input": f"{tmp_path}/in",
        "seed": 0,
        "definitions": "main",
        "technique": "jump",
    }
    assert found.cells[-1].labels["technique"] is None
    assert set(dict(first.files)) == {str(WORDS), f"{tmp_path}/in"}
    assert (found.seconds, found.memory, found.output) == (2.5, 1 << 30, f"{tmp_path}/out")
    assert len({cell.id for cell in found.cells}) == len(found.cells)
    for cell in found.cells:
        assert shlex.split(cell.repeat)[:2] == ["kprobe-tui", cell.mode]
        assert CellRequests().of(cell).config.guest == str(WORDS)


Parse = Callable[[click.Context, list[str]], list[str]]


def _counting(found: Counter[str], name: str, parse: Parse) -> Parse:
    """A command's parser that is counted."""

    def counted(context: click.Context, words: list[str]) -> list[str]:
        found[name] += 1
        return parse(context, words)

    return counted


def test_options_that_cells_share_are_parsed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_text("a b\n")
    (tmp_path / "s.toml").write_text(
        f"""
        mode = ["trace", "check", "diff", "explore"]
        [matrix]
        guest = ["{WORDS}", "{WORDS.with_name("race")}"]
        args = ["", "1 --seed 2", "{{input}}"]
        input = "in"
        seed = [3, "7-9"]
        technique = ["jump", "breakpoint"]
        [matrix.definitions]
        main = "p:t/e main"
        named = ["p:t/e main", "r:t/r main"]
        [options]
        env = "A=--seed"
        [options.explore]
        seeds = 3
        """
    )
    cells = sweep_plan(str(tmp_path / "s.toml")).cells
    alone = [CellRequests().of(cell) for cell in cells]
    parsed: Counter[str] = Counter()
    for name, (command, _) in MODES.items():
        monkeypatch.setattr(command, "parse_args", _counting(parsed, name, command.parse_args))
    requests = CellRequests()
    assert [requests.of(cell) for cell in cells] == alone
    # Guests, arguments and seeds cost no parsing; an input outside that is an argument is shared.
    assert parsed == {"trace": 8, "check": 4, "diff": 8, "explore": 2}


def test_an_input_may_be_a_file_of_the_guest_s(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a b\n")
    found = plan(
        tmp_path, '[matrix]\nguest="@W"\ninput="in"\nargs=["-f {input}"]\n[options]\nf="*"'
    )
    (cell,) = found.cells
    path = f"{tmp_path}/in"
    assert cell.words == ("-f", "*", "--share", path, str(WORDS), "-f", path)
    assert cell.stdin is None
    assert cell.labels["input"] == path
    assert path in dict(cell.files)


def test_a_name_of_any_bytes_is_repeated_by_a_shell(tmp_path: Path) -> None:
    name = b"in '\\\xff\n1"
    (tmp_path / os.fsdecode(name)).write_text("a")
    found = plan(tmp_path, '[matrix]\nguest="@W"\ninput="in*"\nargs=["{input}"]\n[options]\nf="*"')
    (cell,) = found.cells
    words = cell.repeat.removesuffix(" < /dev/null")
    assert words.isascii()
    shown = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True
    )
    assert shown.stdout.split(b"\0")[-2] == os.fsencode(tmp_path) + b"/" + name


def test_guests_are_chosen_by_architecture_and_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for arch in ("x86_64", "aarch64", "riscv64"):
        (folder / arch).symlink_to(SAMPLES / arch / "words")
    (folder / "notes.txt").write_text("no program")
    text = "mode='check'\n[matrix]\nguest = '{}'\n{}"
    every = plan(tmp_path, text.format("bin/*", ""))
    assert [cell.labels["arch"] for cell in every.cells] == ["aarch64", "riscv64", "x86_64"]
    assert every.remarks == (f"left out, as they are no programs: {folder}/notes.txt",)
    some = plan(tmp_path, text.format("bin/*", "arch = ['riscv64', 'x86_64']"))
    assert [cell.labels["arch"] for cell in some.cells] == ["riscv64", "x86_64"]
    each = plan(tmp_path, text.format("bin/{arch}", "arch = ['x86_64', 'aarch64']"))
    assert [cell.labels["guest"] for cell in each.cells] == [
        f"{folder}/x86_64",
        f"{folder}/aarch64",
    ]
    named = plan(tmp_path, text.format("bin/notes.txt", ""))
    assert named.cells[0].labels["arch"] is None  # what is named is tried


def test_what_is_excluded_is_read_as_the_matrix_is(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for arch in ("x86_64", "aarch64"):
        (tmp_path / "bin" / arch).symlink_to(SAMPLES / arch / "words")
    for name in ("in0", "in1", "other"):
        (tmp_path / name).write_text(name)
    text = """
        [matrix]
        guest = ["bin/x86_64", "bin/aarch64"]
        input = ["in*", "other"]
        seed = "0-9"
        cpus = [1, 2]
        definitions = ["p:t/m main", ["p:t/m main", "r:t/r main"]]
        """
    size = 2 * 3 * 10 * 2 * 2
    for excluded, gone in (
        ("guest = 'bin/aarch*'", 3 * 10 * 2 * 2),
        ("guest = 'bin/x86_64'\ninput = 'in*'\nseed = '2-4'", 2 * 3 * 2 * 2),
        ("input = ['in1', 'other']\nseed = ['0-1', 9]", 2 * 2 * 3 * 2 * 2),
        ("arch = 'x86_64'\ncpus = 2", 3 * 10 * 2),
        ("definitions = [['p:t/m main', 'r:t/r main']]", 2 * 3 * 10 * 2),
    ):
        found = plan(tmp_path, f"{text}\n[[exclude]]\n{excluded}\n")
        assert len(found.cells) == size - gone, excluded
        assert found.remarks == ()


def test_brackets_in_the_name_of_a_folder_are_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "a[bc]*"
    folder.mkdir()
    (folder / "in0").touch()
    found = plan(folder, '[matrix]\nguest="@W"\ninput="in?"\n[options]\nf="*"')
    assert [cell.labels["input"] for cell in found.cells] == [f"{folder}/in0"]


def test_a_cell_is_another_one_when_its_files_have_changed(tmp_path: Path) -> None:
    text = '[matrix]\nguest="@W"\ninput="in"\n[options]\ne="@defs"\n'
    (tmp_path / "in").write_text("a")
    (tmp_path / "defs").write_text("p:t/m main\n")
    ids = [plan(tmp_path, text.replace("@defs", f"@{tmp_path}/defs")).cells[0].id]
    for name, content in (("in", "b"), ("defs", "p:t/n main\n"), ("in", "a")):
        (tmp_path / name).write_text(content)
        ids.append(plan(tmp_path, text.replace("@defs", f"@{tmp_path}/defs")).cells[0].id)
    (tmp_path / "defs").write_text("p:t/m main\n")
    assert len(set(ids)) == 4
    assert plan(tmp_path, text.replace("@defs", f"@{tmp_path}/defs")).cells[0].id == ids[0]


def test_files_of_the_host_alone_are_none_of_a_cell_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("1")
    (tmp_path / "empty").touch()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    (other / "mine").write_text("2")
    words = ["/proc/uptime", str(tmp_path / "data"), "mine", "./mine", str(other / "mine")]
    text = f'[matrix]\nguest="@W"\nargs=[{words}]\n[options]\nf=["*", "/proc/self/mem"]\n'
    (cell,) = plan(tmp_path, text).cells
    assert set(dict(cell.files)) == {str(WORDS), "mine", "./mine", str(other / "mine")}
    (again,) = plan(tmp_path, text).cells
    assert again.id == cell.id
    (named,) = plan(tmp_path, f"files = ['data', 'empty']\n{text}").cells
    assert set(dict(named.files)) == {*dict(cell.files), f"{tmp_path}/data", f"{tmp_path}/empty"}


def test_paths_of_options_start_from_the_file_s_directory(tmp_path: Path) -> None:
    (tmp_path / "defs").write_text("p:t/m main\n")
    found = plan(
        tmp_path,
        """
        mode = ["trace", "check"]
        [matrix]
        guest = "@W"
        cpu = ["golden", "cpus/mine"]
        e = ["@defs", "p:t/n main"]
        [options]
        share = ["data:rw", "/etc"]
        root = "."
        kernel = "boot/image"
        cwd = "data"
        [options.trace]
        handlers = "h.py"
        [options.check]
        module = ["a.ko", "/b.ko"]
        """,
    )
    at = f"{tmp_path}/"
    both = f"--share={at}data:rw --share=/etc --root={at}. --kernel={at}boot/image --cwd=data"
    shown = [line.removesuffix(" < /dev/null") for line in lines(found)]
    assert shown[:4] == [
        f"trace {both} --handlers={at}h.py {rest} x86_64/words"
        for rest in (
            f"--cpu=golden -e @{at}defs",
            "--cpu=golden -e 'p:t/n main'",
            f"--cpu={at}cpus/mine -e @{at}defs",
            f"--cpu={at}cpus/mine -e 'p:t/n main'",
        )
    ]
    assert shown[4] == (
        f"check {both} --module={at}a.ko --module=/b.ko --cpu=golden -e @{at}defs x86_64/words"
    )
    assert [found.cells[n].labels["e"] for n in (0, 1)] == ["@defs", "p:t/n main"]
    assert f"{at}defs" in dict(found.cells[0].files)


def test_a_search_of_a_cell_takes_one_process(tmp_path: Path) -> None:
    text = 'mode="explore"\n[matrix]\nguest="@W"\n'
    for more, jobs in (("", 1), ("[options]\njobs = 3", 3)):
        (cell,) = plan(tmp_path, text + more).cells
        request = CellRequests().of(cell)
        assert isinstance(request, ExploreRequest)
        assert request.jobs == jobs


BAD = [
    ("[matrix\n", "s.toml: not TOML: ", "at line 1"),
    ("a = 1\na = 2\n", "s.toml: not TOML: ", "at line 2"),
    ("", "s.toml: there is no guest; [matrix] has guest"),
    ("\n[matrix]\nseed = 1\n", "there is no guest"),
    ("# hello\n\nmodes = 'trace'\n", "s.toml:3: modes: no such key; there is mode, output"),
    ("mode = 'tarce'\n", "s.toml:1: mode: 'tarce' is none of trace, check, diff, explore"),
    ("mode = []\n", "s.toml:1: mode: an empty list leaves no cells"),
    ("matrix = 3\n", "s.toml:1: matrix: a table is wanted: [matrix]"),
    ("tables = 'no'\n", "s.toml:1: tables: true or false is wanted"),
    ("output = 3\n", "s.toml:1: output: the path of a directory is wanted"),
    ("[limits]\n\nseconds = -1\n", "s.toml:3: limits.seconds: -1 is not a positive number"),
    ("[limits]\nseconds = nan\n", "s.toml:2: limits.seconds: nan is not a positive number"),
    ("[limits]\nmemory = 'lots'\n", "s.toml:2: limits.memory: 'lots' is not a size such as 512M"),
    ("[limits]\nmemory = '64M'\n", "s.toml:2: limits.memory: 64M is less than the engine takes"),
    ("[limits]\nsecond = 1\n", "s.toml:2: limits.second: no such key; there is seconds, memory"),
    ("[matrix]\nguest = '/no/such'\n", "s.toml:2: matrix.guest: /no/such: No such file"),
    ("[matrix]\nguest = '/usr'\n", "s.toml:2: matrix.guest: /usr: not a plain file"),
    ("[matrix]\nguest = 'no*such'\n", "s.toml:2: matrix.guest: no file matches 'no*such'"),
    ("[matrix]\nguest = 3\n", "s.toml:2: matrix.guest: 3 is no text"),
    ("[matrix]\nguest = 'a{arch}'\n", "s.toml:2: matrix.guest: 'a{arch}': matrix.arch says what"),
    ("[matrix]\nguest='@W'\narch='vax'\n", "s.toml:3: matrix.arch: 'vax' is none of x86_64, "),
    ("[matrix]\nguest='@W'\narch='ia64'\n", "s.toml:2: matrix.guest: no guest is left"),
    ("[matrix]\nguest='@W'\nseed = [\n 1,\n '9-3',\n]\n", "s.toml:3: matrix.seed: '9-3' is nei"),
    ("[matrix]\nguest='@W'\nseed = true\n", "s.toml:3: matrix.seed: True is neither a seed nor"),
    ("[matrix]\nguest='@W'\nseed = '0-99999999'\n", "matrix.seed: '0-99999999' is more than"),
    ("[matrix]\nguest='@W'\nargs = \"'\"\n", 's.toml:3: matrix.args: "\'": No closing quotation'),
    ("[matrix]\nguest='@W'\nargs = [[3]]\n", "s.toml:3: matrix.args: 3 is no text"),
    ("[matrix]\nguest='@W'\ninput = 'gone'\n", "matrix.input: ", "gone: No such file"),
    (
        "[matrix]\nguest='@W'\ntecnique = 'jump'\n",
        "matrix.tecnique: no such option of trace; there is",
    ),
    ("[matrix]\nguest='@W'\ntechnique = 'jmp'\n", "s.toml:3: matrix.technique: ", "is not one of"),
    ("[matrix]\nguest='@W'\nenv = 'x'\n[options]\nf='*'\n", "--env x: not of the form K=V"),
    ("[matrix]\nguest='@W'\ntimeout = 3\n", "matrix.timeout: limits.seconds says how long"),
    ("[matrix]\nguest='@W'\n[options]\no = 'x'\n", "s.toml:4: options.o: output, at the top,"),
    ("[matrix]\nguest='@W'\n[options]\nstack = 1\n", "s.toml:4: options.stack: true or false"),
    ("[matrix]\nguest='@W'\n[options.tarce]\nf = '*'\n", "options.tarce: none of trace, check"),
    (
        "[matrix]\nguest='@W'\n[options.check]\nstack = true\n",
        "options.check.stack: no such option of check",
    ),
    ("[matrix]\nguest='@W'\n[options]\nf = {a = 1}\n", "s.toml:4: options.f: none of trace"),
    (
        "[matrix]\nguest='@W'\n[options]\nf='*'\nschedule='gone'\n",
        "--schedule /",
        "/gone: No such",
    ),
    ("[matrix]\nguest='@W'\n[options]\npid = 'x'\n", "s.toml:4: options.pid: ", "'x' is no id"),
    ("[matrix]\nguest='@W'\n", "nothing to trace: give -e DEF, -f GLOB"),
    ("[matrix]\nguest='@W'\ndefinitions = {}\n", "matrix.definitions: an empty table leaves no"),
    (
        "[matrix]\nguest='@W'\n[matrix.definitions]\na = [3]\n",
        "matrix.definitions.a: 3 is no text",
    ),
    ("[matrix]\nguest='@W'\ndefinitions = ['@gone']\n", "matrix.definitions: ", "gone: No such"),
    ("exclude = 3\n[matrix]\nguest='@W'\n[options]\nf='*'\n", "exclude: tables are wanted"),
    ("[matrix]\nguest='@W'\n[options]\nf='*'\n[[exclude]]\nsed = 3\n", "exclude.sed: no such key"),
    ("[matrix]\nguest='@W'\n[options]\nf='*'\n[[exclude]]\nmode='trace'\n", "no cell is left"),
    (
        "[matrix]\nguest='@W'\nseed='0-3'\n[options]\nf='*'\n[[exclude]]\nseed=1\n[[exclude]]\nseed=4\n",
        "s.toml:8: exclude: it leaves out no cell: none has its values",
    ),
    (
        "[matrix]\nguest='@W'\nseed='0-3'\n[options]\nf='*'\n[[exclude]]\nseed='3-1'\n",
        "s.toml:7: exclude.seed: '3-1' is neither a seed nor",
    ),
    (
        "[matrix]\nguest='@W'\n[options]\nf='*'\n[[exclude]]\nguest='gone'\n",
        "s.toml:6: exclude.guest: ",
        "gone: No such file",
    ),
    (
        "[matrix]\nguest='@W'\n[options]\nf='*'\n[[exclude]]\nmode='trace'\n[[exclude]]\n",
        "s.toml:7: exclude: an empty one would leave no cells",
    ),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: " ".join(bad[0].split()))
def test_what_is_wrong_is_said_with_its_place(bad: tuple[str, ...], tmp_path: Path) -> None:
    text, *parts = bad
    with pytest.raises(SweepFileError) as caught:
        plan(tmp_path, text)
    for part in parts:
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "help sweeps" in caught.value.hint


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"gone\.toml: No such file"):
        sweep_plan(str(tmp_path / "gone.toml"))
    (tmp_path / "s.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(SweepFileError, match=r"s\.toml: not UTF-8, at byte 5"):
        sweep_plan(str(tmp_path / "s.toml"))
    (tmp_path / "s.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(SweepFileError, match=r"nested too deeply|not TOML"):
        sweep_plan(str(tmp_path / "s.toml"))
