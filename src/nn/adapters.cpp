#include "ricci/nn/adapters.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/array/create.h"
#include "ricci/array/math.h"
#include "ricci/support/error.h"

#include "nn/layer.h"
#include "support/float_environment.h"

namespace ricci::nn {

bool is_adapter(std::string_view name) {
  return name.starts_with("adapter.") || name.find(".adapter.") != std::string_view::npos;
}

bool matches(std::string_view name, std::string_view pattern) {
  // Where the last star began, and what it has taken so far.
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t taken = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

namespace {

void require_rank(std::int64_t rank, const Linear& linear, const std::string& name) {
  const std::int64_t in = linear.w.dim(0).value();
  const std::int64_t out = linear.w.dim(1).value();
  if (rank > 0 && rank <= std::min(in, out)) return;
  throw UserError(
      ErrorCode::Attr,
      fmt::format("an adapter of rank {} for '{}', which maps {} to {}", rank, name, in, out),
      "a rank is positive, and at most the smaller of both");
}

Adapter low_rank(const Linear& linear, std::int64_t rank, double alpha) {
  const DefaultFloatEnvironment floats;
  const std::int64_t in = linear.w.dim(0).value();
  const DType dtype = linear.w.dtype();
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Adapter out;
  out.scale = alpha / static_cast<double>(rank);
  out.a = cast(uniform(next_key(), {in, rank}, -bound, bound), dtype);
  out.b = zeros({rank, linear.w.dim(1)}, {.dtype = dtype});
  return out;
}

Adapter adapter_for(const Linear& linear, const AdapterKind& kind, const std::string& name) {
  if (const auto* lora = std::get_if<LoRA>(&kind)) {
    require_rank(lora->rank, linear, name);
    return low_rank(linear, lora->rank, lora->alpha);
  }
  if (const auto* dora = std::get_if<DoRA>(&kind)) {
    require_rank(dora->rank, linear, name);
    Adapter out = low_rank(linear, dora->rank, dora->alpha);
    out.kind = Adapter::Kind::DoRA;
    out.magnitude = norm(linear.w, 0);
    return out;
  }
  Adapter out;
  out.kind = Adapter::Kind::IA3;
  out.factor = ones({linear.w.dim(1)}, {.dtype = linear.w.dtype()});
  return out;
}

}  // namespace

}  // namespace ricci::nn

namespace ricci::detail {

Adapting::Adapting(std::string pattern, nn::AdapterKind kind)
    : pattern_(std::move(pattern)), kind_(kind) {}

void Adapting::at(const std::string& name, nn::Linear& linear) {
  if (!nn::matches(name, pattern_)) {
    others_.push_back(name);
    return;
  }
  if (linear.adapter) {
    throw UserError(ErrorCode::Refused, fmt::format("'{}' has an adapter already", name),
                    "merge_adapters(model) first");
  }
  linear.adapter = nn::adapter_for(linear, kind_, name);
  ++adapted_;
}

void Adapting::require_some() const {
  if (adapted_ > 0) return;
  throw UserError(ErrorCode::Name, fmt::format("no linear map of the model matches '{}'", pattern_),
                  fmt::format("it has {}", fmt::join(others_, ", ")));
}

void Merging::at(const std::string& /*name*/, nn::Linear& linear) {
  if (!linear.adapter) return;
  linear.w = linear.effective_weight();
  if (linear.b.valid() && linear.adapter->kind == nn::Adapter::Kind::IA3) {
    linear.b = linear.b * linear.adapter->factor;
  }
  linear.adapter.reset();
}

}  // namespace ricci::detail
