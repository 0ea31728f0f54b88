"""Expressions of two programs of Go, what delve said of them, and what we say.

`python tests/support/delvekit.py depot plain` asks delve anew and writes the file of its answers.
"""

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from builtonce import built_once
from compiled import tool
from gdbwords import said
from msgspec import Struct

from engine.session.protocol.config import GuestConfig

_DATA: Final = Path(__file__).parents[1] / "data" / "language"
FLAGS: Final = {"plain": ("-gcflags=all=-N -l",), "optimised": ()}
"""Flags for `go build` by the name of a build."""
WORDS: Final = {"locals": "info locals", "args": "info args", "stack": "bt"}
"""Our words for those of delve that are asked at a stop."""
_MARK: Final = re.compile(r'^"@"$', re.MULTILINE)
_OUTER: Final = re.compile(r"\^(\d+) (.*)")
_LOST: Final = re.compile(r"\(unreadable [^)]*\)")
_DELVE_FRAME: Final = re.compile(r"^ *\d+  0x\S+ in (.+)\n +at .*:(\d+)$", re.MULTILINE)
_OUR_FRAME: Final = re.compile(r"^#\d+ +(?:0x\S+ in )?(.+?) \(.*\) at .*:(\d+)$", re.MULTILINE)
_LAYOUT: Final = (
    # Of a slice of a slice delve calls its length its capacity, and of a lost one 0.
    (re.compile(r"cap: (?:\d+|<optimized out>)"), "cap: N"),
    # delve shortens a pointer in an interface that is nested too deeply.
    (re.compile(r"\) \.\.\.(?=,|$)"), ") 0x..."),
    # delve says `struct` twice for channels of these, `{}` for nil channels, and `byte` for
    # what it takes from strings.
    (re.compile(r"\bstruct struct \{\}"), "struct {}"),
    (re.compile(r"^(chan .*) (?:\{\}|nil)$"), r"\1 nil"),
    (re.compile(r"^byte$"), "uint8"),
    # A large key or value of a map is kept elsewhere, and delve shows the pointer.
    (re.compile(r"^(\t(?:\"\w+\": )?)\*\{", re.MULTILINE), r"\1{"),
    # Go's compiler tells of a wrong register for a length: an address, another one in each run.
    (re.compile(r"(?<!\d)8246\d{8}"), "LENGTH"),
)
_CONSTANT: Final = re.compile(r"\w+ \((-?\d+)\)")
_EMPTY: Final = re.compile(r"\((?:no locals|no args)\)\n?")


class Stop(Struct, frozen=True):
    """A place where the program is asked.

    Attributes:
        name: of the function, and which of its calls of `use`.
        line: of the call, in the file main.go.
        asked: expressions, and words of `WORDS`; "^2 x" asks of the frame two further out.
    """

    name: str
    line: int
    asked: tuple[str, ...]


def folder(program: str) -> Path:
    """The folder of a program's source: "depot" or "flow"."""
    return _DATA / f"go_{program}"


def _use_lines(program: str) -> dict[str, list[int]]:
    """The lines of the calls of `use` by function."""
    found: dict[str, list[int]] = {}
    name = ""
    for number, line in enumerate((folder(program) / "main.go").read_text().splitlines(), 1):
        head = re.match(r"func (?:\([^)]*\) )?(\w+)", line)
        if head is not None:
            name = head[1]
        elif re.search(r"(?<!\w)use\(", line):
            found.setdefault(name, []).append(number)
    return found


def stops(program: str) -> list[Stop]:
    """The stops of a program in the order in which the program reaches them."""
    lines = _use_lines(program)
    found: list[Stop] = []
    for part in (folder(program) / "asked.txt").read_text().removeprefix("# ").split("\n# "):
        head, *asked = part.strip("\n").split("\n")
        name, _, number = head.partition(" ")
        places = lines[name]
        line = places[int(number) - 1] if number else places[-1]
        full = tuple(dict.fromkeys((*asked, "locals", "args", "stack")))
        title, same = head, sum(one.name.partition("/")[0] == head for one in found)
        found.append(Stop(f"{title}/{same + 1}" if same else title, line, full))
    return found


@cache
def built(program: str, build: str, compiler: str = "") -> Path:
    """A program in one of the builds of FLAGS; skips the test without a compiler.

    Args:
        program: "depot" or "flow".
        build: one of `FLAGS`.
        compiler: the path of another `go` than the installed one.
    """
    command = (compiler or tool("go"), "build", *FLAGS[build])
    found = built_once(program, command, ".", cwd=folder(program))
    assert isinstance(found, Path), found
    return found


def masked(text: str) -> str:
    """A text without addresses and without the folders of sources."""
    return re.sub(r"/\S+/(?:go|built)-\w+/", "/", re.sub(r"0x[0-9a-f]+", "0x...", text))


def _delve_words(asked: str) -> list[str]:
    if asked in WORDS or asked == "goroutines":
        return [asked]
    outer = _OUTER.match(asked)
    if outer is not None:
        return [f"frame {outer[1]} {word} {outer[2]}" for word in ("print", "whatis")]
    return [f"print {asked}", f"whatis {asked}"]


def _our_words(asked: str) -> list[str]:
    if asked in WORDS or asked == "goroutines":
        return [WORDS.get(asked, "info goroutines")]
    outer = _OUTER.match(asked)
    if outer is not None:
        number, text = outer.groups()
        return [f"frame apply level {number} -q {word} {text}" for word in ("print", "whatis")]
    return [f"print {asked}", f"whatis {asked}"]


Answers = dict[str, dict[str, list[str]]]
"""Answers by expression by stop: those to `print` and `whatis`, or the words of one."""


def _sorted(program: str, texts: list[str], count: dict[str, int]) -> Answers:
    answers: Answers = {}
    left = iter(texts)
    for stop in stops(program):
        of_stop = answers.setdefault(stop.name, {})
        for asked in stop.asked:
            of_stop[asked] = [next(left) for _ in range(count[asked])]
    assert next(left, None) is None, "there are as many answers as questions"
    return answers


def _counts(program: str) -> dict[str, int]:
    return {asked: len(_delve_words(asked)) for stop in stops(program) for asked in stop.asked}


def ask_delve(program: str, build: str) -> Answers:
    """Ask delve about a program."""
    path = built(program, build)
    commands: list[str] = []
    for number, stop in enumerate(stops(program)):
        name = f"at{number}"
        commands += [f"break {name} main.go:{stop.line}", "continue", f"clear {name}"]
        for asked in stop.asked:
            for word in _delve_words(asked):
                commands += ['print "@"', word]
        commands.append('print "@"')
    script = path.with_name("script")
    script.write_text("\n".join((*commands, "exit")) + "\n")
    done = subprocess.run(
        [
            *("dlv", "exec", "--check-go-version=false"),
            *("--allow-non-terminal-interactive=true", "--init", str(script), str(path)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    (path.with_name("out")).write_text(done.stdout + "\n----\n" + done.stderr)
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).replace(f"{script}:", "")
    texts = [part.strip("\n") for part in _MARK.split(text)[1:]]
    for at in _last_places(program):
        texts[at] = ""
    kept = [part for at, part in enumerate(texts) if at not in _last_places(program)]
    return _sorted(program, [_delve_text(one) for one in kept], _counts(program))


def _last_places(program: str) -> set[int]:
    """The places of what stands behind a stop's last answer, among all texts."""
    counts = _counts(program)
    at, found = -1, set[int]()
    for stop in stops(program):
        at += sum(counts[asked] for asked in stop.asked) + 1
        found.add(at)
    return found


def _delve_text(text: str) -> str:
    plain = re.sub(r"^\d+: ", "! ", text.partition("\nruntime.gopanic")[0])
    return _EMPTY.sub("", masked(plain)).strip()


def ask_us(program: str, build: str, compiler: str = "") -> Answers:
    """Ask our debugger about a program."""
    lines: list[str] = []
    for number, stop in enumerate(stops(program)):
        lines += [f"tbreak main.go:{stop.line}", "continue" if number else "run"]
        for asked in stop.asked:
            for word in _our_words(asked):
                lines += ["echo @\\n", word]
        lines.append("echo @\\n")
    text = said(GuestConfig(str(built(program, build, compiler))), *lines)
    texts = [part.strip("\n") for part in re.split(r"^@\n", text, flags=re.MULTILINE)[1:]]
    last = _last_places(program)
    kept = [part for at, part in enumerate(texts) if at not in last]
    return _sorted(program, [_our_text(one) for one in kept], _counts(program))


def _our_text(text: str) -> str:
    plain = re.sub(r"^\$\d+ = ", "", masked(text))
    plain = plain.removeprefix("type = ")
    return plain.removeprefix("No locals.").removeprefix("No arguments.").strip()


def answers(program: str, build: str) -> Answers:
    """Read delve's stored answers about a program."""
    found: Answers = json.loads((folder(program) / f"delve_{build}.json").read_text())
    return found


def is_alike(asked: str, word: str, ours: str, theirs: str) -> bool:
    """True if two texts say the same: the values are equal, or neither has any.

    Left out is how a refusal is worded, that delve says nothing of the type of what it computes
    and names the parameters of a function, the name of a constant in front of its number, and how
    frames are laid out, of which the function and the line count.
    """
    if word in ("print", "whatis") and is_refused(theirs):
        return is_refused(ours)
    ours, theirs = (_laid_out(text) for text in (ours, theirs))
    if word == "whatis":
        both = all(text.startswith("func(") for text in (ours, theirs))
        return not theirs or ours == theirs or both
    if word == "stack":
        return _frames(_OUR_FRAME, ours) == _frames(_DELVE_FRAME, theirs)
    if word in ("locals", "args"):
        return _listed(theirs) == _listed(ours)
    named = _CONSTANT.fullmatch(ours)
    return theirs in (ours, named[1] if named is not None else ours)


def _listed(text: str) -> set[str]:
    """The variables of a list, without marks of those that others hide."""
    plain = _LOST.sub("<optimized out>", text)
    return {re.sub(r"^\((\S+)\) =", r"\1 =", line) for line in plain.splitlines()}


def is_refused(text: str) -> bool:
    """True for a text in place of a value: an error, or that there is none."""
    lost = _LOST.search(text) is not None
    return text.startswith("!") or lost or text == "<optimized out>"


def _laid_out(text: str) -> str:
    for form, instead in _LAYOUT:
        text = form.sub(instead, text)
    return text


def _frames(form: re.Pattern[str], text: str) -> list[tuple[str, str]]:
    """The functions of frames and their lines, up to main.main."""
    found: list[tuple[str, str]] = form.findall(text)
    names = [name for name, _ in found]
    return found[: names.index("main.main") + 1] if "main.main" in names else found


def differences(ours: Answers, theirs: Answers) -> Iterator[tuple[str, str, str, str, str]]:
    """List the answers that differ: stop, expression, word, ours, delve's."""
    for stop, of_stop in theirs.items():
        for asked, texts in of_stop.items():
            words = ("print", "whatis") if len(texts) == 2 else (asked,)
            for word, one, other in zip(words, ours[stop][asked], texts, strict=True):
                if not is_alike(asked, word, one, other):
                    yield stop, asked, word, one, other


def _tell(program: str, build: str, compiler: str = "") -> None:
    """Print what differs."""
    theirs = answers(program, build)
    ours = ask_us(program, build, compiler)
    found = list(differences(ours, theirs))
    for stop, asked, word, one, other in found:
        print(f"== {stop}: {word} {asked}\n-- {other}\n++ {one}")
    total = Counter(
        ("print", "whatis")[at] if len(texts) == 2 else "words"
        for of_stop in theirs.values()
        for texts in of_stop.values()
        for at, _ in enumerate(texts)
    )
    wrong = Counter(word if word in ("print", "whatis") else "words" for _, _, word, _, _ in found)
    print(dict(total), "differ:", dict(wrong))


if __name__ == "__main__":
    if sys.argv[1] == "tell":
        _tell(*sys.argv[2:])
    else:
        out = folder(sys.argv[1]) / f"delve_{sys.argv[2]}.json"
        text = json.dumps(ask_delve(sys.argv[1], sys.argv[2]), indent=1, ensure_ascii=False)
        out.write_text(text + "\n")
