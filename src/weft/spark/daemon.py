"""The process that Spark forks its Python workers from, with kernels and libraries loaded: a fork is ready at once.

Spark ends a worker that was idle for a minute; a new one would load all of it again, which takes seconds.

Signals that ask a whole service to end are kept from it and from its workers, as the batch that runs needs them: they
end when Java closes their standard input or kills them.
"""

from __future__ import annotations

import signal

import pandas  # noqa: F401  what every worker uses; pyarrow loads it as soon as it makes an array
import pyarrow.parquet  # noqa: F401
from pyspark.daemon import manager

import weft.spark.bucket_task
import weft.spark.computing
import weft.spark.step  # noqa: F401
from weft.spark.warm import warm

if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    warm()
    manager()
