#include "op/attr_ranges.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace ricci {
namespace {

[[noreturn]] void reject(const OpInfo& info, std::string_view name, const std::string& value,
                         std::string help) {
  throw Rejection{ErrorCode::Attr, fmt::format("{}_range", info.name),
                  fmt::format("attribute '{}' of '{}' cannot be {}", name, info.name, value),
                  std::move(help)};
}

template <class T>
constexpr RealRange RangeOf = {static_cast<double>(std::numeric_limits<T>::min()),
                               static_cast<double>(std::numeric_limits<T>::max())};

}  // namespace

RealRange real_range(std::span<const Type> operands) {
  constexpr DTypeSet Narrow = {DType::F32, DType::F16, DType::BF16, DType::C64};
  const bool narrow =
      std::ranges::any_of(operands, [&](const Type& t) { return Narrow.has(t.dtype); });
  return narrow ? RangeOf<float> : RangeOf<double>;
}

void RangeCheck::check_integer(std::string_view name, std::int64_t value, Range range) const {
  const std::int64_t most =
      range == Range::Window ? std::numeric_limits<std::int32_t>::max() : LargestSize;
  if (range == Range::Any || (value >= -most && value <= most)) return;
  reject(info, name, std::to_string(value), fmt::format("it goes up to {}", most));
}

void RangeCheck::check_real(std::string_view name, double value, Range range) const {
  if (!std::isfinite(value)) reject(info, name, fmt::format("{}", value), "it is a finite number");
  const RealRange usual = real_range(operands);
  const RealRange allowed = range == Range::Factor ? RealRange{0x1p-64, 0x1p64} : usual;
  const double size = std::fabs(value);
  if (size == 0 || (size >= allowed.least && size <= allowed.most)) return;
  reject(info, name, fmt::format("{}", value),
         fmt::format("it is 0, or between {} and {} in magnitude", allowed.least, allowed.most));
}

void RangeCheck::check_value(std::string_view name, const AttrValue& value, Range range) const {
  if (const auto* integer = value.get<std::int64_t>()) {
    check_integer(name, *integer, range);
  } else if (const auto* real = value.get<Real>()) {
    check_real(name, *real, range);
  } else if (const auto* list = value.get<std::vector<AttrValue>>()) {
    for (const AttrValue& v : *list) check_value(name, v, range);
  } else if (const auto* e = value.get<Enumerator>()) {
    for (const AttrValue& v : e->args) check_value(name, v, range);
  }
}

}  // namespace ricci
