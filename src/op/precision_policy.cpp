#include "ricci/op/precision_policy.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

constexpr std::string_view Solves = "*solve*";

}  // namespace

bool PrecisionPolicy::keeps_all() const {
  const auto keeps = [](DType dtype) { return dtype == DType::F32; };
  return !fp8 && keeps(compute) && keeps(reduction) && keeps(elementwise) && keeps(data_movement) &&
         std::ranges::all_of(rules, keeps, &Rule::dtype);
}

PrecisionPolicy PrecisionPolicy::always_f32() { return {}; }

PrecisionPolicy PrecisionPolicy::always_f16() {
  return {DType::F16, DType::F16, DType::F16, DType::F16, {}};
}

PrecisionPolicy PrecisionPolicy::auto_mixed() {
  PrecisionPolicy policy = always_f16();
  policy.rules = {{std::string(Solves), DType::F32, true}};
  return policy;
}

PrecisionPolicy PrecisionPolicy::auto_mixed_conservative() {
  PrecisionPolicy policy = auto_mixed();
  policy.reduction = DType::F32;
  for (const char* sensitive : {"exp*", "log*", "pow", "div", "reciprocal", "rsqrt", "square"}) {
    policy.rules.push_back({sensitive, DType::F32, true});
  }
  return policy;
}

PrecisionPolicy PrecisionPolicy::auto_mixed_bf16() {
  return {DType::BF16,
          DType::BF16,
          DType::BF16,
          DType::BF16,
          {{std::string(Solves), DType::F32, true}}};
}

// Solves are named among the rules for all: their class is that of products.
PrecisionPolicy PrecisionPolicy::auto_mixed_fp8() {
  PrecisionPolicy policy;
  policy.compute = DType::BF16;
  policy.rules = {{"*", DType::F32, true}};
  for (const char* product : {"matmul", "dot_general", "conv"}) {
    policy.rules.push_back({product, DType::BF16, true});
  }
  policy.fp8 = Fp8Recipe{};
  return policy;
}

std::span<const NamedPolicy> precision_policies() {
  static constexpr std::array<NamedPolicy, 6> Policies = {{
      {"always_f32", "computes as it is", PrecisionPolicy::always_f32},
      {"always_f16", "computes f32 values in f16", PrecisionPolicy::always_f16},
      {"auto_mixed_f16", "computes f32 values in f16, solves in f32", PrecisionPolicy::auto_mixed},
      {"auto_mixed_conservative",
       "computes f32 values in f16; reductions, exponentials, logarithms and quotients in f32",
       PrecisionPolicy::auto_mixed_conservative},
      {"auto_mixed_bf16", "computes f32 values in bf16, solves in f32",
       PrecisionPolicy::auto_mixed_bf16},
      {"auto_mixed_fp8", "computes products of f32 values in FP8, with a scale for each tensor",
       PrecisionPolicy::auto_mixed_fp8},
  }};
  return Policies;
}

PrecisionPolicy precision_policy_named(std::string_view name) {
  std::vector<std::string> names;
  for (const NamedPolicy& p : precision_policies()) {
    if (p.name == name) return p.make();
    names.emplace_back(p.name);
  }
  const auto close = nearest(name, names);
  throw UserError(ErrorCode::Name, fmt::format("no precision policy is named '{}'", name),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("the policies are: {}", join(names, ", ")));
}

}  // namespace ricci
