// What a reference kernel is given: its operands' numbers, its result types, a way to run bodies,
// and a place to put results. `eval` of every op defines what the op means.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/rule/nd.h"
#include "ricci/ir/graph.h"

namespace ricci {

class EvalContext {
 public:
  using BodyRunner =
      std::function<std::vector<Tensor>(const Graph& body, std::span<const Tensor> inputs)>;

  EvalContext(const Node& node, const Graph& graph, std::vector<Tensor> operands,
              std::uint64_t seed, BodyRunner run_body);

  // Operands.
  [[nodiscard]] std::size_t operands() const noexcept { return operands_.size(); }
  [[nodiscard]] const Tensor& tensor(std::size_t k) const { return operands_[k]; }
  [[nodiscard]] DType dtype(std::size_t k) const { return operands_[k].dtype(); }
  [[nodiscard]] const StaticDims& dims(std::size_t k) const { return operands_[k].dims(); }
  template <class N>
  [[nodiscard]] Nd<N> numbers(std::size_t k) const {
    return {dims(k), operands_[k].numbers<N>()};
  }
  [[nodiscard]] RealNd real(std::size_t k) const { return numbers<double>(k); }
  /// Integers, or floats that hold exact integers; UserError(index_out_of_range) otherwise.
  [[nodiscard]] IntNd integers(std::size_t k) const;
  /// Index operands: integers as above, each in [0, limit).
  [[nodiscard]] IntNd indices(std::size_t k, std::int64_t limit) const;

  // Results.
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const Graph& graph() const noexcept { return graph_; }
  [[nodiscard]] const Type& result_type(std::size_t r) const { return node_.types[r]; }
  [[nodiscard]] StaticDims result_dims(std::size_t r) const { return node_.types[r].static_dims(); }
  [[nodiscard]] bool wanted(std::size_t r) const { return node_.wanted[r]; }
  /// Stores numbers as a result: floats rounded once to its dtype, integers wrapped.
  template <class N>
  void give(std::size_t r, const Nd<N>& value) {
    check_result(r, value.dims);
    give(r, Tensor::from_numbers<N>(node_.types[r], value.data));
  }
  void give(std::size_t r, Tensor value);
  [[nodiscard]] bool given(std::size_t r) const { return given_[r]; }

  /// An element of an operand by row-major position; negative means zero bits.
  struct Source {
    std::size_t operand = 0;
    std::int64_t flat = -1;
  };
  /// Stores a result by moving elements, bit for bit: `from(index)` says where each comes from.
  void give_moved(std::size_t r, const std::function<Source(const StaticDims& index)>& from);

  // Bodies, randomness, faults.
  [[nodiscard]] std::vector<Tensor> run_body(std::string_view role,
                                             std::span<const Tensor> inputs) const;
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string help = {}) const;
  [[nodiscard]] std::vector<Tensor> take_results();

 private:
  // Is there such a result, and has it these sizes?
  void check_result(std::size_t r, const StaticDims& dims) const;

  const Node& node_;
  const Graph& graph_;
  std::vector<Tensor> operands_;
  std::vector<Tensor> results_;
  std::vector<bool> given_;
  std::uint64_t seed_;
  BodyRunner run_body_;
};

/// Runs the node's reference kernel.
void evaluate(EvalContext& context);

}  // namespace ricci
