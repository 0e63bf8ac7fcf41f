"""Weft: thousands of sliding-window queries over one stream for the price of one, on Spark."""

from weft._version import __version__
from weft.errors import QueriesError, QueryError, WeftError

__all__ = ["QueriesError", "QueryError", "WeftError", "__version__"]
