"""Who may write to a checkpoint: the driver that came last. An older one, and its workers, write to no effect.

Every driver takes the next epoch when it starts. A batch's manifest, which alone makes its files count, is written by
whoever holds the newest epoch; files that an orphaned worker writes later are named by their attempt and no manifest
lists them.
"""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import dataclass

from weft.errors import WeftError
from weft.job.checkpoint import Checkpoint

FOLDER = "lease"


class FencedError(WeftError):
    """Another driver has taken the checkpoint over."""


@dataclass(frozen=True)
class Lease:
    """The right to commit, until another driver takes a newer one."""

    checkpoint: Checkpoint
    epoch: int

    @classmethod
    def take(cls, checkpoint: Checkpoint) -> Lease:
        """The next epoch is ours from now on."""
        who = {"pid": os.getpid(), "host": socket.gethostname(), "at": time.time()}
        while True:
            epoch = newest(checkpoint) + 1
            if checkpoint.claim(f"{FOLDER}/{epoch:010}.json", json.dumps(who).encode()):
                for name in checkpoint.names(FOLDER):
                    if int(name.split(".")[0]) < epoch - 1:
                        checkpoint.delete(f"{FOLDER}/{name}")
                return cls(checkpoint, epoch)

    def check(self) -> None:
        """Raise if the checkpoint was taken over."""
        now = newest(self.checkpoint)
        if now != self.epoch:
            raise FencedError(
                f"{self.checkpoint.root} was taken over by another driver (epoch {now}, this one has {self.epoch}): "
                "only one job may run on a checkpoint"
            )


def newest(checkpoint: Checkpoint) -> int:
    """The newest epoch that any driver took, 0 if none did."""
    return max((int(name.split(".")[0]) for name in checkpoint.names(FOLDER)), default=0)
