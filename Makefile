# `make demo` and `make test` set everything up by themselves; they need python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# each pytest appends what it skipped and why; the last lines of `make test` and `make test-all` show it
test test-all: export LEEWARD_SKIPPED := $(CURDIR)/.pytest_cache/skipped.txt
define SHOW_SKIPPED
@if test -s $(LEEWARD_SKIPPED); then echo; echo "skipped tests, and why:"; cat $(LEEWARD_SKIPPED); fi
endef

# Python writes its byte code to disk once, instead of compiling it in each of the many processes that the tests start
unexport PYTHONDONTWRITEBYTECODE

.PHONY: commands docs figures references demo test test-all test-begin lint test-quick test-compiled test-uncompiled \
	test-cluster test-slurm test-browser test-fuse test-nfs test-gpu test-under-load bench-wake \
	bench-layout bench-records bench-store bench-salvage bench-study \
	bench-cluster bench-dashboard bench-start bench-gpu faults clean

# the built-in campaign, 60 layouts, into layouts.h5, and a report of them; goes on where it was stopped
demo: $(VENV)/.installed
	$(BIN)/leeward run
	$(BIN)/leeward report -o report.html

# what a newcomer runs: at most six minutes on two free cores, from a cold kernel cache
test: test-begin
	$(MAKE) --no-print-directory -j2 --output-sync=target lint test-uncompiled
	$(MAKE) --no-print-directory test-quick
	$(SHOW_SKIPPED)
	@echo
	@echo "All quick tests passed. Not run: what make test-all adds, about 20 minutes:"
	@echo "  make test-compiled  the slow tests too: a kill and an error at every step of the store, power loss, damaged"
	@echo "                      files, stalls, long optimisations, PyWake, TopFarm, FLORIS and windIO beside leeward"
	@echo "  make test-cluster   every engine, and Dask clusters whose parts are killed"
	@echo "  make test-slurm     the same on a real SLURM (needs root; installs Debian's packages)"
	@echo "  make test-browser   the dashboard in Chromium (installs Debian's packages)"
	@echo "  make test-fuse      a file system without locks and links (installs Debian's fuse3)"
	@echo "  make docs           the documentation site"
	@echo "Longer still: make faults (hours), make test-nfs (a real NFS, in QEMU), make test-under-load,"
	@echo "the benchmarks (make bench-...). On a machine with an NVIDIA GPU: make test-gpu."

# everything but `make faults` and the benchmarks; tests of clusters mostly wait, so two kinds of them run side by side
test-all: test-begin
	$(MAKE) --no-print-directory -j2 --output-sync=target lint test-uncompiled
	$(MAKE) --no-print-directory test-compiled
	$(MAKE) --no-print-directory -j2 --output-sync=target test-slurm test-cluster
	$(MAKE) --no-print-directory -j2 --output-sync=target test-browser test-fuse
	$(MAKE) --no-print-directory docs
	$(SHOW_SKIPPED)

test-begin: $(VENV)/.installed-test
	@mkdir -p $(dir $(LEEWARD_SKIPPED))
	@rm -f $(LEEWARD_SKIPPED)

# four at a time on two cores: many wait for processes more than they compute
test-quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 4 --dist worksteal -m "not slow and not cluster and not slurm and not browser and not fuse and not nfs and not gpu"

# the slow ones too; PyWake computes anew what the quick ones read from tests/data/pywake.json
test-compiled: $(VENV)/.installed-test
	LEEWARD_REFERENCES=recompute $(BIN)/python -m pytest -n 4 --dist worksteal -m "not cluster and not slurm and not browser and not fuse and not nfs and not gpu"

# five runs of the quick tests with eight runnable processes on this machine; interrupt it, and run it again to resume
test-under-load: $(VENV)/.installed-test
	$(BIN)/python tools/under_load.py --runs 5 --load 8

# one suite over all engines; Dask clusters on loopback and in network namespaces, whose parts are killed
test-cluster: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n 3 -m "cluster and not slurm"

# the engines on a real SLURM of three nodes, started by ci/slurm: needs root and Debian's packages, which it installs
test-slurm: $(VENV)/.installed-test
	ci/slurm/with $(BIN)/python -m pytest -n 4 --dist worksteal -m slurm

# the dashboard in a headless Chromium: Debian's packages, which it installs where it is root
test-browser: $(VENV)/.installed-test
	ci/browser/with $(BIN)/python -m pytest -n 2 --dist worksteal -m browser

# runs on a FUSE file system without locks and links: Debian's fuse3, which it installs where it is root
test-fuse: $(VENV)/.installed-test
	ci/fuse/with $(BIN)/python -m pytest -m fuse

# runs on a real NFS, in two machines that QEMU emulates (ci/nfs): Debian's packages; only installing QEMU needs root
test-nfs: $(VENV)/.installed-test
	ci/nfs/with $(BIN)/python -m pytest -v -p no:cacheprovider --color=no -m nfs tests/nfs

# the GPU's kernels on a real NVIDIA GPU, beside the CPU; needs the extra `gpu`
test-gpu: $(VENV)/.installed-test
	$(BIN)/python -m pytest -v -m gpu

# all that tests/faults can do: hours, an hour of soak among them; `make test-all` runs the short versions; interrupt it,
# and run it again to resume
faults: $(VENV)/.installed-test
	$(BIN)/python tools/faults.py --jobs 2

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
	$(BIN)/python benchmarks/wake_field.py

# one sample beside PyWake, and a study of 300: five minutes; LEEWARD_SHARED_DATA names the folder of the real sample
bench-study: $(VENV)/.installed-test
	$(BIN)/python benchmarks/study.py

bench-layout: $(VENV)/.installed-test
	$(BIN)/python benchmarks/layout.py

# the table of records, docs/records.md: an hour or more; interrupt it, and run it again to resume
bench-records: $(VENV)/.installed-test
	$(BIN)/python benchmarks/records.py --write

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

# a GPU beside the CPU of the same machine, and 3000 layouts of the built-in campaign: needs a GPU and the extra `gpu`
bench-gpu: $(VENV)/.installed-test
	$(BIN)/python benchmarks/gpu.py --store --compare 200

# commands with an empty cache, which compile first; BEFORE=revision compares with it
bench-start: $(VENV)/.installed
	$(BIN)/python benchmarks/start.py $(if $(BEFORE),--before $(BEFORE))

# docs/commands.md from the help texts of the commands, and from tools/commands.md
commands: $(VENV)/.installed
	$(BIN)/python tools/commands.py

# tests/data/pywake.json: PyWake's numbers for the tests that compare with it
references: $(VENV)/.installed-test
	LEEWARD_REFERENCES=write $(BIN)/python -m pytest -q tests/test_against_pywake.py tests/test_flow.py tests/test_gradient.py \
		tests/test_field_pywake.py tests/test_field_gradient.py

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
