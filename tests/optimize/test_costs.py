"""Cost models, Ω of every technique, calibrated constants."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import WeftError
from weft.optimize import optimize
from weft.optimize.constants import Constants, default_path
from weft.optimize.cost import Traffic, calibrated, three_level, two_level
from weft.optimize.omega import B_INT, SUMS, TechniqueCode, harmonic, overlap, running_aggregates
from weft.optimize.workload import Workload
from weft.slicing.time_window import TimeWindow


def test_three_levels_beat_two_for_the_same_trees_when_the_rows_outweigh_the_fine_slices():
    trees, all_edges = [(0.25, 6.0, 0.5), (0.2, 2.0, 0.2)], 0.4

    def cost(model):
        return model.shared + sum(model.tree(*tree) for tree in trees)

    for rate in (0.1, 0.7, 0.9, 5.0):
        cheaper = cost(three_level(rate, all_edges)) < cost(two_level(rate))
        assert cheaper is ((len(trees) - 1) * rate > len(trees) * all_edges)


@pytest.mark.parametrize(
    ("technique", "expected"),
    [
        ("panes", 6.0),  # 16/4 + 8/4
        ("flatfat", (0 + 1 / 2) + (1 + 3 / 4)),  # nP = 2 and 4
        ("flatfit", 6.0),
        ("slickdeque-inv", 4.0),
        ("slickdeque-noninv", 2 - 2 / 4 + 2 + (1 + 1 / 2 + 1 / 3 + 1 / 4)),
        ("panes-inv", 4.0),
        ("twostacks", 6.0),
        ("twostacks-lite", 6.0),
        ("daba", 10.0),
        ("daba-lite", 8.0),
        ("b-int", B_INT * (1 / 2 + 1 + 3 / 4)),
        ("bulk", 6.0),  # whatever its items add up to
    ],
)
def test_operations_per_edge_of_ranges_16_and_8_at_an_edge_every_4(technique, expected):
    assert overlap(TechniqueCode.named(technique), 16 / 4 + 8 / 4, [8, 16], 0.25) == pytest.approx(expected)


@given(st.sampled_from([one for one in TechniqueCode if one not in SUMS]), st.lists(st.integers(1, 4)))
def test_windows_of_one_partial_cost_nothing(technique, ranges):
    assert overlap(technique, 1.0, sorted(set(ranges)), 0.25) == 0


def test_running_aggregates_over_the_same_number_of_partials_are_one():
    assert overlap(TechniqueCode.SLICKDEQUE_INV, 9.0, [100, 101, 200], 0.1) == 4.0


def test_the_mean_deque_length_is_the_harmonic_number():
    assert harmonic(4.0) == pytest.approx(1 + 1 / 2 + 1 / 3 + 1 / 4)
    assert harmonic(1000.0) == pytest.approx(log(1000) + 0.5772, abs=1e-3)


def test_running_aggregates_counted_by_walking_the_composite_slide():
    assert running_aggregates([TimeWindow(8, 4), TimeWindow(16, 4)]) == 2
    assert running_aggregates([TimeWindow(12, 9), TimeWindow(10, 6)]) == 3


def test_a_slower_row_makes_the_calibrated_plan_cut_rows_once():
    questions = Workload(40, 100, 10, seed=1).questions()
    dear_rows = optimize(questions, 1e6, constants=Constants(row=1e-3), traffic=Traffic(groups=10))
    assert (dear_rows.model, dear_rows.levels) == ("calibrated", 3)
    dear_merges = optimize(questions, 1.0, constants=Constants(merge=1.0, slice=1e-9))
    assert dear_merges.levels == 2


def test_calibrated_cost_counts_groups_only_as_far_as_there_are_rows():
    few = calibrated(10, 1.0, 2, "panes", Constants(), Traffic(groups=5))
    many = calibrated(10, 1.0, 2, "panes", Constants(), Traffic(groups=1000))
    assert few.per_edge == pytest.approx(5 * (Constants().slice + Constants().number))
    assert many.per_edge == pytest.approx(10 * (Constants().slice + Constants().number))


def test_constants_survive_being_saved(tmp_path):
    constants = Constants(row=1e-6, kernel={**Constants().kernel, "daba": 3e-9})
    assert Constants.load(path=constants.save(path=tmp_path / "deep" / "constants.json")) == constants
    assert Constants.load(path=tmp_path / "absent.json") == Constants()


def test_a_file_that_holds_no_constants_is_named(tmp_path):
    for wrong in ('{"here": {"rows": 1}}', "[1]", "{"):
        (tmp_path / "constants.json").write_text(wrong)
        with pytest.raises(WeftError, match=r"constants\.json.*weft calibrate"):
            Constants.load("here", tmp_path / "constants.json")


def test_each_spark_has_constants_of_its_own(tmp_path):
    path = tmp_path / "constants.json"
    Constants(row=1e-6).save("local, 2 cores", path)
    Constants(row=2e-6).save("spark://host:7077, 64 cores", path)
    assert Constants.load("local, 2 cores", path).row == 1e-6
    assert Constants.load("spark://host:7077, 64 cores", path).row == 2e-6
    assert Constants.load("local, 4 cores", path) == Constants()


def test_where_constants_are_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("WEFT_CONSTANTS", str(tmp_path / "mine.json"))
    assert default_path() == tmp_path / "mine.json"
    monkeypatch.delenv("WEFT_CONSTANTS")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert default_path() == tmp_path / "weft" / "constants.json"
