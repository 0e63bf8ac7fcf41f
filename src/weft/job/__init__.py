"""A checkpoint's life: history, lease, commit, outbox. No Spark in here."""
