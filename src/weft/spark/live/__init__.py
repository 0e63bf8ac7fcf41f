"""The live engine: the step of the batch run on a stream, with state, an atomic commit a batch, and queries that change."""
