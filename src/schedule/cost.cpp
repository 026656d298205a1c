#include "ricci/compiler/schedule/cost.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/calls.h"

namespace ricci {
namespace {

bool computes(loop::Code code) {
  switch (code) {
    case loop::Code::Unary:
    case loop::Code::Binary:
    case loop::Code::Compare:
    case loop::Code::Select:
    case loop::Code::Cast:
    case loop::Code::Running:
    case loop::Code::Random: return true;
    case loop::Code::Constant:
    case loop::Code::Index:
    case loop::Code::Load:
    case loop::Code::Copy:
    case loop::Code::Reduced: return false;
  }
  return false;
}

// Elements of an argument that an access visits.
double reach(const loop::Kernel& k, const loop::Access& a) {
  double n = 1;
  for (std::size_t i = 0; i < a.strides.size(); ++i) {
    if (a.strides[i] != 0 || !a.terms.empty()) n *= static_cast<double>(k.extents[i]);
  }
  return n;
}

// `made` was made by the call it is attached to, and is in the cache.
StepCost launch_cost(const Program& p, const Launch& step, BufferId made = -1) {
  const loop::Kernel& k = p.kernels[step.kernel];
  const auto rows = static_cast<double>(k.rows());
  const double elements = rows * static_cast<double>(k.row_elements());
  StepCost cost;
  std::map<std::int32_t, double> visited;
  // What is loaded again is in the cache; elsewhere in the same array are other elements.
  std::set<std::tuple<std::int32_t, std::int64_t, std::vector<std::int64_t>>> places;
  const auto visit = [&](const loop::Access& a) {
    const bool fresh = places.emplace(a.argument, a.offset, a.strides).second;
    if (fresh || !a.terms.empty()) visited[a.argument] += reach(k, a);
  };
  for (const loop::Stage& stage : k.stages) {
    const double times = stage.per_element ? elements : rows;
    for (const loop::Reg r : stage.code) {
      const loop::Instr& i = k.code[static_cast<std::size_t>(r)];
      if (computes(i.code)) cost.flops += times;
      if (i.code == loop::Code::Load) visit(i.access);
    }
    for (const loop::Store& s : stage.stores) visit(s.access);
    cost.flops += times * static_cast<double>(stage.reductions.size() + stage.accumulators.size());
  }
  for (const loop::Accumulator& a : k.accumulators) {
    if (a.running) continue;
    const double length = a.per_element ? static_cast<double>(k.row_elements()) : 1;
    visited[a.argument] = length * static_cast<double>(k.kept_rows() * k.chunks);
  }
  for (const auto& [argument, count] : visited) {
    const loop::Argument& a = k.arguments[static_cast<std::size_t>(argument)];
    const BufferId b = step.buffers[static_cast<std::size_t>(argument)];
    if (a.role == loop::ArgumentRole::Local || b < 0) continue;
    if (a.role == loop::ArgumentRole::In && b == made) continue;
    const Buffer& buffer = p.buffers[static_cast<std::size_t>(b)];
    const double bytes = std::min(count, static_cast<double>(buffer.elements)) *
                         static_cast<double>(size_of(a.dtype));
    (a.role == loop::ArgumentRole::In ? cost.bytes_read : cost.bytes_written) += bytes;
  }
  return cost;
}

double elements_of(const BufferView& v) { return static_cast<double>(v.type.numel().value_or(0)); }

double bytes_of(const std::vector<BufferView>& views) {
  double bytes = 0;
  for (const BufferView& v : views) {
    if (v.buffer >= 0) bytes += elements_of(v) * static_cast<double>(size_of(v.type.dtype));
  }
  return bytes;
}

StepCost scaled(StepCost cost, double by) {
  return {cost.flops * by, cost.bytes_read * by, cost.bytes_written * by};
}

// How often a loop is thought to run: one without a bound once.
double trips_of(const loop::LoopPlan& plan) {
  return static_cast<double>(plan.most_trips.value_or(1));
}

StepCost control_cost(const ControlStep& c) {
  StepCost all;
  StepCost dearest;
  for (const auto& [role, body] : c.bodies) {
    const StepCost cost = estimate_cost(*body);
    all += cost;
    if (cost.flops + cost.bytes() > dearest.flops + dearest.bytes()) dearest = cost;
  }
  const auto* plan = std::get_if<loop::LoopPlan>(&c.how);
  return plan != nullptr ? scaled(all, trips_of(*plan)) : dearest;
}

}  // namespace

StepCost& StepCost::operator+=(const StepCost& other) {
  flops += other.flops;
  bytes_read += other.bytes_read;
  bytes_written += other.bytes_written;
  return *this;
}

StepCost estimate_cost(const Program& program, const Step& step) {
  if (const auto* k = std::get_if<KernelStep>(&step.what)) {
    StepCost cost;
    for (const Launch& launch : k->launches) cost += launch_cost(program, launch);
    return cost;
  }
  if (const auto* c = std::get_if<CallStep>(&step.what)) {
    StepCost cost{schedule::call_flops(program, *c), bytes_of(c->operands), bytes_of(c->results)};
    if (c->after) {
      // Where the attached kernel overwrites what the call makes, that is written once.
      if (std::ranges::count(c->after->buffers, c->results[0].buffer) > 1) cost.bytes_written = 0;
      cost += launch_cost(program, *c->after, c->results[0].buffer);
    }
    if (c->before) {
      cost.bytes_read -= bytes_of({c->operands[0]});  // in the cache when it is read
      cost += launch_cost(program, *c->before);
    }
    return cost;
  }
  if (const auto* l = std::get_if<LoopStep>(&step.what)) {
    // Its inner values are in registers, or nearly.
    return {loop::flops_per_trip(l->loop) * trips_of(l->loop.plan), bytes_of(l->operands),
            bytes_of(l->results)};
  }
  return control_cost(std::get<ControlStep>(step.what));
}

StepCost estimate_cost(const Program& program) {
  StepCost cost;
  for (const Step& step : program.steps) cost += estimate_cost(program, step);
  return cost;
}

}  // namespace ricci
