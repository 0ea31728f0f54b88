"""Random AArch64 words, with every kind of instruction among them."""

import random
from collections.abc import Iterator

from engine.arch.aarch64.decode import PATTERNS, Kind


def words(seed: int, *, per_pattern: int, uniform: int = 0) -> Iterator[int]:
    """Words of each pattern with random free bits, each also with one fixed bit wrong."""
    rng = random.Random(seed)
    for pattern in PATTERNS:
        fixed = [bit for bit in range(32) if pattern.mask >> bit & 1]
        for _ in range(per_pattern):
            word = rng.getrandbits(32) & ~pattern.mask | pattern.value
            yield word
            yield word ^ 1 << rng.choice(fixed)
    for _ in range(uniform):
        yield rng.getrandbits(32)


def words_of(kind: Kind, seed: int, count: int) -> Iterator[int]:
    """Words of one kind."""
    rng = random.Random(seed)
    patterns = [pattern for pattern in PATTERNS if pattern.kind is kind]
    for _ in range(count):
        pattern = rng.choice(patterns)
        yield rng.getrandbits(32) & ~pattern.mask | pattern.value
