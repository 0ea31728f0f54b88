"""Definitions of a kernel's probes: the lines `p`, `r`, `f` and `t`, read as that kernel does.

Follows trace_kprobe.c and trace_fprobe.c in what is accepted, in the order of the checks and in
the places that errors point at, for the era of the kernel. Nothing of what
`engine.trace.definition` adds for programs is understood here. The address of a probe that
has no symbol is shown as it is; the kernel shows it hashed.
"""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from engine.arch.program import Base, FetchArg, Source
from engine.errors import UnloggedError
from engine.fetch.argument_words import FIRST_ARG, Fail
from engine.fetch.compile import PLACE, ArgContext, compile_kernel_args, split_offset
from engine.fetch.numbers import unsigned
from engine.trace.btf_scope import BtfRecords, BtfScope, find_prototype
from engine.trace.definition import Definition, event_name
from engine.trace.errors import Command
from engine.trace.head_syntax import HEAD, MAX_EVENT, read_maxactive, read_names
from engine.trace.place_syntax import Address, SymbolPlace
from engine.trace.probed_kernel import ProbedKernel

_MAX_OFFSET: Final = 0xFFFFFFFF
_RESULT: Final = re.compile(r"\$retval(?![A-Za-z0-9_])")
_NAME_ENDS: Final = str.maketrans(":.*", "___")


class KernelProbe(Struct, frozen=True):
    """One line that was understood.

    Attributes:
        definition: the event; its kind is "kprobe" or "fprobe".
        symbol: as written, with the module's name; None for a probe by address.
        missing: error of a symbol in the arguments that is not there, "" for none.
        tracepoint: a `t:` line.
        logged: the words as error_log shows them.
    """

    definition: Definition
    symbol: str | None
    logged: tuple[str, ...]
    missing: str = ""
    tracepoint: bool = False

    @property
    def command(self) -> Command:
        """The words that its errors are about."""
        return Command(f"trace_{self.definition.kind}", self.logged)

    @property
    def offset(self) -> int:
        """Bytes behind the symbol."""
        target = self.definition.target
        return target.offset if isinstance(target, SymbolPlace) else 0

    def listing(self, maxactive: int) -> str:
        """The line as tracefs lists it, with a number of instances (0: none is shown)."""
        one = self.definition
        count = str(maxactive) if one.is_return and maxactive else ""
        args = "".join(f" {arg.name}={arg.text}" for arg in one.args)
        if one.kind == "kprobe":
            letter, suffix = ("r" if one.is_return else "p"), ""
        else:
            letter, suffix = ("t" if self.tracepoint else "f"), "%return" * one.is_return
        place = one.target.spelling(one.bits)
        return f"{letter}{count}:{one.group}/{one.event} {place}{suffix}{args}"


def find_symbol(kernel: ProbedKernel, name: str) -> int | None:
    """The address of a name as kallsyms_lookup_name finds it: `SYM` or `MOD:SYM`."""
    if not name:
        return None
    found = kernel.addresses(name, None)
    module, colon, symbol = name.partition(":")
    if not found and colon:
        known = kernel.has_module(module)
        found = kernel.addresses(symbol, module) if known else ()
    return found[0] if found else None


class UnclaimedError(UnloggedError):
    """A line that no kind of event takes for its own (-ECANCELED in the kernel)."""


class KernelLines:
    """Reads lines for one kernel."""

    def __init__(self, kernel: ProbedKernel) -> None:
        """For a kernel, which is asked while lines are read."""
        self._kernel = kernel
        self._era = kernel.era
        self._bits = kernel.arch.bits

    # -- p and r -------------------------------------------------------------------------

    def kprobe(self, words: tuple[str, ...]) -> KernelProbe:
        """A line of kprobe_events.

        Raises:
            ProbeSyntaxError: what the kernel writes to error_log.
            UnloggedError: what it refuses without a word there.
        """
        head = words[HEAD]
        if head[0] in "ft" and self._era.function_events:
            raise UnloggedError(f"{head}: a line of dynamic_events, not of kprobe_events")
        if head[0] not in "pr" or len(words) <= PLACE:
            others = head.startswith("s:") or (head[0] == "e" and len(words) > PLACE)
            refusal = UnloggedError if others else UnclaimedError
            raise refusal(f"{head}: a definition is p[:[GRP/]EVENT] PLACE [ARG...]")
        command = Command("trace_kprobe", words, self._era)
        colon = head.find(":", 1)
        maxactive = read_maxactive(head, colon, command)
        is_return = head[0] == "r"
        at_entry = False
        symbol: str | None = None
        target: Address | SymbolPlace
        number = unsigned(words[PLACE], self._bits)
        if number is not None:
            target = Address(number)
        else:
            symbol, offset, suffixed = self._symbol(words[PLACE], command)
            is_return = is_return or suffixed
            at_entry = self._check_symbol(symbol, offset, is_return, command)
            target = _symbol_place(symbol, offset)
        group, event = read_names(head, colon, "kprobes", command)
        args, missing, logged = self._args(
            words,
            command,
            function=symbol,
            # An address is read as if nothing was known of it, a return's too.
            is_return=is_return and symbol is not None,
            at_entry=at_entry and not is_return,
        )
        definition = Definition(
            kind="kprobe",
            is_return=is_return,
            maxactive=maxactive,
            group=group,
            event=event or event_name(target, is_return, self._bits),
            target=target,
            args=args,
            line=" ".join(words),
            bits=self._bits,
        )
        return KernelProbe(definition, symbol, logged, missing)

    def _symbol(self, word: str, command: Command) -> tuple[str, int, bool]:
        """Symbol, offset and whether `%return` is behind them."""
        if "/" in word and ":" in word:
            of_program = word.rpartition(":")[2][:1].isdecimal()
            refusal = UnloggedError if of_program else UnclaimedError
            raise refusal(f"{word}: a place in a file is none of the kernel")
        text, percent, suffix = word.partition("%")
        if percent and suffix != "return":
            raise command.error("BAD_ADDR_SUFFIX", PLACE, len(text))
        parts = split_offset(text, self._bits)
        if parts is None or not 0 <= parts[1] <= _MAX_OFFSET:
            raise command.error("BAD_PROBE_ADDR", PLACE)
        return (*parts, bool(percent))

    def _check_symbol(self, symbol: str, offset: int, is_return: bool, command: Command) -> bool:
        """Refuse a symbol that cannot be probed; True if the place is a function's entry."""
        if self._era.symbol_checked_first:
            self._check_name(symbol, command)
        entry = self._is_entry(symbol, offset)
        if is_return and entry is False:
            raise command.error("BAD_RETPROBE", PLACE)
        if not self._era.symbol_checked_first:
            self._check_name(symbol, command)
        return bool(entry)

    def _is_entry(self, symbol: str, offset: int) -> bool | None:
        """True at a function's entry; None where no symbol is found."""
        found = find_symbol(self._kernel, symbol)
        around = None if found is None else self._kernel.covering(found + offset)
        if found is None or around is None:
            return None
        return self._kernel.at_entry(around[0], found + offset - around[0])

    def _check_name(self, symbol: str, command: Command) -> None:
        """Refuse a symbol that is not there, or there more than once."""
        module, colon, name = symbol.partition(":")
        if colon and not (self._era.symbol_checked_first and self._kernel.has_module(module)):
            return
        if colon:
            found = self._kernel.addresses(name, module)
        else:
            own = self._kernel.addresses(symbol, "") if self._era.own_symbols_alone else ()
            found = own or self._kernel.addresses(symbol, None)
        if len(found) == 1:
            return
        error = command.error("NON_UNIQ_SYMBOL" if found else "BAD_PROBE_ADDR", PLACE)
        if not self._era.symbol_checked_first:
            error.errno = "EADDRNOTAVAIL" if found else "ENOENT"
        raise error

    # -- f and t -------------------------------------------------------------------------

    def function_event(self, words: tuple[str, ...]) -> KernelProbe:
        """A line `f` or `t` of dynamic_events.

        Raises:
            ProbeSyntaxError: what the kernel writes to error_log.
            UnloggedError: what it refuses without a word there.
        """
        head = words[HEAD]
        if len(words) <= PLACE:
            raise UnclaimedError(f"{head}: a definition is f[:[GRP/]EVENT] SYMBOL [ARG...]")
        tracepoint = head[0] == "t"
        command = Command("trace_fprobe", words, self._era)
        colon = head.find(":", 1)
        if self._era.functions_without_maxactive and head[1:2] not in ("", ":"):
            raise command.error("BAD_MAXACT", HEAD, 1)
        maxactive = read_maxactive("r" + head[1:], colon, command)
        symbol, is_return = self._function(words, tracepoint, command)
        if maxactive and not is_return:
            raise command.error("BAD_MAXACT_TYPE", HEAD, 1)
        default = "tracepoints" if tracepoint else "fprobes"
        group, event = read_names(head, colon, default, command)
        function: str | None = symbol
        if tracepoint:
            function = self._kernel.tracepoint(symbol)
            if function is None and not self._era.late_tracepoints:
                raise command.error("NO_TRACEPOINT", PLACE)
        args, missing, logged = self._args(
            words,
            command,
            function=function,
            is_return=is_return,
            at_entry=not is_return,
            hidden=int(tracepoint),
            registers=False,
        )
        definition = Definition(
            kind="fprobe",
            is_return=is_return,
            maxactive=maxactive,
            group=group,
            event=event or _function_event_name(symbol, tracepoint, is_return),
            target=_symbol_place(symbol, 0),
            args=args,
            line=" ".join(words),
            bits=self._bits,
        )
        return KernelProbe(definition, symbol, logged, missing, tracepoint)

    def _function(
        self, words: tuple[str, ...], tracepoint: bool, command: Command
    ) -> tuple[str, bool]:
        """The symbol or tracepoint, and whether the event is a return."""
        symbol, percent, suffix = words[PLACE].partition("%")
        if percent and (tracepoint or suffix != "return"):
            raise command.error("BAD_ADDR_SUFFIX", PLACE, len(symbol))
        if percent:
            return symbol, True
        for index, word in enumerate(words[FIRST_ARG:], FIRST_ARG):
            found = _RESULT.search(word)
            if found is not None:
                if tracepoint:
                    raise command.error("RETVAL_ON_PROBE", index, found.start())
                return symbol, True
        return symbol, False

    # -- arguments -----------------------------------------------------------------------

    def _args(
        self,
        words: tuple[str, ...],
        command: Command,
        *,
        function: str | None,
        is_return: bool,
        at_entry: bool,
        hidden: int = 0,
        registers: bool = True,
    ) -> tuple[tuple[FetchArg, ...], str, tuple[str, ...]]:
        """Arguments, the error of a missing symbol, and all words as error_log shows them."""
        kernel = self._kernel
        front = words[:FIRST_ARG]

        def reworded(changed: Sequence[str]) -> Fail:
            return replace(command, words=(*front, *changed)).error

        scope = None
        if function is not None and (at_entry or is_return):
            prototype = find_prototype(kernel.types, function, hidden)
            scope = BtfScope(kernel.arch, self._era, prototype, is_return=is_return, hidden=hidden)
        context = ArgContext(
            kernel.arch,
            uprobe=False,
            is_return=is_return,
            at_entry=at_entry,
            fail=command.error,
            symbol=self._data,
            variables=scope,
            records=BtfRecords(kernel.arch, kernel.types) if kernel.types else None,
            extended=False,
            era=self._era,
            kernel=True,
            registers=registers,
            reworded=reworded,
        )
        args, missing, logged = compile_kernel_args(words[FIRST_ARG:], context, kernel.dentry)
        return args, missing, (*front, *logged)

    def _data(self, name: str) -> Base | None:
        if find_symbol(self._kernel, name) is None:
            return None
        return Base(Source.SYMBOL, text=name.encode(errors="surrogateescape"))


def _symbol_place(symbol: str, offset: int) -> SymbolPlace:
    module, colon, name = symbol.partition(":")
    return SymbolPlace(name, offset, module) if colon and module else SymbolPlace(symbol, offset)


def _function_event_name(symbol: str, tracepoint: bool, is_return: bool) -> str:
    """The name that a function's event without one gets."""
    if tracepoint:
        name = f"_{symbol}" if symbol[:1].isdecimal() else symbol
    else:
        name = f"{symbol}__{'exit' if is_return else 'entry'}"
    return name[:1] + name[1:MAX_EVENT].translate(_NAME_ENDS)
