"""The table of words: each with its names and what carries it out."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct

from engine.errors import CommandError
from engine.session.debugger.assembly import Assembly
from engine.session.debugger.branching import BranchWords
from engine.session.debugger.breaking import Breaking
from engine.session.debugger.catching import Catching
from engine.session.debugger.changing import Changing
from engine.session.debugger.debugger import Debugger, unknown
from engine.session.debugger.filetexts import FileWords
from engine.session.debugger.looking import Looking
from engine.session.debugger.moving import Moving
from engine.session.debugger.script import ScriptLine
from engine.session.debugger.searching import Searching
from engine.session.debugger.stoptables import StopTables
from engine.session.debugger.tasks import ThreadWords
from engine.session.debugger.watching import Watching


class Word(Struct, frozen=True):
    """A word.

    Attributes:
        names: of it, the whole one first; what they begin with is enough where only one word does.
        carry: carries it out, given what stands behind it.
        moves: it may let the guest move.
    """

    names: tuple[str, ...]
    carry: Callable[[str], None]
    moves: bool = False


class BlockWord(Struct, frozen=True):
    """A word that other lines may stand under.

    Attributes:
        names: of it, as of any word.
        carry: carries it out, given all of it.
    """

    names: tuple[str, ...]
    carry: Callable[[ScriptLine], None]


AnyWord = Word | BlockWord


def _help(word: AnyWord) -> str:
    """The sentence that says what a word does."""
    return (word.carry.__doc__ or "").strip().split("\n")[0]


class WordTable:
    """All words of a debugger.

    Attributes:
        own: words of the user's own, and what `help` says of them.
    """

    def __init__(self, debugger: Debugger, of_lines: tuple[AnyWord, ...]) -> None:
        """Make the table; `of_lines` are those of the one who carries lines out."""
        self._debugger = debugger
        self.own: dict[str, str] = {}
        self.looking = looking = Looking(debugger)
        self.moving = moving = Moving(debugger, looking)
        self.breaking = breaking = Breaking(debugger)
        watching = Watching(debugger)
        self.catching = catching = Catching(debugger)
        changing = Changing(debugger)
        self.tasks = tasks = ThreadWords(debugger, looking)
        branching = BranchWords(debugger, looking)
        searching = Searching(debugger)
        files = FileWords(debugger, looking)
        tables = StopTables(debugger)
        self.info = (
            Word(("registers", "r"), looking.info_registers),
            Word(("breakpoints", "b"), tables.info_breakpoints),
            Word(("watchpoints", "wat"), tables.info_watchpoints),
            Word(("locals",), looking.info_locals),
            Word(("args",), looking.info_args),
            Word(("frame", "f"), looking.info_frame),
            Word(("line",), looking.info_line),
            Word(("symbol",), looking.info_symbol),
            Word(("display",), looking.info_display),
            Word(("sharedlibrary", "dll"), looking.info_sharedlibrary),
            Word(("proc",), self._info_proc),
            Word(("source",), files.info_source),
            Word(("files", "target"), files.info_files),
            Word(("signals", "handle"), catching.info_signals),
            Word(("record", "rec"), moving.info_record),
            Word(("marks", "bookmarks"), moving.info_marks),
            Word(("branches",), branching.info_branches),
            Word(("threads",), tasks.info_threads),
            Word(("functions", "fun"), searching.info_functions),
            Word(("variables", "var"), searching.info_variables),
            Word(("types",), searching.info_types),
            Word(("stack", "s"), looking.backtrace),
        )
        self.all: tuple[AnyWord, ...] = (
            Word(("print", "p", "inspect"), looking.print),
            Word(("output",), looking.output),
            Word(("call",), moving.call, moves=True),
            Word(("x",), looking.examine),
            Word(("display",), looking.display),
            Word(("undisplay",), breaking.undisplay),
            Word(("whatis",), looking.whatis),
            Word(("ptype",), looking.ptype),
            Word(("backtrace", "bt", "where"), looking.backtrace),
            Word(("frame", "f"), looking.frame),
            Word(("up",), looking.up),
            Word(("down", "dow"), looking.down),
            Word(("list", "l"), looking.list),
            Word(("disassemble", "disas"), Assembly(debugger).disassemble),
            Word(("info", "inf", "i"), self._info),
            Word(("break", "b", "br", "brea"), breaking.break_),
            Word(("tbreak", "tb", "tbr"), breaking.tbreak),
            Word(("hbreak", "hb"), breaking.hbreak),
            Word(("thbreak", "th"), breaking.thbreak),
            Word(("watch", "wa"), watching.watch),
            Word(("rwatch", "rw"), watching.rwatch),
            Word(("awatch", "aw"), watching.awatch),
            Word(("thread", "t"), tasks.thread, moves=True),
            Word(("find",), searching.find),
            Word(("printf",), looking.printf),
            Word(("jump", "j"), moving.jump, moves=True),
            Word(("return", "ret"), moving.return_, moves=True),
            Word(("catch",), catching.catch),
            Word(("tcatch",), catching.tcatch),
            Word(("handle",), catching.handle),
            Word(("signal",), moving.signal, moves=True),
            Word(("delete", "d"), breaking.delete),
            Word(("clear", "cl"), breaking.clear),
            Word(("enable", "en"), breaking.enable),
            Word(("disable", "dis", "disa"), breaking.disable),
            Word(("condition", "cond"), breaking.condition),
            Word(("ignore",), breaking.ignore),
            Word(("run", "r"), moving.run, moves=True),
            Word(("start",), moving.start, moves=True),
            Word(("starti",), moving.starti, moves=True),
            Word(("continue", "c", "fg"), moving.continue_, moves=True),
            Word(("step", "s"), moving.step, moves=True),
            Word(("next", "n"), moving.next, moves=True),
            Word(("stepi", "si"), moving.stepi, moves=True),
            Word(("nexti", "ni"), moving.nexti, moves=True),
            Word(("finish", "fin"), moving.finish, moves=True),
            Word(("reverse-continue", "rc"), moving.reverse_continue, moves=True),
            Word(("reverse-step", "rs"), moving.reverse_step, moves=True),
            Word(("reverse-next", "rn"), moving.reverse_next, moves=True),
            Word(("reverse-stepi", "rsi"), moving.reverse_stepi, moves=True),
            Word(("reverse-nexti", "rni"), moving.reverse_nexti, moves=True),
            Word(("reverse-finish",), moving.reverse_finish, moves=True),
            Word(("record", "rec"), moving.record, moves=True),
            Word(("goto",), moving.goto, moves=True),
            Word(("mark", "bookmark"), moving.mark),
            Word(("unmark",), moving.unmark),
            Word(("branch",), branching.branch, moves=True),
            Word(("switch",), branching.switch, moves=True),
            Word(("diff",), branching.diff),
            Word(("last-write", "lw"), moving.last_write, moves=True),
            Word(("origin",), moving.origin, moves=True),
            Word(("first-time", "ft"), moving.first_time, moves=True),
            Word(("last-time", "lt"), moving.last_time, moves=True),
            Word(("until", "u"), moving.until, moves=True),
            Word(("advance",), moving.advance, moves=True),
            Word(("kill", "k"), moving.kill, moves=True),
            Word(("generate-core-file", "gcore"), tasks.gcore),
            Word(("set",), changing.set),
            Word(("unset",), changing.unset),
            Word(("show",), changing.show),
            Word(("tty",), changing.tty),
            Word(("echo",), looking.echo),
            Word(("help", "h"), self._help),
            *of_lines,
        )

    def listed(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """Names of all words, and what `help` says of them."""
        found = [(word.names, _help(word)) for word in self.all]
        found += [((f"info {word.names[0]}",), _help(word)) for word in self.info]
        return (*found, *(((name,), text) for name, text in self.own.items()))

    def find(self, name: str) -> AnyWord:
        """A word by its name or by what begins it.

        Raises:
            CommandError: there is none, or there are several.
        """
        return _find(name, self.all)

    def _info_word(self, name: str) -> Word:
        return _find(name, self.info, "info ")

    def _info(self, rest: str) -> None:
        """Show something of the program: info registers, info locals, info breakpoints ..."""
        name, behind = split_word(rest)
        if not name:
            raise CommandError(
                '"info" must be followed by one of: '
                + ", ".join(word.names[0] for word in self.info)
            )
        self._info_word(name).carry(behind)

    def _info_proc(self, rest: str) -> None:
        """The process: info proc [mappings]."""
        if rest.startswith("m"):
            self.looking.info_mappings(rest)
            return
        self._debugger.need_run()
        session = self._debugger.control.session
        self._debugger.put(f"process {session.machine.first.pid}")
        self._debugger.put(f"exe = '{session.paths.guest}'")

    def _help(self, rest: str) -> None:
        """List the words, or say what one does."""
        put = self._debugger.put
        name, behind = split_word(rest)
        if name == "info" and behind:
            put(_help(self._info_word(split_word(behind)[0])))
            return
        if name:
            put(self.own.get(name) or _help(self.find(name)))
            return
        for word in self.all:
            put(f"{', '.join(word.names):<28} {_help(word)}")
        for name, text in self.own.items():
            put(f"{name:<28} {text.strip().partition(chr(10))[0]}")


def split_word(line: str) -> tuple[str, str]:
    """The first word of a line, and what stands behind it: "x/4i $pc" is "x" and "/4i $pc"."""
    end = 0
    while end < len(line) and (line[end].isalnum() or line[end] in "_-"):
        end += 1
    return line[:end] or line[:1], line[end or 1 :].strip()


W = TypeVar("W", Word, AnyWord)


def _find(name: str, table: tuple[W, ...], before: str = "") -> W:
    for word in table:
        if name in word.names:
            return word
    found = [word for word in table if word.names[0].startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(word.names[0] for word in found)
        raise CommandError(f'Ambiguous {before}command "{before}{name}": {names}.')
    raise unknown(name, tuple(word.names[0] for word in table), before)
