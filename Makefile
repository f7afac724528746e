# `make demo` runs a pipeline on both orchestrators, on this machine. `make test` checks everything.
SHELL := /bin/sh
BIN := .venv/bin
NODE := $(shell command -v node 2>/dev/null)
# An environment does not survive a move of the checkout, nor the removal of its interpreter.
USABLE := $(shell [ -x .venv/bin/python ] && [ "$$(cat .venv/.home 2>/dev/null)" = "$$(pwd -P)" ] && echo yes)

# What `make test` runs pytest with; `make test PYTEST_ARGS="-x -k planner"`.
# In the order of the folders, so that the files of single long tests don't come last.
PYTEST_ARGS ?= -q -n auto --dist loadfile --no-loadscope-reorder
# What `make test-fast` runs: the rooms that need neither a server nor Airflow.
FAST := $(addprefix tests/,backends catalog checks cleanup expressions importing lint performances pipeline planning \
  pricing stages strategies) $(wildcard tests/test_*.py)
# What `make render` writes to statemachines/: names of pipelines in dags/.
PIPELINES ?= digits llm_fsx

# These belong to somebody's shell, and would slow down or redirect what happens in .venv.
unexport PYTHONDONTWRITEBYTECODE PYTHONPATH PYTHONHOME VIRTUAL_ENV
unexport PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV

.DEFAULT_GOAL := help
.PHONY: FORCE help setup setup-mpi setup-chromium setup-tensorflow setup-cdk demo test test-fast test-thorough test-sdk test-airflow-versions test-python-versions test-installation test-faults laws check fmt render docs pictures constraints build clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## */\t/' | expand -t 18

setup: .venv/.installed $(if $(NODE),tools/asl/node_modules/.installed)  ## make .venv and install the validators

.venv/.installed: pyproject.toml constraints.txt tools/venv.sh $(if $(USABLE),,FORCE)
	@tools/venv.sh

FORCE:

tools/asl/node_modules/.installed: tools/asl/package.json tools/asl/package-lock.json
	@echo "Installing the public validators (node)"
	@cd tools/asl && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

demo: .venv/.installed  ## run a pipeline on both orchestrators against the embedded AWS
	@$(BIN)/orchestrate demo

check: setup  ## formatting, lint, types and the floors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tools.typed
	$(BIN)/lint-imports

test: check  ## everything that must hold
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not thorough"

test-thorough: setup  ## further ways to the same ends, which `make test` leaves out for their time
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m thorough

test-fast: .venv/.installed  ## the core without servers: under a minute on two cores
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not slow" $(FAST)

laws: .venv/.installed  ## try the planner's laws on 60,000 predictions
	LAWS_CONFIGURATIONS=2000 $(BIN)/python -m pytest -q tests/planning/cost/test_laws.py

fmt: .venv/.installed  ## format and mend what can be mended
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

render: .venv/.installed  ## write statemachines/*.asl.json, dags/*.lock.json and the table of errors again
	@set -e; for pipeline in $(PIPELINES); do \
	  $(BIN)/orchestrate lock "dags/$$pipeline.yaml"; \
	  $(BIN)/orchestrate render step-functions "dags/$$pipeline.yaml" \
	    -o "statemachines/$$pipeline.asl.json"; \
	  $(BIN)/orchestrate render companion "dags/$$pipeline.yaml" \
	    -o "statemachines/$$pipeline.companion.asl.json"; \
	done
	@$(BIN)/python -m tools.docs.errors

test-sdk: test-sdk-v2 test-sdk-v3  ## compare with the SageMaker Python SDK, V2 and V3, each in an environment of its own

test-sdk-%:
	@tools/sdk_venv.sh tests/sdk/requirements-$*.txt .venv-sdk-$*
	@.venv-sdk-$*/bin/python -m pytest tests/sdk -q

test-airflow-versions: .venv/.installed  ## run the DAG tests on the versions of Airflow that platforms have
	@$(BIN)/python -m tools.airflow_versions $(AIRFLOW_VERSIONS_ARGS)

test-python-versions: .venv/.installed  ## import, render, parse and run on the other versions of Python that are here
	@$(BIN)/python -m tools.python_versions $(PYTHON_VERSIONS_ARGS)

test-installation: .venv/.installed  ## kill, clear and mark on a whole Airflow with PostgreSQL (long)
	@$(BIN)/python -m pip install -q -r tools/installation/requirements.txt
	@$(BIN)/python -m tools.installation $(INSTALLATION_ARGS)

test-faults: .venv/.installed  ## every fault at every call of a pipeline, on every driver; writes the table
	@$(BIN)/python -m tests.faults $(FAULTS_ARGS)

docs: .venv/.installed  ## build the documentation as a site in build/site; fails at any warning
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --editable ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

pictures: .venv/.installed  ## draw the pictures of the documentation anew: a run in Airflow, in Chromium
	@$(BIN)/python -m tools.docs.pictures

setup-mpi: .venv/.installed  ## install Open MPI and sshd, for jobs over mpirun (Debian, as root)
	@tools/mpi_setup.sh

setup-chromium:  ## install Chromium, for the test that opens a plan's report (Debian, as root)
	apt-get -q install -y --no-install-recommends chromium

setup-tensorflow:  ## make .venv-tensorflow, for tests that run TensorFlow's container (2 GB)
	@tools/tensorflow_venv.sh

setup-cdk: .venv/.installed  ## make .venv-cdk, for the test that takes templates into CDK (450 MB, needs node)
	@$(BIN)/python -m venv .venv-cdk
	@echo '*' > .venv-cdk/.gitignore
	@.venv-cdk/bin/python -m pip install -q --disable-pip-version-check aws-cdk-lib==2.275.0

constraints:  ## resolve every dependency afresh and pin it
	@tools/constraints.sh

build: .venv/.installed  ## make the wheel and the source distribution
	$(BIN)/hatchling build -d dist

clean:  ## remove what these targets made
	rm -rf .venv .venv-airflow-* .venv-python-* .venv-sdk-v2 .venv-sdk-v3 .venv-tensorflow .venv-cdk dist build tools/asl/node_modules .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache
	find orchestration tests -name __pycache__ -type d -prune -exec rm -rf {} +
