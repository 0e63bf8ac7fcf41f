"""An answer that can never be delivered is given up by name, and all others arrive."""

from __future__ import annotations

import pytest

from live.driven import SECOND, Collecting, Driven, frame
from live.live_cases import disordered, model, queries_of, sql
from weft import WeftError
from weft.job.checkpoint import Checkpoint
from weft.job.given_up import give_up_answers
from weft.job.patience import Patience
from weft.job.sink import CommittedBatch

LATENESS = 20 * SECOND
BAD = "SELECT window.start, max(v) AS m FROM s GROUP BY window(ts, '10 seconds')"


class Picky(Collecting):
    """A place that can never hold the answers of one query."""

    def deliver(self, batch: CommittedBatch) -> None:
        if any(answers.query == "bad" and answers.files for answers in batch.answers):
            raise WeftError("File name too long")
        super().deliver(batch)


def test_an_answer_that_no_sink_can_hold_is_given_up_and_all_others_arrive(spark, tmp_path):
    queries, batches = queries_of(5), disordered(5, 30 * SECOND)
    naive = model(queries, LATENESS)
    sink = Picky()
    driven = Driven(spark, tmp_path, LATENESS, sink, patience=Patience(0))
    driven.add({name: sql(query) for name, query in queries.items()})
    driven.add({"bad": BAD})
    with pytest.raises(WeftError, match=r"File name too long|patience"):
        for number, rows in enumerate(batches):
            driven.job.process(frame(driven.spark, rows), number)
            driven.job.outbox.settle()
    driven.catalog.drop("bad")
    number = driven.job.last.batch
    with pytest.raises(WeftError, match=r"keeps no answers of a query bat, .*did you mean bad"):
        give_up_answers(Checkpoint(str(tmp_path)), "bat")
    assert give_up_answers(Checkpoint(str(tmp_path)), "bad") == number
    driven = Driven(spark, tmp_path, LATENESS, sink, patience=Patience(0))
    for rows in batches[number + 1 :]:
        driven.feed(rows)
    driven.job.drain()
    assert driven.job.outbox.settle()
    for rows in batches:
        naive.feed(rows)
    naive.drain()
    for name, query in naive.queries.items():
        assert driven.rows(name) == query.answers, sql(queries[name])
    assert not driven.rows("bad")
