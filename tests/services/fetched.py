"""``python tests/services/fetched.py``: fetch every Java package that the tests need, before their processes part."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from services.kafka import BROKER, LOGGING
from weft.java.packages import AVRO, KAFKA, resolve, spark_jars

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    resolve([BROKER, LOGGING])
    spark_jars(KAFKA)
    spark_jars(AVRO)
