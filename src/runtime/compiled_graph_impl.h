// What a compiled graph is made of.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/support/error.h"

#include "runtime/param_store.h"
#include "runtime/programs.h"
#include "support/fork.h"

namespace ricci {

struct CompiledGraph::Impl {
  Impl(std::shared_ptr<runtime::Programs> all, Device d)
      : programs(std::move(all)),
        device(std::move(d)),
        params(device.backend().memory(), programs->inputs().size()) {}

  [[nodiscard]] const Port& port(std::size_t input) const {
    if (input >= programs->inputs().size()) {
      throw UserError(ErrorCode::Name,
                      fmt::format("'{}' has {} inputs and params, none is number {}",
                                  programs->graph().name(), programs->inputs().size(), input));
    }
    return programs->inputs()[input];
  }

  /// The same on packed params, with all values that are kept; null where there is nothing to pack,
  /// or a param that would be packed is not kept. Brought up to date when values have changed.
  [[nodiscard]] std::shared_ptr<Impl> packed();
  /// The same, for a run that is given these values: null where one of them would be packed.
  [[nodiscard]] std::shared_ptr<Impl> packed_for(const Feeds& feeds);
  [[nodiscard]] std::shared_ptr<Impl> packed_for(std::span<const void* const> inputs);

  std::shared_ptr<runtime::Programs> programs;
  Device device;
  runtime::ParamStore params;

 private:
  void pack();

  ForkSharedMutex packed_mutex_;
  std::shared_ptr<Impl> packed_;
  std::uint64_t packed_version_ = 0;                  // of the store, when it was looked at
  bool is_packed_ = false;                            // then
  std::vector<std::uint64_t> packed_versions_;        // of the values that were taken over
  std::vector<std::optional<CompiledGraph>> makers_;  // of packed params
};

}  // namespace ricci
