"""``weft init``: a settings file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from weft.config.settings import FILE

TEMPLATE = """\
# What weft stream does. Options on the command line win over this file; paths are relative to it.
# ${NAME} is an environment variable, ${NAME:-default} has a default: keep passwords out of this file.

# Fills the catalog the first time; afterwards use weft add, weft drop, weft pause and weft resume.
queries: queries.sql

source:
  # the stream's name in the queries, and a folder of files or kafka:TOPIC@HOST:PORT
  name: trades
  spec: trades
  event_time: ts
  # rows may be so late and are still counted in every window
  lateness: 10 seconds
  # format: json
  # schema: ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT
  # options:
  #   kafka.security.protocol: SASL_SSL
  #   kafka.sasl.jaas.config: ${KAFKA_JAAS:-}
  # files of a folder that one batch takes at most
  # max_files: 100
  # what cannot be read goes there with the reason; or bad_records: stop
  # bad_records: dead-letter
  # dead_letter: bad

# What the job remembers. Its catalog is a SQLite file in there, or a database that all can reach.
checkpoint: state
# catalog: postgresql://weft:${WEFT_DB_PASSWORD:-}@localhost:5432/weft

# Answers as Parquet, out/query=NAME/*.parquet
out: answers
# and elsewhere, for all queries or for some
# sinks:
#   - type: kafka
#     topic: answers-{query}
#     servers: localhost:9092
#     queries: [hourly]
#   - type: postgresql
#     url: postgresql://weft@localhost:5432/weft
#     password: ${PGPASSWORD:-}
#   - console

# a sink, the catalog or the source that is away is waited for; so long, for ever if it is not said
# patience: 10 minutes
# answers that a sink has yet to take wait in the checkpoint; when so much waits, the stream holds
# waiting_batches: 10000
# waiting_bytes: 10 GB

# a batch begins so often; without it, as soon as the one before is done
trigger: 1 second
# take what is there, then stop; with drain, close all windows as well
# available_now: true
# drain: true

# metrics_port: 9464
# metrics_address: 0.0.0.0
# metrics_queries: 1000
# a batch that takes longer than this is not healthy
# stuck_after: 30 minutes
# log_level: info
# log_format: json

# limits:                       # what one query may cause before it is stopped by name
#   answers: 100000000
#   keys: 10000000
#   slices: 1000000
#   value_bytes: 1048576
# technique: auto
# which queries share slices, by which cost model, on how many nodes
# optimizer: weft
# model: calibrated
# nodes: 4
# where slices become answers: driver, executors, or as the first rows tell; a checkpoint keeps to it
# finals: auto
# who cuts rows into slices: Spark's aggregation (jvm), or compiled kernels in the workers or the driver's process
# cut: jvm
# master: spark://host:7077
# memory: 3g
# spark:
#   spark.ui.enabled: true
# packages:
#   - org.apache.spark:spark-avro_2.13:4.1.0
"""


def init_command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")] = Path(),
) -> None:
    """Write a commented weft.yaml.

    Example: `weft init`
    """
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise typer.BadParameter(f"{path} is there already, and stays as it is", param_hint="DIR") from None
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}", param_hint="DIR") from None
    typer.echo(f"wrote {path}")
