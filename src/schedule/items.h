// The graph as the scheduler sees it: storages (arrays in memory), and items that fill them. Views
// have vanished into the layouts with which items read.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/layout.h"
#include "ricci/compiler/rule/lower.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/graph.h"

namespace ricci::schedule {

using StorageId = std::int32_t;

/// An array in memory.
struct Storage {
  enum class Role : std::uint8_t { Leaf, Constant, Temporary, Output, Seed };
  Role role = Role::Temporary;
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  NodeId node = 0;           ///< the leaf, or the node that made it
  Tensor constant = {};      ///< Role::Constant
  std::int32_t output = -1;  ///< Role::Output: which
  std::string name;
};

/// A value as readers see it: elements of a storage, one number, or a sequence of indices.
struct Stored {
  StorageId storage = -1;
  loop::Layout layout;
  /// Where one of them does not hold, `fill` is seen instead.
  std::vector<loop::Bound> bounds = {};
  Tensor fill = {};  ///< one element
};
struct Splat {
  Tensor value;  ///< one element
};
struct Sequence {
  loop::Layout layout;  ///< the value is the place
  DType dtype = DType::I64;
};
using Seen = std::variant<Stored, Splat, Sequence>;

struct Item {
  enum class Kind : std::uint8_t { Pointwise, Reduction, Running, Call };
  Kind kind = Kind::Call;
  NodeId node = 0;
  // All but Call: walks `dims`; reads have one stride per axis of them.
  StaticDims dims;
  std::vector<Seen> reads;  ///< Call: with the operands' own axes
  loop::Instr instr;
  std::optional<Indirect> indirect;
  std::int64_t indirect_stride = 0;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<bool> reduced;
  // Running: totals by `reduce` along an axis.
  std::size_t axis = 0;
  bool exclusive = false;
  bool from_end = false;
  // What it fills. A piece of a storage has a layout of its own.
  std::vector<StorageId> writes;  ///< Call: one per result, -1 when not wanted
  std::optional<loop::Layout> piece;
};

struct Items {
  std::vector<Storage> storages;
  std::vector<Item> items;
  /// Which items fill a storage.
  std::vector<std::vector<std::size_t>> writers;
  /// The storage of each input and param node, in order of creation, and of each output.
  std::vector<std::pair<NodeId, StorageId>> leaves;
  std::vector<StorageId> outputs;
};

/// `graph` has static types and no composite ops (see prepare.h).
[[nodiscard]] Items make_items(const Graph& graph, const KernelShape& shape);

}  // namespace ricci::schedule
