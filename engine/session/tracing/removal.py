"""Events without probes of their own taken away: synthetic events and event probes."""

from typing import TYPE_CHECKING

from engine.errors import UnloggedError
from engine.trace.definition import Deletion, named

if TYPE_CHECKING:
    from engine.session.tracing.tracing import Tracing


def remove_events(tracing: "Tracing", deletion: Deletion, own: list[tuple[str, str]]) -> bool:
    """Take away the synthetic events and event probes that a line means.

    Args:
        tracing: their trace.
        deletion: the line.
        own: names of the events with probes that it means, too; they stay here.

    Returns:
        False if there are none.

    Raises:
        UnloggedError: something else needs one of the events.
    """
    probes, controls, synthetics = tracing.event_probes, tracing.controls, tracing.synthetics
    found = [
        info
        for info in synthetics.infos
        if deletion.event and named(deletion, info.group, info.name)
    ]
    for info in (*found, *(tracing.infos[key] for key in own)):
        if on := [] if probes is None else probes.on(info):
            raise UnloggedError(f"{info}: {on[0]} stands on it", "EBUSY")
    for info in found:
        if controls.makes(info.name) or controls.of(info).triggers:
            raise UnloggedError(f"{info}: a trigger needs it", "EBUSY")
    made = [] if probes is None else probes.matching(deletion)
    for info in found:
        synthetics.remove(info)
        tracing.forget(info)
    for info in made:
        assert probes is not None, "they are from there"
        probes.remove(info)
        tracing.forget(info)
    return bool(found or made)
