#include "runtime/step_cost.h"

#include <set>

#include "ricci/op/ops.h"

namespace ricci::runtime {
namespace {

bool computes(const loop::Instr& i) {
  return i.code == loop::Code::Unary || i.code == loop::Code::Binary ||
         i.code == loop::Code::Compare || i.code == loop::Code::Select;
}

std::int64_t kernel_flops(const loop::Kernel& k) {
  const std::int64_t rows = k.rows();
  const std::int64_t elements = rows * k.row_elements();
  std::int64_t flops = 0;
  for (const loop::Instr& i : k.code) {
    if (computes(i)) flops += i.per_element ? elements : rows;
  }
  flops += static_cast<std::int64_t>(k.reductions.size()) * elements;
  for (const loop::Accumulator& a : k.accumulators) flops += a.per_element ? elements : rows;
  return flops;
}

std::int64_t numel(const BufferView& v) { return v.buffer < 0 ? 0 : *v.type.numel(); }

// Products and sums of a multilinear op: each element of the result combines `depth` products.
std::int64_t call_flops(const CallStep& call) {
  const auto dim = [](const BufferView& v, std::size_t from_end) {
    return v.type.dims[v.type.rank() - from_end].value();
  };
  if (call.op.is<op::Matmul>()) {
    return 2 * numel(call.results[0]) * dim(call.operands[0], 1);
  }
  if (call.op.is<op::Conv>() && call.operands[1].type.dims[0].value() > 0) {
    return 2 * numel(call.results[0]) * numel(call.operands[1]) /
           call.operands[1].type.dims[0].value();
  }
  std::int64_t flops = 0;
  for (const BufferView& r : call.results) flops += numel(r);
  return flops;
}

}  // namespace

StepCost step_cost(const Program& program, const Step& step) {
  StepCost cost;
  std::set<BufferId> counted;
  const auto count = [&](BufferId b, std::int64_t bytes) {
    if (b >= 0 && counted.insert(b).second) cost.bytes += bytes;
  };
  const auto add = [&](const Launch& launch) {
    for (const BufferId b : launch.buffers) {
      if (b >= 0) count(b, program.buffers[static_cast<std::size_t>(b)].bytes());
    }
    cost.flops += kernel_flops(program.kernels[launch.kernel]);
  };
  if (const auto* k = std::get_if<KernelStep>(&step.what)) {
    for (const Launch& launch : k->launches) add(launch);
  } else if (const auto* c = std::get_if<CallStep>(&step.what)) {
    for (const auto* views : {&c->operands, &c->results}) {
      for (const BufferView& v : *views) count(v.buffer, numel(v) * size_of(v.type.dtype));
    }
    cost.flops = call_flops(*c);
    if (c->after) add(*c->after);
  }
  return cost;
}

}  // namespace ricci::runtime
