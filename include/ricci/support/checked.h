// Arithmetic on sizes that cannot wrap silently: every product of dimensions and every byte count
// goes through here.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "ricci/support/error.h"

namespace ricci {

[[nodiscard]] inline std::optional<std::int64_t> try_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t r = 0;
  if (__builtin_add_overflow(a, b, &r)) return std::nullopt;
  return r;
}

[[nodiscard]] inline std::optional<std::int64_t> try_mul(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r)) return std::nullopt;
  return r;
}

/// a + b; UserError(shape) when it does not fit in 64 bits.
[[nodiscard]] inline std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  if (const auto r = try_add(a, b)) return *r;
  throw UserError(ErrorCode::Shape, "a size does not fit in 64 bits");
}

/// a * b; UserError(shape) when it does not fit in 64 bits.
[[nodiscard]] inline std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  if (const auto r = try_mul(a, b)) return *r;
  throw UserError(ErrorCode::Shape, "a size does not fit in 64 bits");
}

/// a + b and a * b of counts, none negative; the largest number where they do not fit.
[[nodiscard]] inline std::int64_t saturating_add(std::int64_t a, std::int64_t b) noexcept {
  return try_add(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}
[[nodiscard]] inline std::int64_t saturating_mul(std::int64_t a, std::int64_t b) noexcept {
  return try_mul(a, b).value_or(std::numeric_limits<std::int64_t>::max());
}

}  // namespace ricci
