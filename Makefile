# SPDX-License-Identifier: BSD-2-Clause
# Thin front of meson and ninja. See README.md.
BUILD ?= build
PREFIX ?= /usr/local
MESON_FLAGS ?=
# Of the co-simulation that `make run` shows.
COSIM ?= infiniband
COSIM_STEPS ?= 1000 500
# 1: `make run` puts the gateways on two hosts, which are network namespaces; needs root.
NETWORK ?= 0

# Below PREFIX; empty where meson knows better.
LIBDIR ?= $(shell scripts/libdir.sh)

# A build folder is configured anew when these change.
CONFIG = --prefix=$(PREFIX) $(if $(LIBDIR),--libdir=$(LIBDIR)) $(MESON_FLAGS)
# One line that moves on a terminal, silence in a log; errors are shown in both.
NINJA = if [ -t 1 ]; then ninja -C $(BUILD); else ninja -C $(BUILD) --quiet; fi

# Most tests wait for timers, peers and each other: with two for each processor, all processors
# have work. run-tests.py repeats what fails because a gateway that polls took the time.
TEST_PROCESSES ?= $(shell echo $$(($$(nproc) * 2)))

.PHONY: build page run test test-all install clean help deps deps-run deps-test deps-all configure

build: deps configure
	@$(NINJA)

# The page of the gateway (src/page) from its sources; needs node and npm. Without them the
# bundle that is checked in is used.
page:
	@python3 src/page/bundle.py update

run: deps-run build
	@NETWORK=$(NETWORK) scripts/run-demo.sh $(BUILD)
ifeq ($(NETWORK),0)
	@echo
	@echo "co-simulation: two halves of an electric network, coupled over $(COSIM)"
	@STEPS="$(COSIM_STEPS)" BEHIND=3 examples/cosim/run.sh $(COSIM) $(BUILD)
endif

# Selects the part of the tests that `make test` runs: another one for each commit
# (tests/meson.build).
export TESTS_SEED ?= $(shell git rev-parse HEAD 2>/dev/null || date +%F)

# run-tests.py repeats a test that fails; left-out.sh says which could not run here.
# The time limits of tests are for quiet machines.
RUN_TESTS = scripts/run-tests.py $(BUILD) --num-processes $(TEST_PROCESSES) --timeout-multiplier 2
test: deps-test configure
	@$(NINJA)
	@$(RUN_TESTS); status=$$?; scripts/left-out.sh $(BUILD); exit $$status

test-all: deps-all configure
	@$(NINJA)
	@$(RUN_TESTS) --setup all; status=$$?; scripts/left-out.sh $(BUILD); exit $$status
	@scripts/clang-warnings.py $(BUILD)
	@for sanitizer in address,undefined thread; do \
		scripts/sanitized-tests.sh $$sanitizer 0 || exit 1; \
	done

install: build
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild --quiet

clean:
	@rm -rf $(BUILD)

help:
	@echo "make build    build everything into $(BUILD)/"
	@echo "make run      build, then show two gateways exchanging samples and a"
	@echo "              co-simulation over them; MODE=RC, UC or UD, COSIM=infiniband, shmem ...;"
	@echo "              NETWORK=1: the gateways as on two hosts (namespaces, as root)"
	@echo "make test     build, then run the tests"
	@echo "make test-all build, then run all tests, also those of suite thorough, all rows of"
	@echo "              other people's programs, clang's warnings and the sanitizers: hours"
	@echo "make page     build the gateway's page from src/page, with node and npm"
	@echo "make install  install below PREFIX=$(PREFIX), DESTDIR is honoured;"
	@echo "              libraries in LIBDIR=$(LIBDIR) below it"
	@echo "make clean    remove $(BUILD)/"

# Packages that are missing are installed, or the line that does it is printed.
# What was left out for want of them is then looked for again.
deps:
	@new=$$(scripts/install-deps.sh build) || exit 1; \
	if [ -n "$$new" ]; then echo "$$new"; rm -f $(BUILD)/.configured; fi

deps-run:
	@new=$$(scripts/install-deps.sh run) || exit 1; \
	if [ -n "$$new" ]; then echo "$$new"; rm -f $(BUILD)/.configured; fi

deps-test:
	@new=$$(scripts/install-deps.sh test) || exit 1; \
	if [ -n "$$new" ]; then echo "$$new"; rm -f $(BUILD)/.configured; fi

deps-all:
	@new=$$(scripts/install-deps.sh ci) || exit 1; \
	if [ -n "$$new" ]; then echo "$$new"; rm -f $(BUILD)/.configured; fi

# From scratch, because an option that is no longer given would stay as it was;
# objects are kept and made anew only where their command changed.
configure: deps
	@if [ "$$(cat $(BUILD)/.configured 2>/dev/null)" != "$(CONFIG)" ]; then \
		rm -rf $(BUILD)/build.ninja $(BUILD)/meson-private; \
		meson setup $(BUILD) $(CONFIG) >/dev/null || \
			{ tail -n 20 $(BUILD)/meson-logs/meson-log.txt; exit 1; }; \
		ninja -C $(BUILD) -t restat build.ninja >/dev/null 2>&1; \
		echo "$(CONFIG)" >$(BUILD)/.configured; \
	fi
