"""Words of C expressions, and the types that casts name."""

import re
from typing import Final

from msgspec import Struct

from engine.errors import KprobeTuiError

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>\"(?:\\.|[^\"\\])*\")|(?P<char>'(?:\\.|[^'\\])')"
    r"|(?P<number>0[xX][0-9a-fA-F]{1,64}[uUlL]{0,3}|\d{1,64}[uUlL]{0,3})|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<mark>->|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^~!<>?:,()\[\]{}.;=]))"
)
_LONGEST: Final = 1 << 17
"""Characters of an expression."""
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_WORDS: Final = {"char": 8, "short": 16, "int": 32, "long": 64, "bool": 8}
_MODIFIERS: Final = frozenset({"unsigned", "signed"})
_PASSED: Final = frozenset({"const", "volatile", "__force", "__user", "__kernel", "__rcu"})
_TAGS: Final = frozenset({"struct", "union", "enum"})
_UNSIGNED_64: Final = (
    "size_t sector_t ino_t blkcnt_t pgoff_t dma_addr_t phys_addr_t resource_size_t uintptr_t "
    "pteval_t pmdval_t pudval_t p4dval_t pgdval_t"
)
_UNSIGNED_32: Final = (
    "dev_t gfp_t uid_t gid_t fmode_t blk_opf_t isolate_mode_t slab_flags_t vm_fault_t "
    "__be32 __le32"
)
_WIDTHS: Final = (8, 16, 32, 64)
_TYPES: Final = {
    **{f"u{bits}": (bits, False) for bits in _WIDTHS},
    **{f"s{bits}": (bits, True) for bits in _WIDTHS},
    **{f"__u{bits}": (bits, False) for bits in _WIDTHS},
    **{f"__s{bits}": (bits, True) for bits in _WIDTHS},
    **{f"uint{bits}_t": (bits, False) for bits in _WIDTHS},
    **{f"int{bits}_t": (bits, True) for bits in _WIDTHS},
    **dict.fromkeys(_UNSIGNED_64.split(), (64, False)),
    **dict.fromkeys(["ssize_t", "loff_t", "ktime_t", "time64_t", "off_t"], (64, True)),
    **dict.fromkeys(_UNSIGNED_32.split(), (32, False)),
    **dict.fromkeys(["pid_t", "clockid_t", "__kernel_rwf_t"], (32, True)),
    **dict.fromkeys(["umode_t", "__be16", "__le16"], (16, False)),
}


class UnprintableError(KprobeTuiError):
    """A `print fmt` that only the kernel itself could carry out."""


class PrintToken(Struct, frozen=True):
    """A word.

    Attributes:
        kind: "text", "char", "number", "name", "mark".
        text: the word; of a text and a character what stands between the quotes.
    """

    kind: str
    text: str


class PrintType(Struct, frozen=True):
    """A type of C.

    Attributes:
        bits: of a number, or of what a pointer leads to.
        signed: numbers of it are.
        pointer: it is a pointer.
    """

    bits: int
    signed: bool
    pointer: bool = False


def split(text: str) -> list[PrintToken]:
    """The words of an expression.

    Raises:
        UnprintableError: something is none.
    """
    if len(text) > _LONGEST:
        raise UnprintableError(f"an expression of {len(text)} characters")
    found, at = list[PrintToken](), 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise UnprintableError(f"no word of C: {text[at : at + 20]}")
        kind, word = match.lastgroup, match[match.lastgroup]
        if kind in ("text", "char"):
            word = _ESCAPE.sub(lambda one: _ESCAPES.get(one[1], one[1]), word[1:-1])
        found.append(PrintToken(kind, word))
        at = match.end()
    return found


def is_type(word: str) -> bool:
    """True for a word that a type begins with."""
    return word in _WORDS or word in _MODIFIERS or word in _PASSED or word in _TAGS or (
        word in _TYPES or word == "void" or word.endswith("_t")
    )  # fmt: skip


def c_type(words: list[str]) -> PrintType:
    """The type that words and stars name.

    Raises:
        UnprintableError: it is not known.
    """
    stars = words.count("*")
    names = [word for word in words if word != "*" and word not in _PASSED]
    pointer = stars > 0
    if stars > 1:
        return PrintType(64, signed=False, pointer=True)
    if (names and names[0] in _TAGS) or names == ["void"]:
        if not pointer and names[0] != "enum":
            raise UnprintableError(f"a cast to {' '.join(words)}")
        return PrintType(32 if names[0] == "enum" else 8, signed=False, pointer=pointer)
    if len(names) == 1 and names[0] in _TYPES:
        return PrintType(*_TYPES[names[0]], pointer)
    basic = [word for word in names if word not in _MODIFIERS]
    if not names or not set(basic) <= _WORDS.keys():
        if pointer:
            return PrintType(8, signed=False, pointer=True)
        raise UnprintableError(f"a cast to {' '.join(words)}")
    widths = [_WORDS[word] for word in basic if word != "int"] or [32]
    return PrintType(max(widths), "unsigned" not in names and basic != ["bool"], pointer)
