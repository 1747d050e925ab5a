# make app: install everything and start the dashboard. make check: quick tests. make test: all tests but the slow ones.
# make help lists the rest.

PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PORT ?= 8501
MINUTES ?= 10
# A notebook or server user may set CAPBIAS_HOME; the default is ./workspace.

# uv does in seconds what takes pip minutes. Where no wheel of uv can be had, pip does the same. Both check hashes.
UV := $(BIN)/uv pip
INSTALL = $$(test -x $(BIN)/uv && echo $(UV) install -q --python $(BIN)/python || echo $(BIN)/pip install -qq)
COMPILE = $(UV) compile -q --generate-hashes --python-version 3.11 --python-platform x86_64-unknown-linux-gnu \
  --custom-compile-command "make lock" $(UPGRADE)
# A test that hangs fails after five minutes and says where it was; one that no signal reaches ends its process, and the
# rest go on.
PYTEST := $(BIN)/python -m pytest --timeout 300 -o faulthandler_timeout=360 -o faulthandler_exit_on_timeout=true
# A file of tests per process, in the order of their names: else the browser tests, few and long, are left for the end.
TWO := -n 2 --dist loadfile --no-loadscope-reorder
# Where bytecode may not be written, every process compiles everything anew, and the tests take half as long again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help app install check quick test networks others slow fuzz format lint types wheel lock audit demo docs

help:
	@echo "make app     install everything and start the dashboard (PORT=8501)"
	@echo "make check   format, lint, types, and the quick tests, without browser and torch: a minute or two"
	@echo "make test    format, lint and every test that is not slow: some minutes"
	@echo "make slow    the tests that make test leaves out: kills, servers, full disks, networks, papers"
	@echo "make fuzz    many files that are nearly valid, to every reader of files (MINUTES=10)"
	@echo "make format  format the code and sort its imports"
	@echo "make wheel   build the wheel into dist/"
	@echo "make lock    pin what pyproject.toml names (UPGRADE=--upgrade for the newest)"
	@echo "make audit   list what is in an installation (CycloneDX), and what is known to be unsafe in it"
	@echo "make demo    make the demo data anew"
	@echo "make docs    write docs/metrics.md from the measures"

# The page is ready at once; where the workspace is empty it then loads the demo and measures it.
app: $(VENV)/installed
	@CAPBIAS_DEMO=1 $(BIN)/capbias app --port $(PORT)

install: $(VENV)/installed

check: lint
	@$(MAKE) --no-print-directory -j 2 types quick

quick:
	@$(PYTEST) $(TWO) -m "not slow and not long and not browser and not torch"

# Tests of networks are in a process of their own, so that one alone imports torch.
test: lint
	@$(MAKE) --no-print-directory -j 2 networks others

networks:
	@$(PYTEST) -m "torch and not slow"

others:
	@$(PYTEST) $(TWO) -m "not torch and not slow"

slow: $(VENV)/installed-dev
	$(BIN)/python -m pytest -m slow

# Memory is limited, so that a file that takes more than 1.5 GB fails too; pyarrow's allocator must not reserve most of it.
fuzz: $(VENV)/installed-dev
	@ulimit -d 1500000; export MIMALLOC_ARENA_EAGER_COMMIT=0; end=$$(( $$(date +%s) + 60 * $(MINUTES) )); while [ $$(date +%s) -lt $$end ]; do \
	  $(BIN)/python -m pytest tests/load/test_properties.py --hypothesis-profile=many --timeout 600 || exit 1; done

format: $(VENV)/installed-dev
	$(BIN)/ruff check -q --fix --exit-zero .
	$(BIN)/ruff format -q .
	$(BIN)/ruff check .

lint: $(VENV)/installed-dev
	@$(BIN)/ruff check -q .
	@$(BIN)/ruff format -q --check .

types: $(VENV)/installed-dev
	@$(BIN)/basedpyright

wheel: $(VENV)/tools
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel
	@ls -l dist/*.whl

# It fails where something is known to be unsafe, and not where nobody can be asked.
audit: $(VENV)/tools
	@mkdir -p dist
	@$(BIN)/uv tool run -q --from cyclonedx-bom cyclonedx-py requirements requirements.txt -o dist/capbias.cdx.json
	@$(BIN)/uv tool run -q pip-audit -r requirements.txt --require-hashes --disable-pip >dist/audit.txt 2>&1 \
	  || ! grep "^Found .* known vulnerabilit" dist/audit.txt || { cat dist/audit.txt; exit 1; }
	@echo "dist/capbias.cdx.json; $$(grep -c "could not be audited" dist/audit.txt) packages could not be checked; the others:"
	@head -1 dist/audit.txt

demo: $(VENV)/installed
	$(BIN)/python -m scripts.demo assets/demo

docs: $(VENV)/installed-dev
	$(BIN)/python -m scripts.make_docs

lock: $(VENV)/tools
	$(COMPILE) --group build -o requirements-build.txt
	$(COMPILE) pyproject.toml --extra all -o requirements.txt
	$(COMPILE) --group dev -c requirements.txt -o requirements-dev.txt

$(VENV)/bin/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/tools: requirements-build.txt | $(VENV)/bin/python
	@$(BIN)/pip install -qq --disable-pip-version-check --require-hashes --only-binary :all: -r requirements-build.txt \
	  || echo "uv cannot be had here; pip installs in its place."
	@touch $@

$(VENV)/installed: requirements.txt pyproject.toml $(VENV)/tools
	@echo "Installing capbias and what it needs: 6.5 GB, most of it PyTorch."
	@$(INSTALL) --require-hashes -r requirements.txt
	@$(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/installed-dev: requirements-dev.txt $(VENV)/installed
	@$(INSTALL) --require-hashes -r requirements-dev.txt
	@touch $@
