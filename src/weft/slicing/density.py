"""What share of all integers a union of residue classes leaves uncovered: exact, by factoring the moduli.

The edge rate of a set of windows is one minus this share. Counting on a bitmap needs the whole composite slide, F1
(004 ch. 5) needs 2^n terms; here the Chinese remainder theorem splits the problem until each part is small:

1. classes that others contain are dropped, and what all moduli have in common is divided out;
2. groups of classes whose moduli are coprime to each other are independent: their uncovered shares multiply;
3. a group with a short period is counted on a bitmap, one with few distinct intersections by inclusion-exclusion;
4. otherwise time is split by its residue modulo the group's largest prime p. A residue that no class with a modulus
   divisible by p meets leaves the share of the rest alone; the others recurse with p divided out.

Many random fragments stay hard. The work is budgeted, and what the budget does not reach is bounded from both sides,
so that the answer is always right: a single number or a guaranteed interval.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from math import gcd, lcm, prod

import numpy as np

Class = tuple[int, int]
"""The integers that leave ``residue`` when divided by ``modulus``: (modulus, residue)."""
Classes = tuple[Class, ...]
Bounds = tuple[Fraction, Fraction]

BUDGET = 100_000
"""Default work limit: about two seconds at the worst."""
_BITMAP_PERIOD = 1 << 16
_LONG_PERIOD = 1 << 20
_FEW_TERMS = 64


def uncovered(classes: Iterable[Class], budget: int = BUDGET) -> Bounds:
    """Lower and upper bound of the share of integers in none of ``classes``; equal where the budget sufficed.

    Examples
    --------
    >>> uncovered([(2, 0), (3, 0), (5, 0)])
    (Fraction(4, 15), Fraction(4, 15))
    """
    needed = drop_contained(classes)
    if needed and needed[0][0] == 1:
        return Fraction(0), Fraction(0)
    search = _Search(budget)
    shares = [_exactly_or_bounded(search, group, budget) for group in _independent_groups(needed)]
    low = _product([share[0] for share in shares])
    exact = all(share[0] == share[1] for share in shares)
    return low, low if exact else _product([share[1] for share in shares])


def covers_everything(classes: Sequence[Class]) -> bool:
    """Whether every integer is in one of ``classes``; False where the default budget cannot prove it.

    Examples
    --------
    >>> covers_everything([(2, 0), (4, 1), (4, 3)]), covers_everything([(2, 0), (4, 1)])
    (True, False)
    """
    if any(modulus == 1 for modulus, _ in classes):
        return True
    if sum(Fraction(1, modulus) for modulus, _ in set(classes)) < 1:
        return False
    return uncovered(classes)[1] == 0


class _OverBudgetError(Exception):
    """The exact search would take longer than allowed."""


@dataclass
class _Search:
    """One exact computation: remembers what it has solved, as the same sub-problems come up again and again."""

    budget: int
    solved: dict[Classes, Fraction] = field(default_factory=dict)

    def uncovered(self, classes: Iterable[Class]) -> Fraction:
        needed = drop_contained(classes)
        if needed and needed[0][0] == 1:
            return Fraction(0)
        return _product([self.of_group(group) for group in _independent_groups(needed)])

    def of_group(self, group: list[Class]) -> Fraction:
        """The share that one group of classes leaves, which no coprimality splits."""
        classes = _canonical(group)
        if classes not in self.solved:
            self.budget -= len(classes)
            if self.budget < 0:
                raise _OverBudgetError
            self.solved[classes] = self._solve(classes)
        return self.solved[classes]

    def _solve(self, classes: Classes) -> Fraction:
        period = lcm(*(modulus for modulus, _ in classes))
        if period == classes[0][0]:  # all moduli equal: the classes are disjoint
            return 1 - Fraction(len(classes), period)
        if period <= _BITMAP_PERIOD:
            self.budget -= period >> 10
            return Fraction(int(np.count_nonzero(~_marked(classes, period))), period)
        few = _inclusion_exclusion(classes)
        return self._split(classes) if few is None else few

    def _split(self, classes: Classes) -> Fraction:
        """Condition on t modulo the group's largest prime."""
        prime = max(prime_factors(modulus)[-1] for modulus, _ in classes)
        rest = [(modulus, residue) for modulus, residue in classes if modulus % prime]
        met: dict[int, list[Class]] = defaultdict(list)
        for modulus, residue in classes:
            if modulus % prime == 0:
                met[residue % prime].append((modulus // prime, residue // prime))
        total = (prime - len(met)) * self.uncovered(rest) if len(met) < prime else Fraction(0)
        inverses = [pow(prime, -1, modulus) for modulus, _ in rest]
        for digit, divided in met.items():
            # t = prime * u + digit: the same classes, as u sees them
            seen = [(m, (residue - digit) * inverse % m) for (m, residue), inverse in zip(rest, inverses, strict=True)]
            total += self.uncovered([*divided, *seen])
        return total / prime


def drop_contained(classes: Iterable[Class]) -> Classes:
    """The classes that no other one contains, in order of modulus and residue."""
    kept: dict[int, set[int]] = {}
    needed: list[Class] = []
    current, finer = 0, []
    for modulus, residue in sorted(set(classes)):
        if modulus != current:
            current = modulus
            finer = [divisor for divisor in kept if modulus % divisor == 0]
        if all(residue % divisor not in kept[divisor] for divisor in finer):
            needed.append((modulus, residue))
            kept.setdefault(modulus, set()).add(residue)
    return tuple(needed)


@lru_cache(maxsize=1 << 16)
def prime_factors(number: int) -> tuple[int, ...]:
    """The distinct prime factors of ``number``, ascending.

    Examples
    --------
    >>> prime_factors(86_400)
    (2, 3, 5)
    """
    found = []
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            found.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1 if divisor == 2 else 2
    return (*found, number) if number > 1 else tuple(found)


def _independent_groups(classes: Classes) -> list[list[Class]]:
    """Connected components of "shares a prime factor"."""
    root: dict[int, int] = {}

    def find(prime: int) -> int:
        while root[prime] != prime:
            root[prime] = root[root[prime]]
            prime = root[prime]
        return prime

    for modulus, _ in classes:
        factors = prime_factors(modulus)
        for prime in factors:
            root.setdefault(prime, prime)
            root[find(prime)] = find(factors[0])
    groups: dict[int, list[Class]] = defaultdict(list)
    for modulus, residue in classes:
        groups[find(prime_factors(modulus)[0])].append((modulus, residue))
    return list(groups.values())


def _canonical(group: list[Class]) -> Classes:
    """The same group shifted so that its last class has residue 0: shares do not change when time is shifted."""
    shift = group[-1][1]
    return tuple(sorted((modulus, (residue - shift) % modulus) for modulus, residue in group))


def _marked(classes: Iterable[Class], period: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    marks = np.zeros(period, dtype=np.bool_)
    for modulus, residue in classes:
        marks[residue::modulus] = True
    return marks


def intersection(one: Class, other: Class) -> Class | None:
    """The integers in both classes: a class again, or None (004 Eq. 5.6, then the Chinese remainder theorem).

    Examples
    --------
    >>> intersection((6, 3), (4, 1)), intersection((6, 2), (3, 0))
    ((12, 9), None)
    """
    (modulus, residue), (step, offset) = one, other
    common = gcd(modulus, step)
    distance, remainder = divmod(offset - residue, common)
    if remainder:
        return None
    times = step // common
    return modulus * times, residue + modulus * (distance * pow(modulus // common, -1, times) % times)


def _inclusion_exclusion(classes: Classes) -> Fraction | None:
    """Inclusion-exclusion with equal intersections collapsed; None if more than a few distinct ones arise."""
    if len(classes) > _FEW_TERMS:
        return None
    terms: dict[Class, int] = {(1, 0): 1}
    for one in classes:
        for other, count in list(terms.items()):
            both = intersection(one, other)
            if both is not None:
                left = terms.get(both, 0) - count
                if left:
                    terms[both] = left
                else:
                    del terms[both]
        if len(terms) > _FEW_TERMS:
            return None
    period = lcm(*(modulus for modulus, _ in terms)) if terms else 1
    return Fraction(sum(count * (period // modulus) for (modulus, _), count in terms.items()), period)


def _exactly_or_bounded(search: _Search, group: list[Class], budget: int) -> Bounds:
    search.budget = max(search.budget, 2 * len(group))  # a hard group before it must not spoil an easy one
    try:
        exact = search.of_group(group)
    except _OverBudgetError:
        return _bounds(group, budget)
    return exact, exact


def _bounds(classes: list[Class], effort: int) -> Bounds:
    """Count the classes that fit a bitmap exactly, and the others by Bonferroni's inequalities on what those leave."""
    counted, others = _fitting(classes, _LONG_PERIOD if effort >= BUDGET else _BITMAP_PERIOD)
    period = lcm(*(modulus for modulus, _ in counted))
    free = ~_marked(counted, period)
    base = Fraction(int(np.count_nonzero(free)), period)

    @cache
    def free_cells(stride: int, residue: int) -> int:
        return int(np.count_nonzero(free[residue::stride]))

    def left_of(one: Class) -> Fraction:
        # t in the class is spread evenly over the bitmap's cells that agree with it modulo the gcd
        stride = gcd(one[0], period)
        return Fraction(free_cells(stride, one[1] % stride), period // stride * one[0])

    if not others:
        return base, base
    single = [left_of(one) for one in others]
    once = sum(single, Fraction(0))
    low, high = max(Fraction(0), base - once), base - max(single)
    if len(others) ** 2 <= effort:
        pairs = (intersection(one, other) for at, one in enumerate(others) for other in others[:at])
        twice = sum((left_of(pair) for pair in pairs if pair is not None), Fraction(0))
        high = min(high, base - _dawson_sankoff(once, twice))
    return low, max(low, high)


def _dawson_sankoff(once: Fraction, twice: Fraction) -> Fraction:
    """At least this much is covered if the classes cover ``once`` in sum and ``twice`` in pairs."""
    order = 1 + int(2 * twice / once)
    return Fraction(2, order + 1) * once - Fraction(2, order * (order + 1)) * twice


def _fitting(classes: Iterable[Class], longest: int) -> tuple[list[Class], list[Class]]:
    """The densest classes whose common period still fits a bitmap, and the others."""
    period, counted, others = 1, [], []
    for one in classes:
        longer = lcm(period, one[0])
        if longer <= longest:
            period = longer
            counted.append(one)
        else:
            others.append(one)
    return counted, others


def _product(shares: list[Fraction]) -> Fraction:
    """Multiplied with one reduction at the end: a thousand groups make numbers of thousands of digits."""
    if len(shares) == 1:
        return shares[0]
    return Fraction(_balanced([one.numerator for one in shares]), _balanced([one.denominator for one in shares]))


def _balanced(numbers: list[int]) -> int:
    """The product, pairing neighbours so that factors stay of equal length."""
    while len(numbers) > 1:
        numbers = [prod(numbers[at : at + 2]) for at in range(0, len(numbers), 2)]
    return numbers[0] if numbers else 1
