# SPDX-License-Identifier: Apache-2.0
# The front door. Each target is a script that can be run by itself; Meson and Ninja do the building.

FUZZ_SECONDS ?= 600
KILLS ?= 5000
SEEDS ?= 100000
DESTDIR ?=
PREFIX ?= /usr/local

help:
	@echo 'make run       install what is missing, build, and serve on http://127.0.0.1:8080'
	@echo 'make build     the optimised, hardened program: build/fermata'
	@echo 'make install   put it under PREFIX ($(PREFIX)), below DESTDIR if that is set; make uninstall takes it away'
	@echo 'make quick     while working: checks, unit tests, the API tests that matter most; 2 minutes'
	@echo 'make test      everything CI runs; ends with "N passed, N failed"; 18 minutes, fewer with a warm cache'
	@echo 'make test-long the long forms of tests, one after the other; hours'
	@echo 'make format    clang-format over all C'
	@echo 'make analyze   clang --analyze over src'
	@echo 'make coverage  the lines and branches that the unit tests and the API tests reach'
	@echo 'make bench     measure beside peers'
	@echo 'make kill      kill the server at every call that changes something, and at KILLS ($(KILLS)) random ones'
	@echo 'make sim       live SEEDS ($(SEEDS)) seeds of the simulated agent, and find the bugs planted in it'
	@echo 'make fuzz      fuzz each target for FUZZ_SECONDS ($(FUZZ_SECONDS))'
	@echo 'make sizes     the longest files and functions'
	@echo 'make clean     remove build/'

run: build
	exec build/fermata serve

build:
	@scripts/setup
	@scripts/build release

install:
	@scripts/install '$(DESTDIR)' '$(PREFIX)'

uninstall:
	@scripts/install --remove '$(DESTDIR)' '$(PREFIX)'

quick:
	@scripts/setup
	@scripts/test quick

test:
	@scripts/setup test
	@scripts/test

test-long:
	@scripts/setup test
	@scripts/test-long

format:
	@scripts/format

analyze:
	@scripts/setup
	@scripts/analyze

coverage:
	@scripts/setup coverage
	@scripts/coverage

bench:
	@scripts/setup bench
	@scripts/build bench
	@bench/run

kill:
	@scripts/setup
	@scripts/build clang
	@. scripts/env && FERMATA_KILLS=$(KILLS) node --test --test-reporter=spec tests/fault/kill.test.mjs \
		tests/fault/approve.test.mjs tests/fault/channel.test.mjs

sim:
	@scripts/setup
	@scripts/sim $(SEEDS)

fuzz:
	@scripts/setup
	@scripts/build fuzz
	@scripts/fuzz $(FUZZ_SECONDS)

sizes:
	@scripts/sizes

clean:
	rm -rf build compile_commands.json

.PHONY: help run build install uninstall quick test test-long format analyze coverage bench kill sim fuzz sizes clean
