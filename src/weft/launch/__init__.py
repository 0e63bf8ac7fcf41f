"""The one place that puts a session, sources, sinks, a catalog and a job together."""
