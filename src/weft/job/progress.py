"""What a running stream says about itself."""

from __future__ import annotations

import os
import socket
import time
from collections import deque
from uuid import uuid4

from weft.catalog.status import BatchFigures, Status, Trouble
from weft.job.records import Manifest
from weft.job.running import RunningJob


class Progress:
    """Sums up batches since the start: one set of figures a batch, made when it is committed and never changed.

    A status is asked for from other threads while batches run. All that it tells of the last batch is one value, so it
    never has the watermark of one batch and the rows of another.
    """

    def __init__(self) -> None:
        self._job = uuid4().hex[:12]
        self._started = time.time()
        self._sums = dict.fromkeys(("rows", "late", "bad", "without_time", "answers"), 0)
        self._figures = BatchFigures(batch=-1, batches=0, rows=0, answers=0)
        self._errors: deque[Trouble] = deque(maxlen=10)

    def recovered(self, job: RunningJob) -> None:
        """Begin with what the last commit of an earlier start left."""
        self._figures = self._figures_of(job, job.last, batches=0)

    def note(self, job: RunningJob, manifest: Manifest) -> None:
        """A batch was committed."""
        for name in self._sums:
            self._sums[name] += manifest.counts[name]
        for name, reason in manifest.failed.items():
            self._errors.append({"at": time.time(), "message": f"query {name}: {reason}"})
        self._figures = self._figures_of(job, manifest, self._figures["batches"] + 1)

    def status(self, job: RunningJob) -> Status:
        """The last word."""
        now: Status = {
            "job": self._job,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started": self._started,
            "said_at": time.time(),
            "sinks": job.outbox.status(),
            "errors": list(self._errors),
        }
        return {**now, **self._figures}

    def _figures_of(self, job: RunningJob, manifest: Manifest, batches: int) -> BatchFigures:
        now = time.time()
        counts = manifest.counts if batches else {}
        seconds = counts.get("seconds", 0.0)
        live = job.live
        return BatchFigures(
            batch=manifest.batch,
            committed_at=now,
            batches=batches,
            rows=self._sums["rows"],
            batch_rows=counts.get("rows", 0),
            rows_per_second=counts.get("rows", 0) / seconds if seconds else 0.0,
            batch_seconds=seconds,
            watermark=manifest.watermark,
            lag_seconds=None if manifest.watermark is None else now - manifest.watermark / 1e6,
            late_rows=self._sums["late"],
            bad_rows=self._sums["bad"],
            rows_without_time=self._sums["without_time"],
            answers=self._sums["answers"],
            answers_per_second=counts.get("answers", 0) / seconds if seconds else 0.0,
            state_bytes=manifest.counts.get("state_bytes", 0),
            buckets=live.record.buckets if live is not None else 0,
            trees=len(live.plan.groupings) if live is not None else 0,
            queries=len(live.record.queries) if live is not None else 0,
            catalog_version=max(job.registry.follows, 0),
        )
