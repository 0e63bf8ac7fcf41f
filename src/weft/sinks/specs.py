"""Sinks by name: ``parquet:DIR``, ``kafka:TOPIC@HOST:PORT``, ``postgresql://user@host/db``, ``console``, ...

A mapping, as ``weft.yaml`` has it, says more: ``{"to": "kafka:answers@localhost:9092", "queries": ["delays*"],
"partitions": 3}``. On the command line ``delays*,flights=console`` sends only these queries there.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from weft.config import PluggedSink
from weft.config.sinks import sink_plugins
from weft.errors import WeftError
from weft.job.sink import Sink
from weft.sinks.routed import RoutedSink

FORMS = {
    "parquet": "parquet:DIR",
    "kafka": "kafka:TOPIC@HOST:PORT",
    "postgresql": "postgresql://user@host:port/database",
    "delta": "delta:DIR",
    "console": "console",
    "memory": "memory",
}


def sink_of(spec: str | Mapping[str, Any] | PluggedSink) -> Sink:
    """The sink that a text, a mapping or the settings of another package's sink describe.

    Examples
    --------
    >>> sink_of("parquet:/tmp/answers").name
    'parquet:/tmp/answers'
    >>> sink_of("kafka:weft-{query}@localhost:9092").topic
    'weft-{query}'
    >>> sink_of("postgresql://me:hush@db/answers").name
    'postgresql://me@db/answers'
    >>> sink_of("delays*,flights=console").queries
    ('delays*', 'flights')
    >>> sink_of({"to": "console", "rows": 5}).rows
    5
    """
    if isinstance(spec, PluggedSink):
        return routed(plugged(spec), spec.queries or (), spec.name)
    if isinstance(spec, Mapping):
        options = dict(spec)
        to = options.pop("to", None)
        if not isinstance(to, str):
            raise WeftError(f"a sink says where to by `to`, one of {', '.join(FORMS.values())}")
        queries = options.pop("queries", ())
        return routed(built(to, options), [queries] if isinstance(queries, str) else queries, options.get("name"))
    queries, equals, to = spec.partition("=")
    if equals and not {":", "/"} & set(queries):
        return routed(built(to, {}), queries.split(","))
    return built(spec, {})


def routed(sink: Sink, queries: Sequence[str], name: str | None = None) -> Sink:
    """The sink for these queries only, for all of them if none is named."""
    return RoutedSink(sink, [query.strip() for query in queries], name) if queries else sink


def plugged(section: PluggedSink) -> Sink:
    """The sink of another package, under the name that was said."""
    sink = section.sink()
    if not isinstance(sink, Sink):
        raise WeftError(f"{section.form}: {type(sink).__name__} lacks something of weft.job.sink.Sink")
    sink.name = section.name or sink.name
    return sink


def built(to: str, options: Mapping[str, Any]) -> Sink:
    """The sink of one of the forms."""
    kind, colon, rest = to.partition(":")
    if kind not in FORMS and (plugin := sink_plugins().get(kind)) is not None:
        return plugged(plugin.told(to, options))
    if kind not in FORMS or (":" in FORMS[kind]) != bool(colon and rest):
        raise _unknown(to, kind)
    if kind == "parquet":
        from weft.sinks.parquet import ParquetSink

        return _made(to, ParquetSink, options, rest)
    if kind == "kafka":
        from weft.sinks.kafka import KafkaSink

        topic, at, servers = rest.partition("@")
        if not (topic and at and ":" in servers):
            raise _unknown(to, kind)
        return _made(to, KafkaSink, options, topic, servers)
    if kind == "postgresql":
        from weft.sinks.postgres import PostgresSink

        return _made(kind, PostgresSink, options, to)
    if kind == "delta":
        from weft.sinks.delta import DeltaSink

        return _made(to, DeltaSink, options, rest)
    if kind == "console":
        from weft.sinks.console import ConsoleSink

        return _made(to, ConsoleSink, options)
    from weft.sinks.memory import MemorySink

    return _made(to, MemorySink, options)


def _made(to: str, sink: Callable[..., Sink], options: Mapping[str, Any], *places: str) -> Sink:
    """Make a sink; an option that it does not have is an error that names those that it has."""
    known = [name for name, one in inspect.signature(sink).parameters.items() if one.kind is one.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known) or 'none'}"
            raise WeftError(f"sink {to} has no option {option}; {hint}")
    return sink(*places, **options)


def _unknown(to: str, kind: str) -> WeftError:
    if kind in FORMS:
        return WeftError(f"sink {_safe(to)} is not of the form {FORMS[kind]}")
    forms = FORMS | {kind: plugin.form for kind, plugin in sink_plugins().loaded.items()}
    close = difflib.get_close_matches(kind, forms, 1)
    hint = f"did you mean {forms[close[0]]}?" if close else f"write one of {', '.join(forms.values())}"
    return WeftError(f"there is no sink {_safe(to)}; {hint}")


def _safe(to: str) -> str:
    """What may be shown of it: an address may hold a password."""
    scheme, colon, rest = to.partition("://")
    return f"{scheme}://{'***@' if '@' in rest else ''}{rest.rpartition('@')[2]}" if colon else to
