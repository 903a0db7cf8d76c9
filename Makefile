# Thin: each target is one script or one program. `make help` lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# What scripts/setup unpacked comes first; where the system has what is needed, nothing is there.
export PATH := $(CURDIR)/.cache/node/24.19.0/bin:$(CURDIR)/.cache/tools/cargo-nextest/bin:$(CURDIR)/.cache/tools/cargo-deny/bin:$(PATH)

# Options of `tale dev`, such as: make run ARGS="--port 4000 --data-dir /srv/tale"
ARGS ?= --demo

WEB_SOURCES := $(shell find web -type f -not -path '*/node_modules/*' -not -path 'web/build/*' -not -path 'web/.svelte-kit/*' \
	-not -path 'web/src/lib/paraglide/*' -not -path 'web/screenshots/*' -not -path 'web/test-results/*' -not -path 'web/e2e/*' 2>/dev/null)

.PHONY: help run build sandboxd sandbox-images test test-compose lint fmt openapi env-reference web screenshots bench setup setup-test

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: build ## Build everything and start Tale on http://localhost:3000
	@exec target/release/tale dev $(ARGS)

build: web ## The release program with the web app in it: target/release/tale
	cargo build --release --package tale

sandboxd: ## The static program inside sandboxes: target/sandboxd/tale-sandboxd
	@scripts/sandboxd

sandbox-images: build sandboxd ## Images of sandboxes and of their way out, into the engine at DOCKER_HOST
	@scripts/sandbox-images

test: ## Everything that is checked: formats, lints, licences, Rust, web, browser
	@scripts/test

test-compose: web ## The deployment of deploy/compose.yml, built, used and stopped
	cargo build --package tale
	@scripts/test-compose

lint: setup-test web/node_modules/.installed ## Formats and lints only
	@scripts/test lint

fmt: web/node_modules/.installed ## Format all sources
	cargo fmt --all
	cd web && npm run --silent format

screenshots: build web/node_modules/.installed ## Pictures of every screen, into web/screenshots
	cd web && TALE_BINARY=$(CURDIR)/target/release/tale npm run --silent screenshots

bench: build ## The figures of bench/README.md, measured on this machine
	@bench/run

web: web/build/index.html ## The web app, into web/build

setup:
	@scripts/setup

setup-test:
	@scripts/setup test

web/node_modules/.installed: web/package-lock.json | setup
	# Not `npm ci`: it refuses a lock file that leaves out optional parts which no registry has for this machine.
	cd web && npm install --no-save --no-audit --no-fund --loglevel=error
	@touch $@

web/build/index.html: web/node_modules/.installed $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

openapi: | setup ## The API contract and the types made from it, after a change of a route
	cargo run --quiet --package tale-http --example openapi > target/openapi.json
	mv target/openapi.json crates/http/openapi.json
	cd web && npm run --silent api

env-reference: ## .env.example and the pages of all environment variables, after a change of the registry
	cargo run --quiet --package tale-env --example generate
