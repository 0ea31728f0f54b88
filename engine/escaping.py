r"""Bytes of a guest made fit to be shown: C's escapes as strace writes them.

Names and strings of a guest may hold anything: sequences that a terminal obeys, marks that turn
the direction of writing, newlines that would forge a line. Every way out of this program passes
them through `escaped`. What prints in UTF-8 stays as it is; of the rest `\t \n \v \f \r` have
their letters, other ASCII is octal (as short as the next character allows), and bytes from 0x80 on
are `\xNN`, those of a character that does not print as well as those that are no UTF-8.

Source: string_quote() of strace's src/util.c.
"""

from typing import Any, Final

_LETTERS: Final = {"\t": r"\t", "\n": r"\n", "\v": r"\v", "\f": r"\f", "\r": r"\r"}
_MARKS: Final = {'"': r"\"", "\\": r"\\"}
_SURROGATES: Final = range(0xDC80, 0xDD00)
"""Stand for bytes that are no UTF-8 ("surrogateescape")."""
_HARMLESS: Final = bytes(range(0x20, 0x7F))
_UNMARKED: Final = _HARMLESS.translate(None, b'"\\')


def escaped(text: str | bytes, *, quoted: bool = False, keep: str = "") -> str:
    r"""The text with nothing in it but what prints.

    Args:
        text: of a guest; bytes are taken for UTF-8 as far as they are.
        quoted: it will stand between double quotes, so that these and backslashes are escaped
            too and the text can be read back without doubt.
        keep: characters to leave alone: newlines of a text that has lines of its own.
    """
    if isinstance(text, bytes):
        text = text.decode(errors="surrogateescape")
    if text.isprintable() and not (quoted and ('"' in text or "\\" in text)):
        return text
    return "".join(
        each
        if each in keep
        else (_MARKS.get(each, each) if quoted else each)
        if each.isprintable()
        else _escape(each, text[at + 1 : at + 2])
        for at, each in enumerate(text)
    )


def escaped_bytes(data: bytes, *, quoted: bool = False) -> bytes:
    """The same for text that is built of bytes."""
    if not data.translate(None, _UNMARKED if quoted else _HARMLESS):
        return data
    return escaped(data, quoted=quoted).encode()


def json_text(value: Any, *, indent: int | None = None) -> str:
    """JSON in ASCII without a control character: `json` itself lets DEL through."""
    import json  # only who writes any needs it

    return json.dumps(value, indent=indent).replace("\x7f", r"\u007f")


def _escape(each: str, following: str) -> str:
    letter = _LETTERS.get(each)
    if letter is not None:
        return letter
    code = ord(each)
    if code < 0x80:
        return f"\\{code:03o}" if following in tuple("01234567") else f"\\{code:o}"
    if code in _SURROGATES:
        return f"\\x{code & 0xFF:02x}"
    return "".join(f"\\x{byte:02x}" for byte in each.encode(errors="surrogatepass"))
