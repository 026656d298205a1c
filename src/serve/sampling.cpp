#include "ricci/serve/sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/float_environment.h"
#include "support/philox.h"

namespace ricci {
namespace {

constexpr std::uint64_t SamplerKey = 0x53414D50;  // a stream of its own
constexpr std::size_t FirstCandidates = 64;

void require(bool holds, std::string_view what, double value) {
  if (holds) return;
  throw UserError(ErrorCode::Attr, fmt::format("{}, and this one is {}", what, value));
}

}  // namespace

void Sampling::check() const {
  require(temperature >= 0 && std::isfinite(temperature), "a temperature is 0 or more",
          temperature);
  require(top_k >= 0, "top_k is 0 or more", static_cast<double>(top_k));
  require(top_p > 0 && top_p <= 1, "top_p is above 0 and at most 1", top_p);
  require(repetition_penalty > 0 && std::isfinite(repetition_penalty),
          "a repetition penalty is above 0", repetition_penalty);
}

Sampler::Sampler(const Sampling& how) : how_(how) { how.check(); }

std::int32_t Sampler::operator()(std::span<const float> logits,
                                 std::span<const std::int32_t> seen) {
  const DefaultFloatEnvironment floats;
  double best = -std::numeric_limits<double>::infinity();
  for (const float x : logits) {
    if (std::isnan(x)) {
      throw UserError(ErrorCode::Refused, "the model gives logits that are NaN",
                      "its weights are not finite, or too large for their dtype");
    }
    best = std::max(best, static_cast<double>(x));
  }
  if (std::isinf(best)) {
    throw UserError(ErrorCode::Refused, "the model gives logits none of which is finite");
  }
  logits_.assign(logits.begin(), logits.end());
  penalise(seen);
  ++drawn_;
  if (how_.temperature == 0) return likeliest();
  // Below the likeliest first: a temperature near 0 would make infinities of both.
  const double top = *std::ranges::max_element(logits_);
  for (double& x : logits_) x = (x - top) / how_.temperature;
  return drawn();
}

void Sampler::penalise(std::span<const std::int32_t> seen) {
  if (how_.repetition_penalty == 1) return;
  const std::unordered_set<std::int32_t> once(seen.begin(), seen.end());
  for (const std::int32_t token : once) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits_.size()) continue;
    double& x = logits_[static_cast<std::size_t>(token)];
    if (!std::isfinite(x)) continue;  // a token that is never drawn
    constexpr double Most = std::numeric_limits<double>::max();
    x = std::clamp(x > 0 ? x / how_.repetition_penalty : x * how_.repetition_penalty, -Most, Most);
  }
}

std::int32_t Sampler::likeliest() const {
  return static_cast<std::int32_t>(std::ranges::max_element(logits_) - logits_.begin());
}

// The likeliest tokens in order: as many as top_k says, and of these as many as top_p needs.
void Sampler::keep_likeliest() {
  candidates_.resize(logits_.size());
  std::iota(candidates_.begin(), candidates_.end(), 0);
  const auto likelier = [&](std::int32_t a, std::int32_t b) {
    const double x = logits_[static_cast<std::size_t>(a)];
    const double y = logits_[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  };
  const double top = *std::ranges::max_element(logits_);
  const auto weight = [&](std::int32_t token) {
    return std::exp(logits_[static_cast<std::size_t>(token)] - top);
  };
  std::size_t most = candidates_.size();
  if (how_.top_k > 0) most = std::min(most, static_cast<std::size_t>(how_.top_k));
  const auto sort_first = [&](std::size_t n) {
    std::ranges::partial_sort(candidates_, candidates_.begin() + static_cast<std::ptrdiff_t>(n),
                              likelier);
  };
  if (how_.top_p == 1) {
    sort_first(most);
    candidates_.resize(most);
    return;
  }
  double all = 0;
  if (most == candidates_.size()) {
    for (const std::int32_t token : candidates_) all += weight(token);
  }
  for (std::size_t n = std::min(most, FirstCandidates);; n = std::min(most, 4 * n)) {
    sort_first(n);
    if (all == 0 && n < most) continue;  // top_p is a share of what top_k leaves
    if (all == 0) {
      for (std::size_t i = 0; i < most; ++i) all += weight(candidates_[i]);
    }
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      sum += weight(candidates_[i]);
      if (sum < how_.top_p * all && i + 1 < most) continue;
      candidates_.resize(i + 1);
      return;
    }
  }
}

std::int32_t Sampler::drawn() {
  if (how_.top_k > 0 || how_.top_p < 1) {
    keep_likeliest();
  } else {
    candidates_.resize(logits_.size());
    std::iota(candidates_.begin(), candidates_.end(), 0);
  }
  double top = -std::numeric_limits<double>::infinity();
  for (const std::int32_t t : candidates_)
    top = std::max(top, logits_[static_cast<std::size_t>(t)]);
  std::vector<double> sums;
  sums.reserve(candidates_.size());
  double sum = 0;
  for (const std::int32_t t : candidates_) {
    sum += std::exp(logits_[static_cast<std::size_t>(t)] - top);
    sums.push_back(sum);
  }
  const PhiloxStream stream(how_.seed, SamplerKey);
  const double at = stream.uniform53(2 * (drawn_ - 1)) * sum;
  // The first sum above: one that a token of no probability does not have.
  const auto found = std::ranges::upper_bound(sums, at);
  const auto last = std::ranges::lower_bound(sums, sum);
  return candidates_[static_cast<std::size_t>(std::min(found, last) - sums.begin())];
}

}  // namespace ricci
