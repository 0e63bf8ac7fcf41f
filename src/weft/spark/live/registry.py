"""The queries of a running stream: what the catalog asks for, bound to the stream, and what the job says to that."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from weft.catalog.catalog import Catalog
from weft.catalog.database import CatalogError
from weft.spark.bind import Bound, Stream
from weft.spark.live.planning import Wanted, bind_all
from weft.spark.live.records import PlanRecord

LOG = logging.getLogger("weft.stream")
Refusal = tuple[int, str, str]
"""The number of a query's entry, its name and why it is refused."""


class Registry:
    """Keeps the catalog and the plans of a stream in step.

    A catalog that is away for a while does not stop the stream: what it has to be told, it is told when it is back.
    """

    def __init__(self, stream: Stream, catalog: Catalog) -> None:
        self.catalog = catalog
        self._stream = stream
        self._bound: dict[str, tuple[str, Bound]] = {}
        self._planned = -1
        self._looked = -1
        self._untold: list[Callable[[], object]] = []
        self.refusals: list[Refusal] = []
        """Refusals that the catalog has yet to hear of."""
        self._away = False

    def bind(self, texts: Mapping[str, str]) -> tuple[dict[str, Bound], dict[str, str]]:
        """Queries bound to the stream, and why others cannot be; each text is looked at once."""
        new = {name: text for name, text in texts.items() if self._bound.get(name, ("",))[0] != text}
        found, errors = bind_all(self._stream, new)
        self._bound |= {name: (texts[name], bound) for name, bound in found.items()}
        bound = {name: self._bound[name][1] for name in texts if name not in errors}
        return bound, {name: str(error) for name, error in errors.items()}

    @property
    def changed(self) -> int | None:
        """The catalog's version, if the present plan does not follow it; None if it does."""
        self.catch_up()
        version = self.catalog.version()
        self._away = False
        return None if version == self._planned else version

    def planned(self, version: int, record: PlanRecord, batch: int) -> None:
        """A plan follows the catalog as it was at ``version``, from ``batch`` on."""
        self.accept(record, batch)
        self._planned = version

    def wanted(self) -> Wanted:
        """What the catalog asks for, as far as it can be run; the rest is refused there."""
        entries = {entry.name: entry for entry in self.catalog.entries("pending", "active")}
        bound, errors = self.bind({name: entry.sql for name, entry in entries.items()})
        for name, message in errors.items():
            self.catalog.refuse(name, message, id=entries[name].id)
        good = {name: entry for name, entry in entries.items() if name in bound}
        texts = {name: entry.sql for name, entry in good.items()}
        return Wanted(texts, {name: entry.id for name, entry in good.items()}, bound)

    def accept(self, record: PlanRecord, batch: int) -> None:
        """Say that the queries of a plan are answered from ``batch`` on."""
        self._tell(partial(self._accept, record.entries, batch))

    def describe(self, record: PlanRecord, batch: int) -> None:
        """Show a plan that is run from ``batch`` on."""
        described = {"queries": record.queries, "groupings": record.groupings}
        self._tell(partial(self.catalog.record_plan, record.version, batch, described))

    def look(self, following: int) -> None:
        """Decide about new queries between two batches: a stream without rows must not keep people waiting."""
        self.catch_up()
        version = self.catalog.version()
        if version not in (self._planned, self._looked):
            self._accept(self.wanted().entries, following)
            self._looked = version

    def _accept(self, entries: Mapping[str, int], batch: int) -> None:
        accepted = [entry for entry in self.catalog.entries("pending") if entries.get(entry.name) == entry.id]
        if accepted:
            self.catalog.accept_all(accepted, batch)

    def refuse(self, refusals: Iterable[Refusal]) -> None:
        """Say which queries a value has stopped: they are not in the next plan."""
        self.refusals += refusals
        self._tell_all()

    def catch_up(self) -> None:
        """Tell the catalog what it has not heard yet; an error says that it is still away."""
        while self.refusals:
            id, name, reason = self.refusals[0]
            self.catalog.refuse(name, reason, id=id)
            del self.refusals[0]
        while self._untold:
            self._untold[0]()
            del self._untold[0]

    def miss(self, error: CatalogError) -> None:
        """Note that the catalog is away; people are told once."""
        if not self._away:
            LOG.warning("%s; the queries stay as they are until it is back", error)
        self._away = True

    def _tell(self, word: Callable[[], object]) -> None:
        self._untold.append(word)
        self._tell_all()

    def _tell_all(self) -> None:
        try:
            self.catch_up()
        except CatalogError as error:
            self.miss(error)
