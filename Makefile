# Everything here needs Go and make, and nothing else on the machine. `make help` lists it.

include versions.mk

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

GO ?= go
# DRIVER, KEEP, NODES, ENDPOINT and FUZZTIME steer the demo, csi-sanity and fuzzing; they reach the programs through the environment.
export DRIVER KEEP NODES ENDPOINT FUZZTIME

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The flag --version prints what the linker writes here.
LDFLAGS := -s -w -X main.version=$(VERSION)
# The commit is noted whatever GOFLAGS says, where there is one.
BUILD := CGO_ENABLED=0 $(GO) build -buildvcs=auto -trimpath -ldflags '$(LDFLAGS)'
# Built and then run, since go run would write its own last line below the verdict; in the cache if nothing can be written here.
RUNS := $(shell test -w . && echo bin || echo "$${XDG_CACHE_HOME:-$$HOME/.cache}/csi-tandem/bin")
RUN := $(GO) build -o '$(RUNS)/run' ./test/run && '$(RUNS)/run'

##@ Look

.PHONY: help
help: ## Show this help
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5) } \
	  /^[a-z0-9-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@printf '\nThe first demo or test compiles a whole Kubernetes control plane: ten minutes or so on two cores, once.\n'

.PHONY: demo
demo: ## Watch both sidecars do their whole job (DRIVER=unix:///… uses your driver, KEEP=1 leaves all running, NODES=real runs the pods)
	@$(RUN) demo

##@ Build

.PHONY: build
build: ## Build bin/provisioner, bin/snapshotter and bin/driver, static and stamped with the version from git
	@echo "building version $(VERSION) into bin/"
	@$(BUILD) -o bin/provisioner ./cmd/provisioner
	@$(BUILD) -o bin/snapshotter ./cmd/snapshotter
	@cd examples/driver && $(BUILD) -o ../../bin/driver .
	@ls -l bin/provisioner bin/snapshotter bin/driver

.PHONY: image
image: ## Write the three images for amd64 and arm64 to out/image, with an SBOM each, without a daemon
	@$(GO) run -C deploy/image . -root "$(CURDIR)" -out "$(CURDIR)/out/image" -version '$(VERSION)'

.PHONY: image-check
image-check: ## Build the images twice, and compare their digests
	@$(GO) run -C deploy/image . -root "$(CURDIR)" -out "$(CURDIR)/out/image" -version '$(VERSION)' -twice

.PHONY: clean
clean: ## Remove what was built here (Go's own caches stay)
	@rm -rf bin out

##@ Test

.PHONY: test
test: ## Run everything: format, vet, unit, fuzz, sanity, e2e, and real pods where they can be
	@$(RUN) test

.PHONY: unit
unit: ## Run tables, rooms and the rules of the house; with the race detector where a C compiler is
	@$(RUN) unit

.PHONY: arch
arch: ## Run only the rules of the house: arrows, sizes, purity, RBAC, examples
	@$(RUN) arch

.PHONY: fuzz
fuzz: ## Throw odd classes, templates, answers and topologies at the machines, FUZZTIME=30s for each target
	@$(RUN) fuzz

.PHONY: sanity
sanity: ## Run csi-sanity against the example driver (ENDPOINT=unix:///… for any other)
	@$(RUN) sanity

.PHONY: e2e
e2e: ## Run both binaries beside a real driver on a real control plane
	@$(RUN) e2e

.PHONY: rights
rights: ## Take each right away in its turn, and see something fail
	@$(RUN) rights

.PHONY: e2e-pods
e2e-pods: ## Let real pods write and read volumes, on real nodes of this machine (as root; the README says what else)
	@$(RUN) e2e-pods

.PHONY: monitoring
monitoring: ## Evaluate alerts and dashboard on what both programs show while faults are staged (CSI_TANDEM_FILMS=DIR keeps that)
	@$(RUN) monitoring

.PHONY: crash
crash: ## End both binaries around every effect of every kind of life, in every way (CSI_TANDEM_SEED repeats an order)
	@$(RUN) crash

.PHONY: faults
faults: ## Let 1,000 objects live under random faults and kills (CSI_TANDEM_SEED, CSI_TANDEM_OBJECTS, CSI_TANDEM_KEEP)
	@$(RUN) faults

.PHONY: soak
soak: ## Churn under faults for 20 minutes, memory and goroutines stay flat (CSI_TANDEM_SOAK=2h for longer)
	@$(RUN) soak

.PHONY: cases
cases: ## Show each acceptance case, where it is tested and how that ended (ARGS="-list -run T35,S", CSI_TANDEM_E2E=1 for all)
	@$(GO) build -o bin/cases ./test/cases && bin/cases $(ARGS)

##@ Measure

.PHONY: bench
bench: ## Measure rates, requests, memory, beside the incumbents' figures (ARGS="-mode capacity", ARGS=-help for all)
	@$(GO) build -o bin/bench ./test/bench && bin/bench $(ARGS)

##@ Check

.PHONY: verify
verify: ## Check format, vet, the rules of the house, go.mod, and that nothing is uncommitted
	@$(RUN) verify

.PHONY: lint
lint: ## Run golangci-lint (fetched in the version of versions.mk)
	@$(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) run ./...

.PHONY: vulncheck
vulncheck: ## Look for known vulnerabilities in what the programs call (needs the Go vulnerability database, or VULNDB=file:///… for a copy)
	@GOBIN="$(CURDIR)/bin" $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@bin/govulncheck $(if $(VULNDB),-db='$(VULNDB)') ./cmd/... || { code=$$?; \
	  if [ $$code -eq 3 ]; then echo "FAIL: vulncheck: the programs call what is known to be vulnerable, see above" >&2; \
	  else echo "FAIL: vulncheck: nothing was checked, see above; where the Go vulnerability database cannot be reached, VULNDB names a copy" >&2; fi; \
	  exit $$code; }
