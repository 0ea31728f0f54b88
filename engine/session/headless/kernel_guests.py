"""Guests that are kernel images told from programs, which need none of what reads images."""

from typing import TYPE_CHECKING

from engine.image.kernel.recognition import is_kernel_image
from engine.session.protocol.requests import CheckRequest

if TYPE_CHECKING:
    from engine.session.headless.kernel_checks import KernelChecked


def check_image(request: CheckRequest) -> "KernelChecked | None":
    """Judge the places of a kernel image; None where the guest is none.

    Raises:
        ImageError: it is damaged.
        CommandError: a choice is none.
        ProbeError: later: no function matches a pattern.
    """
    if not is_kernel_image(request.config.guest):
        return None
    from engine.session.headless.kernel_checks import check_kernel

    return check_kernel(request)
