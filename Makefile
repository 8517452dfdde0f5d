# SPDX-License-Identifier: BSD-2-Clause
# Thin front of meson and ninja. See README.md.
BUILD ?= build
PREFIX ?= /usr/local
MESON_FLAGS ?=

.PHONY: build run test install clean deps check-deps

build: deps
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX) $(MESON_FLAGS) >/dev/null
	@ninja -C $(BUILD) --quiet 2>/dev/null || ninja -C $(BUILD)

# Installs the Debian packages that are missing, or prints the exact line.
deps:
	@scripts/install-deps.sh build

run: build
	@scripts/run-demo.sh $(BUILD)

test: build
	@scripts/install-deps.sh test
	@meson test -C $(BUILD) --print-errorlogs

install: build
	@meson install -C $(BUILD) --no-rebuild

clean:
	@rm -rf $(BUILD)
