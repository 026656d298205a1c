#include "device/reference_call.h"

#include <algorithm>
#include <cstring>

#include "ricci/compiler/rule/eval.h"

#include "ir/empty_results.h"

namespace ricci::device {

namespace {

// The elements of a row-major tensor where strides say, from `to` on.
void put(const Tensor& plain, std::span<const std::int64_t> strides, std::byte* to) {
  const StaticDims dims = plain.type().static_dims();
  if (loop::is_contiguous({0, {strides.begin(), strides.end()}}, dims)) {
    std::memcpy(to, plain.data(), plain.bytes().size());
    return;
  }
  const std::int64_t size = size_of(plain.type().dtype);
  for (std::int64_t e = 0; e < *plain.type().numel(); ++e) {
    std::int64_t rest = e;
    std::int64_t place = 0;
    for (std::size_t a = dims.size(); a-- > 0; rest /= dims[a])
      place += rest % dims[a] * strides[a];
    std::memcpy(to + place * size, plain.data() + e * size, static_cast<std::size_t>(size));
  }
}

}  // namespace

bool gives_nothing(const Program& program, const CallStep& step) {
  const auto is_nothing = [](const BufferView& v) { return v.buffer < 0 || is_empty(v.type); };
  return std::ranges::all_of(step.results, is_nothing) &&
         does_nothing_else(op_of(program.reference_of(step)), step.operands.size(),
                           [&](std::size_t k) { return step.operands[k].type; });
}

ReferenceCall::ReferenceCall(const Program& program, const CallStep& step)
    : graph_("call", program.registry()),
      node_{.op = op_of(program.reference_of(step))},
      operands_(step.operands) {
  for (const BufferView& v : step.results) {
    results_.push_back(v);
    node_.types.push_back(v.type);
    node_.wanted.push_back(v.buffer >= 0);
  }
}

void ReferenceCall::run(std::span<std::byte* const> operands, std::span<std::byte* const> results,
                        std::uint64_t seed) const {
  std::vector<Tensor> values;
  values.reserve(operands_.size());
  for (std::size_t k = 0; k < operands_.size(); ++k) {
    values.push_back(
        Tensor::borrow(operands_[k].type, operands[k], operands_[k].layout.strides, nullptr));
  }
  EvalContext context(node_, graph_, std::move(values), seed, {});
  evaluate(context);
  const std::vector<Tensor> made = context.take_results();
  for (std::size_t r = 0; r < results.size(); ++r) {
    if (results[r] == nullptr) continue;
    put(made[r].contiguous(), results_[r].layout.strides, results[r]);
  }
}

}  // namespace ricci::device
