// Where the batch axes of what `vmap` maps over are.
//
//   vmap(f)(xs)                                        // the first axis of every array
//   vmap(f, {.in_axes = {0, {}}})(xs, w)               // of xs; w is shared by all examples
//   vmap(f, {.in_axes = {Net{.w = 0, .b = {}}}})(net)  // for every array of a struct
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ricci/array/tree.h"

namespace ricci {

namespace detail {

/// The arrays of a tree, those without a value as null.
class ArraySlots final : public TreeVisitor {
 public:
  void array(Array& leaf) override { slots.push_back(&leaf); }
  void word(std::uint64_t) override {}
  void text(std::string_view) override {}
  void absent() override { slots.push_back(nullptr); }
  std::vector<const Array*> slots;
};

}  // namespace detail

/// The batch axis of an argument or a result: a number; nothing, `{}`, where it is shared by all
/// examples; or a tree of the same structure with a number in the place of every array.
class MapAxis {
 public:
  using Axis = std::optional<std::int64_t>;

  MapAxis() = default;
  template <std::integral T>
  MapAxis(T axis) : one_(static_cast<std::int64_t>(axis)) {}  // NOLINT: a number is an axis
  MapAxis(std::nullopt_t) {}                                  // NOLINT
  MapAxis(Axis axis) : one_(axis) {}                          // NOLINT
  template <class Tree>
    requires(std::is_class_v<Tree> && !std::same_as<Tree, MapAxis>)
  MapAxis(const Tree& axes) : is_tree_(true) {  // NOLINT
    detail::ArraySlots arrays;
    arrays.visit(axes);
    slots_ = axes_in(arrays.slots);
  }

  /// One entry a leaf of `tree`. UserError(shape) when this is a tree of another structure.
  template <class Tree>
  [[nodiscard]] std::vector<Axis> of(const Tree& tree, std::source_location where) const {
    detail::ArraySlots arrays;
    arrays.visit(tree);
    return for_slots(arrays.slots, where);
  }

 private:
  [[nodiscard]] static std::vector<Axis> axes_in(const std::vector<const Array*>& slots);
  [[nodiscard]] std::vector<Axis> for_slots(const std::vector<const Array*>& slots,
                                            std::source_location where) const;

  Axis one_;
  bool is_tree_ = false;
  std::vector<Axis> slots_;
};

struct MapOptions {
  /// The batch axis of every argument; none given: all 0.
  std::vector<MapAxis> in_axes = {};
  MapAxis out_axes = 0;          ///< of the result, or of every array in it
  std::optional<Dim> size = {};  ///< where no argument has a batch axis
};

}  // namespace ricci
