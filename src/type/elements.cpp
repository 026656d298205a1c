#include "type/elements.h"

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci::detail {
namespace {

template <class T>
std::string print_small(T v) {
  const auto wide = static_cast<double>(v);
  if (!std::isnan(wide)) return print_f32(static_cast<float>(wide));
  const bool plain = v == T(std::numeric_limits<double>::quiet_NaN());
  return plain ? "nan" : fmt::format("nan(0x{:x})", v.bits);
}

template <class T>
std::string print_value(T v) {
  if constexpr (std::is_same_v<T, double>) {
    return print_f64(v);
  } else if constexpr (std::is_same_v<T, float>) {
    return print_f32(v);
  } else if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return print_small(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return v ? "true" : "false";
  } else if constexpr (is_complex_type<T>) {
    return fmt::format("({}, {})", print_value(v.real()), print_value(v.imag()));
  } else {
    return std::to_string(v);
  }
}

}  // namespace

std::string print_element(DType dtype, const std::byte* in) {
  return with_element_type(dtype, [&]<class T>() { return print_value(load_element<T>(in)); });
}

}  // namespace ricci::detail
