#include <algorithm>
#include <set>
#include <span>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/compiler/schedule/verify.h"
#include "ricci/op/ops.h"
#include "ricci/support/text.h"

#include "schedule/attach.h"
#include "schedule/calls.h"
#include "schedule/fuse.h"
#include "schedule/kernel_builder.h"
#include "schedule/order_rows.h"
#include "schedule/place_temporaries.h"
#include "schedule/recompute.h"
#include "schedule/results_in_place.h"
#include "schedule/side_by_side.h"
#include "schedule/step_buffers.h"
#include "schedule/write_out.h"
#include "support/float_environment.h"
#include "support/phases.h"

namespace ricci {
namespace {

using schedule::Item;
using schedule::Storage;
using schedule::StorageId;

Program program_of(Graph prepared, const ProgramOptions& options);

class Assembler {
 public:
  Assembler(std::shared_ptr<const Graph> graph, const ProgramOptions& options)
      : graph_(std::move(graph)),
        options_(options),
        target_(options.target != nullptr ? *options.target : schedule::plain_target()),
        items_(made_items()),
        fusion_(fused()) {}

  Program run() {
    program_.name = graph_->name();
    program_.graph = graph_;
    add_steps();
    const Phase phase("order and memory");
    if (options_.fuse) {
      const auto replaced = replaced_buffers();
      schedule::put_results_in_place(program_, replaced, target_);
      schedule::attach_kernels(program_, replaced, target_);
      schedule::put_side_by_side(program_, replaced, target_);
    }
    schedule::order_rows(program_, target_.kernel_shape());
    const std::int64_t budget = options_.memory_budget;
    const auto fits = [&] { return budget == 0 || program_.arena_bytes <= budget; };
    schedule::place_temporaries(program_, target_.alignment(), target_.unshared_bytes());
    if (!fits()) schedule::place_temporaries(program_, target_.alignment(), 0);
    if (!fits()) schedule::recompute_to_fit(program_, budget, replaced_buffers(), target_);
    return std::move(program_);
  }

 private:
  [[nodiscard]] schedule::Items made_items() const {
    const Phase phase("items");
    return schedule::make_items(*graph_, target_.kernel_shape());
  }

  [[nodiscard]] schedule::Fusion fused() const {
    const Phase phase("fuse");
    return schedule::fuse(items_, {options_.fuse, replacements(), target_.kernel_shape()});
  }

  void add_steps() {
    const Phase phase("kernels and calls");
    add_buffers();
    const std::vector<bool> outside = used_outside();
    for (std::size_t g = 0; g < fusion_.groups.size(); ++g) {
      if (fusion_.groups[g].call) {
        add_call(items_.items[fusion_.groups[g].items[0]]);
      } else {
        add_kernel(g, outside);
      }
    }
    copy_donations();
  }

  void add_buffers() {
    for (const Storage& s : items_.storages) {
      Buffer b{.dtype = s.dtype, .elements = s.elements};
      switch (s.role) {
        case Storage::Role::Leaf: b.role = Buffer::Role::Input; break;
        case Storage::Role::Output:
          b.role = Buffer::Role::Output;
          b.index = s.output;
          break;
        case Storage::Role::Constant:
          b.role = Buffer::Role::Constant;
          b.constant = s.constant;
          break;
        case Storage::Role::Seed: b.role = Buffer::Role::Seed; break;
        case Storage::Role::Temporary: break;
      }
      program_.buffers.push_back(std::move(b));
    }
    for (std::size_t k = 0; k < items_.leaves.size(); ++k) {
      const StorageId s = items_.leaves[k].second;
      program_.buffers[static_cast<std::size_t>(s)].index = static_cast<std::int32_t>(k);
      program_.inputs.push_back(s);
    }
    program_.outputs = items_.outputs;
  }

  [[nodiscard]] std::vector<schedule::Replacement> replacements() const {
    std::vector<schedule::Replacement> out;
    for (const Donated& d : options_.donated) {
      out.push_back({items_.outputs[d.output], items_.leaves[d.input].second});
    }
    return out;
  }

  [[nodiscard]] std::vector<std::pair<BufferId, BufferId>> replaced_buffers() const {
    std::vector<std::pair<BufferId, BufferId>> out;
    for (const Donated& d : options_.donated) {
      out.emplace_back(program_.outputs[d.output], program_.inputs[d.input]);
    }
    return out;
  }

  // Outputs that cannot be computed where their input lies are computed elsewhere, and copied there
  // when all is done.
  void copy_donations() {
    for (std::size_t n = 0; n < options_.donated.size(); ++n) {
      const Donated& d = options_.donated[n];
      const BufferId output = program_.outputs[d.output];
      const BufferId input = program_.inputs[d.input];
      if (fusion_.replaced[n] && overwrites(output, input)) continue;
      Buffer whole = program_.buffers[static_cast<std::size_t>(output)];
      program_.buffers[static_cast<std::size_t>(output)].role = Buffer::Role::Temporary;
      program_.buffers[static_cast<std::size_t>(output)].index = -1;
      program_.buffers.push_back(whole);
      program_.outputs[d.output] = static_cast<BufferId>(program_.buffers.size() - 1);
      if (whole.elements == 0) continue;
      add_launch({0, {output, program_.outputs[d.output]}, {{}, "copy", {}, {}}},
                 loop::copying_kernel(whole.dtype, whole.elements, next_name()));
    }
  }

  // Does the kernel that fills `output` allow it to lie where `input` does?
  [[nodiscard]] bool overwrites(BufferId output, BufferId input) const {
    for (const Step& step : program_.steps) {
      const auto* kernels = std::get_if<KernelStep>(&step.what);
      if (kernels == nullptr) continue;
      const Launch* k = &kernels->launches.front();  // there is one yet
      const auto out = std::ranges::find(k->buffers, output);
      if (out == k->buffers.end()) continue;
      const auto o = static_cast<std::size_t>(out - k->buffers.begin());
      const loop::Kernel& kernel = program_.kernels[k->kernel];
      if (kernel.arguments[o].role != loop::ArgumentRole::Out) continue;
      const auto in = std::ranges::find(k->buffers, input);
      if (in == k->buffers.end()) return true;
      return loop::can_overwrite(kernel, o, static_cast<std::size_t>(in - k->buffers.begin()));
    }
    return false;
  }

  // Storages that someone outside the group that fills them reads.
  [[nodiscard]] std::vector<bool> used_outside() const {
    std::vector<bool> used(items_.storages.size(), false);
    for (std::size_t s = 0; s < items_.storages.size(); ++s) {
      used[s] = items_.storages[s].role == Storage::Role::Output;
    }
    for (std::size_t i = 0; i < items_.items.size(); ++i) {
      for (const schedule::Seen& seen : items_.items[i].reads) {
        const auto* stored = std::get_if<schedule::Stored>(&seen);
        if (stored == nullptr) continue;
        for (const std::size_t w : items_.writers[static_cast<std::size_t>(stored->storage)]) {
          if (fusion_.group_of[w] != fusion_.group_of[i]) {
            used[static_cast<std::size_t>(stored->storage)] = true;
          }
        }
      }
    }
    return used;
  }

  Origin described(const std::vector<std::size_t>& items) const {
    Origin step;
    std::set<NodeId> seen;
    std::vector<std::string> ops;
    for (const std::size_t i : items) {
      const NodeId id = items_.items[i].node;
      if (!seen.insert(id).second) continue;
      step.nodes.push_back(id);
      const Node& node = graph_->nodes()[id];
      ops.emplace_back(node.op.mnemonic());
      if (node.provenance && !step.where.known()) step.where = node.provenance->where;
      if (node.provenance && !node.provenance->label.empty() && step.label.empty()) {
        step.label = node.provenance->label;
      }
    }
    constexpr std::size_t Shown = 4;
    const std::size_t more = ops.size() > Shown ? ops.size() - Shown : 0;
    ops.resize(std::min(ops.size(), Shown));
    std::string text = join(ops, "+");
    if (more > 0) text += fmt::format("+{}", more);
    step.label = step.label.empty() ? text : step.label + ": " + text;
    return step;
  }

  [[nodiscard]] std::string next_name() const {
    return fmt::format("k{}", program_.kernels.size());
  }

  void add_launch(Launch launch, loop::Kernel kernel) {
    launch.kernel = program_.kernels.size();
    program_.kernels.push_back(std::move(kernel));
    program_.steps.push_back(schedule::kernel_step({std::move(launch)}));
  }

  void add_kernel(std::size_t g, const std::vector<bool>& outside) {
    auto built = schedule::build_kernel(items_, fusion_, g, outside, next_name(), target_);
    Launch launch{0, built.storages, described(fusion_.groups[g].items)};
    Origin combined = launch.from;
    combined.label += " (combine)";
    combined.where = {};
    launch.from.apart_because = fusion_.groups[g].apart_because;
    for (const auto& partial : built.partials) {
      BufferId& at = launch.buffers[partial.argument];
      const std::int64_t elements = partial.kept * partial.chunks * partial.length;
      if (at < 0) at = temporary(partial.dtype, elements);
    }
    const std::vector<BufferId> buffers = launch.buffers;
    add_launch(std::move(launch), std::move(built.kernel));
    for (const auto& partial : built.partials) {
      add_launch({0, {buffers[partial.argument], partial.result, -1}, combined},
                 combining_kernel(partial, next_name()));
    }
  }

  BufferId temporary(DType dtype, std::int64_t elements) {
    program_.buffers.push_back({.dtype = dtype, .elements = elements});
    return static_cast<BufferId>(program_.buffers.size() - 1);
  }

  void add_call(const Item& item) {
    const Node& node = graph_->nodes()[item.node];
    Step step{described({static_cast<std::size_t>(&item - items_.items.data())}), {}};
    std::vector<BufferView> operands;
    for (std::size_t k = 0; k < item.reads.size(); ++k) {
      const auto& s = std::get<schedule::Stored>(item.reads[k]);
      operands.push_back({s.storage, graph_->type(node.operands[k]), s.layout});
    }
    std::vector<BufferView> results;
    for (std::size_t r = 0; r < item.writes.size(); ++r) {
      results.push_back(
          {item.writes[r], node.types[r], loop::contiguous(node.types[r].static_dims())});
    }
    if (node.bodies.empty()) {
      loop::Call call = lower_node(*graph_, node).call;
      if (!schedule::is_claimed(target_, call, *graph_, node)) call = loop::HostCall{};
      step.what =
          CallStep{std::move(call), reference_to(node.op), std::move(operands), std::move(results)};
    } else {
      step.what = control_step(node, std::move(operands), std::move(results));
    }
    program_.steps.push_back(std::move(step));
  }

  // The reference of an op: one for all calls that are the same.
  std::size_t reference_to(const Op& op) {
    const auto [found, is_new] = references_.try_emplace(op.hash(), program_.references.size());
    if (!is_new && op_of(program_.references[found->second]) == op) return found->second;
    program_.references.emplace_back(op);
    return program_.references.size() - 1;
  }

  decltype(Step::what) control_step(const Node& node, std::vector<BufferView> operands,
                                    std::vector<BufferView> results) {
    const std::optional<loop::LoopPlan> plan = schedule::loop_plan(node);
    if (plan && options_.fuse) {
      std::optional<loop::WrittenLoop> written =
          schedule::written_loop(node, *plan, target_.kernel_shape());
      if (written && target_.writes_out(*written)) {
        return LoopStep{std::move(*written), std::move(operands), std::move(results)};
      }
    }
    ControlStep control{Branch{}, std::move(operands), std::move(results), {}, -1};
    if (!plan) {
      add_body(control, node, "then");
      add_body(control, node, "else");
    } else {
      control.how = *plan;
      add_body(control, node, "body");
      if (plan->conditional) add_body(control, node, "cond");
      for (const loop::Carry& carry : plan->carries) {
        const Type& type = control.operands[static_cast<std::size_t>(carry.operand)].type;
        const BufferId even = temporary(type.dtype, *type.numel());
        control.carries.push_back({even, temporary(type.dtype, *type.numel())});
      }
    }
    std::int64_t workspace = 0;
    for (const auto& [role, body] : control.bodies) {
      workspace = std::max(workspace, body->arena_bytes);
    }
    control.workspace = temporary(DType::U8, workspace);
    return control;
  }

  void add_body(ControlStep& control, const Node& node, const char* role) {
    control.bodies.emplace_back(role, std::make_shared<Program>(program_of(
                                          *node.body(role), {options_.fuse, options_.target, {}})));
  }

  std::shared_ptr<const Graph> graph_;
  const ProgramOptions& options_;
  const schedule::Target& target_;
  schedule::Items items_;
  schedule::Fusion fusion_;
  std::unordered_map<std::uint64_t, std::size_t> references_;  // by the hash of their ops
  Program program_;
};

// Programs are of numbers; sizes that callers choose are bound first.
void require_known_sizes(const Graph& graph) {
  const std::set<std::string> unknown = graph.symbols();
  if (unknown.empty()) return;
  throw UserError(ErrorCode::NeedsStaticDim,
                  fmt::format("'{}' has sizes that are not known yet: {}", graph.name(),
                              fmt::join(unknown, ", ")),
                  "bind them before compiling");
}

Program program_of(Graph prepared, const ProgramOptions& options) {
  const Phase phase("schedule");
  return Assembler(std::make_shared<const Graph>(std::move(prepared)), options).run();
}

}  // namespace

Program program_of_prepared(Graph prepared, const ProgramOptions& options) {
  const DefaultFloatEnvironment floats;
  require_known_sizes(prepared);
  Program program = program_of(std::move(prepared), options);
#ifndef NDEBUG
  verify(program, options.target != nullptr ? *options.target : schedule::plain_target());
#endif
  return program;
}

Program make_program(const Graph& graph, const ProgramOptions& options) {
  require_known_sizes(graph);
  return program_of_prepared(prepare_for_device(graph, options), options);
}

}  // namespace ricci
