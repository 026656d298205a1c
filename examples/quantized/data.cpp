#include "data.h"

#include <array>
#include <vector>

namespace quantized {
namespace {

// Bits are the segments: top, upper left and right, middle, lower left and right, bottom.
constexpr std::array<unsigned, Classes> Segments = {0b1110111, 0b0100100, 0b1011101, 0b1101101,
                                                    0b0101110, 0b1101011, 0b1111011, 0b0100101,
                                                    0b1111111, 0b1101111};
constexpr double Noise = 0.28;

bool is_lit(unsigned segments, std::int64_t row, std::int64_t column) {
  const bool inner = column >= 1 && column <= 3;
  const bool upper = row >= 1 && row <= 3;
  const bool lower = row >= 5 && row <= 7;
  const auto has = [&](unsigned bit) { return (segments >> bit & 1U) != 0; };
  if (row == 0 && inner) return has(0);
  if (column == 0 && upper) return has(1);
  if (column == 4 && upper) return has(2);
  if (row == 4 && inner) return has(3);
  if (column == 0 && lower) return has(4);
  if (column == 4 && lower) return has(5);
  return row == 8 && inner && has(6);
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

std::int64_t Random::below(std::int64_t end) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(end));
}

double Random::normal() {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += static_cast<double>(next() >> 11) * 0x1p-53;
  return sum;
}

Batch make_batch(Random& random, std::int64_t count) {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t digit = random.below(Classes);
    const std::int64_t down = random.below(Height - 8);
    const std::int64_t right = random.below(Width - 4);
    labels.push_back(static_cast<std::int32_t>(digit));
    for (std::int64_t r = 0; r < Height; ++r) {
      for (std::int64_t c = 0; c < Width; ++c) {
        const bool lit = is_lit(Segments[static_cast<std::size_t>(digit)], r - down, c - right);
        images.push_back(static_cast<float>((lit ? 1.0 : 0.0) + Noise * random.normal()));
      }
    }
  }
  return {ricci::Tensor::of<float>({count, Pixels}, images),
          ricci::Tensor::of<std::int32_t>({count}, labels)};
}

}  // namespace quantized
