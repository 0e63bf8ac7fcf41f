"""What a running stream says about itself."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from weft.catalog.status import Status, Trouble

if TYPE_CHECKING:
    from weft.job.records import Manifest
    from weft.spark.live.job import Job


class Progress:
    """Sums up batches since the start."""

    def __init__(self) -> None:
        self._job = uuid4().hex[:12]
        self._started = time.time()
        self._batches = 0
        self._sums = dict.fromkeys(("rows", "late", "bad", "without_time", "answers"), 0)
        self._last: dict[str, Any] = {}
        self._errors: deque[Trouble] = deque(maxlen=10)

    def note(self, job: Job, manifest: Manifest) -> None:
        """A batch was committed."""
        self._batches += 1
        self._last = manifest.counts
        for name in self._sums:
            self._sums[name] += manifest.counts[name]
        for name, reason in manifest.failed.items():
            self._errors.append({"at": time.time(), "message": f"query {name}: {reason}"})

    def status(self, job: Job) -> Status:
        """The last word."""
        watermark = job.last.watermark
        seconds = self._last.get("seconds", 0.0)
        live = job.live
        return Status(
            job=self._job,
            pid=os.getpid(),
            host=socket.gethostname(),
            started=self._started,
            batch=job.last.batch,
            batches=self._batches,
            rows=self._sums["rows"],
            batch_rows=self._last.get("rows", 0),
            rows_per_second=self._last.get("rows", 0) / seconds if seconds else 0.0,
            batch_seconds=seconds,
            watermark=watermark,
            lag_seconds=None if watermark is None else time.time() - watermark / 1e6,
            late_rows=self._sums["late"],
            bad_rows=self._sums["bad"],
            rows_without_time=self._sums["without_time"],
            answers=self._sums["answers"],
            answers_per_second=self._last.get("answers", 0) / seconds if seconds else 0.0,
            state_bytes=self._last.get("state_bytes", 0),
            buckets=live.record.buckets if live is not None else 0,
            trees=len(live.plan.groupings) if live is not None else 0,
            queries=len(live.record.queries) if live is not None else 0,
            catalog_version=max(job.registry.follows, 0),
            sinks=dict(job.outbox.delivered),
            errors=list(self._errors),
        )
