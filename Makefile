# SPDX-License-Identifier: Apache-2.0
# The front door. Each target is a script that can be run by itself; Meson and Ninja do the building.

FUZZ_SECONDS ?= 600
KILLS ?= 5000
SEEDS ?= 100000

help:
	@echo 'make run      install what is missing, build, and serve on http://127.0.0.1:8080'
	@echo 'make build    the optimised, hardened program: build/fermata'
	@echo 'make test     everything CI runs; ends with "N passed, N failed"'
	@echo 'make bench    measure beside peers'
	@echo 'make kill     kill the server at every call that changes something, and at KILLS ($(KILLS)) random ones'
	@echo 'make sim      live SEEDS ($(SEEDS)) seeds of the simulated agent, and find the bugs planted in it'
	@echo 'make fuzz     fuzz each target for FUZZ_SECONDS ($(FUZZ_SECONDS))'
	@echo 'make sizes    the longest files and functions'
	@echo 'make clean    remove build/'

run: build
	exec build/fermata serve

build:
	@scripts/setup
	@scripts/build release

test:
	@scripts/setup test
	@scripts/test

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
	rm -rf build

.PHONY: help run build test bench kill sim fuzz sizes clean
