"""Edge rates: three methods, one answer; the papers' golden numbers; the bars of speed."""

from fractions import Fraction
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.slicing.density import prime_factors, uncovered
from weft.slicing.edge_rate import edge_rate, weaveability
from weft.slicing.edges_bitmap import EdgesBitmap, OverBudgetError
from weft.slicing.progression import Progression
from weft.slicing.time_window import TimeWindow

PRIMES = [number for number in range(2, 10_000) if prime_factors(number) == (number,)]
progressions = st.lists(st.builds(Progression, st.integers(1, 40), st.integers(0, 40)), min_size=1, max_size=7)


@settings(max_examples=2000, deadline=None)
@given(progressions)
def test_bitmap_f1_and_factored_agree(edges):
    bitmap = edge_rate(edges, "bitmap", budget=1 << 34) if _period(edges) <= 1 << 20 else None
    factored = edge_rate(edges, "factored")
    assert factored.exact
    assert edge_rate(edges, "f1") == factored == edge_rate(edges)
    assert bitmap is None or bitmap == factored


def _period(edges):
    from weft.slicing.progression import composite_slide

    return composite_slide(edges)


@pytest.mark.parametrize("method", ["bitmap", "f1", "factored", "auto"])
def test_golden_numbers_of_the_papers(method):
    example_8 = [Progression(slide) for slide in (2, 3, 4, 5, 6)]
    assert edge_rate(example_8, method).value * 60 == 44
    example_10 = [Progression(3), Progression(4), Progression(4, 3), Progression(6), Progression(6, 2), Progression(9)]
    assert edge_rate(example_10, method).value * 36 == 27
    example_4 = [Progression(5), Progression(5, 2), Progression(3)]
    assert edge_rate(example_4, method).value * 15 == 9
    assert edge_rate([*TimeWindow(12, 9).edges(), *TimeWindow(10, 6).edges()], method).value == Fraction(8, 18)


def test_weaveability_of_example_2_is_a_quarter():
    assert weaveability(TimeWindow(12, 9).edges(), TimeWindow(10, 6).edges()) == Fraction(1, 4)


def test_probing_finds_the_two_common_edges_of_example_4():
    one, other = EdgesBitmap.of([Progression(5), Progression(5, 2)]), EdgesBitmap.of([Progression(3)], unit=1)
    assert one.common(other) == other.common(one) == 2
    assert one.woven(other).edges == 9


def test_alignment_changes_what_two_queries_have_in_common():
    one, other = TimeWindow(5, 3), TimeWindow(7, 4)
    rates = {
        alignment: edge_rate([*one.edges(alignment), *other.edges(alignment)]).value for alignment in ("start", "end")
    }
    assert rates == {"start": Fraction(10, 12), "end": Fraction(10, 12)}
    assert weaveability(TimeWindow(5, 3).edges(), TimeWindow(5, 3).edges("end")) == Fraction(1, 3)


def test_nothing_to_cut_has_rate_zero():
    assert edge_rate([]).value == 0


def test_methods_of_the_papers_refuse_what_exceeds_their_budget():
    primes = [Progression(prime) for prime in PRIMES[:30]]
    with pytest.raises(OverBudgetError, match="composite slide has about 10\\^"):
        edge_rate(primes, "bitmap")
    with pytest.raises(OverBudgetError, match="groups"):
        edge_rate(primes, "f1", budget=10_000)


def test_past_its_budget_factored_gives_an_interval_that_holds_the_rate():
    rng = Random(7)
    bounds = []
    for _ in range(20):
        steps = [rng.randrange(60, 200) for _ in range(14)]
        edges = [Progression(step, rng.randrange(step)) for step in steps for _ in range(2)]
        exact, bounded = edge_rate(edges, budget=10**8), edge_rate(edges, budget=1000)
        assert exact.exact
        assert bounded.low <= exact.value <= bounded.high
        bounds.append(bounded.high - bounded.low)
    assert 0 < max(bounds) < Fraction(1, 20)


def test_a_hard_group_does_not_spoil_the_bounds_of_an_easy_one():
    hard = [(step, offset) for step in range(60, 100) for offset in (0, step // 3)]
    low, high = uncovered([*((step * 6, offset * 6) for step, offset in hard), (101, 5)], budget=40)
    assert 0 < low <= high < 1


def test_factored_is_a_thousand_times_faster_than_f1_on_twenty_coprime_slides():
    slides = [Progression(prime) for prime in PRIMES[:20]]
    began = process_time()
    slow = edge_rate(slides, "f1")
    f1_seconds = process_time() - began
    edge_rate(slides, "factored")
    began = process_time()
    for _ in range(10):
        assert edge_rate(slides, "factored") == slow
    assert f1_seconds > 1000 * (process_time() - began) / 10


def test_all_primes_below_ten_thousand_with_fragments_are_exact_in_two_seconds():
    rng = Random(1)
    edges = [Progression(prime, offset) for prime in PRIMES for offset in (0, rng.randrange(prime))]
    began = process_time()
    rate = edge_rate(edges)
    assert rate.exact
    assert process_time() - began < 2
    expected = Fraction(1)
    for prime in PRIMES:
        expected *= 1 - Fraction(len({edge.offset for edge in edges if edge.step == prime}), prime)
    assert rate.value == 1 - expected


def test_slides_500_to_999_are_exact():
    assert edge_rate([Progression(slide) for slide in range(500, 1000)]).exact
