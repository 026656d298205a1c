// What pattern fusions did and what they left: which fused ops a graph has, and which products and
// gates look like a pattern and are none, and why.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ricci/ir/graph.h"

namespace ricci {

/// Why a place that looks like a pattern was left.
enum class MissReason : std::uint8_t {
  MultiConsumer,                  ///< what is between its nodes is read elsewhere too
  NonAddBiasConsumer,             ///< no sum follows the product
  BiasRankTooHigh,                ///< what is added is no vector along the columns
  UnsupportedEpilogueActivation,  ///< the function behind the sum changes the dtype
  SharedMatmulCount,              ///< several products read one value
  SwigluGateBeforeUp,             ///< the halves are not halves of one value
  SwigluNotSharedInput,           ///< the two products read different values
  NotFused,                       ///< nothing stands against it: the pass did not run
};
[[nodiscard]] std::string_view name(MissReason reason) noexcept;

struct PatternMiss {
  std::string pattern;  ///< matmul_bias_act, shared_input_matmul or swiglu
  MissReason reason = MissReason::NotFused;
  NodeId node = 0;
  SourcePosition where;
  [[nodiscard]] std::string to_string() const;
};

struct PatternReport {
  std::string context;  ///< the graph's name
  std::size_t nodes_before = 0;
  std::size_t nodes_after = 0;
  std::map<std::string, std::size_t> fused;  ///< fused ops and regions, by mnemonic
  std::vector<PatternMiss> misses;

  [[nodiscard]] std::string to_string() const;
};

/// Bodies are counted; misses are those at the top.
[[nodiscard]] PatternReport report_patterns(const Graph& before, const Graph& after);

}  // namespace ricci
