"""The parts of what stands behind a word of gdb's: a format, expressions between commas."""

import re


def split_format(rest: str) -> tuple[str, str]:
    """The letters behind a slash, and the expression behind them."""
    match = re.match(r"/(\S*)\s*(.*)", rest, re.DOTALL)
    return (match[1], match[2].strip()) if match else ("", rest.strip())


def split_arguments(text: str) -> list[str]:
    """The parts between commas outside of quotes and brackets."""
    found, depth, quote, start = list[str](), 0, "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote and text[at - 1] != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and not depth:
            found.append(text[start:at].strip())
            start = at + 1
    rest = text[start:].strip()
    return [*found, rest] if rest else found
