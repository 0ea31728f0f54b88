"""Completion in bash, zsh and fish: their scripts, and the answers to what they ask.

A script gives the line in front of the cursor in KPROBE_TUI_BEFORE and what is behind it in
KPROBE_TUI_AFTER; the answer is a line each: first "nospace" where the word goes on, else "space".
"""

import os
import re
from typing import Final

import click
from click.shell_completion import CompletionItem, ShellComplete, split_arg_string

from engine.cli.shell_words import Fit, ShellWords

SHELLS: Final = ("bash", "zsh", "fish")
_BASH: Final = """\
_kprobe_tui_completion() {
    local LC_ALL=C found
    mapfile -t found < <(KPROBE_TUI_BEFORE="${COMP_LINE:0:COMP_POINT}" \\
        KPROBE_TUI_AFTER="${COMP_LINE:COMP_POINT}" KPROBE_TUI_WORD="${COMP_WORDS[COMP_CWORD]}" \\
        _KPROBE_TUI_COMPLETE=bash_complete "$1" 2>/dev/null)
    [[ ${found[0]} == nospace ]] && compopt -o nospace
    COMPREPLY=("${found[@]:1}")
}
complete -o nosort -F _kprobe_tui_completion kprobe-tui
"""
_ZSH: Final = """\
#compdef kprobe-tui
_kprobe_tui_completion() {
    local -a found more
    found=("${(@f)$(KPROBE_TUI_BEFORE="${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" \\
        KPROBE_TUI_AFTER="$SUFFIX$QISUFFIX ${(j: :)words[CURRENT+1,-1]}" \\
        _KPROBE_TUI_COMPLETE=zsh_complete "$words[1]" 2>/dev/null)}")
    [[ $found[1] == nospace ]] && more=(-S '')
    shift found
    (( $#found )) && compadd -U -V kprobe-tui "${more[@]}" -- "${found[@]}"
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _kprobe_tui_completion "$@"
else
    compdef _kprobe_tui_completion kprobe-tui
fi
"""
_FISH: Final = """\
function __kprobe_tui_completion
    set -lx KPROBE_TUI_BEFORE (commandline -cp | string collect)
    set -lx _KPROBE_TUI_COMPLETE fish_complete
    set -l words (commandline -op)
    set -l found ($words[1] 2>/dev/null)
    test (count $found) -gt 1; and string join \\n -- $found[2..-1]
end
complete -c kprobe-tui -f -a '(__kprobe_tui_completion)'
"""
_SPECIAL: Final = re.compile(r"([^\w@%+=:,./~-])")


class _Shell(ShellComplete):
    """Answers what the script of one shell asks."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Nothing: `complete` takes the line apart by itself."""
        return [], ""

    def format_completion(self, item: CompletionItem) -> str:
        """A word as it is."""
        return str(item.value)

    def source(self) -> str:
        """The script."""
        return self.source_template

    def complete(self) -> str:
        """The answer."""
        before = os.environ.get("KPROBE_TUI_BEFORE", "")
        after = os.environ.get("KPROBE_TUI_AFTER", "")
        before += _closing(before, after)
        words, typed = _parted(before)
        stands_alone = not typed and not after[:1].strip()
        rest = split_arg_string(before + after)[len(words) + (not stands_alone) :]
        group = self.cli
        assert isinstance(group, click.Group)
        fits = ShellWords(group, words[1:], rest).fitting(typed)
        unique = list({fit.word: fit for fit in fits if fit.word.startswith(typed)}.values())
        nospace = len(unique) == 1 and unique[0].goes_on
        shown = [text for fit in unique if "\n" not in (text := self.shown(fit, typed))]
        return "\n".join(("nospace" if nospace else "space", *shown))

    def shown(self, fit: Fit, typed: str) -> str:
        """A word as the shell takes it."""
        return fit.word


class BashWords(_Shell):
    """bash, to which colons and equals signs end a word, and that quotes nothing by itself."""

    name = "bash"
    source_template = _BASH

    def shown(self, fit: Fit, typed: str) -> str:
        """The part of a word that takes the place of what bash takes for the word."""
        word = os.environ.get("KPROBE_TUI_WORD", "")
        if word[:1] in ("'", '"'):
            return fit.word
        plain = "".join(split_arg_string(word))
        cut = len(typed)
        if typed.endswith(plain) and word not in (":", "="):
            cut -= len(plain)
        return _SPECIAL.sub(r"\\\1", fit.word[cut:])


class ZshWords(_Shell):
    """zsh."""

    name = "zsh"
    source_template = _ZSH


class FishWords(_Shell):
    """fish, which shows what a word is, and tells nobody what is behind the cursor."""

    name = "fish"
    source_template = _FISH

    def shown(self, fit: Fit, typed: str) -> str:
        """A word, with what it is behind a tab."""
        return f"{fit.word}\t{fit.help}" if fit.help else fit.word


CLASSES: Final = (BashWords, ZshWords, FishWords)


def script(shell: str) -> str:
    """The script that a shell reads, to complete words of `kprobe-tui`."""
    return next(each.source_template for each in CLASSES if each.name == shell)


def _closing(before: str, after: str) -> str:
    """The quote that ends the word at the cursor, where none is typed behind it."""
    quote = ""
    escaped = False
    for letter in before:
        if escaped:
            escaped = False
        elif letter == "\\" and quote != "'":
            escaped = True
        elif not quote and letter in "'\"":
            quote = letter
        elif letter == quote:
            quote = ""
    return quote if quote and not after.count(quote) % 2 else ""


def _parted(line: str) -> tuple[list[str], str]:
    """The words in front of the one at the end of a line, and that one as far as it is typed."""
    words = split_arg_string(line)
    if len(split_arg_string(f"{line}x")) > len(words):
        return words, ""
    return words[:-1], words[-1] if words else ""
