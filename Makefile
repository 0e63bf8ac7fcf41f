# Weft: `make demo` shows it on real data, `make test` proves it. Both install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo test test-long lint bench clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m weft.spark.warm
	touch $@

demo: install
	$(BIN)/python examples/flights/demo.py

# two processes: one has the Spark session, the other takes what needs none
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadgroup

test: lint
	$(PYTEST) -m "not long"

# the same and what takes too long for every push
test-long: lint
	WEFT_LONG=1 $(PYTEST)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: install
	$(BIN)/python benchmarks/thousand.py
	$(BIN)/python benchmarks/techniques.py

clean:
	rm -rf $(VENV) demo-out bench-out
