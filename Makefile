# Every target works from a fresh clone with Go alone; those for the cloud also want Node.
FUNCTIONS := receiver processor reconciler
# -buildid= and -trimpath: unchanged code gives an unchanged binary, whoever builds it, so its asset hash stays.
# lambda.norpc leaves out the RPC server of the go1.x runtime, which provided.al2023 does not use.
GOBUILD   := go build -tags lambda.norpc -trimpath -buildvcs=false -ldflags "-s -w -buildid="
BACKSTOP  := go run ./internal/cmd/backstop
# The race detector wants a C compiler; without one the tests run all the same.
RACE      := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)
TEST_REPORT ?= dist/test.json

# The CDK command, pinned. It and the synthesis want Node; everything else does not.
CDK       := npx --yes aws-cdk@2.1148.1
STAGE     ?= dev
CONTEXT   ?=

.PHONY: help dev build test lint bench sim crash cases generate synth snapshot deploy clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

dev: ## run everything on this machine
	$(BACKSTOP) dev

build: ## build the functions for AWS Lambda (linux/arm64) into dist/
	@for f in $(FUNCTIONS); do \
		GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GOBUILD) -o dist/$$f/bootstrap ./functions/$$f || exit 1; done
	@ls -l dist/*/bootstrap

# Where the race detector makes a test ten times as long without anything for it to see, the test leaves itself out
# under it and runs without: the planted faults of the simulation, the longest backlog, stories within one second.
test: ## run every test
	@mkdir -p $(dir $(TEST_REPORT)) && rm -f $(TEST_REPORT)*
	@[ -n "$(RACE)" ] || echo "no C compiler: the tests run without the race detector"
	go tool gotestsum --format pkgname --jsonfile $(TEST_REPORT).1 -- $(RACE) $$(go list ./... | grep -v /infra)
	$(if $(RACE),go tool gotestsum --format pkgname --jsonfile $(TEST_REPORT).2 -- ./internal/sim ./internal/billing)
	go tool gotestsum --format pkgname --jsonfile $(TEST_REPORT).3 -- ./infra/...

lint: ## check format, vet and staticcheck
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not formatted: $$unformatted"; exit 1; }
	go vet ./...
	go tool staticcheck ./...

bench: ## measure speed and size
	go test -run '^$$' -bench . -benchmem ./internal/...

synth: build ## synthesise the stack into cdk.out/, without the CDK command: make synth STAGE=prod
	CDK_OUTDIR=cdk.out CDK_CONTEXT_JSON='{"stage":"$(STAGE)"}' go run ./infra
	@ls cdk.out/*.template.json

snapshot: ## write the golden templates anew, after a change of the stack that is meant
	go test ./infra/pipeline -run TestTemplatesAreThoseCommitted -update

deploy: ## deploy a stage: make deploy STAGE=prod CONTEXT="-c email=oncall@example.com"
	$(CDK) deploy -c stage=$(STAGE) $(CONTEXT)

# Without SEED or LIFECYCLES: a minute of histories, the planted faults, and the scenarios in their full size.
SIMFLAGS = $(if $(SEED),-run TestHistories -sim.seed=$(SEED)) $(if $(EVENT),-sim.event=$(EVENT)) \
	$(if $(LIFECYCLES),-run TestHistories -sim.lifecycles=$(LIFECYCLES)) $(if $(SEED)$(LIFECYCLES),,-sim.full)

sim: ## simulate lifecycles under faults: make sim, make sim LIFECYCLES=1000000, make sim SEED=7
	go test ./internal/sim -count=1 -v -timeout 0 $(SIMFLAGS)

crash: ## kill -9 the functions under load and count: lost, doubled, out of order
	cd internal/crash && go test -run '^TestCrash$$' -count=1 -timeout 8m -crash

cases: ## run the case files, or those of BACKSTOP_CASES_DIR
	cd internal/cases && go test -run '^TestCases$$' -count=1

generate: ## make the generated files again: dictionary, samples, stories
	go generate ./...

clean: ## remove what was built
	rm -rf dist cdk.out
