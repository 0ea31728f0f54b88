"""Flags of the kernel's page allocator by name, for `%gr` (linux/gfp_types.h)."""

from typing import Final

_BITS: Final = {
    name: 1 << bit
    for bit, name in enumerate(
        (
            "DMA",
            "HIGHMEM",
            "DMA32",
            "MOVABLE",
            "RECLAIMABLE",
            "HIGH",
            "IO",
            "FS",
            "ZERO",
            "",
            "DIRECT_RECLAIM",
            "KSWAPD_RECLAIM",
            "WRITE",
            "NOWARN",
            "RETRY_MAYFAIL",
            "NOFAIL",
            "NORETRY",
            "MEMALLOC",
            "COMP",
            "NOMEMALLOC",
            "HARDWALL",
            "THISNODE",
            "ACCOUNT",
            "ZEROTAGS",
            "SKIP_ZERO",
            "SKIP_KASAN",
            "NO_OBJ_EXT",
        )
    )
    if name
}


def _of(*names: str) -> int:
    return sum(_BITS[name] for name in names)


_RECLAIM: Final = _of("DIRECT_RECLAIM", "KSWAPD_RECLAIM")
_KERNEL: Final = _RECLAIM | _of("IO", "FS")
_HIGHUSER: Final = _KERNEL | _of("HARDWALL", "HIGHMEM")
_MOVABLE: Final = _HIGHUSER | _of("MOVABLE", "SKIP_KASAN")
_HUGE: Final = (_MOVABLE | _of("COMP", "NOMEMALLOC", "NOWARN")) & ~_RECLAIM
_ALONE: Final = (
    "HIGH",
    "IO",
    "FS",
    "ZERO",
    "DIRECT_RECLAIM",
    "KSWAPD_RECLAIM",
    "WRITE",
    "NOWARN",
    "RETRY_MAYFAIL",
    "NOFAIL",
    "NORETRY",
    "MEMALLOC",
    "COMP",
    "NOMEMALLOC",
    "HARDWALL",
    "THISNODE",
    "ACCOUNT",
    "ZEROTAGS",
    "SKIP_ZERO",
    "SKIP_KASAN",
    "NO_OBJ_EXT",
)
_NAMES: Final = (
    # In the order of __def_gfpflag_names: the first that fits takes its bits.
    ("GFP_TRANSHUGE", _HUGE | _of("DIRECT_RECLAIM")),
    ("GFP_TRANSHUGE_LIGHT", _HUGE),
    ("GFP_HIGHUSER_MOVABLE", _MOVABLE),
    ("GFP_HIGHUSER", _HIGHUSER),
    ("GFP_USER", _KERNEL | _of("HARDWALL")),
    ("GFP_KERNEL_ACCOUNT", _KERNEL | _of("ACCOUNT")),
    ("GFP_KERNEL", _KERNEL),
    ("GFP_NOFS", _RECLAIM | _of("IO")),
    ("GFP_ATOMIC", _of("HIGH", "KSWAPD_RECLAIM")),
    ("GFP_NOIO", _RECLAIM),
    ("GFP_NOWAIT", _of("KSWAPD_RECLAIM", "NOWARN")),
    ("GFP_DMA", _of("DMA")),
    ("__GFP_HIGHMEM", _of("HIGHMEM")),
    ("GFP_DMA32", _of("DMA32")),
    *((f"__GFP_{name}", _of(name)) for name in _ALONE),
)


def gfp_text(flags: int) -> bytes:
    """The flags by name, with `|` between them; what has no name is hexadecimal."""
    flags = int(flags) & (1 << 64) - 1
    if not flags:
        return b"0"
    found = []
    for name, bits in _NAMES:
        if flags & bits == bits:
            found.append(name)
            flags &= ~bits
    if flags:
        found.append(f"{flags:#x}")
    return "|".join(found).encode()
