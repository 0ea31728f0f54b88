"""Lines of strace, and those of `kprobe-tui strace`, about one program, compared.

Two runs of each are made: one as usual and one with raw arguments. Lines are paired by the calls
they are about. A pair counts where the raw lines are equal, once addresses and process ids are
masked: then the texts have to be equal, too. Pairs that differ in nothing but what stands in
quotes are of other contents (random bytes, another order of a directory) and do not count.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from tempfile import TemporaryDirectory

_HEX = re.compile(r"0x[0-9a-f]{5,}")
_LEADER = re.compile(r"^\d+ +")
_NAME = re.compile(r"(?:<\.\.\. )?(\w+)")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"(?:\.\.\.)?')
_OWN = (
    # Times, ids, and numbers of the machine.
    r"tv_u?n?sec st_ino st_dev st_blocks st_[acm]time st_[acm]time_nsec stx_ino shm_[acd]time "
    r"sem_[oc]time msg_[src]time shm_[cl]pid msg_l[rs]pid si_pid si_uid l_pid si_[us]time "
    r"nlmsg_pid "
    r"si_timerid uid gid cuid cgid pid shmmax shmmni shmall shmseg used_ids shm_tot shm_rss "
    r"shm_swp swap_\w+ sem(?:m\w\w|opm|ume|usz|vmx|aem) uptime loads totalram freeram sharedram "
    r"bufferram procs f_\w+"
)
_MASKS = (
    (re.compile(rf"\b({_OWN.replace(' ', '|')})=(?:\{{[^}}]*\}}|\[[^]]*\]|[^,}}]*)"), r"\1=N"),
    (re.compile(r"^(times?\(.*\)) *= .*"), r"\1 = N"),
    (re.compile(r"makedev\([^)]*\)"), "DEV"),
    (re.compile(r"htons\(\d+\)"), "PORT"),
    (re.compile(r"\|STATX_MNT_ID"), ""),
    (re.compile(r"/\* \d+ vars? \*/"), "/* N vars */"),
)  # fmt: skip


@dataclass
class Compared:
    """What came out of one program.

    Attributes:
        equal: pairs whose raw lines and texts are equal.
        differing: pairs of texts whose raw lines are equal.
        apart: pairs whose raw lines differ, or the contents of what they point to.
        single: lines that only one of both has.
        names: calls of the equal pairs.
    """

    equal: int = 0
    differing: list[tuple[str, str]] = field(default_factory=list)
    apart: list[tuple[str, str]] = field(default_factory=list)
    single: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def add(self, other: "Compared") -> None:
        self.equal += other.equal
        self.differing += other.differing
        self.apart += other.apart
        self.single += other.single
        self.names |= other.names

    @property
    def share(self) -> float:
        """The part of the pairs with equal raw lines whose texts are equal."""
        return self.equal / max(self.equal + len(self.differing), 1)


class StracePair:
    """Runs both tools on a program, each in a fresh folder of the same name.

    Whoever runs this, the program under strace is nobody special, as in the guest.
    """

    def __init__(self, program: Sequence[str], options: Sequence[str] = ()) -> None:
        """Take the program's words, and options of both tools."""
        self._program = list(program)
        self._options = list(options)

    def compare(self) -> Compared:
        """Run each twice, and pair the lines."""
        with TemporaryDirectory() as base:
            self._base = Path(base)
            self._base.chmod(0o755)
            if not self._program[0].startswith(("/bin/", "/usr/")):
                self._program[0] = shutil.copy(self._program[0], base + "/program")
            return self._compared()

    def _compared(self) -> Compared:
        theirs, ours = (self._lines(tool, []) for tool in ("strace", "own"))
        raw_theirs, raw_ours = (self._lines(tool, ["-e", "raw=all"]) for tool in ("strace", "own"))
        found = Compared()
        names = [[_name(line) for line in lines] for lines in (theirs, ours)]
        for tag, a, b, c, d in SequenceMatcher(
            None, names[0], names[1], autojunk=False
        ).get_opcodes():
            if tag != "equal":
                found.single += [f"- {line}" for line in theirs[a:b]]
                found.single += [f"+ {line}" for line in ours[c:d]]
                continue
            for at, to in zip(range(a, b), range(c, d), strict=True):
                pair = theirs[at], ours[to]
                same = _raw(raw_theirs, at) == _raw(raw_ours, to)
                shown = [_masked(line) for line in pair]
                if shown[0] == shown[1]:
                    found.equal += 1
                    found.names |= {names[0][at]} if pair[0][0].isalpha() else set()
                elif same and _TEXT.sub("T", shown[0]) != _TEXT.sub("T", shown[1]):
                    found.differing.append(pair)
                else:
                    found.apart.append(pair)
        return found

    def _lines(self, tool: str, more: list[str]) -> list[str]:
        folder, out = self._base / "here", self._base / "out"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        options = [*self._options, *more, "-o", str(out)]
        if tool == "strace":
            shell = os.environ.get("PATH", "")
            command = ["env", "-i", "strace", *options, *self._program]
            if os.geteuid() == 0:  # the guest is nobody special
                os.chown(folder, 1000, 1000)
                out.unlink(missing_ok=True)
                out.touch()
                os.chown(out, 1000, 1000)
                command = ["setpriv", "--reuid=1000", "--regid=1000", "--groups=1000",
                           "--inh-caps=-all", *command]  # fmt: skip
            environment = {"PATH": shell}
        else:
            command = [sys.executable, "-P", "-m", "tui", "strace", "--clean-env", "--timeout"]
            command += ["60", "--share", f"{folder}:rw", *options, *self._program]
            environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
        subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, check=False, timeout=120,
        )  # fmt: skip
        text = out.read_text(errors="surrogateescape")
        return _settled(text.splitlines())


def _settled(lines: list[str]) -> list[str]:
    """Lines with the ids of their own run masked."""
    ids = {
        match[1]
        for line in lines
        for match in [
            re.search(r"(?:fork|vfork|clone3?|gettid|getpid|set_tid_address|setsid|getpgrp"
                      r"|getpgid|getsid)\(.*= (\d+)", line)
        ]
        if match and int(match[1]) > 2
    }  # fmt: skip
    ids |= {match[0].strip() for line in lines for match in [_LEADER.match(line)] if match}
    ids.add("1000")  # the user's id, and the guest's first process
    pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(sorted(ids, key=len, reverse=True))})(?!\w)")
    return [pattern.sub("PID", line) for line in lines]


def _name(line: str) -> str:
    if line[:3] in ("---", "+++"):
        return line[:24].partition("{")[0]
    found = _NAME.match(line)
    return found[1] if found else line


def _raw(lines: list[str], at: int) -> str:
    line = lines[at] if at < len(lines) else ""
    return _HEX.sub("0xA", re.sub(r"0x[0-9a-f]{5,}", "0xA", line))


def _masked(line: str) -> str:
    line = _HEX.sub("0xA", line)
    for pattern, text in _MASKS:
        line = pattern.sub(text, line)
    return re.sub(r" +", " ", line)
