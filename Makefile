# `make demo` and `make test` set everything up by themselves; they need python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint test-compiled test-uncompiled bench-wake clean

demo: $(VENV)/.installed
	$(BIN)/leeward aep

test: lint test-uncompiled test-compiled

test-compiled: $(VENV)/.installed-test
	$(BIN)/python -m pytest

# the formulas and loops as plain Python: slow, so tiny farms only
test-uncompiled: $(VENV)/.installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m tiny -q

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-wake: $(VENV)/.installed-test
	$(BIN)/python benchmarks/wake.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test,bench]'
	touch $@
