"""perf probe asked for definitions, variables, lines and functions, and our own answers.

`python tests/support/perfprobekit.py FOLDER` compiles the sources of tests/data/perfprobe in
FOLDER and writes programs and perf's answers back: perf.json has been made so by perf 6.1.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from msgspec import Struct

from engine import arch as architectures
from engine.errors import KprobeTuiError
from engine.image import ElfImage
from engine.session.program.libraries import ProgramFile
from engine.session.program.perf_commands import PerfFile
from engine.trace.perfprobe.line_lists import lines_of
from engine.trace.perfprobe.name_patterns import NameFilter
from engine.trace.perfprobe.variable_lists import VariableChoice, VariableLists

DATA: Final = Path(__file__).parent.parent / "data" / "perfprobe"
ANSWERS: Final = DATA / "perf.json"
_VARIABLES: Final = NameFilter("!__k???tab_* & !__crc_*")

_A64: Final = ("aarch64-linux-gnu-gcc", "-g", "-O2", "-Wl,-z,max-page-size=4096")
HOME: Final = "/probed"
"""The folder that the sources have been compiled in, as the programs have it."""
PROGRAMS: Final = {
    "c0": ("program.c", "gcc", "-g", "-O0"),
    "c2": ("program.c", "gcc", "-g", "-O2"),
    "c1d3": ("program.c", "gcc", "-gdwarf-3", "-gstrict-dwarf", "-O1"),
    "a2": ("program.c", *_A64),
    "r1": ("program.c", "riscv64-linux-gnu-gcc", "-g", "-O1"),
    "s0": ("shapes.cpp", "g++", "-g", "-O0"),
    "s2": ("shapes.cpp", "g++", "-g", "-O2"),
}
"""Source, compiler and flags of each program."""

C_PLACES: Final = (
    *("area", "square", "walk", "swap", "bits", "main", "nosuch", "a*", "*", "sw*p", "[!a]rea"),
    *("area@program.c", "area@x.c", "program.c", "@program.c", "0x1234", "main+4", "area+400"),
    *("area:3", "area:2-3", "area:x", "area+1:2", "walk:0", "walk:1", "walk:2", "walk:8"),
    *("program.c:40", "program.c:43", "program.c:46", "program.c:99", "area;return*"),
    *(
        "square;*counter",
        "walk;total+=*$",
        "main;n.flags*",
        "program.c;*counter*",
        "program.c;*return*",
        "a\\rea",
        "ar[a-e]a",
        "area%return",
    ),
    *("area%foo", "a*%return", "x=s*", "x:y=area", "x-y=area", "0x12zz", "area:3%return"),
)
C_DEFINITIONS: Final = (
    *(
        "area width",
        "area:3 width height",
        "area counter hidden title:string",
        "area zz",
        "area p.x",
    ),
    *("area p->x p->y:x32", "area c:x label:s64", "area p->x@user", "area label[0] label[1]:u8"),
    *(
        "area%return $retval",
        "area%return v=$retval:s32",
        "area%return p",
        "area@program.c:3 width",
    ),
    *("square v", "square r", "square v:x8", "square:1 v", "s*e v", "* $params", "a* $vars"),
    *("walk $params", "walk $vars", "walk:5 $vars", "walk:3 n", "walk:6 n total", "walk &n"),
    *(
        "walk n->name:string",
        "walk n->label:string",
        "walk n->values[2] n->values",
        "walk n->at.y",
    ),
    *("walk n->points[1]->x", "walk n->tag n->ratio", "walk n->num.d", "walk n->next->next->name"),
    *("walk n->nope", "walk n->at->x", "walk depth:string", "walk n->name[1]", "walk n[1]"),
    *(
        "walk n->values:x8",
        "walk s:x16 depth:s depth:u",
        "walk n->visit",
        "walk n->color",
        "walk n->at",
    ),
    *(
        "n=walk n",
        "g:n=walk n",
        "walk+4 n",
        "swap p.x p",
        "swap p.y:u",
        "swap:2 r.x r",
        "swap:3 r.y",
    ),
    *("bits ok big:s seven:u eight", "bits pp[0][0]", "bits pp[1]", "bits pp", "bits f"),
    *("bits %di %ax:u8 $stack0 @counter", "bits x=%si:u32 y=+8(%sp)", "main argc argv"),
    *(
        "main argv[0] argv[1]:string",
        "main:3 $vars",
        "main:5 n.name:string n.at.x p.y q r",
        "main n.at",
    ),
    *("main:8 $vars", "main:9 p.x n.values[3]", "x=program.c:42 i height", "program.c:45 inner"),
    *("0x1234 %di", "0x1234 width", "area a=", "area a=p->", "area p[x]", "area p-x"),
)
CPP_PLACES: Final = (
    *(
        "area",
        "add",
        "sum",
        "push",
        "grow",
        "main",
        "Shape",
        "Box",
        "operator()",
        "_ZN*area*",
        "~Base",
    ),
    *(
        "_ZNK3geo5Shape4areaEi",
        "area%return",
        "main%return",
        "sum:3",
        "shapes.cpp:40",
        "a*",
        "sum;*+=*",
    ),
)
CPP_DEFINITIONS: Final = (
    *(
        "area this->w_ scale",
        "area:2 a made",
        "add one->w_ two.h_ name",
        "add $params",
        "sum values",
    ),
    *("sum:3 $vars", "push value this", "push this->item this->count", "grow by", "main:9 $vars"),
    *(
        "main argc",
        "main:5 shape.w_ box",
        "Shape w h",
        "operator() k",
        "x=operator() k",
        "lam=operator*",
    ),
    *("sum values[1]", "add name:string", "area made", "area w_"),
)
C_VARIABLES: Final = (
    *("area", "area:3", "square", "walk:4", "main", "main:8", "swap", "bits", "nosuch"),
    *("program.c:43", "a*", "swap:2", "walk:6", "main+20", "walk", "area@program.c"),
)
CPP_VARIABLES: Final = ("area", "add", "sum:3", "push", "grow", "main:9", "Shape", "operator()")
C_LINES: Final = (
    *("area", "area:3", "area:2-5", "area:1+3", "square", "program.c:41-51", "program.c", "main"),
    *("area@program.c", "nosuch", "walk:2", "swap", "bits:0-1", "main:400", "program.c:400"),
    *("area:9-3", "area:x", "x.c:3"),
)
CPP_LINES: Final = ("area", "add", "sum", "push", "shapes.cpp:40-50", "main:2+4", "Shape")
FILTERS: Final = ("!_* & !*@plt", "a*|s*", "(a* | s*) & *a*", "[a-m]* & !*@plt")


class Question(Struct, frozen=True):
    """What perf was asked, and its answer.

    Attributes:
        program: of `PROGRAMS`.
        kind: D, V, L or F.
        text: the definition, place, range or filter.
        options: of -V.
        out: standard output; "" where it failed.
    """

    program: str
    kind: str
    text: str
    options: tuple[str, ...] = ()
    out: str = ""


def questions(program: str) -> list[Question]:
    """All that is asked about a program."""
    cpp = PROGRAMS[program][0].endswith("cpp")
    texts = (
        ("D", (*CPP_PLACES, *CPP_DEFINITIONS) if cpp else (*C_PLACES, *C_DEFINITIONS)),
        ("V", CPP_VARIABLES if cpp else C_VARIABLES),
        ("L", CPP_LINES if cpp else C_LINES),
        ("F", FILTERS),
    )
    found = [Question(program, kind, text) for kind, each in texts for text in each]
    more = (Question(program, "V", text, ("--externs", "--range")) for text in texts[1][1])
    return [*found, *more]


class PerfAnswers:
    """A program, and both answers about it."""

    def __init__(self, path: Path, root: str = "") -> None:
        """Open the program.

        Args:
            path: of it.
            root: folder in front of its source's path.
        """
        self.path = path
        image = ElfImage.open(path)
        arch = architectures.for_elf(image.machine, image.bits, image.byteorder)
        assert arch is not None, path
        self.file = PerfFile(ProgramFile(str(path), image), arch, str(path), root)

    def ours(self, asked: Question) -> str:
        """Our own answer; "" for an error of ours."""
        file, debugged = self.file, self.file.probed()
        assert debugged is not None, self.path
        try:
            if asked.kind == "D":
                return _text([event.text() for event in file.events().of(asked.text).events])
            if asked.kind == "V":
                externs, ranges = ("--externs" in asked.options, "--range" in asked.options)
                choice = VariableChoice(externs, ranges, True, _VARIABLES.accepts)
                return _text(VariableLists(debugged, file.symbols, choice).at(asked.text))
            if asked.kind == "L":
                return _text(lines_of(debugged, file.symbols, asked.text))
            accepts = NameFilter(asked.text).accepts
            return _text([name for name in file.symbols.names() if accepts(name)])
        except KprobeTuiError:
            return ""

    def perf(self, asked: Question) -> str:
        """What perf of this machine writes to standard output."""
        words = {
            "D": ["-D", asked.text],
            "V": [*asked.options, "-V", asked.text],
            "L": ["-L", asked.text],
            "F": [f"--funcs={asked.text}"],
        }[asked.kind]
        done = subprocess.run(
            ["perf", "probe", "-x", str(self.path), "--source", str(self.path.parent), *words],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return done.stdout


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def same_home(text: str, folder: Path) -> str:
    """An answer without the folders that differ from machine to machine."""
    text = text.replace(f"{folder}{HOME}", "FOLDER").replace(str(folder), "FOLDER")
    return text.replace("FOLDER//", "FOLDER/")


def compiled(name: str, folder: Path) -> Path:
    """Compile one of `PROGRAMS` in a folder."""
    source, compiler, *flags = PROGRAMS[name]
    shutil.copy(DATA / source, folder)
    home = f"-fdebug-prefix-map={folder}={HOME}"
    subprocess.run([compiler, *flags, home, source, "-o", name], cwd=folder, check=True)
    return folder / name


def record(folder: Path) -> None:
    """Write programs and perf's answers into tests/data/perfprobe."""
    rows: list[dict[str, object]] = []
    for name in PROGRAMS:
        answers = PerfAnswers(compiled(name, folder))
        shutil.copy(answers.path, DATA)
        for asked in questions(name):
            out = same_home(answers.perf(asked), folder)
            row: dict[str, object] = {
                "program": name,
                "kind": asked.kind,
                "text": asked.text,
                "out": out,
            }
            rows.append({**row, "options": list(asked.options)} if asked.options else row)
    ANSWERS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    record(Path(sys.argv[1]))
