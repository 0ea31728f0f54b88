"""The address of a Dask scheduler, and the certificates that go with it.

Peers of Dask's execute what others send, and results are unpickled here: whoever reads or changes
what goes over the network in between has both machines. So an address of another machine is taken
with TLS only, unless the user says otherwise; a tunnel begins at a loopback address.
"""

import ipaddress
from typing import Final

from msgspec import Struct

from engine.errors import CommandError

_ENCRYPTED: Final = ("tls", "wss")
_PLAIN: Final = "tcp"


class SchedulerAccess(Struct, frozen=True):
    """A scheduler's address, and the certificates that it is shown.

    Attributes:
        address: as the user has written it.
        url: the same with its protocol.
        ca_file: certificates of those who sign for peers, in PEM; None where Dask's own
            configuration names them, as for the next two.
        cert: the certificate that this process shows.
        key: its key; None where it is in the file of the certificate.
    """

    address: str
    url: str
    ca_file: str | None = None
    cert: str | None = None
    key: str | None = None

    @property
    def is_encrypted(self) -> bool:
        """True if it is talked to by TLS."""
        return self.url.startswith(tuple(f"{each}://" for each in _ENCRYPTED))


def scheduler_access(
    address: str,
    ca_file: str | None = None,
    cert: str | None = None,
    key: str | None = None,
    *,
    insecure: bool = False,
) -> SchedulerAccess:
    """The access to a scheduler: by TLS where no protocol is named, but certificates are.

    Args:
        address: HOST:PORT, or a URL like `tls://HOST:PORT`.
        ca_file: path of the authority's certificate; None for that of Dask's configuration.
        cert: path of this client's certificate, or None.
        key: path of that certificate's key, or None.
        insecure: another machine may be talked to in the clear.

    Raises:
        CommandError: nobody should connect to it so.
    """
    certified = (ca_file, cert, key) != (None, None, None)
    protocol, there, place = address.rpartition("://")
    if not there:
        protocol = _ENCRYPTED[0] if certified else _PLAIN
    encrypted = protocol in _ENCRYPTED
    if certified and not encrypted:
        raise CommandError(f"--scheduler {address}: certificates go with tls://HOST:PORT")
    if certified and (ca_file is None or cert is None):
        raise CommandError(
            f"--scheduler {address}: TLS takes --tls-ca-file and --tls-cert, both of them"
        )
    if not encrypted and not insecure and not _is_here(place):
        raise CommandError(
            f"--scheduler {address}: it is not of this machine, and in the clear: whoever is on"
            " the network in between can have its workers, and this process, execute anything."
            " Use tls://HOST:PORT with --tls-ca-file, --tls-cert and --tls-key, or a tunnel (ssh"
            " -L 8786:127.0.0.1:8786); --insecure does it all the same"
        )
    return SchedulerAccess(address, f"{protocol}://{place}", ca_file, cert, key)


def _is_here(place: str) -> bool:
    """True if HOST:PORT is of this machine; another name than localhost may mean any machine."""
    host = place.rpartition(":")[0] or place
    host = host.removeprefix("[").removesuffix("]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
