#include "workloads/gradients.h"

#include <array>
#include <cmath>

#include "ricci/build/build.h"
#include "ricci/build/control.h"
#include "ricci/build/recurrent.h"
#include "ricci/op/leaf.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"

#include "workloads/training.h"

namespace ricci::bench {

namespace {

std::vector<std::string> gradient_names(std::span<const std::string> wrt) {
  std::vector<std::string> names;
  for (const std::string& name : wrt) names.push_back("d_" + name);
  return names;
}

}  // namespace

Workload gradients(std::string name, Draft draft, const std::vector<std::string>& wrt) {
  draft.graph = grad(draft.graph, {wrt.begin(), wrt.end()}, {.external_seed = true}).graph;
  draft.feeds.emplace("d_output", FeedRule::normal(1));
  return finished(std::move(name), std::move(draft), gradient_names(wrt));
}

namespace {

// The draft's scalar loss and its gradients.
Workload loss_and_gradients(std::string name, Draft draft, const std::vector<std::string>& wrt) {
  draft.graph = value_and_grad(draft.graph, {wrt.begin(), wrt.end()}).graph;
  std::vector<std::string> outputs = gradient_names(wrt);
  outputs.insert(outputs.begin(), "loss");
  return finished(std::move(name), std::move(draft), std::move(outputs));
}

Draft fused_rows(Scale scale) {
  const bool full = scale != Scale::Small;
  const bool gpu = scale == Scale::Gpu;
  const std::int64_t rows = gpu ? 65536 : full ? 4096 : 5;
  const std::int64_t columns = gpu ? 4096 : full ? 1024 : 19;
  Draft draft("fused_rows");
  const Value x = draft.input("x", f32({rows, columns}), FeedRule::normal(1));
  const Value g = draft.param("g", f32({columns}), FeedRule::normal(0.2, 1));
  const Value b = draft.param("b", f32({columns}), FeedRule::normal(0.2));
  const Value gamma = draft.param("gamma", f32({columns}), FeedRule::normal(0.2, 1));
  const Value beta = draft.param("beta", f32({columns}), FeedRule::normal(0.2));
  draft.graph.set_outputs({softmax(layer_norm(gelu(x * g + b) + x, gamma, beta))});
  return draft;
}

Draft recurrence(Scale scale) {
  const std::int64_t length = scale != Scale::Small ? 10000 : 12;
  constexpr std::int64_t Width = 16;
  Draft draft("recurrence");
  const Value a = draft.param("a", f32({Width, Width}), FeedRule::normal(0.25));
  const Value xs = draft.input("xs", f32({length, 1, Width}), FeedRule::normal(1));
  const Value c0 = draft.input("c0", f32({1, Width}), FeedRule::normal(1));
  const Value last = scan_with_bcasts_and_xs(
      c0, std::array{a}, std::array{xs},
      [](Graph&, std::span<const Value> in) {
        return std::vector{in[0] + tanh(matmul(in[0], in[1]) + in[2]) * 0.01};
      },
      length);
  draft.graph.set_outputs({last});
  return draft;
}

}  // namespace

Workload fused_rows_fwd(Scale scale) {
  return finished("fused_rows_fwd", fused_rows(scale), {"y"});
}

Workload fused_rows_grad(Scale scale) {
  return gradients("fused_rows_grad", fused_rows(scale), {"x", "g", "b", "gamma", "beta"});
}

Workload softmax_ce_grad(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t rows = full ? 512 : 4;
  const std::int64_t classes = full ? 32000 : 33;
  Draft draft("softmax_ce");
  const Value logits = draft.input("logits", f32({rows, classes}), FeedRule::normal(2));
  const Value labels = draft.input("labels", i32({rows}), FeedRule::integer(classes));
  draft.graph.set_outputs({mean(softmax_cross_entropy_with_logits(logits, labels))});
  return loss_and_gradients("softmax_ce_grad", std::move(draft), {"logits"});
}

Workload scan_fwd(Scale scale) { return finished("scan_fwd", recurrence(scale), {"c"}); }

Workload scan_grad(Scale scale) {
  Draft draft = recurrence(scale);
  draft.graph.set_outputs({sum(draft.graph.output_values()[0])});
  return loss_and_gradients("scan_grad", std::move(draft), {"a", "xs", "c0"});
}

Workload lstm_grad(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t length = full ? 64 : 5;
  const std::int64_t batch = full ? 32 : 3;
  const std::int64_t width = full ? 256 : 4;
  const double spread = 1 / std::sqrt(static_cast<double>(width));
  Draft draft("lstm");
  const Value x = draft.input("x", f32({length, batch, width}), FeedRule::normal(1));
  const Value h0 = draft.input("h0", f32({batch, width}), FeedRule::normal(1));
  const Value c0 = draft.input("c0", f32({batch, width}), FeedRule::normal(1));
  const Value w_x = draft.param("w_x", f32({width, 4 * width}), FeedRule::normal(spread));
  const Value w_h = draft.param("w_h", f32({width, 4 * width}), FeedRule::normal(spread));
  const Value b = draft.param("b", f32({4 * width}), FeedRule::normal(0.1));
  draft.graph.set_outputs({lstm(x, h0, c0, w_x, w_h, b).out});
  return gradients("lstm_grad", std::move(draft), {"x", "w_x", "w_h", "b"});
}

Workload mlp_hvp(Scale scale) {
  Draft draft = mlp_loss(scale);
  std::vector<std::string> params;
  for (const NodeId id : draft.graph.params()) {
    params.push_back(draft.graph.node(id).op.as<op::Param>()->name);
  }
  draft.graph = hvp(draft.graph, {params.begin(), params.end()}).graph;
  std::vector<std::string> outputs;
  for (const std::string& param : params) {
    draft.feeds.emplace("tangent_" + param, FeedRule::normal(0.1));
    outputs.push_back("hv_" + param);
  }
  // The products are the last outputs; loss and gradients are not asked for.
  const std::vector<Value> all = draft.graph.output_values();
  draft.graph.set_outputs(std::span(all).last(params.size()));
  return finished("mlp_hvp", std::move(draft), std::move(outputs));
}

Workload logistic_hessian(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t examples = full ? 1024 : 9;
  const std::int64_t parameters = full ? 32 : 4;
  Draft draft("logistic");
  const Value x = draft.input("x", f32({examples, parameters}), FeedRule::normal(1));
  const Value y = draft.input("y", f32({examples}), FeedRule::integer(2));
  const Value w = draft.param("w", f32({parameters}), FeedRule::normal(0.3));
  const Value z = reshape_to(matmul(x, reshape_to(w, {parameters, 1})), {examples});
  draft.graph.set_outputs({mean(softplus(z) - y * z)});
  draft.graph = hessian(draft.graph, {"w"}).graph;
  return finished("hessian", std::move(draft), {"hessian"});
}

Workload embedding_grad(Scale scale) {
  const bool full = scale != Scale::Small;
  const std::int64_t rows = full ? 50000 : 10;
  const std::int64_t width = full ? 256 : 6;
  Draft draft("embedding");
  const Value table = draft.param("table", f32({rows, width}), FeedRule::normal(1));
  const Value ids = draft.input("ids", i32({full ? 4096 : 15}), FeedRule::integer(rows));
  draft.graph.set_outputs({gather(table, ids)});
  return gradients("embedding_grad", std::move(draft), {"table"});
}

Workload tiny_call(Scale) {
  const Type type = f32({10});
  Draft draft("tiny");
  const Value x = draft.input("x", type, FeedRule::normal(1));
  const Value a = draft.input("a", type, FeedRule::normal(1));
  const Value b = draft.input("b", type, FeedRule::normal(1));
  draft.graph.set_outputs({tanh(x * a + b)});
  return finished("tiny_call", std::move(draft), {"y"});
}

}  // namespace ricci::bench
