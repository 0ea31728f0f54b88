"""Functions of a kernel that are served from outside while others are called.

What they need is a running kernel: an allocator that has been started, a console, a scheduler.
Each is entered by its caller as ever; a probe at its first instruction does its work and returns.
"""

import struct
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from engine.errors import GuestFaultError
from engine.guest.memory import page_up
from engine.image.kernel.btffile import btf_of
from engine.image.kernel.modules import STUBS
from engine.session.kernel.opened import OpenedKernel
from engine.session.kernel.supervisor import KernelSupervisor

Service = Callable[[], bool]
"""Does the work of a function that has been entered, and leaves it; False: its own code runs."""

_PAGE: Final = 4096

# Since 6.10 allocators have names with _noprof behind (allocation profiling).
_SIZED_FIRST: Final = (
    *("__kmalloc", "__kmalloc_node", "kvmalloc_node", "__kvmalloc_node"),
    *("__kmalloc_node_track_caller", "__kmalloc_track_caller"),
)
_WHOLE_PAGES: Final = (
    *("vmalloc", "vzalloc", "__vmalloc", "vmalloc_user", "vmalloc_node", "vzalloc_node"),
    *("kmalloc_large", "__kmalloc_large", "kmalloc_large_node", "__kmalloc_large_node"),
    "alloc_pages_exact",
)
_SIZED_THIRD: Final = ("kmalloc_trace", "__kmalloc_cache", "kmem_cache_alloc_trace")
_SIZED_FOURTH: Final = ("kmalloc_node_trace", "__kmalloc_cache_node")
_OF_CACHE: Final = ("kmem_cache_alloc", "kmem_cache_alloc_node", "kmem_cache_alloc_lru")
_FREEING: Final = (
    *("kfree", "kvfree", "vfree", "kfree_sensitive", "kvfree_sensitive", "free_pages_exact"),
)
_NOTHING: Final = ("__check_object_size", "free_percpu", "kmemleak_alloc", "kmemleak_free")
"""Functions that only look at what a running allocator knows."""
_SLEEPING: Final = {
    "schedule": "it sleeps",
    "schedule_timeout": "it sleeps",
    "__schedule": "it sleeps",
    "wait_for_completion": "it waits for somebody else",
    "msleep": "it sleeps",
    "panic": "the kernel panics",
    "__stack_chk_fail": "the stack was overwritten (stack protector)",
}


class KernelServices:
    """The functions of one image that are served, by address."""

    def __init__(self, opened: OpenedKernel, supervisor: KernelSupervisor) -> None:
        """Nothing is served yet.

        Args:
            opened: the image.
            supervisor: of its calls.
        """
        self._opened = opened
        self._supervisor = supervisor
        types = btf_of((opened.image.kernel or opened.image).elf)
        layout = types.layout("kmem_cache") if types is not None else None
        self._object_size = (layout or {}).get("object_size", (0, 0))

    def all(self) -> Iterator[tuple[int, str, Service]]:
        """Address, name and service of each."""
        services = self._services()
        seen: set[int] = set()
        for image in (self._opened.image, self._opened.image.kernel):
            if image is None:
                continue
            for name, service in services.items():
                address = image.symbol(name)
                if address is not None and address not in seen:
                    seen.add(address)
                    yield address, name, partial(self._served, name, service)
            if image.elf.section(STUBS) is None:
                continue
            for name in image.unresolved:
                address = image.symbol(name)
                if address is not None and address not in seen:
                    seen.add(address)
                    service = services.get(name) or partial(self._stub, name)
                    yield address, name, partial(self._served, name, service)

    def _services(self) -> dict[str, Service]:
        supervisor = self._supervisor
        named: dict[str, Service] = {
            **{name: partial(self._allocate, 0) for name in _SIZED_FIRST},
            **dict.fromkeys(_WHOLE_PAGES, self._whole_pages),
            **{name: partial(self._allocate, 2) for name in _SIZED_THIRD},
            **{name: partial(self._allocate, 3) for name in _SIZED_FOURTH},
            **{name: partial(self._of_cache, name) for name in _OF_CACHE},
            **{name: partial(self._free, 0) for name in _FREEING},
            "kmem_cache_alloc_bulk": self._bulk_of_cache,
            "kmem_cache_free": partial(self._free, 1),
            "krealloc": self._reallocate,
            "ksize": self._size,
            "__get_free_pages": self._pages,
            "get_free_pages": self._pages,
            "get_zeroed_page": partial(self._give, _PAGE),
            "free_pages": partial(self._free, 0),
            "__alloc_percpu": self._per_processor,
            "__alloc_percpu_gfp": self._per_processor,
            "pcpu_alloc": self._per_processor,
            **{name: partial(self._leave, 0) for name in _NOTHING},
        }
        for name in tuple(named):
            named[f"{name}_noprof"] = named[name]
        for name, why in _SLEEPING.items():
            named[name] = partial(self._refuse, f"{name}: {why}")
        named["vprintk"] = lambda: supervisor.format(*map(supervisor.argument, (0, 1)))
        named["vprintk_emit"] = lambda: supervisor.format(*map(supervisor.argument, (3, 4)))
        return named

    def _served(self, name: str, service: Service) -> bool:
        """Do the work of a function; a pointer to nowhere ends the call as in its own code."""
        try:
            return service()
        except GuestFaultError as error:
            return self._refuse(f"{name}: {error}")

    # -- the services -------------------------------------------------------------------

    def _leave(self, result: int) -> bool:
        self._supervisor.leave(result)
        return True

    def _give(self, size: int) -> bool:
        return self._leave(self._supervisor.memory.room(size))

    def _allocate(self, number: int) -> bool:
        return self._give(self._supervisor.argument(number))

    def _whole_pages(self) -> bool:
        return self._give(page_up(self._supervisor.argument(0)))

    def _pages(self) -> bool:
        order = self._supervisor.argument(1)
        return self._give(_PAGE << order if order < 20 else -1)

    def _of_cache(self, name: str) -> bool:
        """An object of a cache; the kernel's own ones are made at boot."""
        size = self._size_in_cache()
        if size is None:
            return self._refuse(f"{name}: the cache is made at boot")
        return self._give(size)

    def _bulk_of_cache(self) -> bool:
        """Several at once, all or none: their addresses fill an array, their number is told."""
        supervisor = self._supervisor
        count, array = (supervisor.argument(number) for number in (2, 3))
        size = self._size_in_cache()
        if size is None:
            return self._refuse("kmem_cache_alloc_bulk: the cache is made at boot")
        memory = supervisor.memory
        if count * max(size, 1) > memory.left:
            return self._leave(0)
        found = [memory.room(size) for _ in range(count)]
        if not all(found):
            return self._leave(0)
        memory.poke(array, struct.pack(f"<{count}Q", *found))
        return self._leave(count)

    def _size_in_cache(self) -> int | None:
        """Bytes of an object of the cache that is the first argument; None if it is not told."""
        cache = self._supervisor.argument(0)
        offset, width = self._object_size
        if not cache or not width:
            return None
        return int.from_bytes(self._supervisor.memory.peek(cache + offset, width), "little")

    def _per_processor(self) -> bool:
        """A pointer that is right once the processor's own area is added."""
        supervisor = self._supervisor
        room = supervisor.memory.room(supervisor.argument(0))
        return self._leave(room and room - supervisor.memory.processor_offset)

    def _reallocate(self) -> bool:
        supervisor = self._supervisor
        memory = supervisor.memory
        old, size = supervisor.argument(0), supervisor.argument(1)
        room = memory.room(size)
        kept = memory.size_of(old) if old else None
        if room and kept:
            memory.poke(room, memory.peek(old, min(kept, size)))
        return self._leave(room)

    def _size(self) -> bool:
        supervisor = self._supervisor
        return self._leave(supervisor.memory.size_of(supervisor.argument(0)) or 0)

    def _free(self, number: int) -> bool:
        supervisor = self._supervisor
        why = supervisor.memory.free(supervisor.argument(number))
        return self._refuse(why) if why else self._leave(0)

    def _stub(self, name: str) -> bool:
        return self._leave(self._supervisor.stub(name))

    def _refuse(self, why: str) -> bool:
        self._supervisor.refuse(why)
        return True
