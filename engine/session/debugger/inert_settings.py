"""gdb's settings that change nothing here: they are taken, kept and shown, as scripts set many.

A setting is one of them only where its value can make no difference to what is seen: what gdb
does for a machine, a remote target, an editor or itself. One whose effect is not there has its
only value in the table of `settings`, and says so.

Names: gdb 13, `show`.
"""

from typing import Final

_FAMILIES_TEXT: Final = """
    ada auto-load breakpoint dcache debug debuginfod fortran guile history index-cache
    mem mpx python ravenscar record remote serial source style tcp tdesc tui
"""
_FAMILIES: Final = frozenset(_FAMILIES_TEXT.split())
"""First words of names: all settings behind them are such."""
_NAMES_TEXT: Final = """
    agent auto-connect-native-target auto-solib-add basenames-may-differ charset
    circular-trace-buffer code-cache coerce-float-to-double compile-args compile-gcc
    compile-oracle complaints cp-abi data-directory default-collect demangle-style
    detach-on-fork disassembler-options disconnected-dprintf disconnected-tracing
    displaced-stepping dprintf-channel dprintf-function dprintf-style dump-excluded-mappings
    exec-done-display exec-file-mismatch extended-prompt extension-language follow-exec-mode
    follow-fork-mode gnutarget host-charset interactive-mode libthread-db-search-path
    max-completions may-insert-fast-tracepoints may-insert-tracepoints mi-async
    multiple-symbols opaque-type-resolution range-stepping remoteaddresssize remotebreak
    remotecache remoteflow remotelogbase remotelogfile remotetimeout remotewritesize
    schedule-multiple script-extension stack-cache startup-quietly struct-convention
    suppress-cli-notifications target-async target-charset target-file-system-kind
    target-wide-charset trace-buffer-size trace-notes trace-stop-notes trace-user
    trust-readonly-sections unwind-on-terminating-exception unwindonsignal
    use-coredump-filter use-deprecated-index-sections watchdog
"""
_NAMES: Final = frozenset(_NAMES_TEXT.split())
_PAIRS: Final = frozenset(
    {
        ("check", "range"),
        ("print", "memory-tag-violations"),
        ("print", "pascal_static-members"),
        ("print", "symbol-loading"),
    }
)


class InertSettings:
    """The values that were given to settings that change nothing here."""

    def __init__(self) -> None:
        """Nothing is set yet."""
        self._values: dict[str, str] = {}

    def knows(self, text: str) -> bool:
        """True if a text begins with the name of such a setting."""
        return bool(_words_of_name(text.split()))

    def set(self, text: str) -> bool:
        """Keep a value, the last word of `set NAME VALUE`; False if NAME is no such setting."""
        count = _words_of_name(text.split())
        if not count:
            return False
        words = text.split()
        count = count if words[0] not in _FAMILIES else max(len(words) - 1, 1)
        self._values[" ".join(words[:count])] = " ".join(words[count:])
        return True

    def sentence(self, text: str) -> str:
        """The answer to `show NAME`; "" if NAME is no such setting."""
        if not self.knows(text):
            return ""
        name = " ".join(text.split())
        value = self._values.get(name)
        told = "has not been set" if value is None else f'is "{value}"'
        return f"{name} {told}; nothing depends on it here."


def _words_of_name(words: list[str]) -> int:
    """Words of the name of such a setting that a text begins with; 0 for none."""
    if not words:
        return 0
    if words[0] in _NAMES:
        return 1
    if words[0] in _FAMILIES and len(words) > 1:
        return 2
    return 2 if tuple(words[:2]) in _PAIRS else 0
