# What a fresh machine needs: Python 3.10 to 3.13 with pip, and make. Everything else is installed below this folder.

PYTHON ?= python3
UV_VERSION := 0.13.9
UV := .tools/bin/uv

# scikit-image is here for one picture; what it computes with stays out (scipy is what scikit-learn needs, in tests).
SYNC := sync --locked --no-install-package networkx --no-install-package imageio \
	--no-install-package tifffile --no-install-package lazy-loader
# Installed by pip, which takes a build for the CPU where it is told of one; without (TORCH=) its tests are skipped.
TORCH ?= torch==2.13.0
LOCK := pyproject.toml dropin/pyproject.toml uv.lock

# Stamps lie in what they vouch for and name the version of Python: another one makes the environment anew.
VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
TOOLS_STAMP := .tools/.uv-$(UV_VERSION)
DEMO_STAMP := .venv/.demo-$(VERSION)
DEV_STAMP := .venv/.dev-$(VERSION)

export UV_PROJECT_ENVIRONMENT := .venv

.DEFAULT_GOAL := help
.PHONY: help demo test test-tensorflow lint types bench setup clean python

help: ## show this text
	@awk -F ': ## ' '/^[a-z-]+: ## / { printf "  make %-15s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "PYTHON=python3.12 make … chooses the Python of the environment (3.10 to 3.13)."

demo: ## serve a real ImageNet model and ask it what a picture shows (DEMO=once ends after the answer, PORT=8080)
demo: $(DEMO_STAMP)
	@.venv/bin/python -m examples.imagenet.demo

test: ## everything that must hold before a commit: lint, types and all tests
test: lint types
	.venv/bin/pytest -n 4

test-tensorflow: ## the tests of TensorFlow's runtime, in an environment of their own (1.4 GB)
test-tensorflow: $(TOOLS_STAMP)
	@UV_PROJECT_ENVIRONMENT=.cache/tensorflow $(UV) $(SYNC) --quiet \
		--python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --extra tensorflow --extra mxnet --group dev
	.cache/tensorflow/bin/pytest tests/runtimes/test_tensorflow.py

lint: ## ruff's rules and its format
lint: $(DEV_STAMP)
	.venv/bin/ruff check
	.venv/bin/ruff format --check

types: ## mypy, strict, source and tests
types: $(DEV_STAMP)
	.venv/bin/mypy

bench: ## measure throughput and latency on this machine
bench: $(DEV_STAMP)
	.venv/bin/python -m bench

setup: ## make the environment of tests and benchmarks in .venv
setup: $(DEV_STAMP)

clean: ## remove all that the other targets made
	rm -rf .venv .tools .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

python:
	@$(if $(filter 3.10 3.11 3.12 3.13,$(VERSION)),:,echo "Python 3.10 to 3.13 is needed, and $(PYTHON) is \
	$(or $(VERSION),not there): choose another as in make PYTHON=python3.12 …" >&2; exit 1)

$(TOOLS_STAMP): | python
	@echo "Installing uv $(UV_VERSION) into .tools"
	@rm -rf .tools
	@PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore \
		$(PYTHON) -m pip install --quiet --target .tools "uv==$(UV_VERSION)"
	@touch $@

# --inexact: the demo takes nothing away that tests and benchmarks need.
$(DEMO_STAMP): $(TOOLS_STAMP) $(LOCK) | python
	@$(UV) $(SYNC) --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --inexact --no-install-package scipy \
		--extra mxnet --group demo
	@touch $@

$(DEV_STAMP): $(TOOLS_STAMP) $(LOCK) | python
	@$(UV) $(SYNC) --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --all-extras --no-extra torch \
		--no-extra tensorflow --group dev --group demo
	@$(if $(TORCH),PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore .venv/bin/pip install --quiet --no-warn-conflicts "$(TORCH)")
	@touch $@ $(DEMO_STAMP)
