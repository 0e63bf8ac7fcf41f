"""Groupings that Spark aggregates by different means, side by side in a batch."""

from __future__ import annotations

from live.driven import SECOND, Driven
from live.live_cases import BEGIN


def test_a_struct_that_is_never_null_is_missing_in_the_slices_of_other_groupings(spark, tmp_path):
    # max_by is aggregated by sorting, count by hashing: the two have each other's columns empty
    job = Driven(spark, tmp_path, lateness=0)
    job.add(
        {
            "latest": "SELECT k, max_by(coalesce(v, 0L), coalesce(x, 0d)) AS v FROM s "
            "GROUP BY k, window(ts, '10 seconds')",
            "counted": "SELECT v, count(*) AS n FROM s GROUP BY v, window(ts, '7 seconds')",
        }
    )
    for begin in (0, 20):
        job.feed([(BEGIN + n * SECOND, "ab"[n % 2], n, float(n)) for n in range(begin, begin + 20)])
    job.job.drain()
    assert len(job.job.live.groupings) == 2
    wanted = [(key, ten + last) for ten in (0, 10, 20, 30) for key, last in (("a", 8), ("b", 9))]
    assert job.rows("latest") == dict.fromkeys(wanted, 1)
    assert job.rows("counted") == {(n, 1): 1 for n in range(40)}
