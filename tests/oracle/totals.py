"""How much was compared in this process, for the line at the end of a run."""

from __future__ import annotations

datasets = 0
queries = 0
rows = 0
cells_within_bound = 0


def add(*, queries_compared: int, rows_compared: int, cells: int) -> None:
    """Count one data set whose queries were all compared with Spark."""
    global datasets, queries, rows, cells_within_bound
    datasets += 1
    queries += queries_compared
    rows += rows_compared
    cells_within_bound += cells


def sentence() -> str:
    """One line for the end of the run."""
    return (
        f"compared with Spark: {queries:,} random queries over {datasets:,} random data sets, "
        f"{rows:,} answer rows ({cells_within_bound:,} values by the bound for doubles or ties)"
    )
