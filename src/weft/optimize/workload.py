"""Synthetic workloads with the distributions of 000 §6 and 004 §5.4 and §7.3."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from weft.optimize.items import Question
from weft.slicing.density import prime_factors
from weft.slicing.edge_rate import MICROSECONDS
from weft.slicing.time_window import TimeWindow

Generator = Literal["normal", "diverse", "template"]


@dataclass(frozen=True, slots=True)
class Workload:
    """What to draw queries from.

    Slides are drawn by a Zipf law over the allowed ones, the largest being the most popular; the overlap, range over
    slide, is uniform in [1, max_overlap].
    """

    queries: int
    max_slide: int
    max_overlap: float
    zipf: float = 0.0
    generator: Generator = "normal"
    real_overlap: bool = False
    """Overlaps need not be whole numbers: then windows have fragments."""
    seed: int = 0

    def slides(self) -> npt.NDArray[np.int64]:
        """The allowed slides in seconds: any, primes (*diverse*), or the factors of the largest (*template*).

        Examples
        --------
        >>> Workload(1, 12, 1, generator="template").slides().tolist()
        [1, 2, 3, 4, 6, 12]
        """
        every = range(1, self.max_slide + 1)
        if self.generator == "diverse":
            return np.array([slide for slide in every if prime_factors(slide) == (slide,)])
        if self.generator == "template":
            return np.array([slide for slide in every if self.max_slide % slide == 0])
        return np.array(every)

    def draw(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Ranges and slides of all queries, in seconds."""
        rng = np.random.default_rng(self.seed)
        slides = self.slides()
        popularity = np.arange(slides.size, 0, -1, dtype=float) ** -self.zipf
        slide = rng.choice(slides, size=self.queries, p=popularity / popularity.sum())
        if self.real_overlap:
            overlap = rng.uniform(1.0, self.max_overlap, self.queries)
        else:
            overlap = rng.integers(1, int(self.max_overlap) + 1, self.queries).astype(float)
        return np.rint(overlap * slide).astype(np.int64), slide

    def questions(self) -> list[Question]:
        """The queries, named q1, q2, ...

        Examples
        --------
        >>> name, window = Workload(1, max_slide=60, max_overlap=10).questions()[0]
        >>> name, window.fragment
        ('q1', 0)
        """
        ranges, slides = self.draw()
        return [
            (f"q{number}", TimeWindow(int(length) * MICROSECONDS, int(slide) * MICROSECONDS))
            for number, (length, slide) in enumerate(zip(ranges, slides, strict=True), 1)
        ]
