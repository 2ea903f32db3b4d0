# The verbs of this project. Every one works on a fresh machine with Go alone, but for
# conformance and e2e, which install the released clients.
GO ?= go
TOOL := $(GO) tool -modfile=tools/go.mod

.PHONY: build rdma rdma-test run test race lint gen fuzz bench bench-compare perf conformance docs e2e

build: ## the master, into bin/
	$(GO) build -o bin/ ./cmd/...

run: build ## the master with the sample policy
	bin/mooncake_master --enable_multi_tenants=true --tenant_quota_connector_uri=docs/examples/tenant_quotas.yaml

rdma: ## the same with RDMA (needs libibverbs-dev), into bin/rdma/
	$(GO) build -tags rdma -o bin/rdma/ ./cmd/...

rdma-test: ## vet and tests of what speaks RDMA, over devices in software
	conformance/verbs.sh $(GO) vet -tags rdma ./transport/segment/... ./client ./cmd/... ./conformance/...
	conformance/verbs.sh $(GO) test -tags rdma -run RDMA ./transport/segment ./cmd/mooncake_node/node
	conformance/verbs.sh $(GO) test -tags rdma ./transport/segment/rdma ./transport/segment/verbs

test: ## all tests
	$(GO) test ./...

race: ## all tests under the race detector
	$(GO) test -race ./...

lint: ## vet, staticcheck with documentation checks, gofumpt
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	@unformatted=$$(git ls-files -z '*.go' ':!*.pb.go' | xargs -0 $(TOOL) gofumpt -l); \
	if [ -n "$$unformatted" ]; then echo "gofumpt would change:"; echo "$$unformatted"; exit 1; fi

gen: ## generated code
	$(GO) generate ./...

fuzz: ## every fuzz target for FUZZTIME (default 10s) each
	conformance/fuzz.sh $${FUZZTIME:-10s}

bench: ## micro-benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

bench-compare: ## micro-benchmarks of the hot path against their committed baseline
	conformance/bench-compare.sh

perf: ## against the C++ master, row by row; ROWS="single-8 memory" for some
	conformance/perf.sh $(ROWS)

conformance: ## the released clients against this master and the C++ ones
	conformance/run.sh --quick

docs: ## run every command that the documentation shows
	conformance/docs.sh

e2e: ## the heavy suites in full
	conformance/e2e.sh
