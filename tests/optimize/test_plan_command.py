"""``weft plan`` and ``weft workload``."""

import json

import pytest
import typer
from typer.testing import CliRunner

from weft.cli.plan import plan_command
from weft.cli.workload import workload_command
from weft.errors import QueryError
from weft.optimize.windows_file import windows_of
from weft.optimize.workload import Workload
from weft.slicing.time_window import TimeWindow

EXAMPLE_3 = """\
{"name": "a", "range": 16, "slide": 4}
{"name": "b", "range": "10 s", "slide": 5.0}

{"name": "c", "range": "8 sec", "slide": 4}
"""
FIELDS = {"optimizer", "model", "cost", "total_cost", "max_cost", "shared_cost", "seconds", "trees"}
TREE_FIELDS = {"queries", "edge_rate", "overlap", "cost", "technique", "node"}

app = typer.Typer()
app.command("plan")(plan_command)
app.command("workload")(workload_command)


def weft(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"WEFT_CONSTANTS": "/nowhere"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def windows(tmp_path):
    path = tmp_path / "windows.jsonl"
    path.write_text(EXAMPLE_3)
    return path


@pytest.mark.parametrize(("optimizer", "cost"), [("no-share", 5.5), ("weave-share", 4.3), ("shared", 4.4)])
def test_json_is_all_there_is_on_stdout(windows, optimizer, cost):
    result = weft("plan", windows, "--rate", 1.2, "--optimizer", optimizer, "--model", "two-level", "--json")
    plan = json.loads(result.stdout)
    assert plan.keys() == FIELDS
    assert all(tree.keys() == TREE_FIELDS for tree in plan["trees"])
    assert plan["cost"] == plan["total_cost"] == pytest.approx(cost)
    assert plan["shared_cost"] == 0
    assert plan["total_cost"] == pytest.approx(sum(tree["cost"] for tree in plan["trees"]))


def test_a_tree_without_an_exact_edge_rate_says_between_what_it_is(tmp_path):
    path = tmp_path / "many.jsonl"
    path.write_text(weft("workload", "--queries", 300, "--max-slide", 1000, "--real-overlap").stdout)
    options = ("--rate", 300, "--optimizer", "weave-share", "--model", "two-level")
    trees = json.loads(weft("plan", path, *options, "--json").stdout)["trees"]
    bounded = [tree for tree in trees if "edge_rate_bounds" in tree]
    assert bounded
    assert all(tree["edge_rate_bounds"][0] <= tree["edge_rate"] <= tree["edge_rate_bounds"][1] for tree in bounded)
    assert "too many fragments" in weft("plan", path, *options).stdout


def test_tri_weave_implies_three_levels(windows):
    for model in ([], ["--model", "two-level"]):
        plan = json.loads(weft("plan", windows, "--rate", 1.2, "--optimizer", "tri-weave", *model, "--json").stdout)
        assert plan["model"] == "three-level"
        assert plan["shared_cost"] == pytest.approx(1.2)
        assert plan["cost"] == pytest.approx(plan["shared_cost"] + sum(tree["cost"] for tree in plan["trees"]))


def test_text_compares_with_no_sharing_and_with_sharing_all(windows):
    out = weft("plan", windows, "--rate", 1.2, "--model", "two-level", "--nodes", "2,2,1").stdout
    assert "3 queries, 2 with different edges" in out
    assert "1.28 times as much" in out
    assert "nodes:" in out


def test_sql_files_are_planned_too(tmp_path):
    path = tmp_path / "queries.sql"
    path.write_text("SELECT count(*) FROM t GROUP BY window(ts, '10 minutes', '1 minute')")
    plan = json.loads(weft("plan", path, "--rate", 100, "--json").stdout)
    assert plan["model"] == "calibrated"
    assert plan["trees"][0]["edge_rate"] == pytest.approx(1 / 60)


def test_the_picture_marks_common_edges(windows, tmp_path):
    weft("plan", windows, "--rate", 100, "--model", "two-level", "--svg", tmp_path / "forest.svg")
    svg = (tmp_path / "forest.svg").read_text()
    assert "composite slide 20 s" in svg
    assert svg.count("#e4572e") > 2


@pytest.mark.parametrize("nodes", ["0", "2,1", "x", "1,-1", ""])
def test_bad_nodes_are_refused(windows, nodes):
    assert weft("plan", windows, "--rate", 1, "--nodes", nodes).exit_code == 2


def test_bad_names_are_refused(windows, tmp_path):
    assert weft("plan", windows, "--rate", 1, "--optimizer", "magic").exit_code == 2
    assert weft("plan", windows, "--rate", 1, "--technique", "magic").exit_code == 2
    assert weft("plan", tmp_path / "absent.jsonl", "--rate", 1).exit_code == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"name": "a", "range": 1}', "slide is missing"),
        ('{"name": "a", "range": 1, "slide": 0}', "must be positive"),
        ('{"name": "a", "range": "1 fortnight", "slide": 1}', "fortnight"),
        ('{"name": "a", "range": 1, "slide": 1e-9}', "microseconds"),
        ('{"name": "a", "range": 1, "slide": 1, "slid": 2}', "no such field as slid"),
        ("[1]", "is no window"),
        ("{", "is no window"),
    ],
)
def test_a_bad_line_is_shown_with_its_number(line, message):
    good = '{"name": "ok", "range": 1, "slide": 1}'
    with pytest.raises(QueryError, match=message) as caught:
        list(windows_of([good, line]))
    assert "line 2" in str(caught.value)


def test_workload_writes_what_plan_reads():
    arguments = ["--queries", 50, "--max-slide", 60, "--max-overlap", 4, "--zipf", 1, "--seed", 3]
    written = list(windows_of(weft("workload", *arguments).stdout.splitlines()))
    assert written == Workload(50, 60, 4, zipf=1, seed=3).questions()
    assert weft("workload", *arguments).stdout == weft("workload", *arguments).stdout


def test_generators_draw_from_their_slides():
    def slides(generator):
        return {window.slide // 10**6 for _, window in Workload(300, 60, 4, generator=generator).questions()}

    assert all(60 % slide == 0 for slide in slides("template"))
    assert slides("diverse") <= {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59}
    assert len(slides("normal")) > 40
    assert weft("workload", "--queries", 1, "--max-slide", 1, "--generator", "diverse").exit_code == 2


def test_zipf_skews_to_long_slides_and_overlaps_are_whole_unless_asked_otherwise():
    def mean_slide(zipf):
        return sum(window.slide for _, window in Workload(3000, 100, 5, zipf=zipf).questions())

    assert mean_slide(1.0) > mean_slide(0.0) > mean_slide(-1.0)
    assert all(window.fragment == 0 for _, window in Workload(200, 100, 5).questions())
    real = [window for _, window in Workload(200, 100, 5, real_overlap=True).questions()]
    assert any(window.fragment for window in real)
    assert all(TimeWindow(window.slide, window.slide).range <= window.range <= 5 * window.slide for window in real)
