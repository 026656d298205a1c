// Which items share a kernel.
//
// All items of a group walk the same elements, in the same order. A group with reductions along
// rows has a row length; items may then also run once a row. What is summed over rows is complete
// only when the kernel is, so no item of the group can read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ricci/compiler/schedule/target.h"

#include "schedule/items.h"

namespace ricci::schedule {

/// What a reduction does inside its group.
enum class Reach : std::uint8_t {
  Row,   ///< over the elements of each row; the result is there for the row's later stages
  Rows,  ///< over rows, element by element
  ElementsAndRows  ///< over the elements of each row, then over rows
};

/// Which way a group with running totals walks the rows it accumulates over.
enum class Walk : std::uint8_t { Any, Forward, Backward };

struct Group {
  std::vector<std::size_t> items;  ///< in the order in which they can run
  std::int64_t work = 0;           ///< of their instructions, in units of simple ones
  bool call = false;
  std::int64_t elements = 0;
  std::int64_t row = 0;  ///< elements of a row; 0 while nothing asks for rows
  /// Element counts behind which an axis ends; each divides the next.
  std::vector<std::int64_t> boundaries;
  /// Axes summed over rows, as (elements behind the axis, elements with it).
  std::vector<std::pair<std::int64_t, std::int64_t>> accumulated;
  bool reduces_rows = false;  ///< over the elements of each row
  bool sums_columns = false;  ///< element by element over rows
  std::int64_t run = 0;       ///< elements at the end of a row that all its reads walk as one axis
  Walk walk = Walk::Any;      ///< not Any: running totals, and no other sums over rows
  std::string apart_because;  ///< why its first item joined none of its operands' groups
};

struct Fusion {
  std::vector<Group> groups;          ///< in an order in which they can run
  std::vector<std::size_t> group_of;  ///< per item
  std::vector<Reach> reach;           ///< per item; for reductions
  std::vector<bool> replaced;         ///< per replacement: can be had in place
};

/// `output` lies where `input` does: whoever fills it comes after all who read the input.
struct Replacement {
  StorageId output = -1;
  StorageId input = -1;
};

struct FuseOptions {
  bool enabled = true;
  std::vector<Replacement> replacements = {};
  KernelShape shape = {};
};

[[nodiscard]] Fusion fuse(const Items& items, const FuseOptions& options = {});

/// Does an item run once a row in its group?
[[nodiscard]] bool runs_per_row(const Group& group, const Item& item);

}  // namespace ricci::schedule
