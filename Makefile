# Developers and CI run the same targets. Everything is made inside the checkout: .venv (tools and the
# installed package), .envs (an environment for each TensorFlow, for PyTorch, and for each Python that
# wheels are tried on), build, dist.

PYTHON ?= $(shell tools/find_python)
JOBS ?= $(shell tools/count_jobs)
SECONDS_EACH ?= 120
# The seed of the fuzzers' random numbers. With 0, each run has other ones.
FUZZ_SEED ?= 1
# The oldest TensorFlow. The README's test command installs the newest.
TENSORFLOW_VERSIONS ?= 2.15
# What passes arrays in and out.
NUMPY_TESTS := $(patsubst %,tests/python/test_%.py,block_shuffle dlpack encoding hostile_arrays loader \
  parse_example permutation picking_rows plan record_batch)
PYTHON_VERSIONS ?= 3.10 3.11 3.12 3.13 3.14
# The Pythons of pyproject.toml.
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14
# The cheap stages come first. The wheel is built once for everything after it. Of stages at once, one
# computes while another waits for a server or a download, or for the last of its tests.
CI_STAGES ?= lint+environments+cpp-test test types+test-programs+site test-tensorflow test-torch+test-tables+test-numpy test-oldest-python test-remote+test-ray sanitize+fuzz

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Recipes find the tools of .venv first, so they can name them as one would type them.
VENV := $(CURDIR)/.venv
export PATH := $(VENV)/bin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_RETRIES := 10
export PIP_DEFAULT_TIMEOUT := 60
export CMAKE_BUILD_PARALLEL_LEVEL := $(JOBS)
# Warnings are errors in everything that pip builds here.
export SKBUILD_CMAKE_DEFINE := TFRFAST_DEVELOPER=ON
# Without this, pip builds in a temporary folder, and builds everything again each time.
export SKBUILD_BUILD_DIR := build/wheel-{wheel_tag}

PACKAGED := pyproject.toml CMakeLists.txt README.md \
  $(shell find csrc tfrfast -type f ! -name '*.so' ! -path '*/__pycache__/*')
CPP_FILES = $$(find csrc tests benchmarks -name '*.h' -o -name '*.cpp' 2>/dev/null)

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' Makefile

## ---- environments and builds

.PHONY: env build wheel wheels-all sdist smoke-sdist
env: .venv/.installed ## .venv with the tools and the package in it

build: .venv/.installed ## After a change, rebuild what changed and install it

.venv/.tools: pyproject.toml
	@tools/need compiler python
	$(PYTHON) -m venv .venv
	pip install --quiet --upgrade pip
	pip install --quiet --group dev
	@touch $@

.venv/.installed: .venv/.tools $(PACKAGED)
	pip install --quiet --no-build-isolation '.[test]'
	@touch $@

wheel: dist/.built ## dist/tfrfast-*.whl for the Python of .venv

dist/.built: .venv/.tools $(PACKAGED)
	tools/build_wheel .venv/bin/python
	@touch $@

wheels-all: $(PYTHON_VERSIONS:%=smoke-%) ## A wheel for every Python found here, each tried

.PHONY: $(PYTHON_VERSIONS:%=smoke-%)
$(PYTHON_VERSIONS:%=smoke-%): smoke-%: .venv/.tools
	tools/smoke_wheel $*

.PHONY: wheels-release
wheels-release: .venv/.tools ## wheelhouse/*.whl as they are published, by cibuildwheel
	pip install --quiet --group release
	cibuildwheel --output-dir wheelhouse

sdist: .venv/.tools ## dist/tfrfast-*.tar.gz
	rm -f dist/tfrfast-*.tar.gz
	pyproject-build --sdist

smoke-sdist: sdist ## The sdist, built and tried in a fresh environment
	rm -rf .envs/sdist
	.venv/bin/python -m venv .envs/sdist
	.envs/sdist/bin/pip install --quiet dist/tfrfast-*.tar.gz
	.envs/sdist/bin/python -I tests/smoke.py

# Half of what pip does is waiting, and the rest keeps one processor busy.
.PHONY: environments
environments: .venv/.tools ## .envs/*, in which wheels are tested, several at a time
	$(MAKE) --jobs=$(JOBS) --output-sync=target \
	  $(patsubst %,.envs/%/.ready,$(TENSORFLOW_VERSIONS:%=tensorflow-%) torch ray remote tables oldest-numpy)

## ---- tests

.PHONY: test cpp-test cpp-test-emulated sanitize fuzz fuzz-long stress stress-threads test-tensorflow test-torch test-tables test-remote test-remote-oldest test-ray test-programs test-numpy test-oldest-python test-pythons bench report
# A test keeps one processor busy, or waits. So there is one process more than processors.
test test-tensorflow test-torch test-tables test-remote test-remote-oldest test-numpy test-oldest-python: export PYTEST_ADDOPTS := --numprocesses=$(shell expr $(JOBS) + 1) --dist=worksteal
test: .venv/.tools ## The README's test command
	pip install ".[test]" && pytest
	@touch .venv/.installed

cpp-test: cpp-test-dev ## C++ tests, debug build, with and without calls that only Linux has

sanitize: cpp-test-asan-ubsan cpp-test-tsan ## C++ tests under each sanitizer

CPP_PRESETS := dev release asan-ubsan tsan aarch64
.PHONY: $(CPP_PRESETS:%=cpp-build-%) $(CPP_PRESETS:%=cpp-test-%)
$(CPP_PRESETS:%=cpp-build-%): cpp-build-%: .venv/.tools
	@tools/need compiler doctest $(filter aarch64,$*) $(if $(filter asan-ubsan,$*),fuzzer)
	cmake --preset $* >/dev/null
	cmake --build --preset $*
$(CPP_PRESETS:%=cpp-test-%): cpp-test-%: cpp-build-%
	ctest --preset $* --parallel $(JOBS)

cpp-test-emulated: .venv/.tools ## The tests of each instruction set's kernels on CPUs that this one is not
	@tools/need compiler doctest aarch64
	for preset in dev aarch64; do \
	  cmake --preset $$preset >/dev/null && cmake --build --preset $$preset --target core_tests || exit; \
	done
	tools/test_emulated build/dev/tests/core/core_tests build/aarch64/tests/core/core_tests

fuzz: cpp-build-asan-ubsan ## Every fuzzer, with the same inputs in every run
	tools/run_fuzzers $(SECONDS_EACH) $(JOBS) $(FUZZ_SEED)

fuzz-long: ## Every fuzzer for SECONDS=... seconds, starting from what it learnt before
	@test -n "$(filter-out 0,$(SECONDS))" || { echo "say how long: make fuzz-long SECONDS=3600"; exit 2; }
	$(MAKE) fuzz SECONDS_EACH=$(SECONDS) FUZZ_SEED=0

stress: .venv/.installed ## Attacks on every road for SECONDS=600 seconds; SEED=... repeats a run, CELL=... chooses
	PYTHONPATH=$(CURDIR)/tests/support python tests/stress/attack.py \
	  --seconds $(or $(filter-out 0,$(SECONDS)),600) $(SEED:%=--seed %) $(if $(CELL),--cell "$(CELL)")

stress-threads: export SKBUILD_BUILD_DIR := build/stress-threads/cmake
stress-threads: export SKBUILD_INSTALL_STRIP := false
stress-threads: export SKBUILD_CMAKE_DEFINE := TFRFAST_SANITIZE=thread;CMAKE_CXX_FLAGS_RELEASE=-O1 -g1
stress-threads: .venv/.installed ## Threads, exits, forks under the thread sanitizer for SECONDS=600 seconds
	pip install --quiet --no-deps --no-build-isolation --upgrade --target build/stress-threads/site .
	python tests/stress/races.py build/stress-threads/site \
	  --seconds $(or $(filter-out 0,$(SECONDS)),600) $(SEED:%=--seed %)

test-tensorflow: wheel ## One wheel against the oldest TensorFlow; make test uses the newest
	$(MAKE) --jobs=$(JOBS) --output-sync=target $(TENSORFLOW_VERSIONS:%=test-tensorflow-%)

.PHONY: $(TENSORFLOW_VERSIONS:%=test-tensorflow-%)
$(TENSORFLOW_VERSIONS:%=test-tensorflow-%): test-tensorflow-%: .envs/tensorflow-%/.ready dist/.built
	tools/test_wheel .envs/tensorflow-$* tests/python/tensorflow test -m 'not newest'

.envs/tensorflow-%/.ready: .venv/.tools
	rm -rf .envs/tensorflow-$*
	.venv/bin/python -m venv .envs/tensorflow-$*
	.envs/tensorflow-$*/bin/pip install --quiet --upgrade pip
	.envs/tensorflow-$*/bin/pip install --quiet 'tensorflow==$*.*' obstore
	@touch $@

test-torch: .envs/torch/.ready dist/.built ## The wheel with PyTorch, torchdata, Lightning, Accelerate, JAX and Grain
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/torch tests/python/torch ''
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/torch tests/python/grain ''

test-tables: .envs/tables/.ready dist/.built ## The wheel with PyArrow, Polars, DuckDB and pandas, and in a browser
	@tools/need browser
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/tables tests/python/tables ''

test-remote: .envs/remote/.ready dist/.built ## The wheel with obstore, against servers of its own
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/remote tests/python/remote ''

test-remote-oldest: .envs/remote-oldest/.ready ## The same with the oldest obstore, on the oldest Python
	tools/build_wheel .envs/remote-oldest/bin/python
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/remote-oldest tests/python/remote ''

.envs/remote-oldest/.ready:
	rm -rf .envs/remote-oldest
	$$(tools/find_python 3.10) -m venv .envs/remote-oldest
	.envs/remote-oldest/bin/pip install --quiet --upgrade pip
	.envs/remote-oldest/bin/pip install --quiet 'obstore==0.12.0' 'moto[server]' boto3 numpy 'pytest>=9' pytest-xdist hypothesis
	@touch $@

# One process: Ray starts processes of its own. `make test-ray RAY_TESTS=` adds what takes a minute.
RAY_TESTS ?= -m 'not slow'
test-ray: .envs/ray/.ready .envs/torch/.ready dist/.built ## The wheel with Ray, on clusters of this machine alone
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/ray tests/python/ray '' $(RAY_TESTS)

.envs/ray/.ready: .venv/.tools
	rm -rf .envs/ray
	.venv/bin/python -m venv .envs/ray
	.envs/ray/bin/pip install --quiet --upgrade pip
	.envs/ray/bin/pip install --quiet 'ray[data,train]' numpy 'pytest>=9' hypothesis
	# An example needs PyTorch, which is large, and takes that of the other environment.
	ls -d $(CURDIR)/.envs/ray/lib/python*/site-packages | sed 's|/.envs/ray/|/.envs/torch/|' \
	  > "$$(ls -d .envs/ray/lib/python*/site-packages)/torch.pth"
	@touch $@

test-programs: .envs/programs/.ready .envs/torch/.ready dist/.built ## The wheel under programs of others: TensorFlow Datasets, seqio
	TFRFAST_SKIP_NOTHING=1 tools/test_wheel .envs/programs tests/python/programs ''

.envs/programs/.ready: .venv/.tools | .venv/.installed
	rm -rf .envs/programs
	.venv/bin/python -m venv .envs/programs
	# TensorFlow is large, and taken from .venv.
	ls -d $(CURDIR)/.venv/lib/python*/site-packages > "$$(ls -d .envs/programs/lib/python*/site-packages)/tensorflow.pth"
	.envs/programs/bin/pip install --quiet --ignore-installed --no-deps pytest
	.envs/programs/bin/pip install --quiet tensorflow-datasets importlib_resources seqio
	# PyTorch is that of the other environment.
	ls -d $(CURDIR)/.envs/programs/lib/python*/site-packages | sed 's|/.envs/programs/|/.envs/torch/|' \
	  > "$$(ls -d .envs/programs/lib/python*/site-packages)/torch.pth"
	@touch $@

.envs/remote/.ready: .venv/.tools
	rm -rf .envs/remote
	.venv/bin/python -m venv .envs/remote
	.envs/remote/bin/pip install --quiet --upgrade pip
	.envs/remote/bin/pip install --quiet obstore 'moto[server]' boto3 numpy 'pytest>=9' pytest-xdist hypothesis
	@touch $@

.envs/tables/.ready: .venv/.tools
	rm -rf .envs/tables
	.venv/bin/python -m venv .envs/tables
	.envs/tables/bin/pip install --quiet --upgrade pip
	.envs/tables/bin/pip install --quiet pyarrow polars duckdb pandas websocket-client 'pytest>=9' pytest-xdist hypothesis
	@touch $@

.envs/torch/.ready: .venv/.tools tools/install_torch
	rm -rf .envs/torch
	.venv/bin/python -m venv .envs/torch
	tools/install_torch .envs/torch
	@touch $@

test-numpy: .envs/oldest-numpy/.ready dist/.built ## The wheel with the oldest NumPy; make test uses the newest
	tools/test_wheel .envs/oldest-numpy tests/python/test_reader.py '' $(NUMPY_TESTS) -m 'not slow'

.envs/oldest-numpy/.ready: .venv/.tools
	rm -rf .envs/oldest-numpy
	.venv/bin/python -m venv .envs/oldest-numpy
	.envs/oldest-numpy/bin/pip install --quiet --upgrade pip
	.envs/oldest-numpy/bin/pip install --quiet --group oldest-numpy
	@touch $@

test-oldest-python: .envs/oldest-python/.ready ## Import, boundary, reader and argument tests on the oldest Python
	tools/build_wheel .envs/oldest-python/bin/python
	tools/test_wheel .envs/oldest-python tests/python/test_reader.py '' tests/python/test_import.py \
	  tests/python/test_boundary.py tests/python/test_hostile_arguments.py -m 'not slow'

.envs/oldest-python/.ready:
	rm -rf .envs/oldest-python
	$$(tools/find_python 3.10) -m venv .envs/oldest-python
	.envs/oldest-python/bin/pip install --quiet --upgrade pip
	.envs/oldest-python/bin/pip install --quiet numpy 'pytest>=9' pytest-xdist hypothesis
	@touch $@

test-pythons: $(PYTHONS:%=test-python-%) ## The README's test command on each Python, some minutes for each
.PHONY: $(PYTHONS:%=test-python-%)
$(PYTHONS:%=test-python-%): test-python-%:
	$$(tools/find_python $*) -m venv .envs/python-$*
	PATH="$(CURDIR)/.envs/python-$*/bin:$$PATH" && pip install ".[test]" && pytest

bench: .venv/.installed ## Python benchmarks; results depend on the machine
	pip install --quiet --no-build-isolation '.[bench]'
	pytest benchmarks

report: .venv/.installed ## docs/benchmarks.md, measured here beside all of benchmarks/requirements.txt
	pip install --quiet --requirement benchmarks/requirements.txt
	python benchmarks/report.py

## ---- form

.PHONY: lint types site format tidy
lint: .venv/.tools ## Style, formatting and the layer rule
	ruff check
	ruff format --check
	clang-format --dry-run --Werror $(CPP_FILES)
	python tools/check_layers.py

types: .venv/.installed ## mypy --strict, truth tests, the native stub against the module, the typing corpus
	mypy
	mypy tests/typing tools
	python tools/check_truth.py
	tools/check_stub
	pyright --pythonpath .venv/bin/python

site: .envs/site/.ready ## The documentation site in build/site; a broken link is an error
	.envs/site/bin/python tools/packing_picture.py
	NO_MKDOCS_2_WARNING=1 .envs/site/bin/mkdocs build --strict --quiet

# The site is made of the sources alone: nothing is compiled, and no framework is installed.
.envs/site/.ready: pyproject.toml
	rm -rf .envs/site
	$(PYTHON) -m venv .envs/site
	.envs/site/bin/pip install --quiet --upgrade pip
	.envs/site/bin/pip install --quiet --group docs
	@touch $@

format: .venv/.tools ## Rewrite files the way lint wants them
	ruff check --fix
	ruff format
	clang-format -i $(CPP_FILES)

tidy: .venv/.tools ## clang-tidy over the C++ sources
	@tools/need compiler doctest
	cmake --preset dev >/dev/null
	find csrc/core csrc/tensorflow tests/core tests/tensorflow_ops -name '*.cpp' -print0 | \
	  xargs -0 -n 1 -P $(JOBS) clang-tidy --quiet -p build/dev

## ---- all of it

.PHONY: ci clean
ci: ## Everything a change must pass, with the time each stage took
	@tools/run_stages $(CI_STAGES)

clean: ## Remove everything that was made here
	rm -rf .venv .envs build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks
