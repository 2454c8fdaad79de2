# Versions of the tools that the Makefile fetches. Versions of libraries are in go.mod.
GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
