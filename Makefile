# `make demo` and `make test` set everything up by themselves; they need python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: commands docs figures demo test lint test-compiled test-uncompiled test-cluster test-slurm test-browser bench-wake bench-layout bench-records bench-store bench-salvage bench-cluster bench-dashboard faults clean

# the built-in campaign, 60 layouts, into layouts.h5, and a report of them; goes on where it was stopped
demo: $(VENV)/.installed
	$(BIN)/leeward run
	$(BIN)/leeward report -o report.html

test: lint test-uncompiled test-compiled

# four at a time on two cores: many wait for processes more than they compute
test-compiled: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 4 -m "not cluster and not browser"

# one suite over all engines; Dask clusters on loopback and in network namespaces, whose parts are killed
test-cluster: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 3 -m cluster

# the engines on a real SLURM of three nodes, started by ci/slurm: needs root and Debian's packages, which it installs
test-slurm: $(VENV)/.installed-test
	ci/slurm/with $(BIN)/python -m pytest -k slurm tests/test_slurm.py tests/test_engines.py

# the dashboard in a headless Chromium: Debian's packages, which it installs where it is root
test-browser: $(VENV)/.installed-test
	ci/browser/with $(BIN)/python -m pytest -m browser

# all that tests/faults can do, hours of it, an hour of soak among them; the short versions are in `make test`
faults: $(VENV)/.installed-test
	LEEWARD_FAULTS=long $(BIN)/python -m pytest -s tests/faults

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

bench-layout: $(VENV)/.installed-test
	$(BIN)/python benchmarks/layout.py

# IEA37 case study 1 with ten minutes for each of its three farms
bench-records: $(VENV)/.installed-test
	$(BIN)/python benchmarks/layout.py --records

# the store and the coordinator beside a bare h5py loop; 100 000 results need 2 GB for temporary files
bench-store: $(VENV)/.installed-test
	$(BIN)/python benchmarks/store.py

# what salvage recovers from damaged files, and what of it is wrong
bench-salvage: $(VENV)/.installed-test
	$(BIN)/python benchmarks/salvage.py

# 100 000 trivial tasks through Dask: half an hour, and 2 GB for temporary files
bench-cluster: $(VENV)/.installed-test
	$(BIN)/python benchmarks/cluster.py

# `leeward serve` on 100 000 tasks: five minutes, and 1 GB for temporary files
bench-dashboard: $(VENV)/.installed-test
	$(BIN)/python benchmarks/dashboard.py

# docs/commands.md from the help texts of the commands, and from tools/commands.md
commands: $(VENV)/.installed
	$(BIN)/python tools/commands.py

# the pictures of docs/method.md, from leeward and PyWake side by side
figures: $(VENV)/.installed-test
	$(BIN)/python tools/figures.py

# the site, in site/: any warning is an error, and no page may load anything from elsewhere
# (not --quiet: MkDocs would then overlook its warnings)
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/check_site.py site

# what `make demo` computed stays: `rm -r layouts.h5 layouts.h5.index layouts.run report.html` removes that
clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[test,bench]'
	touch $@
