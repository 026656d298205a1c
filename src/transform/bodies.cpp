#include "transform/bodies.h"

#include <fmt/format.h>

#include "ricci/build/build.h"

#include "ir/draws_numbers.h"
#include "transform/batching.h"
#include "transform/codes.h"
#include "transform/dependence.h"
#include "transform/forward.h"
#include "transform/halves.h"
#include "transform/reverse.h"
#include "transform/taylor.h"
#include "transform/tidy.h"

namespace ricci {
namespace {

std::shared_ptr<const Graph> shared(Transformed t) {
  return std::make_shared<const Graph>(tidied(std::move(t)).graph);
}

std::vector<ValueId> marked_inputs(const Graph& body, const std::vector<bool>& marks) {
  std::vector<ValueId> out;
  const std::vector<NodeId> inputs = body.inputs();
  check_internal(inputs.size() == marks.size(), "a mask has one entry per input of the body");
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (marks[k]) out.push_back({inputs[k], 0});
  }
  return out;
}

// Seeds the outputs of a body with new inputs and gives the cotangents that are wanted.
std::vector<Value> pulled_back(Reverse& reverse, const Graph& body, const BodyVjp& request) {
  Graph& graph = reverse.graph();
  for (std::size_t i = 0; i < request.seeds.size(); ++i) {
    if (!request.seeds[i]) continue;
    const op::InputRole role{op::InputRole::Kind::DOutput, static_cast<std::int64_t>(i)};
    const Value d = graph.input(graph.unique_name(fmt::format("d_output_{}", i)),
                                type_of_tangent(body, body.outputs()[i]), role);
    if (request.live[i]) reverse.seed(i, d);
  }
  reverse.sweep();
  std::vector<Value> outputs;
  const std::vector<NodeId> inputs = body.inputs();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (!request.wanted[k]) continue;
    const ValueId input{inputs[k], 0};
    const Value arrived = request.needed[k] ? reverse.cotangent(input) : Value();
    outputs.push_back(arrived.valid() ? arrived : filled(graph, type_of_tangent(body, input), 0));
  }
  return outputs;
}

class Bodies final : public BodyTransforms {
 public:
  explicit Bodies(BatchedRandom random) : random_(random) {}
  explicit Bodies(ScanSaving saving) : random_(BatchedRandom::Shared), saving_(std::move(saving)) {}

  [[nodiscard]] std::vector<bool> depends(const Graph& body,
                                          const std::vector<bool>& inputs) const override {
    const std::vector<ValueId> from = marked_inputs(body, inputs);
    const Dependence depends(body, from);
    std::vector<bool> out;
    for (const ValueId v : body.outputs()) out.push_back(depends(v));
    return out;
  }

  [[nodiscard]] std::shared_ptr<const Graph> vjp(const Graph& body,
                                                 const BodyVjp& request) const override {
    Reverse reverse(body, marked_inputs(body, request.needed), request.live, saving_,
                    request.residuals);
    return shared(reverse.finish(pulled_back(reverse, body, request)));
  }

  [[nodiscard]] BodyHalves halves(const Graph& body, const BodyVjp& request,
                                  const std::vector<bool>& varying,
                                  const SavesValue& saves) const override {
    Reverse reverse(body, marked_inputs(body, request.needed), request.live, saving_);
    const std::size_t forward_nodes = reverse.graph().size();
    std::vector<Value> outputs;
    for (const ValueId v : body.outputs()) outputs.push_back(reverse.value(v));
    for (const Value& v : pulled_back(reverse, body, request)) outputs.push_back(v);
    Graph joint = reverse.finish(outputs).graph;
    return cut_in_halves(std::move(joint), {.forward_nodes = forward_nodes,
                                            .forward_outputs = body.outputs().size(),
                                            .varying = varying,
                                            .saves = saves});
  }

  [[nodiscard]] const ScanSaving& scan_saving() const override { return saving_; }

  [[nodiscard]] BodyTangent jvp(const Graph& body, const std::vector<bool>& live,
                                const std::vector<bool>& required) const override {
    Forward forward(body);
    forward.copy_leaves();
    std::size_t next = 0;
    for (const ValueId v : marked_inputs(body, live)) {
      Graph& graph = forward.graph();
      forward.set_tangent(v, graph.input(graph.unique_name(fmt::format("tangent_{}", next++)),
                                         type_of_tangent(body, v)));
    }
    forward.sweep();
    std::vector<Value> outputs;
    for (const ValueId v : body.outputs()) outputs.push_back(forward.value(v));
    BodyTangent out;
    for (std::size_t i = 0; i < body.outputs().size(); ++i) {
      const ValueId v = body.outputs()[i];
      out.outputs.push_back(forward.tangent(v).valid() || required[i]);
      if (out.outputs.back()) outputs.push_back(forward.tangent_or_zero(v));
    }
    out.graph = shared(forward.finish(outputs));
    return out;
  }

  // Tangents are series of one coefficient.
  [[nodiscard]] BodySeries series(const Graph& body, const std::vector<std::size_t>& degrees,
                                  const std::vector<std::size_t>& required,
                                  std::size_t order) const override {
    if (order > 1) return long_series(body, degrees, required, order);
    const auto mask = [](const std::vector<std::size_t>& counts) {
      std::vector<bool> out;
      for (const std::size_t c : counts) out.push_back(c > 0);
      return out;
    };
    const BodyTangent tangent = jvp(body, mask(degrees), mask(required));
    return {tangent.graph, {tangent.outputs.begin(), tangent.outputs.end()}};
  }

  [[nodiscard]] std::vector<bool> batched_outputs(const Graph& body,
                                                  const std::vector<bool>& batched) const override {
    std::vector<bool> marks(body.size());
    for (const ValueId v : marked_inputs(body, batched)) marks[v.node] = true;
    for (NodeId id = 0; id < body.size(); ++id) {
      const Node& node = body.nodes()[id];
      if (random_ == BatchedRandom::Split && draws_numbers(node)) marks[id] = true;
      for (const ValueId v : node.operands) marks[id] = marks[id] || marks[v.node];
    }
    std::vector<bool> out;
    for (const ValueId v : body.outputs()) out.push_back(marks[v.node]);
    return out;
  }

  [[nodiscard]] BatchedBody batch(const Graph& body, const std::vector<bool>& batched,
                                  const Dim& size,
                                  const std::vector<bool>& required) const override {
    Batching batching(body, size, random_);
    for (const ValueId v : marked_inputs(body, batched)) batching.batch_leaf(v.node, 0);
    batching.sweep();
    std::vector<Value> outputs;
    BatchedBody out;
    for (std::size_t i = 0; i < body.outputs().size(); ++i) {
      const ValueId v = body.outputs()[i];
      const BatchedValue value = batching.value(v);
      out.outputs.push_back(value.batched || required[i]);
      outputs.push_back(out.outputs.back() ? batching.lifted(v) : value.value);
    }
    out.graph = shared(batching.finish(outputs));
    return out;
  }

 private:
  static BodySeries long_series(const Graph& body, const std::vector<std::size_t>& degrees,
                                const std::vector<std::size_t>& required, std::size_t order) {
    Taylor taylor(body, order);
    Graph& graph = taylor.graph();
    taylor.copy_leaves();
    const std::vector<NodeId> inputs = body.inputs();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      Series series;
      for (std::size_t j = 1; j <= degrees[k]; ++j) {
        const std::string name = graph.unique_name(fmt::format("d{}_{}", j, k));
        series.push_back(graph.input(name, type_of_tangent(body, {inputs[k], 0})));
      }
      taylor.set_series({inputs[k], 0}, std::move(series));
    }
    taylor.sweep();
    std::vector<Value> outputs;
    for (const ValueId v : body.outputs()) outputs.push_back(taylor.value(v));
    BodySeries out;
    for (std::size_t i = 0; i < body.outputs().size(); ++i) {
      Series series = taylor.series(body.outputs()[i]);
      if (series.size() < required[i]) series.resize(required[i]);
      out.degrees.push_back(series.size());
      for (const Value& c : series) {
        outputs.push_back(c.valid() ? c
                                    : filled(graph, type_of_tangent(body, body.outputs()[i]), 0));
      }
    }
    out.graph = shared(taylor.finish(outputs));
    return out;
  }

  BatchedRandom random_;
  ScanSaving saving_;
};

}  // namespace

std::unique_ptr<const BodyTransforms> body_transforms(ScanSaving saving) {
  return std::make_unique<const Bodies>(std::move(saving));
}

const BodyTransforms& body_transforms(BatchedRandom random) {
  static const Bodies Sharing(BatchedRandom::Shared);
  static const Bodies Splitting(BatchedRandom::Split);
  return random == BatchedRandom::Split ? Splitting : Sharing;
}

}  // namespace ricci
