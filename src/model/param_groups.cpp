#include "model/param_groups.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "rewrite/name_pattern.h"

namespace ricci {
namespace {

bool is_member(const ParamGroup& group, const std::string& name, const Type& type) {
  const auto named = [&](const std::string& pattern) { return matches_pattern(pattern, name); };
  return std::ranges::any_of(group.params, named) || (group.chosen && group.chosen(name, type));
}

void require_factor(double value, std::string_view name) {
  if (std::isfinite(value) && value >= 0) return;
  throw UserError(ErrorCode::Attr,
                  fmt::format("a group's {} is {}, not a number from 0 on", name, value));
}

UpdateRule with_weight_decay(UpdateRule rule, double decay) {
  bool found = false;
  const auto set = [&](std::string_view name, auto& value, SettingRange) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>) {
      if (name != "weight_decay") return;
      value = decay;
      found = true;
    }
  };
  std::visit([&](auto& o) { o.fields(o, set); }, rule.optimizer);
  if (found) return rule;
  throw UserError(ErrorCode::Attr, fmt::format("{} has no weight decay that could be changed",
                                               name(rule.optimizer)));
}

// The optimiser of a group: its own or that of all, with its decay.
UpdateRule rule_of(const ParamGroup& group, const Optimizer& of_all) {
  require_factor(group.learning_rate_factor, "learning_rate_factor");
  UpdateRule rule{group.optimizer.value_or(of_all), group.learning_rate_factor};
  if (!group.weight_decay) return rule;
  require_factor(*group.weight_decay, "weight_decay");
  return with_weight_decay(std::move(rule), *group.weight_decay);
}

void require_trainable(const Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto* param = graph.node(graph.find_or_throw(name)).op.as<op::Param>();
    if (param == nullptr) {
      throw UserError(ErrorCode::Name, "'" + name + "' is an input: only params are trained",
                      "make it a param");
    }
    if (std::ranges::count(names, name) > 1) {
      throw UserError(ErrorCode::Name, "'" + name + "' is named twice among the trained params");
    }
    if (!is_float(param->type.dtype)) {
      throw UserError(ErrorCode::DType,
                      fmt::format("'{}' is {}: only params of a real floating dtype can be trained",
                                  name, param->type.to_string()),
                      "name the params to train in TrainingOptions::params");
    }
  }
}

// Those the options name; otherwise all that do not follow outputs.
std::vector<std::string> candidates(const Graph& graph, const TrainingOptions& options) {
  if (!options.params.empty()) return options.params;
  std::vector<std::string> names;
  for (const NodeId id : graph.params()) {
    const std::string& name = graph.node(id).op.as<op::Param>()->name;
    const bool follows = std::ranges::count(options.updates, name, &UpdatedParam::param) > 0;
    if (!follows) names.push_back(name);
  }
  return names;
}

void require_members(const TrainingOptions& options, const std::vector<std::size_t>& members) {
  for (std::size_t k = 0; k < members.size(); ++k) {
    if (members[k] > 0) continue;
    const ParamGroup& group = options.groups[k];
    throw UserError(
        ErrorCode::Name,
        fmt::format("group {} of params ('{}') has none", k, fmt::join(group.params, "', '")),
        "a param belongs to the first group that names it; patterns have '*' and '?'");
  }
}

}  // namespace

std::vector<std::string> TrainedParams::names() const {
  std::vector<std::string> out;
  for (const TrainedParam& p : params) out.push_back(p.name);
  return out;
}

TrainedParams trained_params(const Graph& graph, const TrainingOptions& options) {
  TrainedParams made;
  made.rules.push_back({options.optimizer});
  for (const ParamGroup& g : options.groups) made.rules.push_back(rule_of(g, options.optimizer));
  for (const UpdateRule& rule : made.rules) require_sense(rule.optimizer);
  std::vector<std::size_t> members(options.groups.size());
  std::vector<std::string> names = candidates(graph, options);
  std::vector<std::string> kept;
  std::map<std::size_t, std::size_t> without_decay;  // rules by those they are made of
  for (const std::string& name : names) {
    const Type& type = graph.type({graph.find_or_throw(name), 0});
    const auto group = std::ranges::find_if(
        options.groups, [&](const ParamGroup& g) { return is_member(g, name, type); });
    const auto at = static_cast<std::size_t>(group - options.groups.begin());
    const bool grouped = group != options.groups.end();
    if (grouped) ++members[at];
    if (grouped && group->frozen) continue;
    kept.push_back(name);
    std::size_t rule = grouped ? at + 1 : 0;
    const bool decided = grouped && group->weight_decay.has_value();
    if (options.decay && !decided && !options.decay(name)) {
      const auto [place, fresh] = without_decay.try_emplace(rule, made.rules.size());
      if (fresh) made.rules.push_back(with_weight_decay(made.rules[rule], 0));
      rule = place->second;
    }
    made.params.push_back({name, rule});
  }
  require_members(options, members);
  if (kept.empty()) {
    throw UserError(ErrorCode::Name, "'" + graph.name() + "' has no params to train",
                    "make what is to be trained a param that no group freezes");
  }
  require_trainable(graph, kept);
  return made;
}

}  // namespace ricci
