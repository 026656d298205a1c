#include "workloads/workload.h"

#include <cmath>
#include <complex>
#include <numbers>

#include <fmt/format.h>

#include "ricci/compiler/rewrite/cleanup.h"
#include "ricci/compiler/rewrite/precision.h"
#include "ricci/support/error.h"

#include "workloads/gradients.h"
#include "workloads/linalg.h"
#include "workloads/packed.h"
#include "workloads/sequences.h"
#include "workloads/spectra.h"
#include "workloads/training.h"

namespace ricci::bench {
namespace {

// SplitMix64: each state gives an independent number, so tensors need no order among them.
std::uint64_t next_bits(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15U);
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

double next_fraction(std::uint64_t& state) {
  return static_cast<double>(next_bits(state) >> 11U) * 0x1.0p-53;
}

// FNV-1a, which is the same everywhere, unlike std::hash.
std::uint64_t seed_of(std::string_view workload, std::string_view feed) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::string_view part : {workload, std::string_view("/"), feed}) {
    for (const char c : part) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

double draw(const FeedRule& rule, std::uint64_t& state) {
  const double u = next_fraction(state);
  switch (rule.kind) {
    case FeedRule::Kind::Uniform: return rule.low + (rule.high - rule.low) * u;
    case FeedRule::Kind::Integer: return std::floor(rule.low + (rule.high - rule.low) * u);
    case FeedRule::Kind::Normal: break;
  }
  const double angle = 2 * std::numbers::pi * next_fraction(state);
  return rule.low + rule.high * std::sqrt(-2 * std::log(1 - u)) * std::cos(angle);
}

Tensor make_feed(const Type& type, const FeedRule& rule, std::uint64_t state) {
  if (is_complex(type.dtype)) {
    std::vector<std::complex<double>> numbers(static_cast<std::size_t>(type.numel().value()));
    for (auto& number : numbers) {
      const double re = draw(rule, state);
      number = {re, draw(rule, state)};
    }
    return Tensor::from_numbers<std::complex<double>>(type, numbers);
  }
  std::vector<double> numbers(static_cast<std::size_t>(type.numel().value()));
  for (double& number : numbers) number = draw(rule, state);
  return Tensor::from_numbers<double>(type, numbers);
}

constexpr WorkloadEntry Entries[] = {
    {"mlp_train", mlp_train},
    {"gpt_train", gpt_train},
    {"cnn_train", cnn_train},
    {"splat_step", splat_step},
    {"fused_rows_fwd", fused_rows_fwd},
    {"fused_rows_grad", fused_rows_grad},
    {"softmax_ce_grad", softmax_ce_grad},
    {"attention_grad", attention_grad},
    {"scan_fwd", scan_fwd},
    {"scan_grad", scan_grad},
    {"lstm_grad", lstm_grad},
    {"mlp_hvp", mlp_hvp},
    {"hessian", logistic_hessian},
    {"embedding_grad", embedding_grad},
    {"selective_scan_grad", selective_scan_grad},
    {"gated_delta_grad", gated_delta_grad},
    {"attention_2048", attention_2048},
    {"attention_2048_grad", attention_2048_grad},
    {"sort", sort_million},
    {"top_k", top_k_50},
    {"cumsum_rows", cumsum_rows},
    {"cumsum_columns", cumsum_columns},
    {"rng_normal", rng_normal_4m},
    {"tiny_call", tiny_call},
    {"fft_65536", fft_65536},
    {"fft_100000", fft_100000},
    {"fft_512x512", fft_512x512},
    {"stft", stft_8x160000},
    {"eigh_256", eigh_values_and_vectors},
    {"svd_256", svd_values_and_vectors},
    {"q4_k_row", q4_k_row},
    {"q4_k_rows", q4_k_rows},
    {"int8_row", int8_row},
    {"int8_rows", int8_rows},
    {"f32_row", f32_row},
    {"f32_rows", f32_rows},
    {"q4_k_experts", q4_k_experts},
    {"f32_experts", f32_experts},
    {"code_row", code_row},
    {"code_rows", code_rows},
    {"q4_k_int8_row", q4_k_int8_row},
};

}  // namespace

Value Draft::input(const std::string& name, Type type, FeedRule rule) {
  feeds.emplace(name, rule);
  return graph.input(name, std::move(type));
}

Value Draft::param(const std::string& name, Type type, FeedRule rule) {
  feeds.emplace(name, rule);
  return graph.param(name, std::move(type));
}

Workload under(const PrecisionPolicy& policy, Workload workload) {
  workload.graph = workload.trained_in ? workload.trained_in(policy)
                                       : auto_mixed_precision(workload.graph, policy).graph;
  return workload;
}

Workload finished(std::string name, Draft draft, std::vector<std::string> outputs) {
  return {.name = std::move(name),
          .graph = dead_code_elimination(draft.graph).graph,
          .outputs = std::move(outputs),
          .donated = {},
          .feeds = std::move(draft.feeds),
          .settings = {}};
}

Feeds make_feeds(const Workload& workload) {
  Feeds feeds;
  for (const auto& [name, rule] : workload.feeds) {
    const Type& type = workload.graph.node(workload.graph.find_or_throw(name)).types[0];
    feeds.emplace(name, make_feed(type, rule, seed_of(workload.name, name)));
  }
  return feeds;
}

std::span<const WorkloadEntry> all_workloads() { return Entries; }

const WorkloadEntry& find_workload(std::string_view name) {
  for (const WorkloadEntry& entry : Entries) {
    if (entry.name == name) return entry;
  }
  throw UserError(ErrorCode::Name, fmt::format("no workload is named '{}'", name));
}

}  // namespace ricci::bench
