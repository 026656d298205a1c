#include "train/writing.h"

#include <cmath>

#include <fmt/format.h>

namespace ricci::tool {

std::int32_t drawn_token(std::span<const float> logits, double temperature,
                         std::mt19937_64& random) {
  const auto likeliest = std::ranges::max_element(logits) - logits.begin();
  if (temperature <= 0) return static_cast<std::int32_t>(likeliest);
  const double highest = logits[static_cast<std::size_t>(likeliest)];
  std::vector<double> sums;
  double total = 0;
  for (const float l : logits) {
    total += std::exp((static_cast<double>(l) - highest) / temperature);
    sums.push_back(total);
  }
  const double wanted = static_cast<double>(random() >> 11U) * 0x1p-53 * total;
  const auto it = std::ranges::upper_bound(sums, wanted);
  const auto found = std::min(it - sums.begin(), std::ssize(sums) - 1);
  return static_cast<std::int32_t>(found);
}

std::string answers(const std::vector<std::int64_t>& said, const std::vector<std::int64_t>& right) {
  std::string first = "says";
  std::string second = "is  ";
  std::string third = "    ";
  std::size_t count = 0;
  for (std::size_t i = 0; i < said.size() && i < right.size(); ++i) {
    first += fmt::format(" {:>2}", said[i]);
    second += fmt::format(" {:>2}", right[i]);
    third += said[i] == right[i] ? "   " : "  ^";
    count += said[i] == right[i] ? 1 : 0;
  }
  return fmt::format("{}\n{}\n{}\n{} of {} right", first, second, third, count, said.size());
}

}  // namespace ricci::tool
