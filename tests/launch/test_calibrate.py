"""Calibration: constants that explain the times of runs, kept and used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
from weft.launch import calibrate as calibrating
from weft.launch.calibrate import TRIALS, Probe, calibrate
from weft.launch.calibrate_cut import CUT_TRIALS
from weft.launch.fitting import fitted
from weft.launch.session import name_of
from weft.optimize.constants import Constants
from weft.optimize.work import Work
from weft.store.folder import Folder

SMALL = tuple(Probe(trial.name, trial.by, trial.windows[:4], trial.weaving, rows=2_000) for trial in TRIALS[:4])
FEW_CUTS = CUT_TRIALS[:2]


def test_the_constants_that_made_the_times_are_found_again() -> None:
    truth = Constants(
        step=0.5,
        read=1e-7,
        row=2e-7,
        update=1e-8,
        edge=5e-9,
        long=2e-8,
        slice=6e-7,
        number=5e-8,
        again=1e-7,
        merge=3e-9,
        pane=9e-9,
        answer=4e-8,
        value=2e-8,
        query=1e-3,
    )
    rng = np.random.default_rng(1)
    lows = (4, 4, 4, 5, 4, 4, 5, 5, 6, 6, 5, 5, 0)
    works = [Work(1, *(10.0 ** rng.uniform(low, low + 3) for low in lows)) for _ in range(60)]
    found = fitted(works, [work.seconds(truth) for work in works])
    assert found == {name: pytest.approx(getattr(truth, name), rel=0.05) for name in found}


def test_constants_are_measured_kept_under_the_name_of_the_spark_and_used_by_engines_on_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_CONSTANTS", str(tmp_path / "constants.json"))
    monkeypatch.setattr(calibrating, "WARM_UP", 0)  # the times need not be good ones
    assert weft.Engine(spark).weaving.constants == Constants()
    folder = Folder(str(tmp_path / "work"))
    constants, report = calibrate(spark, folder, repeats=1, trials=SMALL, cut_trials=FEW_CUTS)
    constants.save(name_of(spark))
    assert weft.Engine(spark).weaving.constants == constants
    cuts = [f"{trial.name} cut by {engine}" for engine in ("jvm", "workers", "driver") for trial in FEW_CUTS]
    assert [name for name, _, _ in report] == [trial.name for trial in SMALL] + cuts
    assert constants.cut.keys() == {"jvm", "workers", "driver"} and constants.cut != Constants().cut
    assert all(seconds > 0 and predicted >= 0 for _, seconds, predicted in report)
    assert all(0 < seconds < 1e-4 for seconds in constants.kernel.values())
    assert not folder.exists()
