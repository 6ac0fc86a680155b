# Every target does its own set-up; Go and the package registries are all it takes.

GO ?= go
export CGO_ENABLED ?= 0
FUZZTIME ?= 20s
BENCH_SEARCH_DATA ?= ../shared/bench/search
BENCH_COMPARE ?= ../shared/bench/perf

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 24

.PHONY: run
run: ## run the proxy (UPSTREAM_BASE_URL says in front of what), with tool search on
	TOOL_SEARCH_ENABLED=$${TOOL_SEARCH_ENABLED:-true} LOG_FORMAT=$${LOG_FORMAT:-console} $(GO) run ./cmd/proxy serve

.PHONY: demo
demo: ## show one conversation with 120 tools in front of a small scripted model, no key needed
	@$(GO) run ./cmd/demo

.PHONY: build
build: ## build the static binary bin/proxy
	$(GO) build -trimpath -ldflags="-s -w -X main.buildVersion=$(VERSION)" -o bin/proxy ./cmd/proxy

.PHONY: test
test: ## pass all tests
	$(GO) test ./...

.PHONY: race
race: ## all tests under the race detector
	CGO_ENABLED=1 $(GO) test -race ./...

.PHONY: lint
lint: ## gofmt, vet and staticcheck
	test -z "$$(gofmt -l cmd internal)" || { gofmt -l cmd internal; exit 1; }
	$(GO) vet ./...
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (20s)
	@for package in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "$$package $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package || exit 1; \
		done; \
	done

.PHONY: bench
bench: ## Go benchmarks with allocations of every hot path
	$(GO) test -run '^$$' -bench . -benchmem ./internal/...

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist

.PHONY: bench-search
bench-search: ## how well and how fast the search finds tools, beside baselines (BENCH_SEARCH_DATA)
	@$(GO) run ./cmd/bench-search --data $(BENCH_SEARCH_DATA)

.PHONY: clients
clients: ## the official SDKs, the agents SDK and Codex through the proxy
	test/clients/run.sh

.PHONY: image
image: build ## pack bin/proxy into the image IMAGE (tool-search-proxy:local), without any base image
	deploy/image.sh $(or $(IMAGE),tool-search-proxy:local)

.PHONY: soak
soak: ## a long scripted mix of conversations, each answer compared byte by byte (SOAK=20000)
	SOAK=$(or $(SOAK),20000) $(GO) test -count=1 -timeout 60m -run TestSoak -v ./internal/app

.PHONY: bench-compare
bench-compare: ## the whole process beside other proxies, with the harness at BENCH_COMPARE
	deploy/bench-compare.sh $(BENCH_COMPARE)
