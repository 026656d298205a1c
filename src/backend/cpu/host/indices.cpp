#include "backend/cpu/host/indices.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ricci::cpu {
namespace {

void require_exact(const HostArguments& call, std::size_t k) {
  const ArrayView& from = call.operands[k];
  if (!is_float(from.dtype)) return;
  const double largest = from.dtype == DType::F64 ? 0x1p53 : 0x1p24;
  parallel_for(
      call.pool, count_of(from.dims), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
        std::array<double, 256> numbers;
        for (std::int64_t at = begin; at < end; at += 256) {
          const std::int64_t count = std::min<std::int64_t>(256, end - at);
          read_numbers(from, at, count, numbers.data());
          for (std::int64_t i = 0; i < count; ++i) {
            const double v = numbers[static_cast<std::size_t>(i)];
            if (v == std::trunc(v) && std::fabs(v) < largest) continue;
            call.fail(ErrorCode::IndexOutOfRange,
                      fmt::format("{} is not an index {} can hold exactly", v, name(from.dtype)),
                      "use an integer dtype for indices");
          }
        }
      });
}

}  // namespace

std::int64_t exact_integer(const HostArguments& call, std::size_t k) {
  require_exact(call, k);
  return read_integer(call.operands[k]);
}

void IndexOperand::read(std::int64_t limit) const {
  require_exact(call_, operand_);
  numbers_.pack(call_.pool);
  const std::int64_t* indices = data();
  parallel_for(call_.pool, count_of(call_.operands[operand_].dims), grain_for(1),
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   if (indices[i] >= 0 && indices[i] < limit) continue;
                   call_.fail(ErrorCode::IndexOutOfRange,
                              fmt::format("index {} is outside [0, {})", indices[i], limit),
                              "negative indices do not count from the end");
                 }
               });
}

}  // namespace ricci::cpu
