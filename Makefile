# make app: install everything and open the dashboard. make test: install what tests need and run them all.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
# A notebook or server user may set CAPBIAS_HOME; the default is ./workspace.

.PHONY: app test slow lint lock demo

app: $(VENV)/installed
	$(BIN)/python -m capbias_core demo --if-empty
	$(BIN)/streamlit run app.py --server.port $(PORT)

test: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

slow: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m slow

demo: $(VENV)/installed
	$(BIN)/python -m capbias_core.load.demo assets/demo

lock: $(VENV)/installed-dev
	(echo "# Every package of a fresh install on Linux with Python 3.11, tests included; written by: make lock"; \
	  $(BIN)/pip freeze) > requirements.lock

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: requirements.txt requirements.lock | $(VENV)/bin/python
	@echo "Installing capbias: about two minutes."
	@$(BIN)/pip install -qq -r requirements.txt
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	@$(BIN)/pip install -qq -r requirements-dev.txt
	@touch $@
