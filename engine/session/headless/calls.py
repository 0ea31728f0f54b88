"""Functions of a kernel image called, for the command line."""

from collections.abc import Iterator

from engine.session.kernel.call_syntax import read_call
from engine.session.kernel.calling import CallResult as CallResult
from engine.session.kernel.calling import KernelCaller
from engine.session.kernel.opened import OpenedKernel
from engine.session.protocol.requests import CallRequest


def call_functions(request: CallRequest) -> Iterator[CallResult]:
    """Call functions one after the other, up to the first that does not return.

    Raises:
        ImageError: the image cannot be read.
        CommandError: a call is none, or does not fit its function.
    """
    written = [read_call(text) for text in request.calls]
    caller = KernelCaller(OpenedKernel.open(request.image, request.kernel), request.blocks_max)
    for each in written:
        result = caller.call(each)
        yield result
        if result.failure:
            return
