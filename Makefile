# Weft: `make demo` shows it on real data, `make test` proves it. Both install what they need into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install fetched demo test test-long lint bench clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	$(BIN)/python -m weft.spark.warm
	@$(BIN)/python -m weft.launch.class_archive 2>$(VENV)/classes.log || echo "no archive of Java's classes: $(VENV)/classes.log says why"
	touch $@

demo: install
	$(BIN)/weft demo

# once, before the processes of the tests part
fetched: install
	@test "$$WEFT_OFFLINE" = 1 || $(BIN)/python tests/services/fetched.py

# Two processes: one has the Spark session and tells how far it is, what needs none is told of at the end.
define tested
	@$(BIN)/python -m pytest -m "not spark$(1)" >$(VENV)/others.log 2>&1 & others=$$!; trap "kill $$others" INT TERM; \
	$(BIN)/python -m pytest -m "spark$(1)"; spark=$$?; \
	wait $$others; others=$$?; cat $(VENV)/others.log; exit $$((spark + others))
endef

test: lint fetched
	$(call tested, and not long)

# the same and what takes too long for every push
test-long: export WEFT_LONG = 1
test-long: lint fetched
	$(call tested)

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
