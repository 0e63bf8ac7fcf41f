"""Where a checkpoint's catalog is, and that no password is seen on the way."""

from __future__ import annotations

import json
import shutil
import traceback
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from weft.catalog import Catalog, create_catalog, find_catalog
from weft.catalog.database import CatalogError
from weft.errors import UseError, WeftError
from weft.store.location import STORES, Store

HOURLY = "CREATE VIEW hourly AS SELECT count(*) AS n FROM trades GROUP BY window(ts, '1 hour')"


def test_a_new_checkpoint_gets_a_catalog_of_its_own(tmp_path: Path) -> None:
    with create_catalog(str(tmp_path / "state")) as catalog:
        catalog.add(HOURLY)
    assert (tmp_path / "state" / "catalog.db").exists()
    with find_catalog(str(tmp_path / "state")) as found:
        assert [entry.name for entry in found.entries()] == ["hourly"]


def test_a_checkpoint_that_was_never_used_has_no_catalog_and_gets_none(tmp_path: Path) -> None:
    with pytest.raises(UseError, match="no job has been started with the checkpoint"):
        find_catalog(str(tmp_path / "stat"))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_moves_takes_its_catalog_along(tmp_path: Path) -> None:
    create_catalog(str(tmp_path / "old")).add(HOURLY)
    shutil.move(tmp_path / "old", tmp_path / "new")
    with create_catalog(str(tmp_path / "new")) as catalog:
        assert [entry.name for entry in catalog.entries()] == ["hourly"]


def test_the_checkpoint_knows_its_catalog_but_not_the_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_catalog(str(tmp_path / "state"), url) as catalog:
        catalog.add(HOURLY)
    note = (tmp_path / "state" / "catalog.json").read_text()
    password = urlsplit(url).password
    if password:
        assert password not in note
        monkeypatch.setenv("PGPASSWORD", password)
    with find_catalog(str(tmp_path / "state")) as found:
        assert [entry.name for entry in found.entries()] == ["hourly"]
    with create_catalog(str(tmp_path / "state"), url) as again:
        assert again.uid() == json.loads(note)["uid"]


def test_one_catalog_serves_one_checkpoint(url: str, tmp_path: Path) -> None:
    create_catalog(str(tmp_path / "one"), url).close()
    with pytest.raises(UseError, match="one catalog serves one checkpoint"):
        create_catalog(str(tmp_path / "two"), url)
    assert not (tmp_path / "two" / "catalog.json").exists()


def test_a_checkpoint_that_was_deleted_does_not_come_back_with_old_queries(url: str, tmp_path: Path) -> None:
    with create_catalog(str(tmp_path / "state"), url) as catalog:
        catalog.put_status({"state": "running"})
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(UseError, match="serves the checkpoint"):
        create_catalog(str(tmp_path / "state"), url)


def test_a_start_that_died_before_its_first_word_can_be_repeated(url: str, tmp_path: Path) -> None:
    create_catalog(str(tmp_path / "state"), url).close()
    (tmp_path / "state" / "catalog.json").unlink()
    create_catalog(str(tmp_path / "state"), url).close()


def test_another_catalog_than_the_checkpoints_is_refused(url: str, tmp_path: Path) -> None:
    create_catalog(str(tmp_path / "state"), url).close()
    with pytest.raises(UseError, match="is not the one"):
        find_catalog(str(tmp_path / "state"), f"sqlite:///{tmp_path}/other.db")


def test_a_remote_checkpoint_needs_a_catalog_that_all_can_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORES, "mock", Store("mock", "mock"))  # a store of Arrow's that is in memory
    with pytest.raises(UseError, match="--catalog postgresql://"):
        create_catalog("mock://bucket/state")


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("postgresql://ada:hidden@127.0.0.1:1/weft", CatalogError, r"postgresql://ada:\*\*\*@127.0.0.1:1/weft"),
        ("postgresql://ada@127.0.0.1:1/weft?password=hidden", CatalogError, "postgresql://ada@127.0.0.1:1/weft"),
        ("mysql://ada:hidden@127.0.0.1/weft", UseError, "no catalog in mysql: write sqlite"),
        ("ada:hidden", UseError, "write sqlite:///FILE or postgresql://"),
        ("postgresql://ada:hidden@host:port/weft", UseError, "write sqlite:///FILE or postgresql://"),
    ],
)
def test_a_catalog_that_cannot_be_reached_is_named_without_its_password(
    url: str, error: type[WeftError], message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        Catalog.open(url)
    assert "hidden" not in "".join(traceback.format_exception(caught.value))
