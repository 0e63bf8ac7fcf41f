"""Latency of every single answer (004 ch. 4 Exp 3): the processor's cycle counter read inside the compiled loop."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from techniques_timing import sensor_readings
from weft.algebra.monoids import add_int, max_int
from weft.algebra.numbers import Columns
from weft.evaluate import TECHNIQUES
from weft.evaluate.columns import empty_columns, frozen, load, store
from weft.evaluate.technique import Memory, State
from weft.evaluate.techniques.interface import evict, push, query


@intrinsic
def cycles(_: Any) -> Any:
    """The cycle counter: a call to a clock would cost more than most answers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        counter = ir.FunctionType(ir.IntType(64), [])
        return builder.call(cgutils.get_or_insert_function(builder.module, counter, "llvm.readcyclecounter"), [])

    return types.int64(), generate


@njit
def _now() -> int:
    return cycles()


def _nanoseconds_a_cycle() -> float:
    _now()
    begin, first = time.perf_counter_ns(), _now()
    time.sleep(0.2)
    return (time.perf_counter_ns() - begin) / (_now() - first)


def _timed(memory: Memory, state: State, values: Columns, size: int, out: Columns, taken: np.ndarray) -> State:
    """Evict, push and query every item; the cycles of each into ``taken``."""
    for index in range(len(values[0])):
        begin = cycles()
        if state[1] - state[0] == size:
            state = evict(memory, state, taken)
        state = push(memory, state, load(values, index), taken)
        store(out, 0, query(memory, state, taken))
        taken[index] = cycles() - begin
    return state


def latencies(name: str, items: int, size: int = 1024) -> np.ndarray:
    """Nanoseconds of each answer of one technique, reading the counter included."""
    technique = TECHNIQUES[name]
    monoid = add_int if "invertible" in technique.requires else max_int
    run = technique.bind(monoid, _timed)
    readings = frozen((sensor_readings(items)[0],))
    taken = np.zeros(items, np.int64)
    for _ in range(2):  # the first pass compiles and warms up
        memory, state = technique.allocate(monoid, (size,))
        run(memory, state, readings, size, empty_columns(monoid, 1), taken)
    return taken * _nanoseconds_a_cycle()


def trimmed(taken: np.ndarray) -> np.ndarray:
    """Without the highest 0.005%, as 004 does: interrupts of the machine."""
    ordered = np.sort(taken)
    return ordered[: len(ordered) - max(1, round(len(ordered) * 0.00005))]
