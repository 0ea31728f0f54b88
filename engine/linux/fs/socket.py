"""A UNIX socket's name in the tree of files."""

import stat

from engine.linux.fs.attributes import Meta
from engine.linux.fs.vfs import OpenFile, OverlayNode, Volume


class SocketNode(OverlayNode):
    """The file that bind makes; it cannot be opened, and stays when the socket is gone.

    Attributes:
        bound: the socket that it is the name of, None once that is closed.
    """

    __slots__ = ("bound",)

    kind = stat.S_IFSOCK

    def __init__(self, volume: Volume, *, meta: Meta) -> None:
        super().__init__(volume, meta=meta)
        self.bound: OpenFile | None = None
