# `make` films, `make test` runs the tests of every change, and `make test-all` runs all tests. Each
# first makes its virtual environments from envs/locks.
PYTHON ?= python3
BIN := .venv/bin
PIP := -m pip install --quiet --disable-pip-version-check
# Options for Snakemake: make ARGS='--config reaches=20'. Options for uv: make locks ARGS=--upgrade
ARGS ?=
# Number of random trials per fault.
TIMES ?= 1

.PHONY: film test test-all lint docs update-tables locks

film: .venv/installed
	@$(BIN)/snakemake $(ARGS)

test: .venv/installed-for-tests
	$(BIN)/python -m pytest -n auto -m "not slow"

# pytest skips tests whose system packages are missing, and names these. On Debian: chromium
# chromium-driver faketime libegl1 libgl1-mesa-dri libosmesa6 munge rsync slurm-wlm.
test-all: .venv-cluster/installed .venv-train/installed .venv-lerobot/installed
	GOALREEL_FUZZ=full GOALREEL_FAULTS=$(TIMES) \
		$(BIN)/python -m pytest -n auto --ignore tests/training
	.venv-train/bin/python -m pytest -n auto tests/training tests/unit/policies \
		tests/unit/recorders/test_vec_video_recorder.py tests/unit/recorders/test_trackers.py \
		tests/unit/environments/test_pettingzoo_env.py \
		tests/workflow/test_model_card.py \
		tests/workflow/test_examples.py tests/workflow/test_minari.py

lint: .venv/installed-for-tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile
	$(BIN)/snakemake --lint

# Build the documentation in site/. A dead link is an error.
docs: .venv-docs/installed
	.venv-docs/bin/mkdocs build -f docs/mkdocs.yml

# Write the tables and figures of benchmarks/results into README.md and docs/.
update-tables:
	$(PYTHON) -m benchmarks.write_tables

# Pin the packages of pyproject.toml in envs/locks, with hashes, by uv. Fitting versions stay.
LOCK = uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	--generate-hashes $(ARGS)
locks:
	$(LOCK) pyproject.toml -o envs/locks/run.txt
	$(LOCK) pyproject.toml --extra cluster -o envs/locks/cluster.txt
	$(LOCK) pyproject.toml --extra mario -c envs/locks/run.txt -o envs/locks/mario.txt
	$(LOCK) --no-deps --group rom -o envs/locks/rom.txt
	$(LOCK) pyproject.toml --extra train -c envs/locks/run.txt -o envs/locks/train.txt
	$(LOCK) pyproject.toml --group bench -o envs/locks/bench.txt
	$(LOCK) pyproject.toml --group test -c envs/locks/run.txt -o envs/locks/test.txt
	$(LOCK) pyproject.toml --extra cluster --group cluster-test -c envs/locks/cluster.txt \
		-o envs/locks/cluster-test.txt
	$(LOCK) --group docs -o envs/locks/docs.txt

.venv-docs/installed: envs/locks/docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/python $(PIP) -r $<
	@touch $@

.venv/installed: envs/locks/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "PYTHON: $(PYTHON) is older than 3.11. Choose another: make PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP) -r $<
	$(BIN)/python $(PIP) --no-deps -e .
	@touch $@

.venv/installed-for-tests: envs/locks/test.txt envs/locks/rom.txt .venv/installed
	$(BIN)/python $(PIP) -r $<
	$(BIN)/python $(PIP) --no-deps -r envs/locks/rom.txt
	@touch $@

# Environments with Snakemake's plugins for clusters and object storage, and with PyTorch. A path file
# adds the packages of .venv.
.venv-cluster/installed: envs/locks/cluster-test.txt
.venv-cluster/installed: PACKAGES := -r envs/locks/cluster-test.txt
.venv-train/installed: PACKAGES := 'goalreel[train]' --group train-test
.venv-cluster/installed .venv-train/installed: .venv/installed-for-tests pyproject.toml
	$(PYTHON) -m venv $(@D)
	packages='import sysconfig; print(sysconfig.get_path("purelib"))'; \
	$(BIN)/python -c "$$packages" > "$$($(@D)/bin/python -c "$$packages")/beneath.pth"
	$(@D)/bin/python $(PIP) 'pip>=25.1'  # the first version with groups
	$(@D)/bin/python $(PIP) $(PACKAGES)
	@touch $@

# An environment with LeRobot and its own PyTorch, for the test of an example.
.venv-lerobot/installed: pyproject.toml
	$(PYTHON) -m venv .venv-lerobot
	.venv-lerobot/bin/python $(PIP) 'pip>=25.1'
	.venv-lerobot/bin/python $(PIP) --group lerobot-test
	@touch $@
