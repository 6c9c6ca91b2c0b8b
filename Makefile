# Each target sets up what it needs by itself; `make demo` and `make test` are the two to know.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test unit lsp-test real-model kernels-emulated wheel-test lint fix wheel bench bench-peers masks mask-peers keys abort start setup setup-tests
.PHONY: syntax-fuzz syntax-sanitized corpora model models e2e e2e-tools clean vsix extension-test

demo: setup
	@$(BIN)/python scripts/demo.py

test: setup-tests unit extension-test lsp-test kernels-emulated syntax-sanitized real-model wheel-test

unit: setup
	@echo "== unit tests (a minute or two)"
	@$(BIN)/python -m pytest -q

lsp-test: setup
	@echo "== the language server, as a process (about five minutes)"
	@$(BIN)/python -m pytest -q -m lsp

real-model: setup models
	@echo "== tests with the real model (about three minutes)"
	@$(BIN)/python -m pytest -q -m real_model --timeout 600

wheel-test: setup models
	@echo "== the wheel in a fresh environment (about a minute)"
	@$(BIN)/python -m pytest -q -m wheel --timeout 900

# Needs Chromium and npm, and 0.8 GB in build/e2e; screenshots and the logs of what failed are kept there.
e2e: e2e-tools vsix models
	@echo "== a real VS Code workbench in a headless browser (ten minutes)"
	@$(BIN)/python -m pytest -q -m e2e

e2e-tools: setup
	@$(BIN)/python scripts/e2e_tools.py

# All kernels on any machine: this one's as they are, AVX-VNNI, AVX-512 and AMX with their instructions emulated, NEON
# cross-built and run by qemu; what is built on them, and the thread pool. Under sanitizers.
kernels-emulated: setup-tests
	@echo "== kernels against the scalar ones, emulated where this machine lacks them, and the thread pool"
	@mkdir -p build
	@$(call build-kernel-tests,emulated)
	@$(call build-kernel-tests,aarch64,--toolchain $(CURDIR)/kernels/tests/aarch64.cmake)
	@build/emulated/tests/isa_test
	@build/emulated/tests/emulated/emulated_isa_test
	@qemu-aarch64 build/aarch64/tests/isa_test neon
	@build/emulated/tests/masked_test
	@build/emulated/tests/work_pool_test

# The syntax part under AddressSanitizer and UBSan: its own tests, and hostile texts through the built module.
syntax-sanitized: setup
	@echo "== the syntax part under sanitizers (four minutes)"
	@mkdir -p build
	@$(call build-kernel-tests,sanitized,-DTREEFILL_SANITIZED_SYNTAX=ON -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python)
	@build/sanitized/tests/syntax/syntax_test
	@$(BIN)/python scripts/fuzz --module build/sanitized/tests/syntax --slowness 20 --seconds 20

# Hostile texts through the acceptor, the matcher and the skeleton as they are installed. FUZZ="--language c --seconds 180".
syntax-fuzz: setup
	@$(BIN)/python scripts/fuzz $(FUZZ)

# Into build/$(1), quietly unless it fails.
build-kernel-tests = (cmake -S kernels -B build/$(1) -DCMAKE_BUILD_TYPE=Release $(2) && \
	cmake --build build/$(1) --parallel $$(nproc)) > build/$(1).log 2>&1 || (cat build/$(1).log; exit 1)

# The extension's own tests, and its package with the server's wheel in it: dist/treefill.vsix. Both need node and npm.
extension-test: vsix
	@echo "== the extension's unit tests (some seconds)"
	@cd extension && npm run --silent check && npm test --silent

vsix: setup
	@$(BIN)/python scripts/vsix.py

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(git ls-files 'kernels/*.cc' 'kernels/*.h')

fix: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/clang-format -i $$(git ls-files 'kernels/*.cc' 'kernels/*.h')

wheel: setup
	@$(BIN)/python -m pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist .
	@ls dist

bench: setup model
	@$(BIN)/treefill bench decode
	@$(BIN)/treefill bench prefill

# What `treefill bench --against` measures ours beside, in build/peers: both strong forms of llama.cpp. MODEL, JOBS.
bench-peers: setup model
	@$(BIN)/python scripts/peers.py

# Masks of the whole vocabulary, beside llguidance and xgrammar (fetched once by mask-peers). MASKS="--only c --json".
masks: setup model
	@$(BIN)/python -m bench.masks $(MASKS)

mask-peers: setup
	@$(BIN)/python scripts/peers.py masks

# More real files for `treefill eval validity` and `eval grammar`, in build/corpora. Needs apt and npm.
corpora: setup
	@$(BIN)/python scripts/corpora.py

# What a key costs through the whole server, 300 of them; and how soon a cancelled request stops.
keys: setup model
	@$(BIN)/treefill bench keystrokes

abort: setup model
	@$(BIN)/python bench/abort.py

start: setup model
	@$(BIN)/python bench/start.py

model: setup
	@$(BIN)/treefill model pull qwen2.5-coder-0.5b

# The tests also use a small model without fill-in-the-middle tokens.
models: model
	@$(BIN)/treefill model pull smollm2-135m

setup:
	@$(PYTHON) scripts/setup.py

setup-tests:
	@$(PYTHON) scripts/setup.py --tests

clean:
	rm -rf .venv build dist extension/node_modules extension/dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
