"""The table of words: each with its names, what carries it out, and who may say it.

A debugger that is `remote` takes the words of a server's clients. Of those it carries out the
words that are marked so here, and no others: words that neither read nor write files of the host
by a path that is given, run nothing there, and change nothing that a later run would do so by.
"""

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from msgspec import Struct

from engine.errors import CommandError
from engine.session.debugger.applying import ApplyWords
from engine.session.debugger.assembly import Assembly
from engine.session.debugger.branching import BranchWords
from engine.session.debugger.breaking import Breaking
from engine.session.debugger.catching import Catching
from engine.session.debugger.changing import Changing
from engine.session.debugger.debugger import Debugger
from engine.session.debugger.describing import DescribingWords
from engine.session.debugger.dumping import DumpWords
from engine.session.debugger.elsewhere import unknown
from engine.session.debugger.filetexts import FileWords
from engine.session.debugger.frame_words import FrameWords
from engine.session.debugger.goroutine_words import GoroutineWords
from engine.session.debugger.looking import Looking
from engine.session.debugger.macro_words import MacroWords
from engine.session.debugger.many_breaks import ManyBreaks
from engine.session.debugger.mapping_words import MappingWords
from engine.session.debugger.moments import MomentWords
from engine.session.debugger.moving import Moving
from engine.session.debugger.script import ScriptLine
from engine.session.debugger.searching import Searching
from engine.session.debugger.skipping import SkipWords
from engine.session.debugger.stop_reports import StopReports
from engine.session.debugger.stoptables import StopTables
from engine.session.debugger.tasks import ThreadWords
from engine.session.debugger.virtual_tables import VirtualTableWords
from engine.session.debugger.watchpoint_words import Watching


class Word(Struct, frozen=True):
    """A word.

    Attributes:
        names: of it, the whole one first; what they begin with is enough where only one word does.
        carry: carries it out, given what stands behind it.
        moves: it may let the guest move.
        remote: clients of a server may say it.
    """

    names: tuple[str, ...]
    carry: Callable[[str], None]
    moves: bool = False
    remote: bool = False


class BlockWord(Struct, frozen=True):
    """A word that other lines may stand under.

    Attributes:
        names: of it, as of any word.
        carry: carries it out, given all of it.
        remote: clients of a server may say it.
    """

    names: tuple[str, ...]
    carry: Callable[[ScriptLine], None]
    remote: bool = False


AnyWord = Word | BlockWord


def _help(word: AnyWord) -> str:
    """The sentence that says what a word does."""
    return (word.carry.__doc__ or "").strip().split("\n")[0]


class WordTable:
    """All words of a debugger.

    Attributes:
        own: words of the user's own, and what `help` says of them.
    """

    def __init__(
        self,
        debugger: Debugger,
        of_lines: tuple[AnyWord, ...],
        *,
        line: Callable[[str], object],
        defined: Mapping[str, tuple[ScriptLine, ...]],
        at_stop: Callable[[], object],
    ) -> None:
        """Make the table.

        Args:
            debugger: the debugger.
            of_lines: words of the one who carries lines out.
            line: carries a line out.
            defined: lines of the words of the user's own.
            at_stop: called before a stop is told.
        """
        self._debugger = debugger
        self.own: dict[str, str] = {}
        assembly = Assembly(debugger)
        looking = Looking(debugger, assembly)
        skipping = SkipWords(debugger)
        self.reports = StopReports(debugger, looking, at_stop)
        moving = Moving(debugger, looking, self.reports, skipping.skips)
        moments = MomentWords(debugger, moving)
        self.breaking = breaking = Breaking(debugger)
        watching = Watching(debugger)
        catching = Catching(debugger)
        self.changing = changing = Changing(debugger, defined)
        self.tasks = tasks = ThreadWords(debugger, looking)
        branching = BranchWords(debugger, looking)
        searching = Searching(debugger)
        self._mappings = MappingWords(debugger)
        files = FileWords(debugger, looking)
        framing = FrameWords(debugger)
        applying = ApplyWords(debugger, looking, tasks, framing, line)
        goroutines = GoroutineWords(debugger, looking, line)
        describing = DescribingWords(debugger, looking)
        dumping, listing = DumpWords(debugger), looking.listing
        many = ManyBreaks(debugger, breaking, searching, looking)
        tables = StopTables(debugger, breaking, looking.memory.begin_at)
        self.macros = macros = MacroWords(debugger, listing)
        self.info = (
            Word(("registers", "r"), looking.info_registers, remote=True),
            Word(("breakpoints", "b"), tables.info_breakpoints, remote=True),
            Word(("watchpoints", "wat"), tables.info_watchpoints, remote=True),
            Word(("locals",), looking.info_locals, remote=True),
            Word(("args",), looking.info_args, remote=True),
            Word(("frame", "f"), framing.info_frame, remote=True),
            Word(("line",), looking.info_line, remote=True),
            Word(("symbol",), looking.info_symbol, remote=True),
            Word(("vtbl",), VirtualTableWords(debugger).info_vtbl, remote=True),
            Word(("display",), looking.info_display, remote=True),
            Word(("sharedlibrary", "dll"), looking.info_sharedlibrary, remote=True),
            Word(("proc",), self._info_proc, remote=True),
            Word(("source",), files.info_source),
            Word(("files", "target"), files.info_files, remote=True),
            Word(("signals", "handle"), catching.info_signals, remote=True),
            Word(("record", "rec"), moments.info_record, remote=True),
            Word(("marks", "bookmarks"), moments.info_marks, remote=True),
            Word(("branches",), branching.info_branches, remote=True),
            Word(("threads",), tasks.info_threads, remote=True),
            Word(("goroutines",), goroutines.info_goroutines, remote=True),
            Word(("functions", "fun"), searching.info_functions, remote=True),
            Word(("variables", "var"), searching.info_variables, remote=True),
            Word(("types",), searching.info_types, remote=True),
            Word(("stack", "s"), looking.backtrace, remote=True),
            Word(("scope",), describing.info_scope, remote=True),
            Word(("address",), describing.info_address, remote=True),
            Word(("auxv",), describing.info_auxv, remote=True),
            Word(("program",), describing.info_program, remote=True),
            Word(("inferiors",), describing.info_inferiors, remote=True),
            Word(("all-registers",), describing.info_all_registers, remote=True),
            Word(("float",), describing.info_float, remote=True),
            Word(("vector",), describing.info_vector, remote=True),
            Word(("probes",), describing.info_probes, remote=True),
            Word(("skip",), skipping.info_skip, remote=True),
            Word(("macro",), macros.info_macro, remote=True),
            Word(("macros",), macros.info_macros, remote=True),
        )
        self.settings = (
            Word(("variable", "var"), changing.set_variable, remote=True),
            Word(("environment", "env"), changing.set_environment, remote=True),
            Word(("args",), changing.set_args),
            Word(("inferior-tty", "tty"), changing.tty),
            Word(("substitute-path",), changing.substitute_path),
        )
        self._set_other = changing.set_other
        self.all: tuple[AnyWord, ...] = (
            Word(("print", "p", "inspect"), looking.print, remote=True),
            Word(("output",), looking.output, remote=True),
            Word(("call",), moving.call, moves=True),
            Word(("x",), looking.memory.examine, remote=True),
            Word(("display",), looking.display, remote=True),
            Word(("undisplay",), breaking.undisplay, remote=True),
            Word(("whatis",), looking.whatis, remote=True),
            Word(("ptype",), looking.ptype, remote=True),
            Word(("backtrace", "bt", "where"), looking.backtrace, remote=True),
            Word(("frame", "f"), applying.frame, remote=True),
            Word(("faas",), applying.faas, moves=True),
            Word(("taas",), applying.taas, moves=True),
            Word(("tfaas",), applying.tfaas, moves=True),
            Word(("pipe", "|"), applying.pipe, moves=True),
            Word(("up",), looking.up, remote=True),
            Word(("down", "dow"), looking.down, remote=True),
            Word(("list", "l"), listing.show),
            Word(("forward-search", "search", "fo"), listing.forward_search),
            Word(("reverse-search", "rev"), listing.reverse_search),
            Word(("directory", "dir"), changing.directory),
            Word(("disassemble", "disas"), assembly.disassemble, remote=True),
            Word(("info", "inf", "i"), self._info, remote=True),
            Word(("break", "b", "br", "brea"), breaking.break_, remote=True),
            Word(("tbreak", "tb", "tbr"), breaking.tbreak, remote=True),
            Word(("hbreak", "hb"), breaking.hbreak, remote=True),
            Word(("thbreak", "th"), breaking.thbreak, remote=True),
            Word(("rbreak", "rb"), many.rbreak, remote=True),
            Word(("dprintf",), many.dprintf, remote=True),
            Word(("save",), many.save),
            Word(("skip",), skipping.skip, remote=True),
            Word(("watch", "wa"), watching.watch, remote=True),
            Word(("rwatch", "rw"), watching.rwatch, remote=True),
            Word(("awatch", "aw"), watching.awatch, remote=True),
            Word(("thread", "t"), applying.thread, moves=True),
            Word(("goroutine",), goroutines.goroutine, moves=True),
            Word(("macro",), macros.macro, remote=True),
            Word(("find",), searching.find, remote=True),
            Word(("vmmap",), self._mappings.vmmap, remote=True),
            Word(("printf",), looking.printf, remote=True),
            Word(("jump", "j"), moving.jump, moves=True),
            Word(("return", "ret"), moving.return_, moves=True),
            Word(("catch",), catching.catch, remote=True),
            Word(("tcatch",), catching.tcatch, remote=True),
            Word(("handle",), catching.handle, remote=True),
            Word(("signal",), moving.signal, moves=True),
            Word(("delete", "d"), breaking.delete, remote=True),
            Word(("clear", "cl"), breaking.clear, remote=True),
            Word(("enable", "en"), breaking.enable, remote=True),
            Word(("disable", "dis", "disa"), breaking.disable, remote=True),
            Word(("condition", "cond"), breaking.condition, remote=True),
            Word(("ignore",), breaking.ignore, remote=True),
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
            Word(("record", "rec"), moments.record, moves=True),
            Word(("goto",), moments.goto, moves=True),
            Word(("mark", "bookmark"), moments.mark, remote=True),
            Word(("unmark",), moments.unmark, remote=True),
            Word(("branch",), branching.branch, moves=True),
            Word(("switch",), branching.switch, moves=True),
            Word(("diff",), branching.diff, remote=True),
            Word(("last-write", "lw"), moving.last_write, moves=True),
            Word(("origin",), moving.origin, moves=True),
            Word(("first-time", "ft"), moving.first_time, moves=True),
            Word(("last-time", "lt"), moving.last_time, moves=True),
            Word(("until", "u"), moving.until, moves=True),
            Word(("advance",), moving.advance, moves=True),
            Word(("kill", "k"), moving.kill, moves=True),
            Word(("detach", "det"), moving.detach, moves=True),
            Word(("pwd", "pw"), changing.pwd),
            Word(("generate-core-file", "gcore"), tasks.gcore),
            Word(("dump",), dumping.dump),
            Word(("append",), dumping.append),
            Word(("restore",), dumping.restore),
            Word(("compare-sections",), many.compare_sections, remote=True),
            Word(("set",), self._set, remote=True),
            Word(("unset",), changing.unset, remote=True),
            Word(("show",), changing.show, remote=True),
            Word(("tty",), changing.tty),
            Word(("echo",), looking.echo, remote=True),
            Word(("help", "h"), self._help, remote=True),
            Word(("apropos", "apr"), self._apropos, remote=True),
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

    def is_name(self, name: str) -> bool:
        """True for a whole name of a word."""
        return any(name in word.names for word in self.all)

    def _info_word(self, name: str) -> Word:
        return self.permitted(_find(name, self.info, "info "), "info ")

    def permitted(self, word: "W", before: str = "") -> "W":
        """Return a word that those who say it may say.

        Raises:
            CommandError: it is not for the clients of a server.
        """
        if self._debugger.remote and not word.remote:
            raise CommandError(
                f'"{before}{word.names[0]}" is not for clients of a server: files and shell of the'
                " host are closed to them; kprobe-tui --batch and the interface have all words"
            )
        return word

    def _set(self, rest: str) -> None:
        """Change something: set [var] EXPRESSION, set args WORDS, set env NAME=VALUE."""
        name, behind = split_word(rest)
        for word in self.settings:
            # `set args[0] = 3` is an expression: a setting is followed by a space or nothing.
            if name in word.names and rest[len(name) : len(name) + 1] in ("", " "):
                self.permitted(word, "set ").carry(behind)
                return
        self._set_other(rest)

    def _info(self, rest: str) -> None:
        """Show something of the program: info registers, info locals, info breakpoints ..."""
        name, behind = split_word(rest)
        if not name:
            raise CommandError(
                '"info" must be followed by one of: '
                + ", ".join(word.names[0] for word in self.info)
            )
        if not re.match(r"[\w-]", rest):
            raise unknown(rest, tuple(word.names[0] for word in self.info), "info ")
        self._info_word(name).carry(behind)

    def _info_proc(self, rest: str) -> None:
        """The process: info proc [mappings]."""
        if rest.startswith("m"):
            self._mappings.info_mappings(rest)
            return
        self._debugger.need_process()
        session = self._debugger.control.session
        self._debugger.put(f"process {session.machine.first.pid}")
        self._debugger.put(f"exe = '{session.paths.guest}'")

    def _apropos(self, rest: str) -> None:
        """List the words whose names or sentences match: apropos REGEXP."""
        if not rest:
            raise CommandError("REGEXP string is empty")
        try:
            pattern = re.compile(rest, re.IGNORECASE)
        except re.error as error:
            raise CommandError(f"Invalid regexp: {error}") from None
        for names, text in sorted(self.listed()):
            first = text.strip().partition("\n")[0]
            if any(pattern.search(name) for name in names) or pattern.search(text):
                self._debugger.put(f"{', '.join(names)} -- {first}")

    def _help(self, rest: str) -> None:
        """List the words, or say what one does."""
        put = self._debugger.put
        name, behind = split_word(rest)
        if name == "info" and behind:
            put(_help(self._info_word(split_word(behind)[0])))
            return
        if name:
            self._debugger.put_value(self.own.get(name) or _help(self.find(name)))
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
