"""The names that drivers and techniques call; binding puts the real functions in their place."""

from __future__ import annotations

from weft.algebra.monoid import Kernel
from weft.evaluate.compile import unbound

push: Kernel = unbound
evict: Kernel = unbound
query: Kernel = unbound
advance: Kernel = unbound
lookup: Kernel = unbound
commutative: bool = True
