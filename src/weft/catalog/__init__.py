"""What a running job is told from outside, and what it says about itself: queries, plans, status, in a database."""

from weft.catalog.catalog import Catalog
from weft.catalog.entries import Change, Entry, PlanEntry, State
from weft.catalog.heartbeat import Heartbeat
from weft.catalog.place import create_catalog, find_catalog
from weft.catalog.status import Status, is_running

__all__ = [
    "Catalog",
    "Change",
    "Entry",
    "Heartbeat",
    "PlanEntry",
    "State",
    "Status",
    "create_catalog",
    "find_catalog",
    "is_running",
]
