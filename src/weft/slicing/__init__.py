"""Where a stream is cut."""
