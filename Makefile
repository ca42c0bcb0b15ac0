# `make` films, `make test` tests. Both make .venv from the pinned requirements first.
PYTHON ?= python3
BIN := .venv/bin
# Options for Snakemake: make ARGS='--config reaches=20'
ARGS ?=
TIMES ?= 1

.PHONY: film test test-training faults lint

film: .venv/installed
	@$(BIN)/snakemake $(ARGS)

test: .venv/installed-for-tests
	$(BIN)/python -m pytest -n auto

# The tests of training once more, with what it takes beside; without it most of them are skipped.
test-training: .venv-train/installed
	.venv-train/bin/python -m pytest -n auto tests/training

# All of tests/faults, and a table of what came of each fault, after a hundred thousand bad inputs;
# TIMES=3 makes three times as many random trials of faults.
faults: .venv/installed-for-tests
	GOALREEL_FUZZ=full $(BIN)/python -m pytest -n auto tests/fuzz
	GOALREEL_FAULTS=$(TIMES) $(BIN)/python -m pytest -p fault_table -n auto tests/faults

lint: .venv/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile rules
	$(BIN)/snakemake --lint

.venv/installed: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "goalreel needs Python 3.11 or newer; choose one: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

.venv/installed-for-tests: requirements-test.txt .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	@touch $@

# Snakemake's plugins for clusters and object storage, and what training takes, for the tests of
# these alone: each on top of .venv, which it sees by a path file.
.venv-cluster/installed: requirements-cluster-test.txt
.venv-train/installed: requirements-train-test.in requirements-train.in
.venv-cluster/installed .venv-train/installed: .venv/installed-for-tests
	$(PYTHON) -m venv $(@D)
	packages='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	$(BIN)/python -c "$$packages" > "$$($(@D)/bin/python -c "$$packages")/beneath.pth"
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -r $(filter %-test.txt %-test.in,$^)
	@touch $@

# The interpreter of collectors that play Super Mario Bros, Python 3.11 or 3.12, for which there is
# a NumPy 1.26; nes-py is compiled, by a C++ compiler.
.venv-mario/installed: requirements-mario.txt
	$(PYTHON) -m venv .venv-mario
	.venv-mario/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-mario.txt
	@touch $@
