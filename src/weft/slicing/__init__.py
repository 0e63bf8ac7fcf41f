"""Where a stream is cut: edges as progressions, and exactly how many there are."""
