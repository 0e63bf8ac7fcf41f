"""Which errors of a stream are outages of what it reads from or writes to: waited out, since nothing is lost."""

from __future__ import annotations

import errno
import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

_UNREACHED = re.compile(
    r"java\.net\.(Connect|UnknownHost|NoRouteToHost|SocketTimeout|Socket|PortUnreachable)Exception"
    r"|org\.apache\.kafka\.common\.errors\.(Timeout|Disconnect|Network|BrokerNotAvailable|CoordinatorNotAvailable"
    r"|CoordinatorLoadInProgress|LeaderNotAvailable|NotLeaderOrFollower|NotController|KafkaStorage|FencedLeaderEpoch"
    r"|UnknownLeaderEpoch|ReplicaNotAvailable|ListenerNotFound|NotEnoughReplicas)Exception"
    r"|java\.util\.concurrent\.TimeoutException"
    r"|No resolvable bootstrap urls"
)
_LOST = re.compile(r"data may have been lost|OffsetOutOfRange|KAFKA_DATA_LOSS|SparkContext (was|has been) shut ?down")
"""What no waiting brings back."""
_UNTOLD = "UnknownReason"
_STORE = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN, errno.EHOSTUNREACH),
    *(errno.ENETUNREACH, errno.ENETDOWN, errno.ETIMEDOUT, errno.EREMOTEIO),
}


def source_is_away(error: BaseException) -> bool:
    """Whether Spark failed because it does not reach what it reads from."""
    trace = _trace(error)
    return bool(_UNREACHED.search(trace)) and not _LOST.search(trace)


def may_be_away(error: BaseException) -> bool:
    """Whether that may be so: of an error in a task whose class the driver does not know, Spark tells nothing at all.

    Such classes are those of a connector that was added to a running session.
    """
    return source_is_away(error) or _UNTOLD in _trace(error)


def store_is_away(error: BaseException) -> bool:
    """Whether the checkpoint could not be written to: its disk is full, or its machine is gone."""
    return isinstance(error, OSError) and error.errno in _STORE


def _trace(error: BaseException) -> str:
    if isinstance(error, CapturedException):
        return f"{error} {error._stackTrace}"
    return str(error) if isinstance(error, PySparkException | Py4JError) else ""
