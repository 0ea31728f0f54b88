r"""The output of a guest, made harmless: text, colours, and nothing else.

Understood: SGR (colours and weights), `\r`, `\n`, backspace, tab, and erasing in the line, which
every progress bar needs. All other control characters, and CSI, OSC, DCS, SOS, PM and APC
sequences whole, are dropped, however they are split over chunks (ECMA-48; the states are those
of Paul Williams' parser for DEC terminals). A sequence that never ends is given up after a
bound, so that no guest can silence itself for good.
"""

import codecs
import re
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from rich.color import Color
from rich.style import Style

from tui.messages import Moment
from tui.output_lines import CELLS_MAX, KeptLines, Line

LINES_MAX: Final = 20_000
CHARACTERS_MAX: Final = 16 << 20
"""Characters of all lines that are kept."""

_SEQUENCE_MAX: Final = 4096
_TAB: Final = 8
_PLAIN: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_WHOLE: Final = re.compile(r"(?:[^\x00-\x1f\x7f-\x9f]*\r?\n)+")
_NULL: Final = Style.null()


class LineTerminal:
    """A terminal without a screen: an endless roll of lines, of which the last are kept.

    Attributes:
        lines: those kept; the last one is being written.
        dropped: lines that are gone.
    """

    def __init__(self, lines_max: int = LINES_MAX, characters_max: int = CHARACTERS_MAX) -> None:
        self.lines = KeptLines()
        self.dropped = 0
        self._lines_max = lines_max
        self._characters_max = characters_max
        self._characters = 0
        self._column = 0
        self._style = _NULL
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._state: Callable[[str], None] = self._ground
        self._sequence = ""
        self._length = 0

    def feed(self, data: bytes, moment: Moment | None = None) -> None:
        """Take what the guest wrote, cut anywhere.

        Args:
            data: the bytes that the guest wrote.
            moment: (tick, pc) of the instruction that has written it.
        """
        first = self.dropped + len(self.lines) - 1
        self._feed(data)
        if moment is not None:
            fresh = len(self.lines) - max(first - self.dropped, 0)
            for line in islice(reversed(self.lines), fresh):  # from the end: thousands are kept
                if line.moment is None and line.length:
                    line.moment = moment

    def feed_lines(self, data: bytes, moments: Sequence[Moment]) -> None:
        """Take whole lines, each of which was written at a moment of its own.

        Args:
            data: the lines, with carriage return and newline behind each.
            moments: (tick, pc) of each line.
        """
        texts = self._plain_lines(data)
        if texts is None or len(texts) != len(moments):
            for line, moment in zip(data.split(b"\n"), moments, strict=False):
                self.feed(line + b"\n", moment)
            return
        self.lines.pop()
        kept = texts[-self._lines_max :]
        if len(kept) < len(texts):  # those in front would go as soon as they have come
            self.dropped += len(self.lines) + len(texts) - len(kept)
            self.lines.clear()
            self._characters = 0
        self.lines.extend(kept, self._style, moments[len(texts) - len(kept) :])
        self._characters += sum(map(len, kept))
        self.lines.append(Line())
        self._forget()

    def _plain_lines(self, data: bytes) -> list[str] | None:
        """The texts of lines that need no look at each character; None where some do."""
        line = self.lines[-1]
        fresh = not (line.length or line.note or self._column or self._decoder.getstate()[0])
        if not fresh or self._state != self._ground or not data.isascii():
            return None
        texts = data.decode("ascii").split("\r\n")
        if texts.pop() or not "".join(texts).isprintable():
            return None
        return None if max(map(len, texts), default=0) > CELLS_MAX else texts

    def _feed(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        position, end = 0, len(text)
        while position < end:
            if self._state == self._ground:
                whole = _WHOLE.match(text, position)
                if whole is not None:
                    self._write_lines(whole[0].replace("\r", "").split("\n")[:-1])
                    position = whole.end()
                    continue
                plain = _PLAIN.match(text, position)
                if plain is not None:
                    self._write(plain[0])
                    position = plain.end()
                    continue
            self._state(text[position])
            position += 1

    def note(self, text: str) -> None:
        """Put a remark on a line of its own; it ends what the guest left open."""
        self._decoder.reset()
        self._ground_again()
        self._style = _NULL
        if self.lines[-1].length:
            self._newline()
        line = self.lines[-1]
        line.note = True
        self._column = 0
        self._write(text)
        self._newline()

    # -- states ---------------------------------------------------------------------------

    def _ground_again(self) -> None:
        self._state = self._ground
        self._sequence = ""
        self._length = 0

    def _ground(self, character: str) -> None:
        code = ord(character)
        if code == 0x1B:
            self._state = self._escape
        elif 0x80 <= code <= 0x9F:
            self._second(chr(code - 0x40))
        else:
            self._control(character)

    def _control(self, character: str) -> None:
        if character in "\n\v\f":
            self._newline()
        elif character == "\r":
            self._column = 0
        elif character == "\b":
            self._column = max(self._column - 1, 0)
        elif character == "\t":
            self._column = min(self._column - self._column % _TAB + _TAB, CELLS_MAX)

    def _escape(self, character: str) -> None:
        """Behind ESC, and behind its intermediate characters."""
        code = ord(character)
        if code < 0x20 or code >= 0x7F:
            self._interrupted(character)
        elif code >= 0x30 or self._sequence:
            if code < 0x30:
                return
            first = not self._sequence
            self._ground_again()
            if first:
                self._second(character)
        else:
            self._sequence = character

    def _second(self, character: str) -> None:
        """Take the character behind ESC, or the C1 control that means the same."""
        self._ground_again()
        if character == "[":
            self._state = self._csi
        elif character in "]PX^_":
            self._state = self._string
        elif character in "DE":
            self._newline()

    def _csi(self, character: str) -> None:
        code = ord(character)
        if code < 0x20 or code >= 0x7F:
            self._interrupted(character)
        elif code < 0x40:
            self._length += 1
            if self._length <= 256:
                self._sequence += character
            elif self._length > _SEQUENCE_MAX:
                self._ground_again()
        else:
            sequence = self._sequence if self._length <= 256 else "?"
            self._ground_again()
            self._final(character, sequence)

    def _interrupted(self, character: str) -> None:
        """A control character within a sequence: some end it, others act as always."""
        code = ord(character)
        if code in (0x18, 0x1A):
            self._ground_again()
        elif code == 0x1B or 0x80 <= code <= 0x9F:
            self._ground_again()
            self._ground(character)
        elif code < 0x20:
            self._control(character)
        elif code > 0x9F:
            self._ground_again()
            self._write(character)

    def _string(self, character: str) -> None:
        """Within OSC, DCS and their like: nothing of it is ever used."""
        self._length += 1
        if character in "\x07\x18\x1a\x9c" or self._length > _SEQUENCE_MAX:
            self._ground_again()
        elif character == "\x1b":
            # A backslash ends it, and anything else begins a new sequence: both as behind ESC.
            self._ground_again()
            self._state = self._escape

    # -- what acts ------------------------------------------------------------------------

    def _final(self, character: str, sequence: str) -> None:
        if character == "m":
            self._style = sgr(self._style, sequence)
        elif character == "K" and sequence in ("", "0", "1", "2"):
            line = self.lines[-1]
            before = line.length
            if sequence == "1":
                line.erase(0, self._column + 1)
            elif sequence == "2":
                line.erase(0, line.length)
            else:
                line.erase(self._column, line.length)
            self._characters += line.length - before

    def _write(self, text: str) -> None:
        text = _printable(text)
        line = self.lines[-1]
        before = line.length
        line.put(self._column, text, self._style)
        self._column = min(self._column + len(text), CELLS_MAX)
        self._characters += line.length - before
        self._forget()

    def _write_lines(self, texts: list[str]) -> None:
        """Write whole lines, none of which has a control character, at once."""
        self._write(texts[0])
        self._newline()
        rest = len(texts) - 1
        keep = texts[max(1, len(texts) - self._lines_max) :]
        if len(keep) < rest:
            # Those in front would go as soon as they have come.
            self.dropped += len(self.lines) - 1 + rest - len(keep)
            self.lines.clear()
            self.lines.append(Line())
            self._characters = 0
        self.lines.pop()
        for text in keep:
            line = Line()
            line.put(0, _printable(text), self._style)
            self._characters += line.length
            self.lines.append(line)
        self.lines.append(Line())
        self._forget()

    def _newline(self) -> None:
        self.lines.append(Line())
        self._column = 0
        self._forget()

    def _forget(self) -> None:
        lines = self.lines
        self._drop(max(len(lines) - self._lines_max, 0))
        while self._characters > self._characters_max and len(lines) > 1:
            self._drop(1)

    def _drop(self, count: int) -> None:
        self._characters -= self.lines.drop(count)
        self.dropped += count


def _printable(text: str) -> str:
    """Text without what does not print or turns the direction of writing; any space is one."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else " "
        for each in text
        if each.isprintable() or each.isspace()
    )


_FLAGS: Final = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_FLAGS_OFF: Final = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    27: ("reverse",),
    29: ("strike",),
}


def sgr(style: Style, sequence: str) -> Style:
    """The style behind a `CSI ... m`.

    What hides text or blinks is not taken over. An unknown number ends the sequence.

    Args:
        style: in front of it.
        sequence: its parameters.
    """
    try:
        # An empty parameter is 0; sub-parameters are separated like parameters.
        numbers = [int(each or 0) for each in re.split("[;:]", sequence)]
    except ValueError:
        return style
    flags: dict[str, bool | None] = {
        name: getattr(style, name) for name in ("bold", "dim", "italic", "underline")
    }
    flags |= {name: getattr(style, name) for name in ("reverse", "strike")}
    colours = [style.color, style.bgcolor]
    queue = deque(numbers)
    while queue:
        number = queue.popleft()
        if number == 0:
            flags, colours = dict.fromkeys(flags), [None, None]
        elif number in _FLAGS:
            flags[_FLAGS[number]] = True
        elif number in _FLAGS_OFF:
            flags |= dict.fromkeys(_FLAGS_OFF[number])
        elif number in (39, 49):
            colours[number == 49] = None
        elif number in (38, 48):
            colour = _extended(queue)
            if colour is None:
                break
            colours[number == 48] = colour
        elif number // 10 in (3, 4) and number % 10 < 8:
            colours[number >= 40] = Color.from_ansi(number % 10)
        elif number // 10 in (9, 10) and number % 10 < 8:
            colours[number >= 100] = Color.from_ansi(8 + number % 10)
    return Style(
        color=colours[0],
        bgcolor=colours[1],
        bold=flags["bold"],
        dim=flags["dim"],
        italic=flags["italic"],
        underline=flags["underline"],
        reverse=flags["reverse"],
        strike=flags["strike"],
    )


def _extended(queue: deque[int]) -> Color | None:
    """The colour behind 38 or 48."""
    kind = queue.popleft() if queue else 0
    if kind == 5 and queue and queue[0] < 256:
        return Color.from_ansi(queue.popleft())
    if kind == 2 and len(queue) >= 3 and all(each < 256 for each in list(queue)[:3]):
        return Color.from_rgb(queue.popleft(), queue.popleft(), queue.popleft())
    return None
