"""Who may write to a checkpoint: the driver that came last. An older one, and its workers, write to no effect.

Every driver takes the next epoch when it starts. A batch's manifest, which alone makes its files count, is written by
whoever holds the newest epoch; files that an orphaned worker writes later are named by their attempt and no manifest
lists them.

A driver that lives says so again and again, by a heartbeat beside its lease. Another one is refused then, unless it is
told to take over. Whether the holder lives is seen on its own machine by its process, so that a restart after a death
need not wait; from elsewhere by whether its heart still beats.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from weft.errors import UseError, WeftError
from weft.job.checkpoint import Checkpoint

FOLDER = "lease"
BEAT = 1.0
"""Seconds between two heartbeats."""
STILL = 10.0
"""A heart that does not beat for so many seconds is still."""
LOG = logging.getLogger("weft.stream")


class FencedError(WeftError):
    """Another driver has taken the checkpoint over."""


@dataclass(frozen=True)
class Holder:
    """The process that holds a lease."""

    pid: int
    host: str
    at: float = 0.0
    """When it took the lease, in seconds since 1970 by its own clock."""
    place: str = ""
    """Where its number means this very process: the start of its machine's kernel, and its room there (container)."""
    born: str = ""
    """When the process was started, as its kernel counts: a later one of the same number is another."""

    @classmethod
    def here(cls) -> Holder:
        """This process."""
        return cls(os.getpid(), socket.gethostname(), time.time(), _place(), _born(os.getpid()) or "")

    @classmethod
    def load(cls, data: bytes) -> Holder:
        """Of a record; one of an older Weft tells no place."""
        found: dict[str, Any] = json.loads(data)
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in found.items() if name in known})

    def is_seen(self) -> bool | None:
        """Whether the process runs; None if that cannot be seen from here."""
        if not self.place or self.place != _place() or self.host != socket.gethostname():
            return None
        return _born(self.pid) == self.born


@dataclass(frozen=True)
class Beat:
    """The last heartbeat of a holder."""

    count: int
    at: float
    ended: bool = False
    """Whether it was the last one: the holder let go."""


@dataclass
class Lease:
    """The right to commit, until another driver takes a newer one."""

    checkpoint: Checkpoint
    epoch: int
    lost: FencedError | None = None
    """What the heart has noticed: another driver has taken over."""
    _released: threading.Event = field(default_factory=threading.Event)
    _heart: threading.Thread | None = None
    _count: int = 0

    @classmethod
    def take(cls, checkpoint: Checkpoint, *, take_over: bool = True) -> Lease:
        """The next epoch is ours from now on; from a driver that lives it is only taken over on purpose."""
        while True:
            before = newest(checkpoint)
            if not take_over:
                refuse_if_held(checkpoint)
            record = json.dumps(Holder.here().__dict__).encode()
            epoch = before + 1
            if checkpoint.claim(_record(epoch), record):
                for name in checkpoint.names(FOLDER):
                    if _epoch(name) < epoch - 1:
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

    def keep(self) -> None:
        """Have the heart beat, until the lease is released or lost."""
        self._beat()
        self._heart = threading.Thread(target=self._keep_beating, name="weft-lease", daemon=True)
        self._heart.start()

    def release(self) -> None:
        """Let go: the next driver need not wait or ask."""
        if not self._released.is_set():
            self._released.set()
            if self._heart is not None:
                self._heart.join(STILL)
            with suppress(OSError):
                self._put(Beat(self._count + 1, time.time(), ended=True))

    def _keep_beating(self) -> None:
        while not self._released.wait(BEAT):
            try:
                self.check()
                self._beat()
            except FencedError as error:
                self.lost = error
                return
            except OSError as error:  # the store is away: others who watch will take us for dead, and may
                LOG.debug("no heartbeat could be written: %s", error)

    def _beat(self) -> None:
        self._count += 1
        self._put(Beat(self._count, time.time()))

    def _put(self, beat: Beat) -> None:
        self.checkpoint.put(_beat(self.epoch), json.dumps(beat.__dict__).encode())


def newest(checkpoint: Checkpoint) -> int:
    """The newest epoch that any driver took, 0 if none did."""
    return max((_epoch(name) for name in checkpoint.names(FOLDER)), default=0)


def refuse_if_held(checkpoint: Checkpoint, pause: Callable[[float], object] = time.sleep) -> None:
    """Raise an error that says who runs on a checkpoint, if anybody does.

    A holder that cannot be seen from here is watched for a few seconds: if its heart beats meanwhile, it lives.
    """
    epoch = newest(checkpoint)
    record, first = checkpoint.read(_record(epoch)) if epoch else None, _read_beat(checkpoint, epoch)
    if record is None or first is None or first.ended:
        return
    holder = Holder.load(record)
    if holder.is_seen() is False:
        return
    if holder.is_seen() and time.time() - first.at < STILL:
        raise _held(checkpoint, holder, first)
    until = time.monotonic() + STILL
    while time.monotonic() < until:
        pause(BEAT / 4)
        latest = _read_beat(checkpoint, epoch)
        if latest is None or latest.ended:
            return
        if latest.count != first.count:
            raise _held(checkpoint, holder, latest)
    LOG.warning("the job of pid %d on %s, which ran here, is dead: this one takes over", holder.pid, holder.host)


def _held(checkpoint: Checkpoint, holder: Holder, beat: Beat) -> UseError:
    age = max(time.time() - beat.at, 0.0)
    who = "this very process" if holder.is_seen() and holder.pid == os.getpid() else f"pid {holder.pid}"
    return UseError(
        f"a job runs on {checkpoint.root} already: {who} on host {holder.host}, whose heart beat {age:.1f} s ago\n"
        "  stop it first, or take the checkpoint over from it: weft stream --take-over, Engine.start(take_over=True)"
    )


def _read_beat(checkpoint: Checkpoint, epoch: int) -> Beat | None:
    data = checkpoint.read(_beat(epoch))
    return None if data is None else Beat(**json.loads(data))


def _epoch(name: str) -> int:
    return int(name.split(".")[0])


def _record(epoch: int) -> str:
    return f"{FOLDER}/{epoch:010}.json"


def _beat(epoch: int) -> str:
    return f"{FOLDER}/{epoch:010}.beat.json"


def _place() -> str:
    """Where process numbers have one meaning."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return f"{os.name} {socket.gethostname()}"


def _born(pid: int) -> str | None:
    """When a process was started; None if there is none of this number, or only its remains."""
    stat = Path(f"/proc/{pid}/stat")
    if not Path("/proc/self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except OSError:
            return ""
        return ""
    try:
        state, *others = stat.read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in "ZX" else others[18]
