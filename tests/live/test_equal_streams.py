"""A stream gives the rows of the batch run and of Spark's own append query. The long runs: ``equal_streams.py``."""

from __future__ import annotations

import pytest

from live.equal_streams import against_append, against_batch
from oracle.compare import oracle_session
from oracle.generate import shape, workload


@pytest.mark.parametrize("seed", [1])
def test_random_micro_batches_give_the_rows_of_the_batch_run(spark, tmp_path, seed):
    runs, _ = against_batch(spark, oracle_session(spark), workload(shape(seed, 6)), 2, tmp_path)
    assert runs == 2


@pytest.mark.parametrize("seed", [3])
def test_the_rows_are_those_of_sparks_own_append_query(spark, tmp_path, seed):
    assert against_append(spark, seed, tmp_path)
