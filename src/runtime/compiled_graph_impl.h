// What a compiled graph is made of.
#pragma once

#include <memory>

#include <fmt/format.h>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/support/error.h"

#include "runtime/param_store.h"
#include "runtime/programs.h"

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

  std::shared_ptr<runtime::Programs> programs;
  Device device;
  runtime::ParamStore params;
};

}  // namespace ricci
