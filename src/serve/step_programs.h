// The compiled steps of a generator: one for every number of rows, new places and places in the
// past. All share one copy of the params.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/session.h"
#include "ricci/serve/generator.h"

#include "serve/past.h"

namespace ricci::serve {

/// How large a step is.
struct StepSize {
  std::int64_t rows = 1, next = 1, places = 1;
  friend auto operator<=>(const StepSize&, const StepSize&) = default;
};

class StepProgram {
 public:
  StepProgram(CompiledGraph graph, const StepSize& size, std::size_t params, const Past& past,
              std::int64_t vocabulary);

  std::vector<std::int32_t> tokens;        ///< [rows, next]
  std::vector<std::int32_t> first, count;  ///< [rows]

  /// One step from `row` on. What it gives is put into the past where `count` says so.
  void run(Past& past, std::int64_t row, const StopToken& stop);
  [[nodiscard]] std::span<const float> logits(std::int64_t row) const;
  void set_params(std::span<const Tensor> params);

 private:
  CompiledGraph graph_;
  ExecutionContext context_;
  StepSize size_;
  std::size_t params_ = 0;
  std::vector<float> logits_;
  std::vector<ZeroedBytes> given_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
};

class StepPrograms {
 public:
  StepPrograms(detail::StepModel model, const Device& device);
  /// Compiled when it is asked for first.
  [[nodiscard]] StepProgram& at(const StepSize& size, const Past& past);
  /// UserError, and nothing has changed, when they are of other types than those there are.
  void set_params(std::vector<Tensor> params);
  [[nodiscard]] std::size_t compiled() const noexcept { return programs_.size(); }
  [[nodiscard]] const detail::StepModel& model() const noexcept { return model_; }

 private:
  detail::StepModel model_;
  Session session_;
  std::map<StepSize, StepProgram> programs_;
};

}  // namespace ricci::serve
