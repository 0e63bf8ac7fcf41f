"""The queries of a running stream: what the catalog asks for, bound to the stream, and what the job says to that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Generic, Protocol, TypeVar

from weft.catalog.catalog import FIRST_WINDOWS, Catalog
from weft.catalog.database import CatalogError
from weft.errors import QueryError
from weft.job.patience import Presence
from weft.job.shapes import Shaped, Shapes
from weft.plan.model import BoundQuery
from weft.plan.record import PlanRecord
from weft.step.emission import Emission

Refusal = tuple[int, str, str]
"""The number of a query's entry, its name and why it is refused."""


class Bindable(Shaped, Protocol):
    """A query that is bound to the stream."""

    @property
    def query(self) -> BoundQuery:
        """With its types."""


Bound = TypeVar("Bound", bound=Bindable)
Binder = Callable[[Mapping[str, str]], tuple[dict[str, Bound], dict[str, QueryError]]]
"""Texts by their names become bound queries; what is wrong with the others."""


@dataclass(frozen=True)
class Wanted(Generic[Bound]):
    """The queries that are to be answered from a batch on."""

    texts: dict[str, str]
    entries: dict[str, int]
    bound: dict[str, Bound]


class QueryRegistry(Generic[Bound]):
    """Keeps the catalog and the plans of a stream in step.

    A catalog that is away for a while does not stop the stream: what it has to be told, it is told when it is back.
    """

    def __init__(self, binder: Binder[Bound], catalog: Catalog, shapes: Shapes) -> None:
        self.catalog = catalog
        self.shapes = shapes
        self._binder = binder
        self._bound: dict[str, tuple[str, Bound]] = {}
        self._planned = -1
        self._looked = -1
        self._untold: list[Callable[[], object]] = []
        self._telling = threading.RLock()
        self.refusals: list[Refusal] = []
        """Refusals that the catalog has yet to hear of."""
        self.presence = Presence("the catalog", "the queries stay as they are until it is back")
        self._ask_again = 0.0

    def bind(self, texts: Mapping[str, str]) -> tuple[dict[str, Bound], dict[str, str]]:
        """Queries bound to the stream, and why others cannot be; each text is looked at once."""
        new = {name: text for name, text in texts.items() if self._bound.get(name, ("",))[0] != text}
        found, errors = self._binder(new)
        self._bound |= {name: (texts[name], bound) for name, bound in found.items()}
        bound = {name: self._bound[name][1] for name in texts if name not in errors}
        return bound, {name: str(error) for name, error in errors.items()}

    @property
    def changed(self) -> int | None:
        """The catalog's version, if the present plan does not follow it; None if it does."""
        version = self._version()
        return None if version == self._planned else version

    def _version(self) -> int:
        """The catalog's version, when it has heard all; an error says that it is away."""
        if time.monotonic() < self._ask_again:
            raise CatalogError(self.presence.outage["error"] if self.presence.outage else "the catalog is away")
        began = time.monotonic()
        try:
            self.catch_up()
            version = self.catalog.version()
        except CatalogError as error:
            # one that does not answer must not keep every batch waiting
            self._ask_again = time.monotonic() + 3 * (time.monotonic() - began)
            self.miss(error)
            raise
        self.presence.back()
        return version

    def is_reached(self) -> bool:
        """Whether the catalog is there; asked again if it was not."""
        try:
            return self.presence.outage is None or self._version() >= 0
        except CatalogError:
            return False

    @property
    def follows(self) -> int:
        """The version of the catalog that the present plan follows; -1 before there is one."""
        return self._planned

    def planned(self, version: int, record: PlanRecord, batch: int) -> None:
        """A plan follows the catalog as it was at ``version``, from ``batch`` on."""
        self._planned = version
        self.accept(record, batch)

    def wanted(self) -> Wanted[Bound]:
        """What the catalog asks for, as far as it can be run; the rest is refused there."""
        while True:
            entries = {entry.name: entry for entry in self.catalog.entries("pending", "active")}
            texts = {name: entry.sql for name, entry in entries.items()}
            bound, errors = self.bind(texts)
            errors |= {name: str(error) for name, error in self.shapes.refused(bound).items()}
            if not errors:
                return Wanted(texts, {name: entry.id for name, entry in entries.items()}, bound)
            for name, message in errors.items():
                self.catalog.refuse(name, message, id=entries[name].id)
            # and once more: a query goes on whose place a refused one was to take

    def gone(self, record: PlanRecord) -> set[str]:
        """The queries of a plan that the catalog has not any more: dropped, paused or refused since, or replaced."""
        try:
            wanted = self.wanted().entries
        except CatalogError as error:
            self.miss(error)
            return set()
        return {name for name, entry in record.entries.items() if wanted.get(name) != entry}

    def accept(self, record: PlanRecord, batch: int) -> None:
        """Say that the queries of a plan are answered from ``batch`` on."""
        self.shapes.keep({name: self._bound[name][1] for name in record.queries if name in self._bound})
        self._tell(partial(self._accept, record.entries, batch))

    def describe(self, record: PlanRecord, batch: int, watermark: int | None) -> None:
        """Show a plan that is run from ``batch`` on, which starts at ``watermark``."""
        windows = {name: self._bound[name][1].query.window for name in record.queries if name in self._bound}
        firsts = Emission(after=watermark, first=record.first).first_windows(windows)
        described = {
            "queries": record.queries,
            "groupings": [asdict(one) for one in record.groupings],
            FIRST_WINDOWS: firsts,
        }
        self._tell(partial(self.catalog.record_plan, record.version, batch, described))

    def look(self, following: int) -> None:
        """Decide about new queries between two batches: a stream without rows must not keep people waiting."""
        version = self._version()
        if version not in (self._planned, self._looked):
            self._accept(self.wanted().entries, following)
            self._looked = version

    def _accept(self, entries: Mapping[str, int], batch: int) -> None:
        accepted = [entry for entry in self.catalog.entries("pending") if entries.get(entry.name) == entry.id]
        if accepted:
            version = self.catalog.accept_all(accepted, batch)
            if version == self._planned + 1:
                # the plan follows this very change: nobody else has made one since
                self._planned = version

    def refuse(self, refusals: Iterable[Refusal]) -> None:
        """Say which queries a value has stopped: they are not in the next plan."""
        self.refusals += refusals
        self._tell_all()

    def catch_up(self) -> None:
        """Tell the catalog what it has not heard yet; an error says that it is still away."""
        # the stream's thread and the one that looks for new queries both come by; each waits until all is told
        with self._telling:
            while self.refusals:
                id, name, reason = self.refusals[0]
                self.catalog.refuse(name, reason, id=id)
                del self.refusals[0]
            while self._untold:
                self._untold[0]()
                del self._untold[0]

    def miss(self, error: CatalogError) -> None:
        """Note that the catalog is away; people are told once."""
        self.presence.lost(error)

    def _tell(self, word: Callable[[], object]) -> None:
        self._untold.append(word)
        self._tell_all()

    def _tell_all(self) -> None:
        with suppress(CatalogError):
            self._version()
