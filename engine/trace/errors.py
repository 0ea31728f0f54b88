"""The kernel's error texts for definitions, and the caret under the word that is wrong.

Ids and texts are those of Linux 7.3 (ERRORS in kernel/trace/trace_probe.h), without the ones
for kinds of events that do not exist here; NO_EVENT_TYPE is the one of create_dyn_event in
kernel/trace/trace_dynevent.c, which has no id there. `Era.text` has those that were others before.
"""

from typing import Final

from msgspec import Struct

from engine.errors import ProbeSyntaxError
from engine.fetch.era import MEASURED, Era

TEXTS: Final[dict[str, str]] = {
    "FILE_NOT_FOUND": "Failed to find the given file",
    "NO_REGULAR_FILE": "Not a regular file",
    "BAD_REFCNT": "Invalid reference counter offset",
    "REFCNT_OPEN_BRACE": "Reference counter brace is not closed",
    "BAD_REFCNT_SUFFIX": "Reference counter has wrong suffix",
    "BAD_UPROBE_OFFS": "Invalid uprobe offset",
    "BAD_MAXACT_TYPE": "Maxactive is only for function exit",
    "BAD_MAXACT": "Invalid maxactive number",
    "MAXACT_TOO_BIG": "Maxactive is too big",
    "BAD_PROBE_ADDR": "Invalid probed address or symbol",
    "NON_UNIQ_SYMBOL": "The symbol is not unique",
    "NO_TRACEPOINT": "Tracepoint is not found",
    "BAD_RETPROBE": "Retprobe address must be an function entry",
    "BAD_ADDR_SUFFIX": "Invalid probed address suffix",
    "NO_GROUP_NAME": "Group name is not specified",
    "GROUP_TOO_LONG": "Group name is too long",
    "BAD_GROUP_NAME": "Group name must follow the same rules as C identifiers",
    "NO_EVENT_NAME": "Event name is not specified",
    "EVENT_TOO_LONG": "Event name is too long",
    "BAD_EVENT_NAME": "Event name must follow the same rules as C identifiers",
    "EVENT_EXIST": "Given group/event name is already used by another event",
    "RETVAL_ON_PROBE": "$retval is not available on probe",
    "BAD_STACK_NUM": "Invalid stack number",
    "BAD_ARG_NUM": "Invalid argument number",
    "BAD_VAR": "Invalid $-variable specified",
    "BAD_REG_NAME": "Invalid register name",
    "BAD_MEM_ADDR": "Invalid memory address",
    "BAD_IMM": "Invalid immediate value",
    "IMMSTR_NO_CLOSE": "String is not closed with '\"'",
    "FILE_ON_KPROBE": "File offset is not available for kernel probes",
    "BAD_FILE_OFFS": "Invalid file offset value",
    "SYM_ON_UPROBE": "Symbol is not available with uprobe",
    "TOO_MANY_OPS": "Dereference is too much nested",
    "DEREF_NEED_BRACE": "Dereference needs a brace",
    "BAD_DEREF_OFFS": "Invalid dereference offset",
    "DEREF_OPEN_BRACE": "Dereference brace is not closed",
    "COMM_CANT_DEREF": "$comm can not be dereferenced",
    "BAD_FETCH_ARG": "Invalid fetch argument",
    "ARRAY_NO_CLOSE": "Array is not closed",
    "BAD_ARRAY_SUFFIX": "Array has wrong suffix",
    "BAD_ARRAY_NUM": "Invalid array size",
    "ARRAY_TOO_BIG": "Array number is too big",
    "BAD_TYPE": "Unknown type is specified",
    "BAD_STRING": "String accepts only memory argument",
    "BAD_SYMSTRING": "Symbol String doesn't accept data/userdata",
    "BAD_BITFIELD": "Invalid bitfield",
    "ARG_NAME_TOO_LONG": "Argument name is too long",
    "NO_ARG_NAME": "Argument name is not specified",
    "BAD_ARG_NAME": "Argument name must follow the same rules as C identifiers",
    "USED_ARG_NAME": "This argument name is already used",
    "ARG_TOO_LONG": "Argument expression is too long",
    "NO_ARG_BODY": "No argument expression",
    "BAD_INSN_BNDRY": "Probe point is not an instruction boundary",
    "FAIL_REG_PROBE": "Failed to register probe event",
    "DIFF_PROBE_TYPE": "Probe type is different from existing probe",
    "DIFF_ARG_TYPE": "Argument type or name is different from existing probe",
    "SAME_PROBE": "There is already the exact same probe event",
    "NOSUP_BTFARG": "BTF is not available or not supported",
    "NO_BTFARG": "This variable is not found at this probe point",
    "NO_BTF_ENTRY": "No BTF entry for this probe point",
    "NOFENTRY_ARGS": "$arg* can be used only on function entry or exit",
    "DOUBLE_ARGS": "$arg* can be used only once in the parameters",
    "ARGS_2LONG": "$arg* failed because the argument list is too long",
    "NO_RETVAL": "This function returns 'void' type",
    "NO_PTR_STRCT": "This is not a pointer to union/structure.",
    "NOSUP_DAT_ARG": "Non pointer structure/union argument is not supported.",
    "BAD_HYPHEN": "Failed to parse single hyphen. Forgot '>'?",
    "NO_BTF_FIELD": "This field is not found.",
    "BAD_BTF_TID": "Failed to get BTF type info.",
    "BAD_TYPE4STR": "This type does not fit for string.",
    "NEED_STRING_TYPE": "$comm and immediate-string only accepts string type",
    "TOO_MANY_ARGS": "Too many arguments are specified",
    "EVENT_TOO_BIG": "Event too big (too many fields?)",
    "NO_EVENT_INFO": "This requires both group and event name to attach",
    "BAD_ATTACH_EVENT": "Attached event does not exist",
    "NO_EP_FILTER": "No filter rule after 'if'",
    "TOO_MANY_NESTED": "Too many nested typecasts/dereferences",
    "TYPECAST_NOT_EVENT": "Typecasts are only for eprobe fields",
    "TYPECAST_REQ_FIELD": "Typecast requires a field access",
    "TYPECAST_SYM_OFFSET": "@SYM+/-OFFSET with typecast needs parentheses",
    "TYPECAST_NOT_ALIGNED": "Typecast field option is not byte-aligned",
    "TYPECAST_BAD_ARROW": "Typecast field option does not support -> operator",
    "NO_EVENT_TYPE": "No matching dynamic event type",
    "NOSUP_PERCPU": "Per-cpu variable access is only for kernel probes",
}
"""Text of each error by its id."""

_ERRNOS: Final[dict[str, str]] = {
    "NO_RETVAL": "ENOENT",
    "NO_BTFARG": "ENOENT",
    "NO_BTF_ENTRY": "ENOENT",
    "NO_BTF_FIELD": "ENOENT",
    "NOSUP_DAT_ARG": "EOPNOTSUPP",
    "ARGS_2LONG": "E2BIG",
    "TOO_MANY_ARGS": "E2BIG",
    "EVENT_TOO_BIG": "E2BIG",
    "TOO_MANY_NESTED": "E2BIG",
    "EVENT_EXIST": "EEXIST",
    "DIFF_PROBE_TYPE": "EEXIST",
    "DIFF_ARG_TYPE": "EEXIST",
    "SAME_PROBE": "EEXIST",
    "BAD_INSN_BNDRY": "EILSEQ",
}
"""The error of the write, where it is not EINVAL."""


class Command(Struct, frozen=True):
    """A definition as the kernel's error_log shows it.

    Attributes:
        subsystem: who complains ("trace_kprobe", "trace_uprobe").
        words: head, place, arguments.
        era: the rules of the kernel.
    """

    subsystem: str
    words: tuple[str, ...]
    era: Era = MEASURED

    @property
    def text(self) -> str:
        """The words with one blank between them."""
        return " ".join(self.words)

    def error(self, code: str, index: int, offset: int = 0, *, why: str = "") -> ProbeSyntaxError:
        """The kernel's error at a word.

        Args:
            code: id of the error.
            index: of the word; behind the last one the caret stands one blank after the text.
            offset: characters into the word.
            why: what the kernel does not say.
        """
        text = self.text
        if index < len(self.words):
            column = sum(len(word) + 1 for word in self.words[:index]) + offset
        else:
            column = len(text) + 1
        words = self.era.text(code, TEXTS[code])
        error = ProbeSyntaxError(code, words, text, column, self.subsystem)
        error.errno = _ERRNOS.get(code, "EINVAL")
        error.explain(why)
        return error
