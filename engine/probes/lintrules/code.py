"""Rules about what stands at a place: code or not, boundaries, instructions, names."""

from typing import Final

from engine.arch.plan import Mode, Rules, Verdict
from engine.image.headers import SHF_EXECINSTR
from engine.probes.lintrules.finding import Finding
from engine.probes.site import Site

CORRUPTS: Final = "corrupts"
"""Rule: a place that Linux accepts although the program would suffer."""


def _kprobe(site: Site, errno: str) -> str:
    """The error of a check that Linux makes for kprobes and not for uprobes."""
    return errno if site.rules is Rules.KPROBE else ""


def executable(site: Site) -> Finding | None:
    """Kprobes are for kernel text; a uprobe elsewhere is taken and never comes to life."""
    if site.executable:
        return None
    what = (
        "is outside all segments of the file"
        if site.segment is None
        else "is not executable: its segment is mapped without execute permission"
    )
    return Finding(
        "executable", "error", f"{site.address:#x} {what}", errno=_kprobe(site, "EINVAL")
    )


def section(site: Site) -> Finding | None:
    """Old linkers put constants into the executable segment."""
    found = site.section
    if found is None or found.flags & SHF_EXECINSTR:
        return None
    return Finding(
        "section", "error", f"{site.address:#x} is in section {found.name}, which holds no code"
    )


def data(site: Site) -> Finding | None:
    """A jump table or constant between instructions."""
    symbol = site.symbol
    if symbol is None or symbol.kind != "object":
        return None
    if symbol.size and site.address >= symbol.address + symbol.size:
        return None
    return Finding(
        "data", "error", f"{site.address:#x} is in the data object {symbol.name}, not in code"
    )


def boundary(site: Site) -> Finding | None:
    """Linux decodes from the start of a function for kprobes, and not at all for uprobes."""
    align = site.arch.insn_align
    if site.address % align:
        return Finding(
            "boundary",
            "error",
            f"{site.address:#x} is not a multiple of {align}",
            site.address - site.address % align,
            "EINVAL",
        )
    function = site.function
    if function is None or function.holds(site.address):
        return None
    around = function.around(site.address)
    if around is None:
        if function.bad is None or site.address < function.bad:
            return None
        if site.address == function.bad:
            message = f"the bytes at {site.address:#x} are no instruction"
        else:
            message = (
                f"where instructions begin is not known behind {function.bad:#x}: "
                f"the bytes there are none"
            )
        return Finding(
            "boundary", "error", message, site.nearest_accepted(), _kprobe(site, "EILSEQ")
        )
    begin, raw = around
    here = site.code.show(site.address, site.raw)
    return Finding(
        "boundary",
        "error",
        f"{site.address:#x} is in the middle of {site.code.show(begin, raw)} at {begin:#x}; "
        f"from there the bytes would be {here}",
        begin,
        _kprobe(site, "EILSEQ"),
    )


def instruction(site: Site) -> Finding | None:
    """The architecture's own verdict on the instruction."""
    plan = site.plan
    if plan.verdict is not Verdict.REJECTED:
        return None
    errno = site.plan_in(Mode.KERNEL)
    return Finding(
        "instruction",
        "error",
        plan.reason,
        site.nearest_accepted(),
        errno.errno if errno.verdict is Verdict.REJECTED else "",
    )


def corrupts(site: Site) -> Finding | None:
    """A place that Linux accepts although the program would suffer; kernel mode shows it."""
    if site.mode is Mode.STRICT or site.plan.verdict is Verdict.REJECTED:
        return None
    if site.plan.wrong:
        message = f"Linux accepts it, but {site.plan.wrong} ({site.plan.rule})"
        return Finding(CORRUPTS, "error", message)
    strict = site.plan_in(Mode.STRICT)
    if strict.verdict is not Verdict.REJECTED:
        return None
    return Finding(CORRUPTS, "error", f"Linux accepts it, but {strict.reason}")


def no_function(site: Site) -> Finding | None:
    """Padding, tables and code without a name."""
    if site.function_range is not None or not site.code.has_functions:
        return None
    return Finding(
        "no-function",
        "warning",
        f"{site.address:#x} belongs to no function: padding or data, perhaps",
    )


def overlap(site: Site) -> Finding | None:
    """A function inside another one, or two that share their tail."""
    found = {(start, end): name for start, end, name in site.code.functions_at(site.address)}
    if len(found) < 2:
        return None
    shown = ", ".join(f"{name} ({start:#x}-{end:#x})" for (start, end), name in found.items())
    return Finding("overlap", "warning", f"several functions lie over this place: {shown}")


def linkage_stub(site: Site) -> Finding | None:
    """A probe there fires for calls from this file only."""
    if site.symbol is None or not site.symbol.name.endswith("@plt"):
        return None
    name = site.symbol.name.removesuffix("@plt")
    where = "the entry" if site.address == site.symbol.address else "inside"
    return Finding(
        "linkage-stub",
        "warning",
        f"{where} of the linkage stub for {name}: it sees this file's calls only",
    )


def indirect(site: Site) -> Finding | None:
    """The resolver of an IFUNC runs once, before the program."""
    if site.symbol is None or site.symbol.kind != "ifunc":
        return None
    return Finding(
        "indirect",
        "warning",
        f"{site.symbol.name} is an indirect function: this is the resolver that picks its "
        "code when the program starts, not that code; a run places probes where that is",
    )


def alias(site: Site) -> Finding | None:
    """One body, several names: calls of all of them hit."""
    if not site.is_entry:
        return None
    names = sorted(set(site.code.names_at(site.address)))
    if len(names) < 2:
        return None
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return Finding("alias", "info", f"this code has several names: {shown}")


def landing_pad(site: Site) -> Finding | None:
    """Indirect branches must find the pad; a kprobe on x86 goes behind it."""
    probes = site.arch.probes
    pad = probes.landing_pad(site.raw)
    if not pad:
        return None
    what = f"{site.code.show(site.address, site.raw[:pad])} is a landing pad of indirect branches"
    if not site.is_entry or not probes.skips_landing_pad:
        return Finding("landing-pad", "info", what)
    behind = site.address + pad
    return Finding("landing-pad", "info", f"{what}; a kprobe would stand at {behind:#x}", behind)


def page_end(site: Site) -> Finding | None:
    """Half of such an instruction can be unmapped or replaced without the other."""
    page = site.arch.plan.page_size
    size = site.arch.probes.length(site.raw)
    left = page - site.address % page
    if size <= left:
        return None
    return Finding(
        "page-end",
        "info",
        f"{site.code.show(site.address, site.raw)} crosses into the page at "
        f"{site.address + left:#x}",
    )
