// The bounds every attribute has by its kind, checked in one place before an op's own rule looks at
// it: what computes with attributes later (geometry, strides, offsets, factors) cannot overflow or
// leave the numbers a device has.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ricci/op/fields.h"
#include "ricci/op/infer.h"

namespace ricci {

/// Visits the fields of an op; a Rejection names the first attribute out of its range.
struct RangeCheck {
  const OpInfo& info;
  std::span<const Type> operands;

  template <class T>
  void operator()(std::string_view name, const T& member, std::string_view,
                  Presence = Presence::Defaulted, Range range = Range::Usual) const {
    check(name, member, range);
  }

 private:
  template <class T>
  void check(std::string_view name, const T& member, Range range) const {
    if constexpr (std::is_same_v<T, std::int64_t>) {
      check_integer(name, member, range);
    } else if constexpr (std::is_same_v<T, Real>) {
      check_real(name, member, range);
    } else if constexpr (std::is_same_v<T, Dim>) {
      if (const auto size = member.try_value()) check_integer(name, *size, range);
    } else if constexpr (std::is_same_v<T, Type>) {
      check(name, member.dims, range);
    } else if constexpr (is_numbers<T>) {
      // Strings, flags, enumerators, tensors and axes, which have a check of their own, hold none.
      check_value(name, to_attr(member), range);
    }
  }
  template <class T>
  void check(std::string_view name, const std::optional<T>& member, Range range) const {
    if (member) check(name, *member, range);
  }
  template <class T>
  void check(std::string_view name, const std::vector<T>& member, Range range) const {
    for (const T& each : member) check(name, each, range);
  }

  // Structs with a text form of their own may hold numbers: `sliding_window(4)`.
  template <class T>
  static constexpr bool is_numbers =
      std::is_class_v<T> && !std::is_same_v<T, std::string> && !std::is_same_v<T, Bytes> &&
      !std::is_same_v<T, Tensor> && !std::is_same_v<T, Axis>;

  void check_integer(std::string_view name, std::int64_t value, Range range) const;
  void check_real(std::string_view name, double value, Range range) const;
  void check_value(std::string_view name, const AttrValue& value, Range range) const;
};

/// Magnitudes a real attribute may have besides 0.
struct RealRange {
  double least;
  double most;
};
/// What an op on such operands computes in can hold: f32 for f32 and narrower ones, else f64.
[[nodiscard]] RealRange real_range(std::span<const Type> operands);

}  // namespace ricci
