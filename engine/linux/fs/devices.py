"""Device numbers of the file systems that the guest's kernel makes itself.

Host files keep the host's device. So these numbers must be none of the host's: like those of
Linux's own file systems without a disk they have the major number 0, but their minor numbers lie
at the upper end of the range, of which Linux gives the lowest free one (get_anon_bdev in
fs/super.c).
"""

import os
from typing import Final

_FIRST: Final = 0xFFF00

NAMESPACES: Final = os.makedev(0, _FIRST + 0x04)
PIPES: Final = os.makedev(0, _FIRST + 0x08)
SOCKETS: Final = os.makedev(0, _FIRST + 0x09)
ANONYMOUS: Final = os.makedev(0, _FIRST + 0x0A)
"""Files without a name or contents, such as eventfd's."""
DEV: Final = os.makedev(0, _FIRST + 0x05)
PROC: Final = os.makedev(0, _FIRST + 0x15)
SYS: Final = os.makedev(0, _FIRST + 0x16)
PTS: Final = os.makedev(0, _FIRST + 0x17)
STREAMS: Final = os.makedev(0, _FIRST + 0x18)
"""Standard streams that are no files."""
CGROUP: Final = os.makedev(0, _FIRST + 0x19)
SHARED_MEMORY: Final = os.makedev(0, _FIRST + 0x1A)
"""/dev/shm."""
PRIVATE: Final = os.makedev(0, _FIRST + 0x28)
"""Files that the guest makes where no directory of the host's is."""


def show(dev: int) -> bytes:
    """A device as /proc/PID/maps and /proc/locks have it."""
    return b"%02x:%02x" % (os.major(dev), os.minor(dev))
