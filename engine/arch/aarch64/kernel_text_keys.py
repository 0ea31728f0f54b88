"""Static keys that booting turns on AArch64, found by the code that asks them.

Data has no names in images without CONFIG_KALLSYMS_ALL, but the functions have that a key's
labels stand in.
"""

from bisect import bisect_left
from typing import Final, NamedTuple

from engine.arch.kernel import KernelView
from engine.arch.kernelsites import KernelSites

_NAME_LEAST: Final = 4


class _Turned(NamedTuple):
    """A key that boot turns.

    Attributes:
        functions: that all ask the key.
        on: after boot; before it is the other.
        needs: functions without which boot leaves it alone.
    """

    functions: tuple[str, ...]
    on: bool
    needs: tuple[str, ...] = ()


_TURNED: Final = (
    _Turned(("rng_is_initialized",), on=True),
    _Turned(
        ("__free_pages_ok", "get_page_from_freelist"), on=False, needs=("deferred_grow_zone",)
    ),
    _Turned(("sched_clock_cpu",), on=True),
    _Turned(("__mod_timer", "hrtimer_start_range_ns"), on=True),
    _Turned(("enqueue_timer",), on=True),
    _Turned(("trace_check_vprintf",), on=True),
    _Turned(("frontswap_init",), on=True, needs=("zswap_frontswap_init",)),
    _Turned(("crypto_larval_wait",), on=True),
    _Turned(("kvm_reset_vcpu", "kvm_set_pmu_events"), on=True),
    _Turned(("gic_handle_irq", "gic_irq_domain_map"), on=False),
    _Turned(("ip_output", "ip_mc_output"), on=True, needs=("apparmor_ip_postroute",)),
    _Turned(("ip6_output", "xfrm6_output"), on=True, needs=("apparmor_ip_postroute",)),
)


def turned_keys(view: KernelView, sites: KernelSites) -> dict[int, bool]:
    """Address of a static key to whether it is on after boot, for those that boot turns.

    A key is taken where exactly one fits: asked by all of the functions, and in the state that
    boot changes.
    """
    codes = [label.code for label in sites.jump_labels]
    found: dict[int, bool] = {}
    for turned in _TURNED:
        if any(view.symbol(name) is None for name in turned.needs):
            continue
        keys: set[int] | None = None
        for name in turned.functions:
            start = view.symbol(name)
            bounds = sites.bounds(start) if start is not None else None
            if bounds is None:
                keys = set()
                break
            first, last = (bisect_left(codes, edge) for edge in bounds)
            asked = {label.key for label in sites.jump_labels[first:last]}
            keys = asked if keys is None else keys & asked
        fitting = [
            key
            for key in keys or ()
            if bool(_count(view, key)) != turned.on and not _is_tracepoint(view, key)
        ]
        if len(fitting) == 1:
            found[fitting[0]] = turned.on
    return found


def _count(view: KernelView, key: int) -> int:
    """The users of a key, as the file has them."""
    return int.from_bytes(view.read(key, 4), "little", signed=True)


def _is_tracepoint(view: KernelView, key: int) -> bool:
    """True for the key of a tracepoint, which the address of its name stands before."""
    name = view.read(int.from_bytes(view.read(key - 8, 8), "little"), _NAME_LEAST)
    return len(name) == _NAME_LEAST and name.replace(b"_", b"").isalnum()
