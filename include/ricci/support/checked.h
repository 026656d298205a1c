// Arithmetic on sizes that cannot wrap silently: every product of dimensions and every byte count
// goes through here.
#pragma once

#include <cstdint>
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

}  // namespace ricci
