"""Random numbers that depend on a seed, a name and an index, and on nothing else.

The generator is Philox 4x64, which is counter-based: a key from the seed and the name, and the
index in the counter's top word. Streams of different names are unrelated, and the draws of one
index never reach those of the next (2^192 blocks lie between), so any moment can be drawn first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class RandomStream:
    """A named source of random numbers under a seed.

    >>> stream, same = RandomStream(7, "market"), RandomStream(7, "market")
    >>> stream.at(20_454).random() == same.at(20_454).random() != same.at(20_455).random()
    True
    """

    seed: int
    name: str

    def at(self, index: int) -> np.random.Generator:
        """Return a fresh generator for an index of 0 or more: a day, an hour, a slot."""
        digest = hashlib.blake2b(f"{self.seed}:{self.name}".encode(), digest_size=16).digest()
        key, counter = np.frombuffer(digest, "<u8"), np.array([0, 0, 0, index], np.uint64)
        return np.random.Generator(np.random.Philox(key=key, counter=counter))

    def under(self, name: str) -> RandomStream:
        """Return the stream of a part, unrelated to this one's own numbers."""
        return RandomStream(self.seed, f"{self.name}/{name}")
