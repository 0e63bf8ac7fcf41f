"""The Java process behind a session: it ends when the driver has ended, whoever else is told to.

systemd, Kubernetes and ``timeout`` send SIGTERM to every process of a service or group at once, a terminal SIGINT. Java
would obey at once, in the middle of a batch that the driver has promised to finish, and all that is left are traces.
So it runs in a group of its own and is deaf to both (Java leaves a signal alone that is ignored when it starts), and
:mod:`weft.spark.daemon` keeps them from the Python workers. It still ends with the driver, however that ends: it reads
its standard input, which the driver alone holds open.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkConf, SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from weft.java.home import DEAF_SPARK_SUBMIT

STANDARD_ERROR = 2


def start_java(settings: Mapping[str, str]) -> None:
    """Start the process that the next session of these settings runs in, unless there is one already."""
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ or os.name != "posix":
        return
    conf = SparkConf()
    for key, value in settings.items():
        conf.set(key, value)
    os.environ["WEFT_SPARK_SUBMIT"] = str(Path(_find_spark_home()) / "bin" / "spark-submit")
    apart = {
        "executable": str(DEAF_SPARK_SUBMIT),
        "process_group": 0,
        # standard output is for answers
        "stdout": STANDARD_ERROR,
    }
    SparkContext._ensure_initialized(gateway=launch_gateway(conf, apart))  # type: ignore[no-untyped-call]


@contextmanager
def own_handler_of_sigint() -> Iterator[None]:
    """Leave SIGINT to the program's own handler where it has one: a new session would take it."""
    before = signal.getsignal(signal.SIGINT)
    yield
    is_own = before not in (None, signal.SIG_DFL, signal.default_int_handler)
    if is_own and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)
