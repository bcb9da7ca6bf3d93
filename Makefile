# `make demo` and `make test` work in a fresh clone with Python 3.11 and a C++ compiler.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two workers are enough for a laptop or a CI machine; `make test JOBS=8` uses more.
JOBS ?= 2
# The tests start the tool some hundred times: its modules are compiled once, whatever the caller's environment says.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-all lint types unit bench papers fuzz mutants docs wheel clean

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

$(VENV)/.installed-mutants: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[mutants]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

demo: $(VENV)/.installed
	$(MAKE) --no-print-directory -C examples run-matmul METAFORK=../$(BIN)/metafork
	@echo "the decision tree is drawn in build/examples/matmul/out/matmul.tree.svg"

# Types are checked beside the tests: mypy keeps one processor busy for a minute.
test: lint
	$(MAKE) --no-print-directory -j 2 types unit

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/.installed-test
	$(BIN)/mypy

unit: $(VENV)/.installed-test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "not slow"

# What `make test` leaves out: all of what it samples, and long random runs.  TESTS names a part; EIGHTH takes one eighth,
# UNTIL starts no test after a time (seconds since 1970).
test-all: $(VENV)/.installed-test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m slow \
	  $(if $(EIGHTH),--eighth $(EIGHTH)) $(if $(UNTIL),--until $(UNTIL)) $(TESTS)

# Figures for bench/results; times need a quiet machine, counts of instructions need nvcc.
bench: $(VENV)/.installed-test
	$(BIN)/python bench/optimize.py
	$(BIN)/python bench/instructions.py

# The tables of docs/papers.md that need no GPU; bench/device.sh makes the others.
papers: $(VENV)/.installed-test
	$(BIN)/python bench/paper.py --write
	$(BIN)/python bench/gpucc.py --small
	$(BIN)/python bench/executed.py --suites --write
	$(BIN)/python bench/shuffle.py --write
	$(BIN)/python bench/swizzle.py --write
	$(BIN)/python bench/swizzle.py --naive --write
	$(BIN)/python bench/moves.py --write
	$(BIN)/python bench/swizzle.py --transposes 64

# Random programs, verified without end, others each time; failures are kept under build/fuzz.  `make fuzz BATCH=20000`
# only compares the leaves of so many programs with the serial elision, many programs a build; START takes the seed that
# a run printed; COUNT, MINUTES and JOBS as well.
# `.venv/bin/python -m tests.random_programs.reducing build/fuzz/random_N.mf` makes a finding small.
fuzz: $(VENV)/.installed-test
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m tests.random_programs.fuzz \
	  $(if $(START),--start $(START)) $(if $(COUNT),--count $(COUNT)) \
	  $(if $(BATCH),--batch $(BATCH) --jobs $(JOBS)) $(if $(MINUTES),--minutes $(MINUTES))

# Small faults in Python and in the C headers, and whether a test notices each; MINUTES bounds it.
mutants: $(VENV)/.installed-mutants
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python bench/mutants.py --jobs $(JOBS) --resume $(if $(MINUTES),--minutes $(MINUTES))

# The pages of docs/ as a site: open build/site/index.html.
docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs build --strict --clean

# The wheel, and a test that it works without the sources: build/wheel/metafork-VERSION-py3-none-any.whl.
wheel:
	rm -rf build/lib build/wheel
	$(PYTHON) -m venv build/wheel/venv
	build/wheel/venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w build/wheel .
	build/wheel/venv/bin/python -m pip install --quiet --disable-pip-version-check build/wheel/*.whl
	cd build/wheel && venv/bin/metafork check ../../examples/*.mf

clean:
	rm -rf build $(VENV) *.egg-info
