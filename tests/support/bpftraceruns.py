"""Runs of bpftrace's runtime tests by `kprobe-tui bpftrace`: what each needs, and how it is run.

What a test needs is read off its script and its directives, never off how it ends: its class, and
whether it needs something that is not offered here.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bootkit import BUSYBOX
from bpftraceshim import ATTACHED
from bpftracetests import RuntimeTest, runs_here
from compiled import tool
from warmed import SAME_CODE

_SHIM: Final = Path(__file__).with_name("bpftraceshim.py")
_HOST_SECONDS: Final = 600
"""After so many seconds of this machine's time a run is ended."""
_WRONG: Final = 2
"""Exit code of a script that is wrong. A guest whose script does not call exit() ends by itself,
with a code of its own, where bpftrace is ended from outside."""
KERNEL: Final = "kprobe in a booted kernel"
CLASSES: Final = ("begin and end", "uprobe", "usdt", "tracepoint", KERNEL, "timer", "watchpoint")
"""Classes of tests by the place of their probes."""

_BEGUN: Final = r"(?:^|[}}'\",\n]|\*/|-l |-lv )\s*(?:{}):(?=[A-Za-z_*./\"$]|0x|\d+(?:[mun]?s|hz))"
"""Beginning of a probe in a script or behind `-l`."""


def _probes(*names: str) -> re.Pattern[str]:
    return re.compile(_BEGUN.format("|".join(names)))


_KERNEL_PROBES: Final = re.compile(
    _BEGUN.format("k|kr|kprobe|kretprobe|f|fr|fentry|fexit|kfunc|kretfunc|rt|rawtracepoint")
    + r"|\b(?:t|tracepoint):(?!syscalls\b|raw_syscalls\b|sched\b|\*)[a-z]"
    + r"|-l[v ]*'?(?:kprobe|\"\*do_nano|'?struct )|--list|grep (?:fentry|rawtracepoint)"
)
_KERNEL_WORDS: Final = re.compile(
    r"\b(curtask|kstack|kaddr|ksym|jiffies|task_struct|args\.rqtp"
    r"|struct (file|fd|sock|sk_buff|qspinlock|path|inode)|kptr)\b"
)
_OTHERS: Final = (
    ("usdt", re.compile(_probes("U", "usdt").pattern + r"|grep -e '\^usdt")),
    ("uprobe", re.compile(_probes("u", "ur", "uprobe", "uretprobe").pattern + r"|-e '\^uprobe")),
    ("watchpoint", _probes("w", "aw", "watchpoint", "asyncwatchpoint")),
    ("tracepoint", _probes("t", "tracepoint")),
    ("timer", _probes("i", "interval", "p", "profile")),
)

_NEEDS: Final = (
    (_probes("h", "hw", "hardware", r"\*ware"), "hardware counters"),
    (_probes("s", "sw", "software"), "software counters"),
    (_probes("it", "iter"), "iterators of BPF"),
    (_probes("bench", "test"), "benchmarks and tests of BPF programs"),
    *(
        (re.compile(pattern), reason)
        for pattern, reason in (
            (r"grep hardware", "hardware counters"),
            (r"grep software", "software counters"),
            (r"--unsafe", "--unsafe: actions on the host, probes without checks"),
            (r"--aot", "programs that are compiled ahead"),
            (r"fentry:bpf:", "probes of BPF programs"),
            (r"\bskboutput\(", "skboutput(): packets to a file of the host"),
            (r"\b(?:override|write_user)\(", "override(), write_user(): a script only watches"),
            (r"\bpercpu_kaddr\(|\bsocket_cookie\(", "percpu_kaddr(), socket_cookie()"),
            (r"(?<![\w.@$])ctx\b|\bdebugf\(|\bkfunc_\w+\(", "ctx, debugf(), kfunc_exist()"),
            (r"(?<!\w)-k (?:-e|-q)", "-k: errors of BPF helpers"),
            (r"unshare|mountns|nsenter|ip netns|/proc/\{\{BEFORE_PID", "other namespaces"),
            (
                r"vfs_read \{[^}]*path\(|LOG_SIZE=2$|\{ @\[probe\] = count\(\); \}'$",
                "limits of BPF's verifier",
            ),
            (
                r"--(?:dwarf-pid|probe-filter|traceable-functions|include|debuginfo|no-warnings|info)\b"
                r"|\}\} (?:-h|--version|-idonotexist|-p (?:a1|111a|not|50))|--aa=20$",
                "options of bpftrace's command line that ours does not have",
            ),
            (r"watchpoint:0x\w+:\d+:\w*[rx]", "watchpoints of more than stores"),
            (r"strace", "another tracer on the host"),
            (r"DUMMY_TS_MAP", "a clock that is a map, which bpftrace has for these tests"),
            (r"/proc/kallsyms", "addresses of the kernel of this machine"),
        )
    ),
)
"""Facilities that are not offered, by a pattern of the tests that need them."""
_AROUND: Final = ("ENV", "BEFORE", "AFTER", "SETUP")
"""Directives that tell of needs, beside the script and its command line."""
_UNMET: Final = re.compile(r"bash -c \"exit 1\"|lsmod|nft|bpftool|findmnt|/mnt/vmtest|/proc/1/ns")
_FEATURES: Final = frozenset({"kprobe_session"})
"""Features of BPF that are not offered, whose tests bpftrace leaves out itself without them."""
_SIGNALS: Final = re.compile(r"\b(?:kill|pkill)\b.*\bbpftrace\b")


@dataclass(frozen=True)
class Plan:
    """The class of a test, and a need of it that is not met.

    Attributes:
        kind: its class.
        unmet: what is not offered and the test needs; "" if all is.
        boots: the guest is a booted kernel.
        ends: it ends by itself, by exit() or as there is no run; others are ended from outside.
    """

    kind: str
    unmet: str
    boots: bool
    ends: bool


def plan(test: RuntimeTest, folder: Path) -> Plan:
    """Say what a test needs; scripts that its command names are read from a folder."""
    text = test.command
    for name in re.findall(r"runtime/scripts/\w+\.bt", text):
        text += "\n" + (folder / name).read_text()
    boots = bool(_KERNEL_PROBES.search(text) or _KERNEL_WORDS.search(text))
    boots |= "btf" in test.first("REQUIRES_FEATURE").split() and not _is_of_programs(text)
    kind = next((name for name, found in _OTHERS if found.search(text)), CLASSES[0])
    ends = "exit(" in text or "}} -l" in text
    return Plan(KERNEL if boots else kind, _unmet(test, text, boots=boots), boots, ends)


def _is_of_programs(text: str) -> bool:
    return any(found.search(text) for name, found in _OTHERS if name in ("uprobe", "usdt"))


def _unmet(test: RuntimeTest, text: str, *, boots: bool) -> str:
    """The facility that the test needs and is not offered; "" if all are."""
    if not runs_here(test):
        return "another architecture"
    required = test.every("REQUIRES")
    found = next((one for one in required if _UNMET.search(one)), "")
    if found:
        return f"REQUIRES {found}"
    if "{{BPFTRACE}}" not in test.command:
        return "no bpftrace: a test of bpftrace's own engine for tests"
    if _FEATURES & set(" ".join(test.every("REQUIRES_FEATURE")).split()):
        return "REQUIRES_FEATURE kprobe_session: one BPF program for both ends"
    if test.has("NEW_PIDNS"):
        return "other namespaces"
    around = [one for name, one in test.lines if name in _AROUND]
    for pattern, reason in _NEEDS:
        if any(pattern.search(one) for one in (text, *around)):
            return reason
    if boots and re.search(r"\bu\w*:\./", text):
        return "relative paths in a booted system, which has no working directory"
    if "-p {{BEFORE_PID}}" in text and len(test.every("BEFORE")) > 1:
        return "-p: one process of several"
    return ""


@dataclass(frozen=True)
class Ended:
    """How a run ended: everything that was printed, the exit code, whether time was over."""

    output: str
    code: int
    timed_out: bool


class Runs:
    """Runs of tests.

    Args:
        folder: the folder like bpftrace's `build/tests`.
        scratch: a folder for the roots of booted systems.
        kernel: the image that is booted.
    """

    def __init__(self, folder: Path, scratch: Path, kernel: Path) -> None:
        self._folder = folder
        self._scratch = scratch
        self._kernel = kernel

    def of(self, test: RuntimeTest, planned: Plan, number: int) -> Ended:
        """Run a test; its number tells its files from those of others."""
        options: list[str] = []
        if planned.boots:
            root = self._root(test, self._scratch / f"root{number}")
            options = ["--boot", "--init", str(root), "--append", "quiet"]
            guest = [str(self._kernel)]
        else:
            guest = _guest(test, planned)
        environment = {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            **SAME_CODE,
            **test.environment,
            "RUNTIME_TEST_GUEST": json.dumps(guest),
            "RUNTIME_TEST_OPTIONS": json.dumps(options),
        }
        command = test.command.replace("{{BPFTRACE}}", f"{sys.executable} -P {_SHIM}")
        command = command.replace("{{BEFORE_PID}}", "1000").replace("$(pidof usdt_lib)", "1000")
        sends = test.first("AFTER") if _SIGNALS.search(test.first("AFTER")) else ""
        command = command.replace("/tmp/bpftrace-", f"{self._scratch}/{number}-")
        ended = self._ended(command, environment, sends, exact=test.is_exact)
        is_over = ended.timed_out or (not planned.ends and ended.code != _WRONG)
        return Ended(ended.output, ended.code, is_over)

    def _ended(
        self, command: str, environment: dict[str, str], sends: str, *, exact: bool
    ) -> Ended:
        errors = subprocess.DEVNULL if exact else subprocess.STDOUT
        with subprocess.Popen(
            [tool("bash"), "-c", command],
            cwd=self._folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as process:
            late = threading.Event()
            timer = threading.Timer(_HOST_SECONDS, _end, (process.pid, late))
            timer.start()
            if sends:
                threading.Thread(target=_send, args=(process, sends), daemon=True).start()
            output, _ = process.communicate()
            timer.cancel()
        text = output.decode("utf-8", "backslashreplace")
        if exact:
            text = text.replace(ATTACHED, "", 1)
        return Ended(text, process.returncode, late.is_set())

    def _root(self, test: RuntimeTest, root: Path) -> Path:
        """A root for a booted system whose init runs the programs of the test."""
        for name in ("bin", "proc", "sys", "dev", "tmp", "tests/testprogs", "lib64", "etc"):
            (root / name).mkdir(parents=True)
        shutil.copy(BUSYBOX, root / "bin/busybox")
        for name in ("sh", "mount", "poweroff", "cat", "sleep", "ls", "ping"):
            (root / "bin" / name).symlink_to("busybox")
        bash = root / "bin/bash"
        bash.write_text('#!/bin/sh\nexec /bin/sh "$@"\n')
        bash.chmod(0o755)
        commands = [*test.every("BEFORE"), test.first("AFTER")]
        commands += re.findall(r"-c \"?(\./testprogs/[^\"']*)", test.command)
        programs = re.findall(r"testprogs/([\w-]+)", " ".join(commands))
        for name in programs:
            shutil.copy(self._folder / "testprogs" / name, root / "tests/testprogs" / name)
        if programs:
            for path in ("/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6"):
                (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, root / path[1:])
        befores = [f"{command} &" for command in test.every("BEFORE")]
        init = root / "init"
        init.write_text(
            "\n".join(
                (
                    "#!/bin/sh",
                    *("mount -t proc proc /proc", "mount -t sysfs sys /sys"),
                    *("mount -t devtmpfs dev /dev", "cd /tests"),
                    *befores,
                    *commands[len(befores) :],
                    *("sleep 1", "poweroff -f", ""),
                )
            )
        )
        init.chmod(0o755)
        return root


def _guest(test: RuntimeTest, planned: Plan) -> list[str]:
    """The guest of a test: its programs; where there is none, one that only sleeps."""
    befores, after = test.every("BEFORE"), test.first("AFTER")
    if _SIGNALS.search(after):
        return ["/bin/sh", "-c", "while :; do :; done"]
    if not befores and not after:
        return ["/bin/sleep", str(test.seconds)]
    has_timers = re.search(r"\b(?:i|interval|p|profile):", test.command) is not None
    plain = not re.search(r"[;&|$=<>(]", after)
    if befores and not after and len(befores) == 1:
        return _limited(planned, shlex.split(befores[0]))
    if "execve" in test.command and not befores:  # the shell that runs the command is one, too
        return ["/bin/sh", "-c", '/bin/sh -c "$1"; sleep 1', "sh", after]
    if not befores and plain and not has_timers:
        return _limited(planned, shlex.split(after))
    started = [f"{command} &" for command in befores]
    waits = "sleep 1;" if befores else ""
    return ["/bin/sh", "-c", f"{' '.join(started)} {waits} {after or ':'}\nsleep 2"]


def _limited(planned: Plan, words: list[str]) -> list[str]:
    """The guest of a script that does not end it: it ends after two seconds of its own time."""
    return words if planned.ends else ["/usr/bin/timeout", "2", *words]


def _end(pid: int, late: threading.Event) -> None:
    late.set()
    os.killpg(pid, signal.SIGTERM)
    time.sleep(5)
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _send(process: "subprocess.Popen[bytes]", command: str) -> None:
    """Send a signal to the tool until it has ended: only once the probes are there is it heard."""
    number = signal.SIGUSR1 if "USR1" in command else signal.SIGINT
    time.sleep(3)
    while process.poll() is None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for pid in children or [str(process.pid)]:
            os.kill(int(pid), number)
        time.sleep(1)
