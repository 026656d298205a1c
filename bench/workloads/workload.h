// What the benchmark measures: programs with their numbers.
//
//   Workload w = find_workload("mlp_train").build(Scale::Full);
//   Feeds feeds = make_feeds(w);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/interp/interpreter.h"
#include "ricci/ir/graph.h"
#include "ricci/op/precision_policy.h"

namespace ricci::bench {

/// Full is what is measured; small has the same structure and is quick to interpret. Gpu is full
/// with sizes that fill a GPU, where there are such.
enum class Scale : std::uint8_t { Full, Small, Gpu };

/// How the numbers of an input or param are made.
struct FeedRule {
  enum class Kind : std::uint8_t {
    Normal,   ///< mean `low`, standard deviation `high`
    Uniform,  ///< between `low` and `high`
    Integer,  ///< whole numbers, low ≤ n < high
  };
  Kind kind = Kind::Normal;
  double low = 0;
  double high = 1;

  static FeedRule normal(double deviation, double mean = 0) {
    return {Kind::Normal, mean, deviation};
  }
  static FeedRule uniform(double low, double high) { return {Kind::Uniform, low, high}; }
  static FeedRule integer(std::int64_t limit) {
    return {Kind::Integer, 0, static_cast<double>(limit)};
  }
  static FeedRule constant(double value) { return uniform(value, value); }
};

/// An output that is the next value of an input or param, whose buffer it may take.
struct Donation {
  std::size_t output = 0;
  std::string input;
};

struct Workload {
  std::string name;
  Graph graph;
  std::vector<std::string> outputs;  ///< one name per output of the graph
  std::vector<Donation> donated;
  std::map<std::string, FeedRule, std::less<>> feeds;  ///< one per input and param
  /// What the shapes of the feeds do not say and another system needs to know.
  std::map<std::string, std::int64_t> settings;
  /// The graph with its loss under a policy, the gradient of that, and the update in f32; empty
  /// where the workload trains nothing.
  std::function<Graph(const PrecisionPolicy&)> trained_in = {};
};

/// The workload in a precision.
[[nodiscard]] Workload under(const PrecisionPolicy& policy, Workload workload);

/// A graph under construction, with the rule for each input's numbers beside it.
struct Draft {
  Graph graph;
  std::map<std::string, FeedRule, std::less<>> feeds;

  explicit Draft(std::string name) : graph(std::move(name)) {}
  Value input(const std::string& name, Type type, FeedRule rule);
  Value param(const std::string& name, Type type, FeedRule rule);
};

/// A draft whose outputs are set as a workload, without what they do not need. Values of the
/// draft's graph end with it: what is made of them is made before.
[[nodiscard]] Workload finished(std::string name, Draft draft, std::vector<std::string> outputs);

/// Numbers for every input and param; the same for the same workload, always.
[[nodiscard]] Feeds make_feeds(const Workload& workload);

struct WorkloadEntry {
  std::string_view name;
  Workload (*build)(Scale scale);
};
[[nodiscard]] std::span<const WorkloadEntry> all_workloads();
/// UserError(name) when there is none.
[[nodiscard]] const WorkloadEntry& find_workload(std::string_view name);

}  // namespace ricci::bench
