# Short names for the usual commands; CMakePresets.json holds the configurations.
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 30
PROPERTY_COUNT ?= 140000
SUMMARY := build/dev/test-summary

.DEFAULT_GOAL := help
.PHONY: help setup build test small small-test demo docs bench bench-cuda bench-ops bench-programs bench-ir bench-arrays lint format property asan tsan fuzz install package clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 18

setup: ## install the packages the build needs, when any is missing
	@scripts/setup

build: setup ## build library, tool and tests; the tool is build/ricci
	cmake --preset dev
	cmake --build --preset dev -j $(JOBS)
	@ln -sfn dev/ricci build/ricci

test: build ## build, then run every test
	@rm -f $(SUMMARY)*.txt
	ctest --preset dev -j $(JOBS)
	@cat build/dev/transform-matrix.txt $(SUMMARY)*.txt

small: ## build and try the static tool without LLVM: build/small/ricci
	@scripts/setup --small
	cmake --preset small
	cmake --build --preset small -j $(JOBS) --target ricci_tool
	scripts/smoke build/small/ricci
	@ls -l build/small/ricci

small-test: small ## build and run the tests of the build without LLVM
	cmake --build --preset small -j $(JOBS)
	ctest --preset small -j $(JOBS)

demo: setup ## build for release and run the demonstration: it trains a GPT for a minute
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_tool
	@[ -e build/ricci ] || ln -sfn release/ricci build/ricci
	scripts/demo.sh $(DEMO_FLAGS)

docs: build ## write docs/generated from the op table
	build/ricci doc -o docs/generated/ops.md

bench: setup ## build for release and measure the workloads against JAX and PyTorch
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_runner
	python3 bench/run_bench.py $(BENCH_FLAGS)

bench-cuda: setup ## build for release and measure the workloads on this machine's NVIDIA GPU
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_cuda
	python3 bench/cuda/run.py $(BENCH_FLAGS)

bench-ops: setup ## build for release and measure every op and its gradient against the same
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_runner
	python3 bench/ops/survey.py $(BENCH_FLAGS)

bench-programs: setup ## the same for seventy programs of the kind people write
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_runner
	python3 bench/ops/survey.py --set programs $(BENCH_FLAGS)

bench-ir: setup ## build for release and time graphs, passes and transforms themselves
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_ir
	build/release/ricci_bench_ir --benchmark_out=build/release/bench-ir.json \
	  --benchmark_out_format=json

bench-arrays: setup ## build for release and time arrays and jitted calls; the twin is bench/arrays/eager_torch.py
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci_bench_arrays
	build/release/ricci_bench_arrays

lint: ## check format, layers, sizes, words, names, headers and clang-tidy
	scripts/check

format: ## reformat the C++ sources in place
	scripts/check --fix-format

property: build ## check the laws of the transforms on ten thousand random programs
	RICCI_PROPERTY_COUNT=$(PROPERTY_COUNT) build/dev/ricci_tests --gtest_filter='PropertyTransforms*'

asan: ## run the tests under the address and undefined-behaviour sanitizers
	@scripts/setup --dev
	cmake --preset asan
	cmake --build --preset asan -j $(JOBS)
	ctest --preset asan -j $(JOBS)

tsan: ## run the tests under the thread sanitizer
	@scripts/setup --dev
	cmake --preset tsan
	cmake --build --preset tsan -j $(JOBS)
	ctest --preset tsan -j $(JOBS)

fuzz: ## run every fuzz harness for FUZZ_SECONDS (default 30)
	@scripts/setup --dev
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	scripts/fuzz $(FUZZ_SECONDS)

install: setup ## build for release and install under PREFIX (default /usr/local)
	cmake --preset release
	cmake --build --preset release -j $(JOBS) --target ricci ricci_runtime_archive ricci_tool
	cmake --install build/release --prefix $(PREFIX)

package: ## build for release and write build/package/packages: a tarball that runs anywhere, and a .deb
	@scripts/setup --package
	cmake --preset package
	cmake --build --preset package -j $(JOBS)
	cd build/package && cpack
	scripts/test_package build/package/packages

clean: ## remove the build tree
	rm -rf build
