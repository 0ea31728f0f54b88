"""Rules about what is in use at a place: stack, flags, other probes."""

from engine.arch.plan import Rules
from engine.probes.lintrules.finding import Finding
from engine.probes.site import Site


def red_zone(site: Site) -> Finding | None:
    """Whatever pushes there without stepping over the zone first damages the program."""
    found = site.flow.red_zone.get(site.address)
    if found is None:
        return None
    low, high = found
    return Finding(
        "red-zone",
        "info",
        f"the red zone is in use: {-low} to {-high} bytes below the stack pointer are read "
        f"later; a call or push planted here would overwrite them",
    )


def nop_call(site: Site) -> Finding | None:
    """Linux 6.18 does not ask before it turns a uprobe's no-operation into a call."""
    calls = site.arch.nop_calls
    if calls is None or site.rules is not Rules.UPROBE or not calls().is_nop(site.plan.raw):
        return None
    lost = calls().lost(site.flow.red_zone.get(site.address))
    if not lost:
        return None
    return Finding(
        "nop5-red-zone",
        "warning",
        f"from its second hit on Linux 6.18 damages the program: the trampoline that it calls "
        f"here overwrites {lost}, which are read later",
    )


def long_breakpoint(site: Site) -> Finding | None:
    """With a uprobe anywhere in it, a program does not get past its own `int $3`."""
    if site.rules is not Rules.UPROBE or not site.code.long_breakpoints:
        return None
    from engine.arch.uprobe_faults import INT3  # for the few programs that have one

    at = site.code.long_breakpoints[0]
    return Finding(
        INT3.rule, "warning", f"its file has `int $3` in two bytes at {at:#x}: Linux {INT3.text()}"
    )


def flags(site: Site) -> Finding | None:
    """Code planted there has to keep them."""
    found = site.flow.flags.get(site.address)
    if not found:
        return None
    return Finding("flags", "info", f"condition flags are in use: {found}")


def probed(site: Site) -> Finding | None:
    """Several probes share one trap."""
    if not site.probed:
        return None
    return Finding("probed", "info", "a probe stands there already; both will fire")
