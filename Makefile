# Two commands: make quickstart, make test. Everything else serves them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
BIN     := bin
CACHE   := .cache
FUZZ    ?= 60s
TEST    ?= ./...
LAB_OPENSTACK := ./test/labs/openstack/lab.py
export CGO_ENABLED ?= 0

.PHONY: help
help: ## Show what there is to make
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk 'BEGIN{FS=":.*## "}{printf "  make %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build bin/vnfm
	$(GO) build -trimpath -o $(BIN)/vnfm ./cmd/vnfm

.PHONY: quickstart
quickstart: deps-run build ## On a fresh machine: everything it needs, then one VNF's whole life
	@$(BIN)/vnfm quickstart

.PHONY: deps-run
deps-run:
	@./scripts/deps.sh run

.PHONY: deps-test
deps-test:
	@./scripts/deps.sh test

.PHONY: test
test: deps-test generated lint race scale conformance contract faults e2e crash ## Everything it needs, then every test that there is

.PHONY: test-short
test-short: ## Unit tests with a private PostgreSQL, without root, network or other servers
	$(GO) test -short $$($(GO) list ./... | grep -v /test/)

.PHONY: race
race: ## go vet, then unit and store tests under the race detector, fuzz corpora included
	$(GO) vet ./...
	$(GO) vet -tags crashpoint ./cmd/... ./test/...
	CGO_ENABLED=1 $(GO) test -race -short -timeout 2h $$($(GO) list ./... | grep -vE '/test/(e2e|crash|conformance|contract|faults|labs)')

.PHONY: scale
scale: ## Lists over 100 000 VNF instances and 1 000 000 op occs: every plan an index's, latencies beside their targets
	$(GO) test -count=1 -timeout 2h -run TestScale -v ./internal/store | grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: conformance
conformance: ## Every resource, method and status of SOL003 v2.6.1 §5 against the built binary, every body against the API documents
	$(GO) test -count=1 -timeout 2h -v ./test/conformance/... | grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: contract
contract: build-lab-kubernetes ## What the drivers rely on: OpenStack on the simulator, Kubernetes on a real control plane
	$(GO) test -count=1 -timeout 2h -v ./test/contract/... ./test/labs/... | grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: faults
faults: ## Every fault of a VIM with every operation: state, message, retry, rollback, nothing left
	$(GO) test -count=1 -timeout 2h -v ./test/faults/... | grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: lab-openstack
lab-openstack: ## A real OpenStack on this machine (test/labs/openstack): installed, started, its address printed
	@$(LAB_OPENSTACK) install
	@$(LAB_OPENSTACK) up

.PHONY: lab-openstack-down
lab-openstack-down: ## End it; what is in it is kept
	@$(LAB_OPENSTACK) down

.PHONY: test-openstack
test-openstack: lab-openstack ## The contract suite on that OpenStack, which stays up; the output is kept in .cache
	@mkdir -p $(CACHE)
	. "$$($(LAB_OPENSTACK) env)"; echo "$$VNFM_OPENSTACK_VERSIONS" | tee $(CACHE)/test-openstack.txt; \
	time $(GO) test -count=1 -timeout 120m -v ./test/contract/openstack/... 2>&1 | tee -a $(CACHE)/test-openstack.txt \
	| grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: build-lab-kubernetes
build-lab-kubernetes: ## The programs of the Kubernetes lab, built once a machine (minutes) and kept in the user's cache folder
	@$(GO) run ./test/labs/kubernetes build

.PHONY: lab-kubernetes
lab-kubernetes: ## A real Kubernetes control plane on this machine (test/labs/kubernetes): built, started, its kubeconfig printed
	@$(GO) run ./test/labs/kubernetes up

.PHONY: lab-kubernetes-down
lab-kubernetes-down: ## End it; nothing of it is kept
	@$(GO) run ./test/labs/kubernetes down

.PHONY: e2e
e2e: build-lab-kubernetes ## The built binary driven by the real openstack client, VNFs on the simulator and CNFs on a real control plane
	$(GO) test -count=1 -timeout 2h ./test/e2e/...

.PHONY: crash
crash: build-lab-kubernetes ## kill -9 before and after every step, with one node and with three, of VNFs and of CNFs
	$(GO) test -count=1 -timeout 2h -v ./test/crash/... | grep --line-buffered -vE '^ *(=== |--- PASS: [^ ]*/)'

.PHONY: bench
bench: deps-test ## Throughput, latency and memory beside their targets and beside this machine's limits
	$(GO) run ./test/bench

.PHONY: fuzz
fuzz: ## Fuzz each target for FUZZ (60s)
	@./scripts/fuzz.sh $(FUZZ)

.PHONY: generate
generate: ## Regenerate the Go beside the OpenAPI documents
	$(GO) generate ./api/...

.PHONY: generated
generated: ## Fail when generated code is stale
	@./scripts/generated.sh

.PHONY: lint
lint: ## golangci-lint
	$(GO) build -modfile=tools/go.mod -o $(CACHE)/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(CACHE)/golangci-lint run ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN) $(CACHE) dist
