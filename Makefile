# SPDX-License-Identifier: MIT
# `make help` lists what can be made.

PREFIX ?= /usr/local
DESTDIR ?=
# Where the programs are that `install`, `run` and the Python tests use.
BIN ?= .build/release

SWIFT ?= $(firstword $(shell command -v swift) $(wildcard /opt/swift/usr/bin/swift) swift)
PYTHON ?= /usr/bin/python3
TOOLS := Tests/tools

# For fuzz and soak.
ROUNDS ?= 5000
SEED ?= $(shell date +%s)
STARTS ?= 10000
SECONDS_SHARED ?= 3600

CHECKS := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
# Tables of addresses are read-only from the start on. The linker is the toolchain's own: GNU ld has Swift's constants in writable memory.
LINKING := -Xswiftc -use-ld=lld -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now
PROGRAMS := vitrine-agent vitrinectl vitrine-testscreen
FORMATTED := Package.swift Sources Tests dbus
# Manual pages, made of what is below data/man and of what the programs and the interfaces' XML say themselves.
ID := org.vitrine.ScreenShare1
PAGES := vitrine-agent.1 vitrinectl.1 vitrine-testscreen.1 vitrine.conf.5 $(ID).5
EXAMPLES := $(wildcard data/examples/*) Tests/integration/frames_reader.py Tests/integration/frames_reader.c
RUN_PYTHON := VITRINE_BIN=$(abspath $(BIN)) $(TOOLS)/as-user env PYTHONDONTWRITEBYTECODE=1 $(PYTHON)
PYTEST := $(RUN_PYTHON) -m pytest -c Tests/pytest.ini --rootdir=Tests

bindir := $(PREFIX)/bin
servicedir := $(PREFIX)/share/dbus-1/services
interfacedir := $(PREFIX)/share/dbus-1/interfaces
applicationdir := $(PREFIX)/share/applications
icondir := $(PREFIX)/share/icons/hicolor
metainfodir := $(PREFIX)/share/metainfo
mandir := $(PREFIX)/share/man
docdir := $(PREFIX)/share/doc/vitrine
exampledir := $(docdir)/examples
bashcompletiondir := $(PREFIX)/share/bash-completion/completions
fishcompletiondir := $(PREFIX)/share/fish/vendor_completions.d
# Debian's own packages have a folder beside this.
zshcompletiondir ?= $(PREFIX)/share/zsh/site-functions
# In a home folder two of them are elsewhere.
ifneq ($(filter $(HOME)/%,$(PREFIX)),)
unitdir ?= $(PREFIX)/share/systemd/user
autostartdir ?= $(HOME)/.config/autostart
else
unitdir ?= $(PREFIX)/lib/systemd/user
autostartdir ?= /etc/xdg/autostart
endif

# Where the compiler is no package, its package is not asked for.
PROFILE = $(shell dpkg-query -W swiftlang >/dev/null 2>&1 || echo --build-profiles=pkg.vitrine.toolchain)

# Debian 13's lintian has appstreamcli complain that there is no home page. A test sees to all else that it complains of.
SILENCED = $(shell lintian-explain-tags appstream-metadata-validation-failed >/dev/null 2>&1 && echo --suppress-tags=appstream-metadata-validation-failed)

.PHONY: deb build programs manual run test test-swift test-integration test-desktop test-budgets test-asan test-tsan fuzz soak bench install uninstall format lint clean deps help

build: deps ## builds the programs into .build/release, and their manual
	@echo "build: builds the programs into .build/release, and their manual"
	@$(MAKE) --no-print-directory programs
	@$(MAKE) --no-print-directory manual BUILT=yes

programs:
	$(SWIFT) build -c release --static-swift-stdlib $(CHECKS) $(LINKING)

manual: $(PAGES:%=.build/man/%)

.build/man/%: data/man/%.scd data/man/fill dbus/*.xml $(PROGRAMS:%=$(BIN)/%)
	@mkdir -p $(@D)
	$(PYTHON) data/man/fill $< $(BIN) >$@.scd
	scdoc <$@.scd >$@

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
	@$(TOOLS)/install-packages build screen test package
	@# They mostly wait. The tests of a file share a world, so they stay together.
	$(PYTEST) -n auto --dist loadfile Tests/integration

test-desktop: build ## goes the whole way on a headless GNOME desktop with its real picker
	@echo "test-desktop: shares screens of a headless GNOME desktop, choosing in its real picker"
	@$(TOOLS)/install-packages build screen test desktop
	$(PYTEST) Tests/desktop

test-budgets: build ## fails when sharing costs much more than it should
	@echo "test-budgets: measures for about three minutes what sharing costs, and fails when it is much more than it should be"
	@$(TOOLS)/install-packages build screen test
	@# -s shows what is usual, also of what passes.
	$(PYTEST) -s Tests/bench

fuzz: build ## sends nonsense over D-Bus and PipeWire for longer; ROUNDS and SEED can be chosen
	@echo "fuzz: $(ROUNDS) rounds with SEED=$(SEED)"
	@$(TOOLS)/install-packages build screen test
	VITRINE_FUZZ_ROUNDS=$(ROUNDS) VITRINE_FUZZ_SEED=$(SEED) $(PYTEST) --timeout=0 Tests/integration/test_fuzz.py
	VITRINE_FUZZ_ROUNDS=$(ROUNDS) VITRINE_FUZZ_SEED=$(SEED) $(SWIFT) test $(CHECKS) --filter '/PipeWireFuzz/'

soak: build ## starts and stops ten thousand times, and shares for an hour, also with sound; STARTS, SECONDS_SHARED, ARGS=sound can be chosen
	@echo "soak: $(or $(ARGS),starts share sound): $(STARTS) starts and stops, and shares of $(SECONDS_SHARED) s, beside each other"
	@$(TOOLS)/install-packages build screen test
	export VITRINE_SOAK_SECONDS=$(SECONDS_SHARED) VITRINE_SOAK_STARTS=$(STARTS); \
	for part in $(or $(ARGS),starts share sound); do $(PYTEST) --timeout=0 -s Tests/integration/test_soak.py -k "$$part" & parts="$$parts $$!"; done; \
	failed=0; for part in $$parts; do wait $$part || failed=1; done; exit $$failed

test-asan: deps ## runs the tests of the parts, and the roughest of the programs, under AddressSanitizer
	@echo "test-asan: looks for wrong use of memory with AddressSanitizer"
	@$(TOOLS)/install-packages build screen test
	$(TOOLS)/test-sanitized address

test-tsan: deps ## the same under ThreadSanitizer
	@echo "test-tsan: looks for data races with ThreadSanitizer"
	@$(TOOLS)/install-packages build screen test
	$(TOOLS)/test-sanitized thread

bench: build ## measures what sharing costs, beside GStreamer; ARGS=--help says what can be chosen
	@$(TOOLS)/install-packages build screen test
	@$(RUN_PYTHON) Tests/bench/bench.py $(ARGS)

install: $(PROGRAMS:%=$(BIN)/%) manual ## puts programs, services, interfaces and manual below DESTDIR and PREFIX
	@echo "install: puts programs, services, interfaces and manual below $(DESTDIR)$(PREFIX)"
	install -d $(addprefix $(DESTDIR),$(bindir) $(servicedir) $(interfacedir) $(applicationdir) $(unitdir) $(autostartdir) $(metainfodir) $(exampledir))
	install -d $(addprefix $(DESTDIR),$(bashcompletiondir) $(zshcompletiondir) $(fishcompletiondir))
	install -d $(addprefix $(DESTDIR),$(icondir)/scalable/apps $(icondir)/symbolic/apps $(mandir)/man1 $(mandir)/man5)
	install -m 755 $(PROGRAMS:%=$(BIN)/%) $(DESTDIR)$(bindir)
	install -m 644 dbus/*.xml $(DESTDIR)$(interfacedir)
	sed 's|@bindir@|$(bindir)|' data/$(ID).service.in >$(DESTDIR)$(servicedir)/$(ID).service
	sed 's|@bindir@|$(bindir)|' data/app-$(ID).service.in >$(DESTDIR)$(unitdir)/app-$(ID).service
	sed 's|@bindir@|$(bindir)|' data/$(ID).desktop.in >$(DESTDIR)$(applicationdir)/$(ID).desktop
	sed 's|@bindir@|$(bindir)|' data/$(ID).autostart.desktop.in >$(DESTDIR)$(autostartdir)/$(ID).desktop
	install -m 644 data/$(ID).metainfo.xml $(DESTDIR)$(metainfodir)
	install -m 644 data/icons/$(ID).svg $(DESTDIR)$(icondir)/scalable/apps
	install -m 644 data/icons/$(ID)-symbolic.svg $(DESTDIR)$(icondir)/symbolic/apps
	install -m 644 $(addprefix .build/man/,$(filter %.1,$(PAGES))) $(DESTDIR)$(mandir)/man1
	install -m 644 $(addprefix .build/man/,$(filter %.5,$(PAGES))) $(DESTDIR)$(mandir)/man5
	install -m 644 data/completions/vitrinectl.bash $(DESTDIR)$(bashcompletiondir)/vitrinectl
	install -m 644 data/completions/_vitrinectl $(DESTDIR)$(zshcompletiondir)
	install -m 644 data/completions/vitrinectl.fish $(DESTDIR)$(fishcompletiondir)
	install -m 644 $(EXAMPLES) $(DESTDIR)$(exampledir)
	sed 's|\.\./Tests/integration/|examples/|g' dbus/frames.md >$(DESTDIR)$(docdir)/frames.md

uninstall: ## takes away what install put in place
	@echo "uninstall: takes away what install put below $(DESTDIR)$(PREFIX)"
	rm -f $(PROGRAMS:%=$(DESTDIR)$(bindir)/%)
	rm -f $(addprefix $(DESTDIR)$(interfacedir)/,$(notdir $(wildcard dbus/*.xml)))
	rm -f $(DESTDIR)$(servicedir)/$(ID).service $(DESTDIR)$(unitdir)/app-$(ID).service
	rm -f $(DESTDIR)$(applicationdir)/$(ID).desktop $(DESTDIR)$(autostartdir)/$(ID).desktop
	rm -f $(DESTDIR)$(metainfodir)/$(ID).metainfo.xml
	rm -f $(DESTDIR)$(icondir)/scalable/apps/$(ID).svg $(DESTDIR)$(icondir)/symbolic/apps/$(ID)-symbolic.svg
	rm -f $(addprefix $(DESTDIR)$(mandir)/man1/,$(filter %.1,$(PAGES))) $(addprefix $(DESTDIR)$(mandir)/man5/,$(filter %.5,$(PAGES)))
	rm -f $(DESTDIR)$(bashcompletiondir)/vitrinectl $(DESTDIR)$(zshcompletiondir)/_vitrinectl $(DESTDIR)$(fishcompletiondir)/vitrinectl.fish
	rm -f $(addprefix $(DESTDIR)$(exampledir)/,$(notdir $(EXAMPLES))) $(DESTDIR)$(docdir)/frames.md
	rmdir $(DESTDIR)$(exampledir) $(DESTDIR)$(docdir) 2>/dev/null || true

deb: $(PROGRAMS:%=$(BIN)/%) ## makes a Debian package of the programs, in .build/deb, and has lintian judge it
	@echo "deb: makes a Debian package of the programs, in .build/deb"
	@$(TOOLS)/install-packages build package
	rm -rf .build/deb
	mkdir -p .build/deb/vitrine
	tar --exclude=./.build --exclude=./.git --exclude=./share.webm -cf - . | tar -C .build/deb/vitrine -xf -
	cp -r data/debian .build/deb/vitrine
	cd .build/deb/vitrine && BIN=$(abspath $(BIN)) dpkg-buildpackage --unsigned-source --unsigned-changes $(PROFILE)
	lintian --fail-on error,warning $(SILENCED) .build/deb/vitrine_*.changes

# Only what was never built is built here: `sudo make install` should compile nothing. After a build that was only shown (`make -n`)
# they are not there either.
$(PROGRAMS:%=$(BIN)/%):
	$(if $(BUILT),@:,$(MAKE) build)

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

# A page that could not be made must not look like one that was.
.DELETE_ON_ERROR:

help: ## lists what can be made
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 22
