"""Checkpoints that earlier releases wrote are gone on from.

``checkpoints/*.tar.gz`` were written by commit 0bd74ab after seven batches of :func:`batches`, with finals in the
driver's process and on executors; ``answers.json`` in them holds what had been delivered by then.
"""

import json
import random
import tarfile
from collections import Counter
from pathlib import Path

import pytest

import weft
from live.driven import SECOND, Driven, frame, plain

HERE = Path(__file__).parent / "checkpoints"
BEGIN = 1_700_000_000 * SECOND
DELIVERED = 7
QUERIES = ("sums", "extremes", "spread", "winners", "computed")


def batches():
    rnd, second, found = random.Random(7), 0, []
    for _ in range(12):
        found.append(
            [
                (
                    BEGIN + (second + rnd.randrange(-5, 20)) * SECOND + rnd.randrange(SECOND),
                    rnd.choice("abc"),
                    rnd.choice([None, rnd.randrange(-50, 50), 2**40]),
                    rnd.choice([None, rnd.gauss(0, 10)]),
                )
                for _ in range(40)
            ]
        )
        second += 17
    return found


def rounded(row):
    return tuple(float(f"{one:.9g}") if isinstance(one, float) else one for one in row)


def known(value):
    """Structs, which are pairs of names and values in JSON, as tuples again."""
    return tuple(known(one) for one in value) if isinstance(value, list) else value


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_a_checkpoint_of_0bd74ab_goes_on(spark, tmp_path, place):
    with tarfile.open(HERE / f"{place}.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    delivered = json.loads((tmp_path / "answers.json").read_text())
    driven = Driven(spark, tmp_path, 10 * SECOND)
    texts = {entry.name: entry.sql for entry in driven.catalog.entries("active")}
    assert set(texts) == set(QUERIES)
    for rows in batches()[DELIVERED:]:
        driven.feed(rows)
    driven.job.drain()
    engine = weft.Engine(spark)
    everything = [row for rows in batches() for row in rows]
    engine.stream("s", frame(spark, everything), "ts")
    engine.sql(";\n".join(texts.values()))
    answers = engine.run()
    for name in QUERIES:
        expected = Counter(rounded(row) for row in plain(answers[name].toArrow()))
        before = [known(row) for row in delivered[name]]
        found = Counter(rounded(row) for row in [*before, *driven.rows(name).elements()])
        assert found == expected, name
