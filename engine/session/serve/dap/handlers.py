"""The way in which requests are carried out."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from engine.errors import CommandError
from engine.session.serve.dap.requests import DapArguments


class NotStoppedError(CommandError):
    """The guest has to stand for that."""


def always(arguments: DapArguments) -> bool:
    """Whatever the arguments are."""
    return True


def never(arguments: DapArguments) -> bool:
    """Likewise."""
    return False


class Handler(Struct, frozen=True):
    """The way in which a request is carried out.

    Attributes:
        arguments: their type.
        carry: carries it out; it returns the body of the answer, or, where the guest moves, the
            reason of the stop that follows if nothing else stops it.
        any_time: while the guest runs, too.
        halts: it stops the guest if that runs, and comes then.
        moves: asked with arguments: True if the guest moves; the request is answered before.
        answer: the answer's body in that case.
        unforeseen: the front end does not know that the guest moves, and is told so.
        then: done behind the answer, or behind the motion.
    """

    arguments: type[DapArguments]
    carry: Callable[[Any], object]
    any_time: bool = False
    halts: bool = False
    moves: Callable[[Any], bool] = never
    answer: object = None
    unforeseen: bool = False
    then: Callable[[], object] | None = None


Handlers = Mapping[str, Handler]
"""Names of requests to their handlers."""


class SessionProgress(Struct):
    """The state of a session.

    Attributes:
        running: the guest is moving.
        over: the front end has said goodbye, or has gone.
        interrupted: a request has stopped the guest, and comes next.
        finished: it was told that there is nothing more to debug.
    """

    running: bool = False
    over: bool = False
    interrupted: bool = False
    finished: bool = False
