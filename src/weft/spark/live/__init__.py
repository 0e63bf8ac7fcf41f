"""The live engine: the batch run's step on a stream, with state, one atomic commit a batch, and queries that change."""
