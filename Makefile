# The same commands as in the README, by name.

PYTHON = .venv/bin/python

.PHONY: setup run check test browser

setup: .venv/done

.venv/done: requirements.lock tests/requirements.lock torch-cpu.txt
	python3 -m venv .venv
	.venv/bin/pip install --no-deps -r tests/requirements.lock
	.venv/bin/pip install -r torch-cpu.txt
	touch .venv/done

run: setup
	.venv/bin/streamlit run app.py

check: setup
	$(PYTHON) -m tests fast

test: setup
	$(PYTHON) -m tests

browser: setup
	$(PYTHON) -m pytest tests/browser
