# SPDX-License-Identifier: MIT
# `make help` lists what can be made.

PREFIX ?= /usr/local
DESTDIR ?=
# Where the programs are that `install`, `run` and the Python tests use.
BIN ?= .build/release

SWIFT ?= $(firstword $(shell command -v swift) $(wildcard /opt/swift/usr/bin/swift) swift)
PYTHON ?= /usr/bin/python3
TOOLS := Tests/tools

CHECKS := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
PROGRAMS := vitrine-agent vitrinectl vitrine-testscreen
FORMATTED := Package.swift Sources Tests dbus
PYTEST := VITRINE_BIN=$(abspath $(BIN)) $(TOOLS)/as-user env PYTHONDONTWRITEBYTECODE=1 $(PYTHON) -m pytest -c Tests/pytest.ini --rootdir=Tests

bindir := $(PREFIX)/bin
servicedir := $(PREFIX)/share/dbus-1/services
interfacedir := $(PREFIX)/share/dbus-1/interfaces
applicationdir := $(PREFIX)/share/applications
# In a home folder two of them are elsewhere.
ifneq ($(filter $(HOME)/%,$(PREFIX)),)
unitdir ?= $(PREFIX)/share/systemd/user
autostartdir ?= $(HOME)/.config/autostart
else
unitdir ?= $(PREFIX)/lib/systemd/user
autostartdir ?= /etc/xdg/autostart
endif

.PHONY: build run test test-swift test-integration test-desktop install uninstall format lint clean deps help

build: deps ## builds the programs into .build/release
	@echo "build: builds the programs into .build/release"
	$(SWIFT) build -c release --static-swift-stdlib $(CHECKS)

run: build ## shares this desktop's screen for 10 s into share.webm; without a desktop, a test screen's
	@$(TOOLS)/run

test: lint test-swift test-integration ## runs all tests that need no desktop, on private buses and a private PipeWire

test-swift: deps
	@echo "test-swift: tests each part of the programs by itself"
	@$(TOOLS)/install-packages build screen test
	$(SWIFT) test $(CHECKS) --skip '^CaptureTests\.'
	@# In a process of their own: they count its descriptors and threads.
	$(SWIFT) test $(CHECKS) --skip-build --filter '^CaptureTests\.'

test-integration: build
	@echo "test-integration: tests the built programs on private buses, with the real portal and PipeWire"
	@$(TOOLS)/install-packages build screen test
	$(PYTEST) Tests/integration

test-desktop: build ## goes the whole way on a headless GNOME desktop with its real picker
	@echo "test-desktop: shares screens of a headless GNOME desktop, choosing in its real picker"
	@$(TOOLS)/install-packages build screen test desktop
	$(PYTEST) Tests/desktop

install: $(PROGRAMS:%=$(BIN)/%) ## puts programs, services and interfaces below DESTDIR and PREFIX
	@echo "install: puts programs, services and interfaces below $(DESTDIR)$(PREFIX)"
	install -d $(addprefix $(DESTDIR),$(bindir) $(servicedir) $(interfacedir) $(applicationdir) $(unitdir) $(autostartdir))
	install -m 755 $(PROGRAMS:%=$(BIN)/%) $(DESTDIR)$(bindir)
	install -m 644 dbus/*.xml $(DESTDIR)$(interfacedir)
	sed 's|@bindir@|$(bindir)|' data/org.vitrine.ScreenShare1.service.in >$(DESTDIR)$(servicedir)/org.vitrine.ScreenShare1.service
	sed 's|@bindir@|$(bindir)|' data/app-org.vitrine.ScreenShare1.service.in >$(DESTDIR)$(unitdir)/app-org.vitrine.ScreenShare1.service
	sed 's|@bindir@|$(bindir)|' data/org.vitrine.ScreenShare1.desktop.in >$(DESTDIR)$(applicationdir)/org.vitrine.ScreenShare1.desktop
	sed 's|@bindir@|$(bindir)|' data/org.vitrine.ScreenShare1.desktop.in >$(DESTDIR)$(autostartdir)/org.vitrine.ScreenShare1.desktop

uninstall: ## takes away what install put in place
	@echo "uninstall: takes away what install put below $(DESTDIR)$(PREFIX)"
	rm -f $(PROGRAMS:%=$(DESTDIR)$(bindir)/%)
	rm -f $(addprefix $(DESTDIR)$(interfacedir)/,$(notdir $(wildcard dbus/*.xml)))
	rm -f $(DESTDIR)$(servicedir)/org.vitrine.ScreenShare1.service
	rm -f $(DESTDIR)$(unitdir)/app-org.vitrine.ScreenShare1.service
	rm -f $(DESTDIR)$(applicationdir)/org.vitrine.ScreenShare1.desktop
	rm -f $(DESTDIR)$(autostartdir)/org.vitrine.ScreenShare1.desktop

# Only what was never built is built here: `sudo make install` should compile nothing.
$(PROGRAMS:%=$(BIN)/%):
	$(MAKE) build

format: ## lays out the Swift code
	@echo "format: lays out the Swift code"
	$(SWIFT) format --in-place -r $(FORMATTED)

lint: deps ## complains about Swift code that is not laid out or documented as it should be
	@echo "lint: looks at layout and documentation of the Swift code"
	$(SWIFT) format lint --strict -r $(FORMATTED)

clean: ## removes what was built
	@echo "clean: removes what was built"
	rm -rf .build share.webm

deps: ## installs what the build needs and is missing
	@$(TOOLS)/install-packages build

help: ## lists what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22
