#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ricci/compiler/rule/eval.h"

#include "rule/rule_fault.h"

namespace ricci {

EvalContext::EvalContext(const Node& node, const Graph& graph, std::vector<Tensor> operands,
                         std::uint64_t seed, BodyRunner run_body)
    : node_(node),
      graph_(graph),
      operands_(std::move(operands)),
      results_(node.types.size()),
      given_(node.types.size(), false),
      seed_(seed),
      run_body_(std::move(run_body)) {}

IntNd EvalContext::integers(std::size_t k) const {
  const Tensor& t = operands_[k];
  if (is_float(t.dtype())) {
    const double largest = t.dtype() == DType::F64 ? 0x1p53 : 0x1p24;
    for (const double v : t.numbers<double>()) {
      if (!(v == std::trunc(v)) || std::fabs(v) >= largest) {
        fail(ErrorCode::IndexOutOfRange,
             fmt::format("{} is not an index {} can hold exactly", v, name(t.dtype())),
             "use an integer dtype for indices");
      }
    }
  }
  return numbers<std::int64_t>(k);
}

IntNd EvalContext::indices(std::size_t k, std::int64_t limit) const {
  IntNd out = integers(k);
  for (const std::int64_t i : out.data) {
    if (i < 0 || i >= limit) {
      fail(ErrorCode::IndexOutOfRange, fmt::format("index {} is outside [0, {})", i, limit),
           "negative indices do not count from the end");
    }
  }
  return out;
}

void EvalContext::check_result(std::size_t r, const StaticDims& dims) const {
  if (r >= results_.size()) {
    rule::fail_rule(node_, fmt::format("the kernel of {} gives a result {}, but there are {}",
                                       rule::name_in_messages(node_), r, results_.size()));
  }
  if (dims == result_dims(r)) return;
  rule::fail_rule(
      node_, fmt::format("the kernel of {} gives sizes {} for result {}, which is {}",
                         rule::name_in_messages(node_), to_string(Dims(dims.begin(), dims.end())),
                         r, node_.types[r].to_string()));
}

void EvalContext::give(std::size_t r, Tensor value) {
  check_result(r, value.dims());
  if (value.dtype() != node_.types[r].dtype) {
    rule::fail_rule(node_, fmt::format("the kernel of {} gives {} for result {}, which is {}",
                                       rule::name_in_messages(node_), value.type().to_string(), r,
                                       node_.types[r].to_string()));
  }
  results_[r] = std::move(value);
  given_[r] = true;
}

void EvalContext::give_moved(std::size_t r,
                             const std::function<Source(const StaticDims& index)>& from) {
  std::vector<Tensor> sources;
  for (const Tensor& t : operands_) sources.push_back(t.contiguous());
  Tensor out = Tensor::zeros(node_.types[r]);
  const std::int64_t size = size_of(out.dtype());
  std::byte* to = out.mutable_data();
  for_each_index(out.dims(), [&](const StaticDims& index) {
    const Source s = from(index);
    if (s.flat >= 0) {
      std::memcpy(to, sources[s.operand].data() + s.flat * size, static_cast<std::size_t>(size));
    }
    to += size;
  });
  give(r, std::move(out));
}

std::vector<Tensor> EvalContext::run_body(std::string_view role,
                                          std::span<const Tensor> inputs) const {
  const Graph* body = node_.body(role);
  check_internal(body != nullptr, "run_body: the node has no such body");
  return run_body_(*body, inputs);
}

void EvalContext::fail(ErrorCode code, std::string message, std::string help) const {
  Diagnostic d{code, std::string(node_.op.mnemonic()), std::move(message), {}, {}, std::move(help)};
  if (node_.provenance) d.where = node_.provenance->where;
  throw UserError(std::move(d));
}

std::vector<Tensor> EvalContext::take_results() { return std::move(results_); }

}  // namespace ricci
