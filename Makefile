# The two commands of a newcomer are `make demo` and `make test`. Everything runs in .venv, which `make setup` prepares.

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c 'import sys, ensurepip, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV := .venv
# A venv works only in the folder that it was made in. The stamp's name contains that folder, so `make setup` replaces the
# venv of a clone that was moved or copied.
COMPLETE := .complete-$(shell pwd | cksum | cut -d ' ' -f 1)
STAMP := $(VENV)/$(COMPLETE)
RUN := $(VENV)/bin/
LINKS := tests/aws/test_g20_links.py tests/aws/test_parted_uploads.py
SYNTHESIZED := $(addprefix build/synth/,dev staging prod)
# A proxy that inspects TLS has its certificate in the system's store, which uv does not read by default.
export UV_SYSTEM_CERTS := 1
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 $(RUN)python -m pip --quiet --no-input

# `make PYTHON=...` replaces a venv of another Python.
WHICH := import sys; print(sys.base_prefix, *sys.version_info[:2])
ifeq ($(origin PYTHON),command line)
ifneq ($(shell $(PYTHON) -c '$(WHICH)'),$(shell $(RUN)python -c '$(WHICH)' 2>/dev/null))
$(shell rm -rf $(VENV))
endif
endif

.PHONY: help setup demo test specification checks sbom guarantees mutants mutants-core e2e runtimes versitygw bench programs bench-peers bench-taps docs generate lock build/functions $(SYNTHESIZED)

help: ## What there is to make
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1 /p' $(MAKEFILE_LIST) | awk '{printf "  %s %-10s ", $$1, $$2; $$1 = $$2 = ""; print}'

setup: $(STAMP) ## Prepare .venv: locked dependencies and this package, editable

$(STAMP): requirements/dev.txt pyproject.toml
	@rm -f $(VENV)/.complete-*
	@$(RUN)pip --version 2>/dev/null | grep -qF "$$(pwd)/$(VENV)/" || { \
		test -n "$(PYTHON)" || { \
			echo "make setup: no Python 3.11 to 3.14 with venv and ensurepip on the PATH." >&2; \
			echo "Fix: install one (Debian: apt install python3 python3-venv; macOS: brew install python@3.13)," >&2; \
			echo "or name one: make setup PYTHON=/path/to/python3.11" >&2; \
			exit 1; }; \
		echo "setup: $(VENV) with $$($(PYTHON) --version)"; \
		$(PYTHON) -m venv --clear $(VENV); }
	@echo "setup: installing requirements/dev.txt"
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@

demo: setup ## The main job: 500 factorizations, sequentially and on 1, 2 and 4 executors; saves demo.png
	$(RUN)cloudpar demo --plot demo.png

test: setup node_modules/.complete ## Lint, formatting, types, layers and all tests, of Python and of TypeScript, docs and checks
	$(RUN)ruff check
	$(RUN)ruff format --check
	$(RUN)mypy
	$(RUN)lint-imports
	$(RUN)pytest -n 3 --dist loadfile  # also on two cores: most tests wait for processes, and compute little
	npm run --silent lint
	npm run --silent types
	npm test --silent
	@$(MAKE) --no-print-directory specification docs checks

specification: setup ## Check every state of docs/specification (TLA+) by TLC, which Maven downloads
	PYTHONPATH=tests $(RUN)python -m specification

checks: sbom $(SYNTHESIZED) build/checks/$(COMPLETE) ## The stack of each environment: cdk-nag, cfn-lint, checkov; the image's file; all shell scripts
	build/checks/bin/cfn-lint build/synth/*/*.template.json
	build/checks/bin/checkov --config-file .checkov.yaml --file build/synth/*/*.template.json
	build/checks/bin/hadolint worker/Dockerfile
	build/checks/bin/shellcheck .ci/run $$(git ls-files '*.sh')

sbom: setup build/sbom/$(COMPLETE) ## The wheel, and lists of its components and of the worker image's (CycloneDX), in build/components
	@rm -rf build/components
	$(RUN)uv build --quiet --wheel --build-constraints worker/build.txt --require-hashes --out-dir build/components .
	$(RUN)python worker/sbom.py build/sbom/bin build/components

# One environment with the settings that add the most resources.
build/synth/staging: SETTINGS := -c imageBuild=codebuild -c vpcId=vpc-0123abcd -c subnetIds=subnet-0123abcd,subnet-4567cdef \
	-c apiVpcEndpoint=vpce-0123abcd

# The stack as it is deployed, with the functions' code; cdk-nag is part of the app. No request to AWS asks which account this is.
$(SYNTHESIZED): build/synth/%: build/functions node_modules/.complete
	@rm -rf $@
	AWS_ENDPOINT_URL=http://127.0.0.1:9 AWS_EC2_METADATA_DISABLED=true CDK_DISABLE_CLI_TELEMETRY=1 \
		CDK_DISABLE_VERSION_CHECK=1 node_modules/.bin/cdk synth --quiet --strict --no-notices -c env=$* $(SETTINGS) --output $@

build/functions: setup
	functions/bundle.sh $@

node_modules/.complete: package-lock.json
	@command -v npm >/dev/null || { echo "make: no npm on the PATH. Fix: install Node.js 20.19 or later" >&2; exit 1; }
	@echo "setup: node_modules"
	@npm ci --silent --no-audit --no-fund
	@touch $@

guarantees: setup build/e2e/$(COMPLETE) build/fuzz/$(COMPLETE) node_modules/.complete ## Each guarantee of docs/guarantees.md with its full figure; ONLY=9 runs one
	PYTHONPATH=tests $(RUN)python -m guarantees $(addprefix --only=,$(ONLY))

mutants: setup ## Break each line that gives a guarantee, in a copy, and see its test fail; ONLY=9 tries one's
	PYTHONPATH=tests $(RUN)python -m guarantees.mutants $(addprefix --only=,$(ONLY))

mutants-core: setup ## Change each operator and constant of the master's core, in a copy, and see a test fail; ONLY=effects
	PYTHONPATH=tests $(RUN)python -m guarantees.mutants_core $(addprefix --only=,$(ONLY))

e2e: setup build/e2e/$(COMPLETE) node_modules/.complete ## Deploy to a stand-in for AWS on this machine and use it
	CLOUDPAR_STAND_IN=ministack $(RUN)pytest tests/master/conformance tests/aws/test_surfacing.py $(LINKS) --timeout 300
	$(RUN)pytest tests/e2e --verbose --timeout 300

runtimes: setup build/runtimes/$(COMPLETE) node_modules/.complete ## The JavaScript SDK on Node 22 to 26, Bun and Deno, with TypeScript 5.4 to 7.0, and bundled by webpack
	npm run --silent runtimes --workspace sdk/typescript

# These are a gigabyte of binaries for Linux on x64; elsewhere npm fails.
build/runtimes/$(COMPLETE): sdk/typescript/runtimes/package-lock.json
	@echo "runtimes: installing $<"
	@mkdir -p build/runtimes
	@cp sdk/typescript/runtimes/package.json sdk/typescript/runtimes/package-lock.json build/runtimes
	@npm ci --prefix build/runtimes --silent --no-audit --no-fund
	@touch $@

# A second server that checks requests as S3 does. It exists only as source in Go, so CI does not run it.
versitygw: setup ## The tests of payloads and their links on versitygw (needs Go)
	GOBIN=$(CURDIR)/build/versitygw go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	CLOUDPAR_STAND_IN=versitygw $(RUN)pytest tests/master/conformance/test_blob_store.py $(LINKS)

# These tools pin other versions of packages than the project, so each has a venv of its own.
build/%/$(COMPLETE): requirements/%.txt | setup
	@echo "$*: installing $<"
	@$(RUN)uv venv --quiet --clear --python $(RUN)python build/$*
	@$(RUN)uv pip install --quiet --compile-bytecode --link-mode copy --python build/$*/bin/python --require-hashes -r $<
	@touch $@

bench: setup ## The figures, beside ProcessPoolExecutor's from the same run
	$(RUN)python -m bench

programs: setup build/programs/$(COMPLETE) ## Users' programs on the pool, beside joblib and Dask; ONLY=svds runs one
	PYTHONPATH=sdk/protocol:sdk/python:functions:worker build/programs/bin/python -m bench.programs $(addprefix --only=,$(ONLY))
	build/programs/bin/python -m bench.coming_from

bench-peers: setup build/peers/$(COMPLETE) ## The pool beside 12 other engines, some hours; ONLY=start runs one row, ENGINES=ray one engine, OPTIONS="--rounds=1 ..."
	@PYTHONPATH=sdk/protocol:sdk/python:functions:worker build/peers/bin/python -m bench.peers \
		$(addprefix --only=,$(ONLY)) $(addprefix --engines=,$(ENGINES)) $(OPTIONS)

# TaPS is in no package registry; `git clone https://github.com/proxystore/taps` gets it. The variable is TAPS_APP, because
# TaPS itself reads APP from the environment. Without abspath, uv would take TAPS=taps for the name of a package.
bench-taps: setup build/taps/$(COMPLETE) ## An application of TaPS on the pool and on other executors; TAPS=a clone of it, TAPS_APP="--app ...", OPTIONS="--timeout=60"
	@test -f "$(abspath $(TAPS))/pyproject.toml" || { echo "make bench-taps: no clone of github.com/proxystore/taps. Fix: make bench-taps TAPS=/path/to/it" >&2; exit 1; }
	@$(RUN)uv pip install --quiet --no-deps --no-build-isolation --python build/taps/bin/python "$(abspath $(TAPS))"
	@PYTHONPATH=sdk/protocol:sdk/python:functions:worker build/taps/bin/python -m bench.peers.taps_runs $(OPTIONS) -- $(TAPS_APP)

docs: setup build/docs/$(COMPLETE) ## The documentation site, in build/site/html; a warning or a broken link is an error
	@$(RUN)python docs/website.py build/site
	build/docs/bin/zensical build --clean --strict --config-file build/site/zensical.toml

generate: setup node_modules/.complete ## Write docs/openapi.json, docs/reference.md and what TypeScript has of them again
	$(RUN)python -m cloudpar_protocol_tools.openapi > docs/openapi.json
	$(RUN)python docs/reference.py > docs/reference.md
	npm run --silent generate --workspace sdk/typescript

lock: setup ## Resolve requirements/*.txt and worker/*.txt again, with hashes
	@lock() { $(RUN)uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header "$$@"; } \
	&& lock pyproject.toml requirements/dev.in -o requirements/dev.txt \
	&& lock -c requirements/dev.txt requirements/functions.in -o requirements/functions.txt \
	&& lock -c requirements/dev.txt worker/requirements.in -o worker/requirements.txt \
	&& lock -c requirements/dev.txt --extra aws pyproject.toml requirements/fuzz.in -o requirements/fuzz.txt \
	&& lock -c requirements/dev.txt pyproject.toml requirements/programs.in -o requirements/programs.txt \
	&& lock -c requirements/dev.txt pyproject.toml requirements/peers.in -o requirements/peers.txt \
	&& lock -c requirements/dev.txt pyproject.toml requirements/taps.in -o requirements/taps.txt \
	&& lock requirements/e2e.in -o requirements/e2e.txt \
	&& lock requirements/checks.in -o requirements/checks.txt \
	&& lock requirements/docs.in -o requirements/docs.txt \
	&& lock requirements/sbom.in -o requirements/sbom.txt \
	&& lock -c requirements/dev.txt pyproject.toml -o requirements/cloudpar.txt \
	&& lock -c requirements/dev.txt worker/build.in -o worker/build.txt
	@echo "lock: requirements/*.txt and worker/*.txt are resolved; what uses them installs them"
