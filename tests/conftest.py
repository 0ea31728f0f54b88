"""How the tests run: what a run has in common, in which order, and what may not be skipped.

`.ci/run` wants nothing missing on its machine, so no test may be skipped there.
"""

import gc
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import downloads
import pytest
from hypothesis import HealthCheck, settings
from runfolder import RunFolder

import engine

# How long an example takes depends on what else the machine does.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")

RUN_FOLDER = pytest.StashKey[RunFolder]()
DOWNLOADS = pytest.StashKey[subprocess.Popen[bytes]]()

# Tests that may be skipped even there: pattern of the name, pattern of the reason.
MAY_BE_SKIPPED: tuple[tuple[str, str], ...] = (
    # They change the kernel's probes, and few machines let them: only if the environment says so.
    (
        r"(trace/test_(definition|filter)|tracing/test_tracing|x86_64/test_mistakes"
        r"|live/test_(recording|machine_files)|guest/test_probing_inodes|program/test_markers"
        r"|test_perf_events|bpftrace/test_(printing|parser)|cli/test_bpftrace)_live\.py",
        "KPROBE_TUI_LIVE_KERNEL",
    ),
    # They read scripts of bpftrace, and compile a part of it, from a checkout.
    (
        r"trace/bpftrace/test_(\w+_of_bpftrace|parser_upstream|checking_against_\w+)\.py"
        r"|cli/test_bpftrace_runtime\.py",
        "KPROBE_TUI_BPFTRACE_SOURCE",
    ),
    # It mounts a file system of its own.
    (r"hostile/test_memory_limit\.py::test_linux_says", "KPROBE_TUI_LIVE_KERNEL"),
    # It boots a machine, which takes minutes of emulation.
    (r"live/test_recording_machine\.py", "KPROBE_TUI_LIVE_MACHINE"),
    # The test fetches a whole system, and boots it.
    (r"samples/test_boot_system\.py", "KPROBE_TUI_DEBIAN_DISK"),
    # Selftests of Linux take minutes in two emulators.
    (
        r"cli/test_boot_ftrace_selftests\.py|test_event_probes_selftests\.py",
        "KPROBE_TUI_FTRACE_SELFTESTS",
    ),
    # The test fetches the sources of Linux.
    (r"cli/test_boot_trace_probe_module\.py", "KPROBE_TUI_LINUX_SOURCE"),
    # Its lines take hours, and programs that few machines have.
    (r"cli/test_run_survey\.py", "KPROBE_TUI_SURVEY"),
    # Debian's clang may have no sanitizers beside it; gcc's are tried, too.
    (r"guest/test_memory_vast\.py::test_so_do_those_of_clang", "clang cannot build"),
    # Debian's rustc is older than some of the programs, and has no printers for gdb beside it.
    (
        r"language/test_rust_evaluation\.py|debugger/test_bodies\.py",
        "clang cannot build|rustc cannot build|no printers for gdb",
    ),
    # fish tells a completion nothing of what stands behind the cursor.
    (r"cli/test_shells\.py::\w+\[fish\]", "only what is in front of the cursor"),
    # libc-test is nobody's package; who has built it says where.
    (r"engine/test_libc_math\.py", "KPROBE_TUI_LIBC_TEST"),
    # Where manuals leave something open, processors of other makers do something else.
    (r"engine/test_forms\.py::test_x86_64", "the results of an Intel processor"),
    # Whose guest a guest is depends on who runs the tests.
    (r"test_run_files\.py::test_files_show_their_owner", "only root can make files of others"),
    (r"test_run_files\.py::test_a_guest_is_the_user", "root's guests are another user"),
    # Nobody else can become another user.
    (r"test_gdbserver\.py::test_a_client_of_another_user", "only root can be somebody else"),
    # Root is refused no file.
    (r"test_malformed\.py::test_an_unreadable_file_is_refused", "this user reads everything"),
    # A static program has neither a search table nor dynamic symbols to be looked at.
    (r"image/test_\w+\.py::\w+\[/bin/busybox\]", r"without \.eh_frame_hdr|no dynamic symbols"),
    # A host may give nobody an io_uring.
    (r"linux/test_differential\.py::test_io_uring", "gives nobody an io_uring"),
    # A container may forbid ptrace.
    (r"linux/test_tracing\.py::test_\w+_as_a_guest", "nobody may trace here"),
    # Debian 12 has no riscv64: its programs are Debian 13's, with another Python.
    (r"test_graphing\.py::\w+\[python3-riscv64\]", "no python3 for riscv64"),
    # Debian's archive keeps only its latest kernels.
    (r"", r"no kernel image"),
    # Debian's mirror or the package index may lack a package or a wheel for a while.
    (r"test_aarch64_python\.py", "no Python of 64-bit ARM"),
    # While a release is brought to it, a mirror gives an index that its own list contradicts.
    (r"riscv64", "riscv64.*Mirror sync in progress"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nothing-missing",
        action="store_true",
        help="fail tests that would be skipped, and test the installed wheel or nothing",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Tests send it to programs that they start; under nohup these would be deaf to it.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    cache = Path(os.environ.get("KPROBE_TUI_CACHE") or config.rootpath / ".cache")
    os.environ.setdefault("KPROBE_TUI_KERNEL_CACHE", str(cache / "kernel-cache"))
    os.environ.setdefault("KPROBE_TUI_NAME_CACHE", str(cache / "name-cache"))
    keep_bytecode(cache / "bytecode")
    if not is_worker(config):
        config.stash[RUN_FOLDER] = RunFolder()
    strict = config.getoption("--nothing-missing")
    if strict and Path(engine.__file__).is_relative_to(config.rootpath / "engine"):
        raise pytest.UsageError(f"this is not what was installed: {engine.__file__}")


def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: a sixth of the time is spent waiting for children."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_unconfigure(config: pytest.Config) -> None:
    if RUN_FOLDER in config.stash:
        config.stash[RUN_FOLDER].remove()


def is_worker(config: pytest.Config) -> bool:
    """Whether this is one of the processes that xdist starts."""
    return hasattr(config, "workerinput")


def keep_bytecode(folder: Path) -> None:
    """Compile each file once, not once a process, even where the environment wants no bytecode.

    The tests start hundreds of Pythons. The bytecode goes to a folder of its own then.
    """
    if sys.dont_write_bytecode:
        sys.dont_write_bytecode, sys.pycache_prefix = False, str(folder)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(folder)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Begin to download what a run of all tests needs; a run of some fetches what they ask for."""
    config = session.config
    is_whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS
    if is_whole and not is_worker(config) and not config.option.collectonly:
        config.stash[DOWNLOADS] = downloads.start(config.option.markexpr)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if process := session.config.stash.get(DOWNLOADS, None):
        process.wait()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files whose tests download last; the order is the same otherwise."""
    turns = {
        module: downloads.turn(module)
        for module in {item.module for item in items if isinstance(item, pytest.Function)}
    }
    items.sort(key=lambda item: turns[item.module] if isinstance(item, pytest.Function) else 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let Python's collector rest while tests are found: all that is made then is kept."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Leave ten thousand collected tests out of what Python's collector looks through."""
    gc.freeze()


@pytest.fixture(autouse=True)
def own_signals() -> Iterator[None]:
    """A command that a test runs in this process leaves signals for its guest ignored behind it.

    Programs that later tests start would be deaf to them.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGUSR1, signal.SIGUSR2)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.config.getoption("--nothing-missing"):
        refuse(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if collector.config.getoption("--nothing-missing"):
        refuse(report)
    return report


def refuse(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a failure of a skipped test that is not listed."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not any(
            re.search(name, report.nodeid) and re.search(why, reason)
            for name, why in MAY_BE_SKIPPED
        ):
            report.outcome = "failed"
            report.longrepr = f"skipped: {reason}"
