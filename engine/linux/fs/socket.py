"""A UNIX socket's name in the tree of files."""

import stat

from engine.linux.fs.attributes import InodeNumber, Meta
from engine.linux.fs.vfs import OpenFile, OverlayNode, Volume


class SocketNode(OverlayNode):
    """The file that bind makes; it cannot be opened, and stays when the socket is gone.

    Attributes:
        bound: the socket that it is the name of, None once that is closed.
    """

    __slots__ = ("bound",)

    kind = stat.S_IFSOCK

    def __init__(self, volume: Volume, *, meta: Meta, number: InodeNumber | None = None) -> None:
        super().__init__(volume, meta=meta, number=number)
        self.bound: OpenFile | None = None
