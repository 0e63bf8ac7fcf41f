"""What a job can be told: one model for ``weft.yaml`` and for the command line."""

from weft.config.merge import stream_config
from weft.config.model import PluggedSource, SourceConfig, StreamConfig
from weft.config.settings import Settings, find_file, read_file
from weft.config.sinks import PluggedSink, SinkConfig

__all__ = [
    "PluggedSink",
    "PluggedSource",
    "Settings",
    "SinkConfig",
    "SourceConfig",
    "StreamConfig",
    "find_file",
    "read_file",
    "stream_config",
]
