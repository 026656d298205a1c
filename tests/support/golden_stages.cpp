#include "support/golden_stages.h"

#include <algorithm>
#include <functional>
#include <map>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/rewrite/pass.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/op/leaf.h"
#include "ricci/runtime/device.h"
#include "ricci/transform/grad.h"
#include "ricci/transform/higher_order.h"
#include "ricci/transform/jvp.h"
#include "ricci/transform/vmap.h"

namespace ricci::testing {
namespace {

std::vector<ValueRef> wrt(const Stage& s) {
  const std::vector<std::string> names = s.list("--wrt");
  return {names.begin(), names.end()};
}

ScanSaving scan_saving(const Stage& s) {
  ScanSaving out{.names = s.list("--save-names")};
  if (s.flag("--save")) out.policy = enum_from_name<ScanSave>(s.option("--save")).value();
  if (s.flag("--save-budget")) out.bytes = std::stoll(s.option("--save-budget"));
  return out;
}

GradOptions grad_options(const Stage& s) {
  return {.zero_missing_wrt = s.flag("--zero-missing"), .scan_saving = scan_saving(s)};
}

Transformed run_grad(const Stage& s, const Graph& g) {
  GradOptions options = grad_options(s);
  options.external_seed = s.flag("--external-seed");
  options.internal_seed = !options.external_seed;
  return s.flag("--only-grads") ? grad(g, wrt(s), options)
                                : grad_with_loss_opts(g, wrt(s), options);
}

Transformed run_hvp(const Stage& s, const Graph& g) {
  return hvp(g, wrt(s), {.external_seed = s.flag("--external-seed"), .grad = grad_options(s)});
}

Transformed run_nth_grad(const Stage& s, const Graph& g) {
  const std::string name = s.option("--wrt");
  const int order = std::stoi(s.option("--order"));
  return s.flag("--directional") ? directional_nth_grad(g, name, order)
                                 : nth_order_grad(g, name, order);
}

Transformed run_vmap(const Stage& s, const Graph& g) {
  std::vector<BatchedInput> inputs;
  for (const std::string& text : s.list("--batch")) {
    const std::size_t colon = text.find(':');
    const bool placed = colon != std::string::npos;
    inputs.emplace_back(text.substr(0, colon), placed ? std::stoll(text.substr(colon + 1)) : 0);
  }
  VmapOptions options;
  for (const std::string& axis : s.list("--out-axes")) options.out_axes.push_back(std::stoll(axis));
  if (s.flag("--split-random")) options.random = BatchedRandom::Split;
  const std::string size = s.option("--size");
  const bool number = size.find_first_not_of("0123456789") == std::string::npos;
  return vmap(g, inputs, number ? Dim(std::stoll(size)) : Dim::symbol(size), options);
}

using Run = std::function<Graph(const Stage&, const Graph&)>;

Run transform(Transformed (*run)(const Stage&, const Graph&)) {
  return [run](const Stage& s, const Graph& g) { return run(s, g).graph; };
}

Run matrices(Transformed (*run)(const Graph&, const std::vector<ValueRef>&)) {
  return [run](const Stage& s, const Graph& g) { return run(g, wrt(s)).graph; };
}

const std::map<std::string, Run>& commands() {
  static const std::map<std::string, Run> table = {
      {"print", [](const Stage&, const Graph& g) { return g; }},
      {"opt",
       [](const Stage& s, const Graph& g) {
         return PassManager(parse_pipeline(s.option("--passes"))).run(g).graph;
       }},
      {"grad", transform(run_grad)},
      {"jvp", matrices(jvp)},
      {"hvp", transform(run_hvp)},
      {"nth-grad", transform(run_nth_grad)},
      {"jacfwd", matrices(jacfwd)},
      {"jacrev", matrices(jacrev)},
      {"hessian", matrices(hessian)},
      {"vmap", transform(run_vmap)},
  };
  return table;
}

}  // namespace

bool Stage::flag(std::string_view name) const { return std::ranges::count(args, name) != 0; }

std::string Stage::option(std::string_view name) const {
  const auto found = std::ranges::find(args, name);
  if (found == args.end() || found + 1 == args.end()) {
    throw std::runtime_error(fmt::format("'{}' needs {}", verb, name));
  }
  return *(found + 1);
}

std::vector<std::string> Stage::list(std::string_view name) const {
  std::vector<std::string> out;
  if (!flag(name)) return out;
  std::istringstream words(option(name));
  for (std::string word; std::getline(words, word, ',');) out.push_back(word);
  return out;
}

std::vector<Stage> parse_stages(const std::vector<std::string>& words) {
  std::vector<Stage> out;
  bool fresh = true;
  for (const std::string& word : words) {
    if (word == "|") {
      fresh = true;
    } else if (fresh) {
      out.push_back({word, {}});
      fresh = false;
    } else {
      out.back().args.push_back(word);
    }
  }
  return out;
}

bool is_compile(const Stage& stage) { return stage.verb == "compile"; }

std::string compiled_text(const Stage& stage, const Graph& graph) {
  const bool for_cpu = stage.list("--device").empty();  // else for one that claims no call
  ProgramOptions options{
      .fuse = !stage.flag("--no-fuse"),
      .target = for_cpu ? &Device::default_cpu().backend().target() : &schedule::plain_target()};
  for (const std::string& text : stage.list("--donate")) {
    const std::size_t equals = text.find('=');
    std::size_t place = 0;
    for (NodeId id = 0; id < graph.find_or_throw(text.substr(0, equals)); ++id) {
      const Node& node = graph.node(id);
      place += node.op.is<op::Input>() || node.op.is<op::Param>() ? 1 : 0;
    }
    options.donated.push_back({std::stoul(text.substr(equals + 1)), place});
  }
  return to_string(make_program(graph, options));
}

Graph apply(const Stage& stage, const Graph& graph) {
  const auto found = commands().find(stage.verb);
  if (found == commands().end()) throw std::runtime_error("no command '" + stage.verb + "'");
  return found->second(stage, graph);
}

}  // namespace ricci::testing
