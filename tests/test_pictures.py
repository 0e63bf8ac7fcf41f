"""The pictures in docs/ are drawn from the code."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


def drawn() -> dict:
    spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.PICTURES


@pytest.mark.parametrize("name", ["rooms.svg", "path.svg"])
def test_a_picture_shows_the_code_as_it_is(name):
    assert (DOCS / "figures" / name).read_text() == drawn()[name](), "run: python docs/pictures.py"
