"""The program of Go for tests, and what delve said of it.

`python tests/support/gokit.py` asks delve anew and writes the file of its answers.
"""

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from builtonce import built_once
from compiled import tool

FOLDER: Final = Path(__file__).parents[1] / "data" / "language" / "go"
ANSWERS: Final = FOLDER / "delve.json"
_MARK: Final = re.compile(r'^"@"$', re.MULTILINE)
EXPRESSIONS: Final = {
    "numbers": (
        "yes;no;i8;i16;i32;i64;u8;u16;u32;u64;i;u;ptr;f32;f64;c64;c128;letter;omega;hue;warm;"
        "wait;big;tiny;third;i8+1;i16*2;u8/3;-i32;^u8;i64==-64;i<0;yes&&no;yes||no;!yes;f64*2;"
        "f32+1;u32>>4;1<<3;int8(i);float64(i);uint8(300);main.color(0);hue==blue;blue;answer;"
        "answer+1;real(c128);imag(c64);hue+1;f64>3;7/2;-7%3;'a';0x10;\"abc\";string(letter);"
        "string(omega);u64+1;main.sink;global;global.A;table;empty;geo.Count;runtime.allglen;nil;"
        "nosuch;wait/2;&i;*&i"
    ),
    "texts": (
        "none;short;accents;long;bytes;runes;short[0];short[1:3];short[:2];short[3:];len(short);"
        'len(accents);short+" world";short=="hello";short<"help";short!="x";string(bytes);'
        "string(runes);[]byte(short);bytes[1];bytes[1:3];cap(bytes);short[9];&short;long[90:]"
    ),
    "sequences": (
        "none;blank;ints;cut;many;strs;nested;fixed;mat;pairs;refs;zero;ptrs;sptr;any_;flags;"
        "ints[0];ints[1:];ints[:2];ints[3];len(cut);cap(cut);len(fixed);many[99];many[98:];"
        "strs[1];nested[1];nested[1][1];fixed[1:3];mat[1];mat[1][2];pairs[0];pairs[1].S;refs[0];"
        "refs[0].S;refs[1];*ptrs;ptrs[1];*sptr;any_[0];any_[1];any_[3];any_[4];"
        "any_[4].(main.pair).S;any_[5].(*main.pair);any_[6];&ints;&ints[1];none==nil;ints==nil;"
        "refs[1]==nil;flags[1];len(none);*refs[0];pairs[0]==pairs[1];len(any_);(*ptrs)[2]"
    ),
    "maps": (
        'none;blank;one;lists;byPair;byInt;toPtr;nested;byAny;byBool;set;one["a"];one["zz"];'
        'lists["k"];lists["k"][1];byInt[5];toPtr["p"];toPtr["p"].S;nested["o"];nested["o"]["i"];'
        "big[150];big[7];len(big);len(none);byBool[true];byBool[false];none==nil;one==nil;"
        'len(one);table["x"].A;main.table'
    ),
    "structs": (
        "p;pp;ppp;none;o;op;tree;anon;void;when;loop;p.A;pp.A;ppp.A;o.inner;o.base;o.ID;o.Name;"
        'op.Name;o.A;o.Weight;o.inner.base.ID;o.Tags;o.Tags["t"];tree.Left;tree.Left.Right;'
        "tree.Left.Right.Value;tree.Right;loop.Left.Left.Value;*pp;**ppp;&p;&p.S;*none;"
        "none==nil;anon.X;anon.s;p==*pp;*tree;o.pair;o.pair.S;*o.base;p.nosuch;len(p.S);p.S[1:]"
    ),
    "interfaces": (
        "nothing;blank;err;wrapped;plain;num;str;real;sh;ci;st;sp;sl;mp;fn;nilptr;perr;list;"
        "err.(main.problem);err.(data);sh.(data);num.(int);num.(string);str.(string);ci.(data);"
        "wrapped.(*fmt.wrapError);wrapped.(*fmt.wrapError).msg;plain.(*errors.errorString).s;"
        "nothing==nil;err==nil;err!=nil;list[0];list[1];*perr;st.(main.pair).A;"
        "sp.(*main.pair).S;sl.([]int);mp.(map[string]int);nilptr==nil;err.Code;ci.Radius"
    ),
    "channels": (
        "none;plain;buffered;send;recv;nofn;fn;method;cb;len(buffered);cap(buffered);none==nil;"
        "plain==nil;fn==nil;nofn==nil;main.maps"
    ),
}
"""Expressions by the function whose last call of `use` they are asked in front of."""


def masked(text: str) -> str:
    """A text without addresses, which are other ones in each run."""
    return re.sub(r"0x[0-9a-f]+", "0x...", text)


def line_in(function: str) -> int:
    """The line of the last call of `use` in a function of the program."""
    found, inside = 0, False
    for number, line in enumerate((FOLDER / "main.go").read_text().splitlines(), 1):
        if line.startswith("func "):
            inside = line.startswith(f"func {function}(")
        if inside and line.startswith("\tuse("):
            found = number
    return found


@cache
def go_program(*flags: str) -> Path:
    """The program of tests/data/language/go; skips the test without a compiler.

    Args:
        flags: for `go build`, those without optimisation where none are given.
    """
    command = (tool("go"), "build", *(flags or ("-gcflags=-N -l",)))
    found = built_once("values", command, ".", cwd=FOLDER)
    assert isinstance(found, Path), found
    return found


def answers() -> dict[str, list[tuple[str, str, str]]]:
    """What delve printed: (expression, `print`, `whatis`) by function; "locals" and "args" too."""
    found: dict[str, list[tuple[str, str, str]]] = json.loads(ANSWERS.read_text())
    return found


def _asked(program: Path, script: Path) -> str:
    done = subprocess.run(
        [
            *("dlv", "exec", "--check-go-version=false"),
            *("--allow-non-terminal-interactive=true", "--init", str(script), str(program)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    plain = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).replace(f"{script}:", "")
    shown = (line for line in plain.splitlines() if not re.match(r"> |=>|\s+\d+:\t", line))
    return masked("\n".join(shown))


def _write(out: Path) -> None:
    """Ask delve all of it."""
    program = go_program()
    commands = [f"break main.go:{line_in(name)}" for name in EXPRESSIONS]
    commands.append("break main.results")
    keys: list[tuple[str, str, str]] = []
    for name, text in EXPRESSIONS.items():
        commands.append("continue")
        for expression in text.split(";"):
            for word in ("print", "whatis"):
                keys.append((name, expression, word))
                commands += ['print "@"', f"{word} {expression}"]
        keys.append((name, "", "locals"))
        commands += ['print "@"', "locals"]
    keys.append(("results", "", "args"))
    commands += ['print "@"', "continue", 'print "@"', "args", 'print "@"', "exit"]
    script = program.with_name("script")
    script.write_text("\n".join(commands) + "\n")
    texts = [text.strip() for text in _MARK.split(_asked(program, script))[1:]]
    del texts[-3]  # what `continue` said
    found: dict[str, list[list[str]]] = {}
    for (name, expression, word), text in zip(keys, texts, strict=False):
        plain = re.sub(r"^\d+: ", "! ", text.partition("\nruntime.gopanic")[0])
        if word == "whatis":
            found[name][-1].append(plain.partition("\n")[0])
        else:
            found.setdefault(name, []).append([expression or word, plain])
    out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    _write(Path(sys.argv[1]) if len(sys.argv) > 1 else ANSWERS)
