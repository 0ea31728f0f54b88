"""Sysroots of Debian packages: the real programs that the golden lines run.

One tree an architecture, unpacked (never installed) from the packages of the machine's own apt
sources; of an architecture that is younger than Debian 12, from those of the release that has it.
apt runs with a state, a cache and an architecture of its own, so that neither root nor a
change to the host's apt is needed and no foreign architecture has to be registered. Everything
lands below `.cache` in the checkout, or below `$KPROBE_TUI_CACHE`.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runfolder import run_folder

CHECKOUT = Path(__file__).resolve().parents[2]

_PROGRAMS = """
bash-static bc busybox-static bzip2 coreutils dash dc diffutils duktape gawk grep gzip jq
klibc-utils lua5.4 mawk mujs perl-base pigz python3.11-minimal sash sed sqlite3 xz-utils zstd
"""
_LIBRARIES = "libc6 libgcc-s1 libpython3.11-minimal libstdc++6"
PACKAGES = (*_PROGRAMS.split(), *_LIBRARIES.split())

# Unpacked without what they depend on: headers and objects for a compiler of the host.
PACKAGES_ALONE = ("musl-dev",)

# Changes when the layout of a finished tree does.
_FORMAT = 3
# Parts of packages that no guest reads.
_PRUNED = ("doc", "doc-base", "info", "lintian", "locale", "man", "bug", "i18n", "zoneinfo")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_APT_TIMEOUT = 900


class SysrootUnavailable(Exception):  # noqa: N818 - a state of the machine, not an error of ours
    """This machine cannot build the sysroot; the text says why."""


@dataclass(frozen=True, slots=True)
class _Target:
    """An architecture as the engine, Debian and the toolchain name it.

    `suites`: names of one release of Debian's, where the machine's own sources will not do;
    `more`: packages besides.
    """

    name: str
    debian: str
    triplet: str
    suites: tuple[str, ...] = ()
    more: tuple[str, ...] = ()


_TARGETS = (
    _Target("x86_64", "amd64", "x86_64-linux-gnu"),
    _Target("aarch64", "arm64", "aarch64-linux-gnu"),
    _Target(
        "riscv64",
        "riscv64",
        "riscv64-linux-gnu",
        # A mirror may be in the middle of a point release under one name and not under the other.
        suites=("trixie", "stable"),
        more=("libpython3.13-minimal", "micropython", "python3.13-minimal"),
    ),
)
_MIRROR = "http://deb.debian.org/debian"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"

_failures: dict[str, str] = {}


def target(arch: str) -> _Target:
    """Find an architecture by the engine's name or by Debian's."""
    for candidate in _TARGETS:
        if arch in (candidate.name, candidate.debian):
            return candidate
    raise SysrootUnavailable(f"no Debian packages are known for {arch}")


def cache_directory() -> Path:
    """Return the folder for everything that tests build, made on demand."""
    directory = Path(os.environ.get("KPROBE_TUI_CACHE") or CHECKOUT / ".cache")
    directory.mkdir(parents=True, exist_ok=True)
    return directory.resolve()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock beside `path`, against other test workers and other runs."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def sysroot(arch: str) -> Path:
    """Return the tree for an architecture; build it first if its package list has changed.

    Raises:
        SysrootUnavailable: apt or dpkg-deb is missing, or the packages can't be fetched.
    """
    wanted = target(arch)
    if reason := _failures.get(wanted.name):
        raise SysrootUnavailable(reason)
    tree = cache_directory() / f"sysroot-{wanted.name}"
    stamp = tree.with_name(tree.name + ".stamp")
    key = _key(wanted)
    with locked(tree):
        if tree.is_dir() and stamp.is_file() and stamp.read_text() == key:
            return tree
        try:
            _build(wanted, tree, stamp, key)
        except SysrootUnavailable as error:
            _failures[wanted.name] = str(error)
            raise
    return tree


def packages(arch: str) -> dict[str, str]:
    """Return the version of every package in a tree."""
    tree = sysroot(arch)
    versions: dict[str, str] = json.loads(tree.with_name(tree.name + ".json").read_text())
    return versions


def _key(wanted: _Target) -> str:
    parts = [_FORMAT, wanted.debian, PACKAGES, PACKAGES_ALONE, _PRUNED]
    text = json.dumps([*parts, wanted.suites, wanted.more] if wanted.suites else parts)
    return hashlib.sha256(text.encode()).hexdigest()


def _build(wanted: _Target, tree: Path, stamp: Path, key: str) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{tree.name}.", dir=tree.parent) as name:
        work = Path(name)
        archives = _download(wanted, work)
        fresh = work / "root"
        fresh.mkdir()
        versions = {}
        for archive in archives:
            _run("dpkg-deb", "-x", str(archive), str(fresh))
            fields = _run("dpkg-deb", "-f", str(archive), "Package", "Version").splitlines()
            package, version = (field.partition(": ")[2] for field in sorted(fields))
            versions[package] = version
            archive.unlink()
        _finish(fresh)
        stamp.unlink(missing_ok=True)
        if tree.exists():
            shutil.rmtree(tree)
        fresh.rename(tree)
        listing = json.dumps(dict(sorted(versions.items())), indent=1)
        tree.with_name(tree.name + ".json").write_text(listing + "\n")
        stamp.write_text(key)


def _download(wanted: _Target, work: Path) -> list[Path]:
    """Fetch the packages and all they depend on, from the first suite that can give them."""
    failed: SysrootUnavailable | None = None
    for suite in wanted.suites or ("",):
        folder = work / f"apt-{suite}"
        folder.mkdir()
        try:
            return _download_from(suite, wanted, folder)
        except SysrootUnavailable as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _download_from(suite: str, wanted: _Target, work: Path) -> list[Path]:
    """Fetch them with an apt of our own; "" are the machine's sources."""
    source = f"deb [signed-by={KEYS}] {_MIRROR} {suite} main" if suite else ""
    config = own_apt(wanted.debian, work, source)
    archives = work / "cache" / "archives"
    known = set(_run("apt-cache", f"--config-file={config}", "pkgnames").split())
    chosen = sorted(known & {*PACKAGES, *wanted.more})
    if "libc6" not in chosen:
        raise SysrootUnavailable(f"the machine's apt sources gave no {wanted.debian} packages")
    _run("apt-get", f"--config-file={config}", "-qq", "--download-only", "install", *chosen)
    if alone := sorted(known & set(PACKAGES_ALONE)):
        _run("apt-get", f"--config-file={config}", "-qq", "download", *alone, cwd=archives)
    return sorted(archives.glob("*.deb"))


def package_file(package: str, debian: str, work: Path, source: str = "") -> Path:
    """One package without what it depends on.

    Args:
        package: its name.
        debian: the architecture as Debian names it.
        work: an empty folder.
        source: a line of a sources.list; "" = the machine's sources.

    Raises:
        SysrootUnavailable: there is none, or no apt.
    """
    config = own_apt(debian, work, source)
    _run("apt-get", f"--config-file={config}", "-qq", "download", package, cwd=work)
    return next(work.glob("*.deb"))


def unpacked_packages(debian: str, packages: Sequence[str], work: Path) -> Path:
    """Packages with all that they depend on, unpacked into a new folder in `work`.

    Raises:
        SysrootUnavailable: they cannot be fetched, or there is no apt.
    """
    config = own_apt(debian, work, "")
    _run("apt-get", f"--config-file={config}", "-qq", "--download-only", "install", *packages)
    tree = work / "root"
    tree.mkdir()
    for archive in sorted((work / "cache" / "archives").glob("*.deb")):
        _run("dpkg-deb", "-x", str(archive), str(tree))
    _finish(tree)
    return tree


def own_apt(debian: str, work: Path, source: str) -> Path:
    """The configuration of an apt of our own, which knows what there is.

    The lists of packages are fetched once a run of the tests.

    Args:
        debian: the architecture as Debian names it.
        work: an empty folder.
        source: a line of a sources.list; "" = the machine's sources.
    """
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise SysrootUnavailable(f"{tool} is not installed")
    key = hashlib.sha256(f"{debian} {source}".encode()).hexdigest()[:16]
    state, cache = run_folder("apt") / key, work / "cache"
    with locked(state):
        is_known = state.is_dir()
        for folder in (state / "lists" / "partial", cache / "archives" / "partial"):
            folder.mkdir(parents=True, exist_ok=True)
        (state / "status").touch()
        config = _configuration(debian, work, source, state)
        if not is_known:
            try:
                _run("apt-get", f"--config-file={config}", "-qq", "update")
            except SysrootUnavailable:
                shutil.rmtree(state)
                raise
    return config


def _configuration(debian: str, work: Path, source: str, state: Path) -> Path:
    """Write the file that has all that this apt is told; `state`: its lists of packages."""
    cache, config = work / "cache", work / "apt.conf"
    sources = ""
    if source:
        (work / "sources.list").write_text(f"{source}\n")
        sources = f'Dir::Etc::sourcelist "{work}/sources.list"; Dir::Etc::sourceparts "/dev/null";'
    # Read after the machine's own configuration, whose sources, keys and proxy stay in force;
    # its hooks are dropped, since they tidy up in the host's directories.
    config.write_text(
        f"""
        #clear APT::Architectures;
        #clear APT::Update;
        #clear DPkg;
        APT::Architecture "{debian}";
        APT::Architectures {{ "{debian}"; }};
        APT::Sandbox::User "root";
        APT::Get::Assume-Yes "true";
        APT::Install-Recommends "false";
        APT::Cache-Start "50000000";
        Acquire::Languages "none";
        Acquire::GzipIndexes "true";
        Acquire::Retries "2";
        Acquire::http::Timeout "30";
        Dir::State "{state}";
        Dir::State::lists "{state}/lists";
        Dir::State::status "{state}/status";
        Dir::Cache "{cache}";
        Dir::Cache::archives "{cache}/archives";
        Dir::Log "{work}";
        Binary::apt-get::APT::Keep-Downloaded-Packages "true";
        APT::Keep-Downloaded-Packages "true";
        {sources}
        """
    )
    return config


def _finish(tree: Path) -> None:
    """Prune what no guest reads and merge /bin, /lib and the like into /usr, as Debian does."""
    for part in _PRUNED:
        shutil.rmtree(tree / "usr" / "share" / part, ignore_errors=True)
    for part in _MERGED:
        top, below = tree / part, tree / "usr" / part
        if top.is_symlink() or not (top.is_dir() or below.is_dir()):
            continue
        below.mkdir(parents=True, exist_ok=True)
        if top.is_dir():
            _move(top, below)
            top.rmdir()
        top.symlink_to(f"usr/{part}")
    for place in tree.rglob("*"):
        if not place.is_symlink() and place.stat().st_mode & 0o7000:  # no set-user-ID in a cache
            place.chmod(place.stat().st_mode & 0o777)
    for folder in ("tmp", "dev", "proc", "sys"):
        (tree / folder).mkdir(exist_ok=True)


def _move(source: Path, destination: Path) -> None:
    """Move everything in a folder into another, joining folders that both have."""
    for entry in source.iterdir():
        place = destination / entry.name
        if entry.is_dir() and not entry.is_symlink() and place.is_dir():
            _move(entry, place)
            entry.rmdir()
        elif not (place.exists() or place.is_symlink()):
            entry.rename(place)
        else:
            entry.unlink()


def _run(*command: str, cwd: Path | None = None) -> str:
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command,
            check=True,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_APT_TIMEOUT,
        )
    except subprocess.CalledProcessError as error:
        complaints = (error.stderr.strip() or error.stdout.strip()).splitlines()
        # apt names the cause first, and last that something failed.
        causes = [line for line in complaints if line.startswith("E: ")] or complaints[-1:]
        raise SysrootUnavailable(f"{command[0]}: {causes[0] if causes else error}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SysrootUnavailable(f"{command[0]}: {error}") from error
    return done.stdout
