"""Golden runs: command lines whose exit code and output are known, and the programs they need.

A program comes from one of three places: committed in `tests/data/guests`, built on demand from
`tests/data/guests/src` into the cache, or unpacked from Debian's packages (see `sysroot`). With
`KPROBE_TUI_GOLDEN` set to a folder with `amd64.json`, `arm64.json`, `data/`, `amd64/`, `arm64/`
and the unpacked `root-amd64/`, `root-arm64/`, all comes from there and nothing is built.
"""

import difflib
import hashlib
import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from guestrun import captured
from sysroot import CHECKOUT, SysrootUnavailable, cache_directory, locked, sysroot, target

GUESTS = CHECKOUT / "tests" / "data" / "guests"
TIME_LIMIT = 600

_PT_INTERP = 3
_HEAD_LINES = 12


class GuestUnavailable(Exception):  # noqa: N818 - a state of the machine, not an error of ours
    """The program of a line can't be had on this machine; the text names it and says why."""


@dataclass(frozen=True, slots=True)
class GoldenLine:
    """One command line with its known result; `arch` is Debian's name."""

    arch: str
    id: str
    program: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    needs: str
    rc: int
    stdout_sha256: str
    stdout_len: int
    stdout_head: str
    stdin: str | None = None
    unstable: bool = False

    @property
    def name(self) -> str:
        """A short name for test reports and `-k`."""
        text = re.sub(r"[^\w.,:=+-]+", " ", self.id).strip(" :").replace(" ", "_")
        return f"{self.arch}-{text[:56]}"

    @property
    def exit_code(self) -> int:
        """The exit code as a shell tells it: 128 + N for a guest killed by signal N."""
        return self.rc if self.rc >= 0 else 128 - self.rc

    @property
    def is_packaged(self) -> bool:
        """Whether the program is one of Debian's."""
        return self.program.startswith("root/")

    @property
    def needs_sysroot(self) -> bool:
        """Whether running the line takes Debian packages: its program, libraries or libc."""
        guest = self.program.rpartition("/")[2]
        return self.is_packaged or (guest in RECIPES and RECIPES[guest].sysroot)


@dataclass(frozen=True, slots=True)
class CodeMap:
    """Where the program of a line is, and what it must be shown."""

    program: Path
    root: Path | None = None
    shares: tuple[Path, ...] = ()


def golden_folder() -> Path | None:
    """Return the folder of other golden data, if the environment names one."""
    name = os.environ.get("KPROBE_TUI_GOLDEN")
    return Path(name).resolve() if name else None


def data_folder() -> Path:
    """Return the folder whose copy is a guest's current directory."""
    return (golden_folder() or GUESTS) / "data"


def golden_lines(*needs: str) -> list[GoldenLine]:
    """Read the lines with one of these needs (default: all), cheap programs first."""
    folder = golden_folder()
    rows: list[dict[str, object]] = []
    if folder is None:
        for file in (GUESTS / "golden.json", GUESTS / "more.json"):
            rows += json.loads(file.read_text("utf-8"))
    else:
        for arch in ("amd64", "arm64"):
            file = folder / f"{arch}.json"
            rows += [{"arch": arch, **row} for row in json.loads(file.read_text("utf-8"))]
    lines = [_line(row) for row in rows]
    chosen = [line for line in lines if not needs or line.needs in needs]
    return sorted(chosen, key=lambda line: (line.needs_sysroot, line.arch))


def unique_names(lines: list[GoldenLine]) -> list[str]:
    """Return a distinct test name for each line."""
    seen: dict[str, int] = {}
    names = []
    for line in lines:
        count = seen[line.name] = seen.get(line.name, 0) + 1
        names.append(line.name if count == 1 else f"{line.name}~{count}")
    return names


def place(line: GoldenLine) -> CodeMap:
    """Find, build or unpack the program of a line.

    Raises:
        GuestUnavailable: this machine can't.
    """
    folder = golden_folder()
    guest = line.program.rpartition("/")[2]
    root: Path | None = None
    shares: tuple[Path, ...] = ()
    try:
        if line.is_packaged:
            root = _root(line.arch, folder)
            program = root / line.program.removeprefix("root/")
        elif folder or (GUESTS / line.arch / guest).exists():
            program = (folder or GUESTS) / line.arch / guest
        else:
            program = build_guest(line.arch, guest)
            if RECIPES[guest].before:  # its own library lies beside it
                shares = (program.parent,)
        if not program.exists():
            raise GuestUnavailable(f"{line.program} for {line.arch} is not there")
        if root is None and is_dynamic(program):
            root = _root(line.arch, folder)
    except SysrootUnavailable as error:
        raise GuestUnavailable(f"{line.program} for {line.arch}: {error}") from error
    return CodeMap(program, root, shares)


def command(line: GoldenLine, where: CodeMap) -> list[str]:
    """Return the words behind `kprobe-tui` that run a line."""
    words = ["run", "--clean-env"]
    for key, value in line.env.items():
        words += ["--env", f"{key}={value}"]
    words += ["--argv0", line.argv[0]]
    if where.root is not None:
        words += ["--root", str(where.root)]
    for share in where.shares:
        words += ["--share", str(share)]
    return [*words, str(where.program), *line.argv[1:]]


def run_command(
    words: list[str], cwd: Path, stdin: Path | None = None, timeout: float = TIME_LIMIT
) -> subprocess.CompletedProcess[bytes]:
    """Run this checkout's `kprobe-tui` with these words, wherever the guest's directory is."""
    with (stdin or Path(os.devnull)).open("rb") as source:
        return captured(words, cwd, os.environ, source.fileno(), timeout)


def run_line(
    line: GoldenLine, where: CodeMap, cwd: Path, *options: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a line in a fresh copy of the data folder, made at `cwd`."""
    shutil.copytree(data_folder(), cwd)
    words = command(line, where)
    words[1:1] = options
    return run_command(words, cwd, cwd / line.stdin if line.stdin else None)


def mismatch(line: GoldenLine, returncode: int, stdout: bytes, stderr: bytes) -> str:
    """Say how a result differs from the known one; empty if it does not."""
    complaints = []
    if returncode != line.exit_code:
        complaints.append(f"exit code {returncode}, expected {line.exit_code}")
    digest = hashlib.sha256(stdout).hexdigest()
    if not line.unstable and (digest, len(stdout)) != (line.stdout_sha256, line.stdout_len):
        complaints.append(f"{len(stdout)} bytes of output, expected {line.stdout_len}")
        complaints.extend(_head_difference(line, stdout))
    if complaints and stderr:
        complaints.append("standard error ends with:")
        complaints.extend(stderr.decode("utf-8", "replace").splitlines()[-_HEAD_LINES:])
    return "\n".join(complaints)


def is_dynamic(program: Path) -> bool:
    """Whether a 64-bit little-endian ELF file asks for an interpreter."""
    with program.open("rb") as file:
        header = file.read(64)
        if header[:6] != b"\x7fELF\x02\x01":
            return False
        (offset,) = struct.unpack_from("<Q", header, 32)
        size, count = struct.unpack_from("<HH", header, 54)
        file.seek(offset)
        table = file.read(size * count)
    return any(
        struct.unpack_from("<I", table, index * size)[0] == _PT_INTERP for index in range(count)
    )


def _root(arch: str, folder: Path | None) -> Path:
    return folder / f"root-{arch}" if folder else sysroot(arch)


def _line(row: Mapping[str, object]) -> GoldenLine:
    known = {name: row[name] for name in GoldenLine.__slots__ if row.get(name) is not None}
    known["argv"] = tuple(row["argv"])  # type: ignore[arg-type]
    return GoldenLine(**known)  # type: ignore[arg-type]


def _head_difference(line: GoldenLine, stdout: bytes) -> Iterator[str]:
    expected = line.stdout_head.splitlines()
    found = stdout.decode("utf-8", "replace")[: len(line.stdout_head) + 40].splitlines()
    differences = difflib.unified_diff(expected, found, "expected head", "found", lineterm="", n=1)
    shown = list(differences)[: 2 * _HEAD_LINES]
    yield from shown or ["the heads are equal, a later part differs"]


# Building own guests


@dataclass(frozen=True, slots=True)
class Recipe:
    """How an own guest is built; the words may hold {src}, {out}, {root} and {include}."""

    sources: tuple[str, ...]
    compiler: str
    words: Callable[[str], tuple[str, ...]]
    sysroot: bool = False
    before: tuple[str, ...] = ()


_COMMON = ("-O2", "-g1", "-ffp-contract=off", "-ffile-prefix-map={src}=src")


def _plain(*words: str) -> Callable[[str], tuple[str, ...]]:
    return lambda _: (*_COMMON, *words)


def _musl(arch: str) -> tuple[str, ...]:
    """What musl-gcc's specs say, with the headers and objects of the sysroot."""
    name = f"{arch}-linux-musl"
    library = f"{{root}}/usr/lib/{name}"
    return (
        *_COMMON,
        *("-nostdinc", "-isystem", f"{{root}}/usr/include/{name}", "-isystem", "{include}"),
        *("-nostdlib", "-static", "-no-pie", "-fno-pie", "-fno-stack-protector"),
        *(f"{library}/crt1.o", f"{library}/crti.o", "{src}/guests.c", f"-L{library}"),
        *("-Wl,--start-group", "-lc", "-lgcc", "-lgcc_eh", "-Wl,--end-group"),
        *(f"{library}/crtn.o", "-o", "{out}/musl-guests"),
    )


_EXC = ("-pthread", "{src}/exc.cpp")

RECIPES: Mapping[str, Recipe] = {
    "guests-dyn": Recipe(
        ("guests.c",),
        "gcc",
        _plain("-pthread", "{src}/guests.c", "-o", "{out}/guests-dyn", "-lm"),
        True,
    ),
    "musl-guests": Recipe(("guests.c",), "gcc", _musl, True),
    "exc-static": Recipe(("exc.cpp",), "g++", _plain("-static", *_EXC, "-o", "{out}/exc-static")),
    "exc-dyn": Recipe(("exc.cpp",), "g++", _plain(*_EXC, "-o", "{out}/exc-dyn"), True),
    "libplug.so": Recipe(
        ("plug.c",),
        "gcc",
        _plain(
            "-shared", "-fPIC", "-Wl,-soname,libplug.so", "{src}/plug.c", "-o", "{out}/libplug.so"
        ),
        True,
    ),
    "dynmain": Recipe(
        ("dynmain.c", "plug.c"),
        "gcc",
        _plain(
            *("-pthread", "{src}/dynmain.c", "-o", "{out}/dynmain", "-L{out}", "-lplug"),
            *("-Wl,-rpath,$ORIGIN", "-Wl,-z,lazy"),
        ),
        True,
        before=("libplug.so",),
    ),
    "hello-rs": Recipe(
        ("hello.rs",),
        "rustc",
        lambda arch: (
            *("-O", "-Ctarget-feature=+crt-static", f"--target={arch}-unknown-linux-gnu"),
            *("--remap-path-prefix={src}=src", "{src}/hello.rs", "-o", "{out}/hello-rs"),
        ),
    ),
    "hello-go": Recipe(
        ("hello.go",),
        "go",
        lambda _: ("build", "-trimpath", "-o", "{out}/hello-go", "{src}/hello.go"),
    ),
}


_BENCH = Recipe(
    ("bench.c",),
    "gcc",
    lambda _: (
        *("-O2", "-g", "-static", "-fno-tree-vectorize", "-ffp-contract=off", "-fno-math-errno"),
        *("-ffile-prefix-map={src}=src", "-o", "{out}/bench", "{src}/bench.c", "-lm"),
    ),
)


def build_guest(arch: str, name: str) -> Path:
    """Return an own guest that is not committed; build it into the cache if it has changed.

    Raises:
        GuestUnavailable: there is no recipe, no compiler, or it failed.
        SysrootUnavailable: the headers or libraries it needs can't be had.
    """
    recipe = RECIPES.get(name)
    if recipe is None:
        raise GuestUnavailable(f"{name} for {arch}: no source")
    for earlier in recipe.before:
        build_guest(arch, earlier)
    return _build(arch, name, recipe, GUESTS / "src")


def build_bench(arch: str) -> Path:
    """Return the program of `tests/benchmarks`; build it if it has changed.

    Raises:
        GuestUnavailable: there is no compiler for the architecture, or it failed.
    """
    return _build(arch, "bench", _BENCH, CHECKOUT / "tests" / "benchmarks" / "src")


def _build(arch: str, name: str, recipe: Recipe, source: Path) -> Path:
    wanted = target(arch)
    root = sysroot(arch) if recipe.sysroot else Path()
    output = cache_directory() / f"guests-{wanted.name}"
    output.mkdir(exist_ok=True)
    compiler = _compiler(recipe.compiler, wanted.name, wanted.triplet, name)
    templates = recipe.words(wanted.name)
    places = {"src": source, "out": output, "root": root, "include": _own_headers(compiler)}
    words = [word.format_map(places) for word in templates]
    digest = hashlib.sha256(json.dumps([compiler, templates]).encode())
    for part in recipe.sources:
        digest.update((source / part).read_bytes())
    program, stamp = output / name, output / f"{name}.stamp"
    with locked(program):
        if program.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
            return program
        go = {"GOARCH": wanted.debian, "CGO_ENABLED": "0", "GO111MODULE": "off"}
        done = subprocess.run(
            [compiler, *words],
            env={**os.environ, **go, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            errors = [text for text in done.stderr.splitlines() if "error" in text]
            detail = errors[0] if errors else f"exit code {done.returncode}"
            raise GuestUnavailable(f"{name} for {arch}: {recipe.compiler} failed: {detail}")
        stamp.write_text(digest.hexdigest())
    return program


def _own_headers(compiler: str) -> str:
    """Return the folder of the headers that belong to gcc itself; empty for other compilers."""
    if not compiler.endswith("gcc"):
        return ""
    query = [compiler, "-print-file-name=include"]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()


def _compiler(name: str, arch: str, triplet: str, guest: str) -> str:
    """Return the compiler for an architecture: the cross compiler, or the host's own."""
    if name in ("rustc", "go"):
        found = shutil.which(name)
    else:
        found = shutil.which(f"{triplet}-{name}")
        if found is None and os.uname().machine == arch:
            found = shutil.which(name)
    if found is None:
        raise GuestUnavailable(f"{guest} for {arch}: no {name} for {arch}")
    return found
