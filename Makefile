# Every target makes its own environment; `make help` lists them.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: demo demo-cnn demo-llm up test test-slow test-slow-again test-images lint bench screenshots clean help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What pip says, warnings about locally configured indexes too, is worth reading only where it fails.
INSTALL_LOG := $(VENV)/install.log
# Tests that run at once. Those of the service mostly wait, so one more than the cores of a small machine.
JOBS ?= 3
PIP_FLAGS ?=

# Anything from 3.11 to 3.14 will do; 3.11 and 3.12 come first because Redis has a wheel for them.
FIND_PYTHON = for p in $(PYTHON) python3 python3.12 python3.11 python3.13 python3.14 python; do \
	  "$$p" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, $1))' 2>/dev/null && echo "$$p" && break; done

# Where an image turns it off, each process of the tests would compile each module anew.
unexport PYTHONDONTWRITEBYTECODE

$(STAMP): pyproject.toml constraints.txt
	@python=$$($(call FIND_PYTHON,13)); [ -n "$$python" ] || python=$$($(call FIND_PYTHON,15)); \
	if [ -z "$$python" ]; then echo "penstock needs Python 3.11 to 3.14: install one, or say make PYTHON=/path/to/python" >&2; exit 1; fi; \
	echo "installing into $(VENV) with $$python (a few minutes the first time)"; \
	[ -x $(BIN)/python ] || "$$python" -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e '.[stack,examples,dev]' \
	  >$(INSTALL_LOG) 2>&1 || { code=$$?; tail -n 30 $(INSTALL_LOG) >&2; \
	  echo "the installation failed; all that pip said is in $(INSTALL_LOG)" >&2; exit $$code; }
	@touch $@

demo: $(STAMP) ## a model becomes an explored, verified, packaged accelerator (out/demo)
	@$(BIN)/penstock demo

demo-cnn: $(STAMP) ## a small convolutional classifier, from training to its accuracy as an accelerator (out/demo-cnn)
	@$(BIN)/penstock demo --model examples/digits_cnn.py:model --platform u55c --evidence modelled --max-lanes 64 --trials 4 -o out/demo-cnn

demo-llm: $(STAMP) ## a small language model, trained on the spot, writes text on an emulated accelerator (out/demo-llm)
	@$(BIN)/penstock demo --text "The class " -o out/demo-llm

up: $(STAMP) ## start the whole service on this machine; Ctrl-C stops it
	@$(BIN)/penstock up --allow-python

test: $(STAMP) ## the fast tests, on real Postgres, Redis and Celery
	@$(BIN)/python -m pytest -q -m "not slow" -n $(JOBS) --dist worksteal

test-slow: $(STAMP) ## the long tests: chaos, whole runs, property tests at length
	@$(BIN)/python -m pytest -q -m slow -n $(JOBS) --dist worksteal --durations=25

test-slow-again: $(STAMP) ## the long tests that failed last time, one after the other
	@$(BIN)/python -m pytest -q -m slow -n 0 --last-failed --last-failed-no-failures none

test-images: $(STAMP) ## both Dockerfiles are built and their services tried: by a container engine, else as root with debootstrap
	@$(BIN)/python -m pytest -q tests/images --images -n 0 -rs

lint: $(STAMP) ## ruff and pyright
	@$(BIN)/ruff check .
	@$(BIN)/pyright

bench: $(STAMP) ## every benchmark, one JSON object each
	@$(BIN)/penstock bench --all --json

screenshots: $(STAMP) ## docs/pictures anew, from a running service: make screenshots LINK=$$(penstock login)
	@$(BIN)/python -m tests.web.screenshots "$(LINK)"

clean: ## remove the environment and everything that was generated
	@rm -rf $(VENV) out build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
