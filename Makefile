# make report · make test · make lab · make figures · make readme · make bench · make faults        PROFILE=smoke|demo|full
PROFILE ?= demo
PYTHON  ?= python3
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready

.PHONY: report test lab figures readme bench faults setup clean
.DEFAULT_GOAL := report

report: setup            ## run the notebooks and make reports/$(PROFILE)/report.html
	$(BIN)/rtx report --profile $(PROFILE)

test: setup              ## every test, three files at a time: they wait for other processes as often as they compute
	$(BIN)/ruff check
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

lab: setup               ## JupyterLab on notebooks/, with this environment as its kernel
	$(BIN)/jupyter lab --notebook-dir=notebooks \
	  --ServerApp.kernel_spec_manager_class=rtxstudy.report.notebooks.RunningInterpreter

figures: setup           ## draw every figure again from the published tables; nothing is trained
	$(BIN)/rtx report --profile $(PROFILE) --no-training

readme: setup            ## the generated parts of README.md and docs/findings.md, and the drawing
	$(BIN)/python -m rtxstudy.readme

bench: setup             ## compare speeds → a table and reports/benchmarks.json; an hour and a quarter on two quiet cores
	$(BIN)/python -m benchmarks

faults: setup            ## kill, starve and feed the command → a table and reports/faults.json; one to two hours on two cores
	$(BIN)/python -m tests.faults

setup: $(READY)

# Two calls of make wait for each other. The next call finishes an interrupted install. On a Linux machine without an NVIDIA
# card, TORCH_INDEX selects PyTorch's CPU build, which is gigabytes smaller (see the README).
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "Python's venv module is missing. On Debian or Ubuntu: sudo apt install python3-venv"; exit 1; }
	@command -v flock >/dev/null 2>&1 && exec 9>.venv.lock && flock 9; \
	  test $(READY) -nt pyproject.toml -a $(READY) -nt constraints.txt 2>/dev/null && exit 0; \
	  echo "Installing into $(VENV); this takes a few minutes the first time." && \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH_INDEX) -c constraints.txt torch && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]' && \
	  touch $(READY)

clean:
	rm -rf $(VENV) .venv.lock
