"""Java packages on a machine that has none: fetched once, by one, whole, from a repository that may be slow or away."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.repository import Repository
from weft.errors import WeftError
from weft.java.kept_jars import BUILDING, RECORD
from weft.java.packages import CARRIED, resolve, spark_jars

ASK = "import sys; from weft.java.packages import CARRIED, resolve; print(*(jar.name for jar in resolve(sys.argv[1:])))"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """A repository, and a machine with an empty home that reaches no other one."""
    served = Repository(tmp_path / "repository")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WEFT_IVY_SETTINGS", str(served.settings))
    yield served
    served.stop()


def left_behind(folder: Path) -> list[Path]:
    return list(folder.rglob(f"{BUILDING}*"))


def test_processes_that_ask_at_once_with_an_empty_cache_all_get_every_jar_and_one_of_them_fetches(
    repository: Repository, tmp_path: Path
) -> None:
    wanted = repository.publish("wanted", needs=["needed", "also"])
    repository.publish("needed", needs=["also"])
    repository.publish("also")
    repository.pause = 0.1
    command = [sys.executable, "-c", ASK, wanted]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    told = [process.communicate(timeout=120) for process in asking]
    assert [process.returncode for process in asking] == [0, 0, 0], told
    assert {out.strip() for out, _ in told} == {"also-1.jar needed-1.jar wanted-1.jar"}
    assert len([path for path in repository.asked if path.endswith("wanted-1.jar")]) == 1
    assert not left_behind(tmp_path)


@pytest.mark.parametrize("damage", ["cut off", "emptied", "other bytes", "gone", "no record"])
def test_a_damaged_jar_is_found_by_its_checksum_and_fetched_again(repository: Repository, damage: str) -> None:
    wanted = repository.publish("wanted")
    (jar,) = resolve([wanted])
    whole = jar.read_bytes()
    if damage == "cut off":
        jar.write_bytes(whole[:-10])
    elif damage == "emptied":
        jar.write_bytes(b"")
    elif damage == "other bytes":
        jar.write_bytes(whole[:50] + b"?" + whole[51:])
    elif damage == "gone":
        jar.unlink()
    else:
        (jar.parent / RECORD).unlink()
    assert resolve([wanted]) == (jar,)
    assert jar.read_bytes() == whole
    asked = len(repository.asked)
    assert resolve([wanted]) == (jar,)
    assert len(repository.asked) == asked


def test_jars_that_arrive_in_half_are_asked_for_again(repository: Repository, tmp_path: Path) -> None:
    wanted = repository.publish("wanted")
    repository.cut_off = 2
    (jar,) = resolve([wanted])
    assert jar.read_bytes() == next(repository.folder.rglob("wanted-1.jar")).read_bytes()
    assert not left_behind(tmp_path)


def test_what_no_repository_has_is_told_at_once_in_five_lines_at_most(repository: Repository) -> None:
    wanted = repository.publish("wanted", needs=["missing"])
    said = r"cannot get the Java packages org.example:wanted:1\n.*missing:1: not found"
    with pytest.raises(WeftError, match=said) as told:
        resolve([wanted])
    assert len(str(told.value).splitlines()) <= 5 and len(str(told.value)) < 1000
    assert len([path for path in repository.asked if path.endswith("wanted-1.pom")]) == 1
    assert "WEFT_IVY_SETTINGS" in str(told.value)


def test_a_repository_that_is_away_is_told_in_five_lines_at_most(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.java.packages.ATTEMPTS", 2)
    repository.stop()
    many = [f"org.example:package{number}:1" for number in range(50)]
    with pytest.raises(WeftError, match="Connection refused") as told:
        resolve(many)
    assert len(str(told.value).splitlines()) <= 5 and len(str(told.value)) < 1000
    kept = Path(str(told.value).splitlines()[-1].partition(": ")[2])
    assert "UNRESOLVED DEPENDENCIES" in kept.read_text()


def test_a_spark_package_is_the_nearest_earlier_one_also_when_its_jar_was_cut_off(repository: Repository) -> None:
    for version in ("4.1.0", "4.2.0", "4.4.0"):
        repository.publish("spark-thing_2.13", version, group="org.apache.spark")
    (jar,) = spark_jars(["spark-thing_2.13"], "4.3.0")
    assert jar.name == "spark-thing_2.13-4.2.0.jar"
    jar.write_bytes(jar.read_bytes()[:20])
    assert spark_jars(["spark-thing_2.13"], "4.3.0") == (jar,)
    assert len(jar.read_bytes()) > 20


def test_an_earlier_version_is_not_taken_because_the_repository_is_away(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.java.packages.ATTEMPTS", 1)
    repository.publish("spark-thing_2.13", "4.2.0", group="org.apache.spark")
    repository.stop()
    with pytest.raises(WeftError, match=r"spark-thing_2\.13:4\.3\.0\n"):
        spark_jars(["spark-thing_2.13"], "4.3.0")


def test_a_package_of_a_group_that_spark_carries_comes_without_what_spark_has(repository: Repository) -> None:
    repository.publish("hadoop-common", group="org.apache.hadoop")
    wanted = repository.publish("hadoop-aws", needs=["hadoop-common"], group="org.apache.hadoop")
    assert [jar.name for jar in resolve([wanted], without=CARRIED)] == ["hadoop-aws-1.jar"]


def test_what_a_killed_process_left_behind_is_swept_by_the_next_one(repository: Repository, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "jars" / f"{BUILDING}abc"
    left.mkdir(parents=True)
    resolve([repository.publish("wanted")])
    assert not left.exists()


def test_a_cache_that_cannot_be_written_says_which_setting_names_another(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WEFT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(WeftError, match="name another folder in WEFT_CACHE"):
        resolve([repository.publish("wanted")])


def test_an_empty_home_variable_is_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.store.cache import cache_folder

    monkeypatch.delenv("WEFT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", "")
    assert cache_folder().is_relative_to(Path(pwd.getpwuid(os.getuid()).pw_dir))
