"""Settings of a terminal: struct termios in the generic values (asm-generic/termbits.h)."""

import struct
from typing import Final, NamedTuple, Self

TCGETS, TCSETS, TCSETSW, TCSETSF = 0x5401, 0x5402, 0x5403, 0x5404
TCGETS2, TCSETS2, TCSETSW2, TCSETSF2 = 0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D
TCSBRK, TCXONC, TCFLSH, TCSBRKP = 0x5409, 0x540A, 0x540B, 0x5425
TIOCOUTQ, TIOCSTI, TIOCGWINSZ, TIOCSWINSZ, FIONREAD = 0x5411, 0x5412, 0x5413, 0x5414, 0x541B
TIOCPKT, TIOCSETD, TIOCGETD = 0x5420, 0x5423, 0x5424
TIOCEXCL, TIOCNXCL, TIOCGEXCL, TIOCSBRK, TIOCCBRK = 0x540C, 0x540D, 0x80045440, 0x5427, 0x5428
TIOCGPTN, TIOCSPTLCK, TIOCGDEV, TIOCSIG = 0x80045430, 0x40045431, 0x80045432, 0x40045436
TIOCGPKT, TIOCGPTLCK, TIOCGPTPEER = 0x80045438, 0x80045439, 0x5441

PARMRK, ISTRIP, INLCR, IGNCR, ICRNL, IUCLC = 0o10, 0o40, 0o100, 0o200, 0o400, 0o1000
IXON, IXANY, IUTF8 = 0o2000, 0o4000, 0o40000
OPOST, OLCUC, ONLCR, OCRNL, ONOCR, ONLRET, XTABS = 1, 2, 4, 0o10, 0o20, 0o40, 0o14000
ISIG, ICANON, ECHO, ECHOE, ECHOK, ECHONL = 1, 2, 0o10, 0o20, 0o40, 0o100
NOFLSH, TOSTOP, ECHOCTL, ECHOPRT, ECHOKE = 0o200, 0o400, 0o1000, 0o2000, 0o4000
IEXTEN, EXTPROC = 0o100000, 0o200000
VINTR, VQUIT, VERASE, VKILL, VEOF, VTIME, VMIN = range(7)
VSTART, VSTOP, VSUSP, VEOL, VREPRINT = 8, 9, 10, 11, 12
VWERASE, VLNEXT, VEOL2 = 14, 15, 16

_CBAUD, _BOTHER, _IBSHIFT = 0x100F, 0x1000, 16
_CSIZE_PARENB, _CS8_CREAD = 0o460, 0o260
_SPEEDS: Final = dict(
    enumerate(
        (
            *(0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600),
            *(19200, 38400),
        )
    )
)
_SPEEDS.update(
    enumerate(
        (
            *(57600, 115200, 230400, 460800, 500000, 576000, 921600, 1000000, 1152000, 1500000),
            *(2000000, 2500000, 3000000, 3500000, 4000000),
        ),
        0x1001,
    )
)
_FORMATS: Final = {
    ("little", False): struct.Struct("<4IB19s"),
    ("big", False): struct.Struct(">4IB19s"),
    ("little", True): struct.Struct("<4IB19s2I"),
    ("big", True): struct.Struct(">4IB19s2I"),
}


class Settings(NamedTuple):
    """Struct termios2."""

    iflag: int
    oflag: int
    cflag: int
    lflag: int
    line: int
    keys: bytes
    ispeed: int = 38400
    ospeed: int = 38400

    @classmethod
    def unpack(cls, raw: bytes, byteorder: str, before: Self | None) -> Self:
        """The settings that a program hands over.

        Args:
            raw: struct termios, or termios2.
            byteorder: of the guest.
            before: the settings so far, whose speeds stay where `raw` is a struct termios; None
                for termios2, which has speeds of its own. They count where c_cflag says so.
        """
        fields = _FORMATS[byteorder, before is None].unpack(raw)
        found = cls(*fields, *(before[6:] if before is not None else ()))
        cflag = found.cflag
        out = _SPEEDS.get(cflag & _CBAUD, found.ospeed)
        into = cflag >> _IBSHIFT & _CBAUD
        back = out if not into else _SPEEDS.get(into, found.ispeed)
        return found._replace(ispeed=back, ospeed=out)

    @staticmethod
    def size(*, speeds: bool) -> int:
        """Bytes of the structure."""
        return _FORMATS["little", speeds].size

    def pack(self, byteorder: str, *, speeds: bool) -> bytes:
        """The structure in guest memory."""
        return _FORMATS[byteorder, speeds].pack(*(self if speeds else self[:6]))

    def of_pty(self) -> Self:
        """The same with what cannot be different on a pseudo-terminal (pty_set_termios)."""
        return self._replace(cflag=self.cflag & ~_CSIZE_PARENB | _CS8_CREAD)

    @property
    def flow(self) -> bool:
        """True if the usual keys stop and start the output."""
        keys = self.keys
        return bool(self.iflag & IXON) and (keys[VSTOP], keys[VSTART]) == (0x13, 0x11)


DEFAULTS: Final = Settings(
    ICRNL | IXON,
    OPOST | ONLCR,
    0xBF,
    ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN,
    0,
    bytes((3, 0x1C, 0x7F, 0x15, 4, 0, 1, 0, 0x11, 0x13, 0x1A, 0, 0x12, 0xF, 0x17, 0x16, 0, 0, 0)),
)
"""As a terminal begins (tty_std_termios)."""
