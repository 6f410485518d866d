# make demo    simulate the rotary embedding's backward operator
# make test    lint, types and all quick tests
# make slow    the slow tests
# make check   what CI does: everything from a fresh clone, then from an installed wheel
# make accuracy  all published measurements (about half an hour of CPU), and docs/accuracy.md made anew
# make pyasc   the environment that `ascend-sim export` and its tests need, once, in the user's cache
# make mutants the mutation corpus: every flag, barrier, queue call, address and stride of the kernels changed in turn
# make clean   remove what the above made
#
# The first of them makes .venv and installs the project there; PYTHON=python3.12 chooses another Python.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test slow accuracy check compile pyasc clean
.DEFAULT_GOAL := test

demo: $(INSTALLED)
	$(BIN)/ascend-sim run rope_grad

test: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto

slow: $(INSTALLED)
	$(BIN)/pytest -n auto -m slow

accuracy: $(INSTALLED)
	$(BIN)/ascend-sim accuracy --save benchmarks/measured/results.json
	$(BIN)/python docs/generate.py

mutants: $(INSTALLED)
	$(BIN)/python tests/mutation/run.py

pyasc: $(INSTALLED)
	$(BIN)/ascend-sim export --setup

compile: $(INSTALLED)
	$(BIN)/python .ci/compile.py

check:
	bash .ci/run

clean:
	rm -rf ascend_sim/*.so ascend_sim__mypyc*.so ascend_sim/compiled.json
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage

# Editable: sources need no second installation, only a change of the dependencies does. (After a change of a compiled
# module everything runs from source: `make compile` compiles again.)
$(INSTALLED): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + "; choose one with: make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,tune]'
	touch $@
