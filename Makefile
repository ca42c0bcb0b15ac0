# `make` films. `make test` runs the tests of every change, `make test-all` all tests. Each makes its
# virtual environments from the pinned requirements first.
PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip install --quiet --disable-pip-version-check
# Options for Snakemake: make ARGS='--config reaches=20'
ARGS ?=
# How many times the random trials of faults are repeated.
TIMES ?= 1

.PHONY: film test test-all faults lint docs tables

film: .venv/installed
	@$(BIN)/snakemake $(ARGS)

test: .venv/installed-for-tests
	$(BIN)/python -m pytest -n auto -m "not slow"

# Tests that need more than Python are skipped where it is missing, and say what to install. Debian:
# chromium chromium-driver faketime gstreamer1.0-plugins-bad gstreamer1.0-tools libegl1
# libgl1-mesa-dri libosmesa6 munge rsync slurm-wlm; and, built of their sources, Bento4 and JM, with
# MAX_NUM_SLICES raised to 2000.
test-all: .venv-cluster/installed .venv-train/installed .venv-lerobot/installed
	GOALREEL_FUZZ=full GOALREEL_FAULTS=$(TIMES) \
		$(BIN)/python -m pytest -p fault_table -n auto --ignore tests/training
	.venv-train/bin/python -m pytest -n auto tests/training tests/unit/policies \
		tests/unit/recorders/test_vec_video_recorder.py tests/workflow/test_card.py \
		tests/workflow/test_examples.py tests/workflow/test_lerobot.py tests/workflow/test_minari.py

# The trials of faults alone, with a table of their outcomes.
faults: .venv/installed-for-tests
	GOALREEL_FAULTS=$(TIMES) $(BIN)/python -m pytest -p fault_table -n auto tests/faults

lint: .venv/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

# The documentation as a site, in site/; a dead link fails.
docs: .venv-docs/installed
	.venv-docs/bin/mkdocs build -f docs/mkdocs.yml

# The tables and figures of README.md and docs/, from benchmarks/results.
tables:
	$(PYTHON) -m benchmarks.write_tables

.venv-docs/installed: requirements-docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP) -r requirements-docs.txt
	@touch $@

.venv/installed: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "PYTHON: $(PYTHON) is older than 3.11. Choose another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -r requirements.txt
	$(BIN)/python $(PIP) --no-deps -e .
	@touch $@

.venv/installed-for-tests: requirements-test.txt .venv/installed
	$(BIN)/python $(PIP) -r requirements-test.txt
	@touch $@

# Snakemake's plugins for clusters and object storage, and PyTorch: environments on top of .venv,
# whose packages they find by a path file.
.venv-cluster/installed: requirements-cluster-test.txt
.venv-train/installed: requirements-train-test.in requirements-train.in
.venv-cluster/installed .venv-train/installed: .venv/installed-for-tests
	$(PYTHON) -m venv $(@D)
	packages='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	$(BIN)/python -c "$$packages" > "$$($(@D)/bin/python -c "$$packages")/beneath.pth"
	$(@D)/bin/python $(PIP) -r $(filter %-test.txt %-test.in,$^)
	@touch $@

# LeRobot, whose reader a test of its data sets takes, if it is there; with PyTorch of its own.
.venv-lerobot/installed: requirements-lerobot-test.in
	$(PYTHON) -m venv .venv-lerobot
	.venv-lerobot/bin/python $(PIP) -r requirements-lerobot-test.in
	@touch $@

# The interpreter that plays Super Mario Bros, for collectors and for films: Python 3.11 or 3.12, for
# which there is a NumPy 1.26, and a C++ compiler for nes-py.
.venv-mario/installed: requirements-mario.txt
	$(PYTHON) -m venv .venv-mario
	.venv-mario/bin/python $(PIP) -r requirements-mario.txt
	@touch $@
