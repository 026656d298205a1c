// A compiled graph that many threads run with arrays: contexts that wait for the next run, and
// memory for results.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"

#include "array/type_list.h"
#include "support/fork.h"

namespace ricci::detail {

/// Memory for a value, and the value once it is there.
struct Room {
  std::shared_ptr<std::byte> memory;
  TypeList type;
  [[nodiscard]] Tensor tensor() const;
};

class ArrayProgram {
 public:
  ArrayProgram(const Graph& graph, const Device& device, std::vector<Donation> donations = {});

  /// Runs with pointers to row-major elements, in the order of the graph's inputs. Results lie in
  /// `given` where that has memory, else in memory of their own.
  [[nodiscard]] std::vector<Room> run(std::span<const void* const> inputs,
                                      const SymbolBindings& sizes = {},
                                      std::span<const std::shared_ptr<std::byte>> given = {});

 private:
  class Lease;
  struct Idle {
    SymbolBindings sizes;
    ExecutionContext context;
  };

  CompiledGraph compiled_;
  std::vector<TypeList> outputs_;
  ForkMutex mutex_;
  std::vector<Idle> idle_;  // those used last at the end
};

/// How many programs this process has compiled for arrays and functions of them.
[[nodiscard]] std::size_t programs_compiled() noexcept;

/// What computes arrays and functions that name no device.
[[nodiscard]] Device current_device();

}  // namespace ricci::detail
