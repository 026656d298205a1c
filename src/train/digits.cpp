#include "ricci/train/digits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "support/float_environment.h"

namespace ricci {
namespace {

constexpr std::int64_t GlyphHeight = 7;
constexpr std::int64_t GlyphWidth = 5;
constexpr std::int64_t LeastSize = 8;

// Rows of five dots, from the top.
constexpr std::array<std::string_view, 10> Glyphs = {
    ".###.#...##..###.#.###..##...#.###.", "..#...##....#....#....#....#...###.",
    ".###.#...#....#...#...#...#...#####", "#####...#...#.....#.....##...#.###.",
    "...#...##..#.#.#..#.#####...#....#.", "######....####.....#....##...#.###.",
    "..##..#...#....####.#...##...#.###.", "#####....#...#...#...#....#....#...",
    ".###.#...##...#.###.#...##...#.###.", ".###.#...##...#.####....#...#..##.."};

// mt19937_64 is the same everywhere; the distributions of the standard library are not.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : engine_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11U) * 0x1p-53;
  }
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(n));
  }

 private:
  std::mt19937_64 engine_;
};

double dot_at(std::string_view glyph, std::int64_t row, std::int64_t column) {
  if (row < 0 || column < 0 || row >= GlyphHeight || column >= GlyphWidth) return 0;
  return glyph[static_cast<std::size_t>(row * GlyphWidth + column)] == '#' ? 1 : 0;
}

// Between the dots, which lie at whole numbers.
double ink_at(std::string_view glyph, double row, double column) {
  const auto r = static_cast<std::int64_t>(std::floor(row));
  const auto c = static_cast<std::int64_t>(std::floor(column));
  const double down = row - std::floor(row);
  const double right = column - std::floor(column);
  const double upper = dot_at(glyph, r, c) * (1 - right) + dot_at(glyph, r, c + 1) * right;
  const double lower = dot_at(glyph, r + 1, c) * (1 - right) + dot_at(glyph, r + 1, c + 1) * right;
  return upper * (1 - down) + lower * down;
}

void draw_digit(std::string_view glyph, std::int64_t size, Draws& draws, std::vector<float>& out) {
  const double dots = static_cast<double>(size) / draws.uniform(9, 12);  // pixels a dot
  const double middle = static_cast<double>(size - 1) / 2;
  const double down = middle + draws.uniform(-0.12, 0.12) * static_cast<double>(size);
  const double right = middle + draws.uniform(-0.15, 0.15) * static_cast<double>(size);
  const double slant = draws.uniform(-0.25, 0.25);
  const double bright = draws.uniform(0.8, 1.4);
  for (std::int64_t y = 0; y < size; ++y) {
    for (std::int64_t x = 0; x < size; ++x) {
      const double row = (static_cast<double>(y) - down) / dots + (GlyphHeight - 1) / 2.0;
      const double column = (static_cast<double>(x) - right) / dots + (GlyphWidth - 1) / 2.0 +
                            slant * (row - (GlyphHeight - 1) / 2.0);
      const double noise = draws.uniform(-0.3, 0.3);
      out.push_back(static_cast<float>(bright * ink_at(glyph, row, column) - 0.25 + noise));
    }
  }
}

}  // namespace

DrawnDigits drawn_digits(std::int64_t count, std::uint64_t seed, std::int64_t size) {
  const DefaultFloatEnvironment floats;
  if (size < LeastSize || count < 1) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("{} digits of {}x{} pixels cannot be drawn", count, size, size),
                    fmt::format("at least one, of {} pixels", LeastSize));
  }
  Draws draws(seed);
  std::vector<float> pixels;
  std::vector<std::int32_t> labels;
  pixels.reserve(static_cast<std::size_t>(count * size * size));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t digit = draws.below(10);
    labels.push_back(static_cast<std::int32_t>(digit));
    draw_digit(Glyphs[static_cast<std::size_t>(digit)], size, draws, pixels);
  }
  return {Tensor::of<float>({count, 1, size, size}, std::span<const float>(pixels)),
          Tensor::of<std::int32_t>({count}, std::span<const std::int32_t>(labels))};
}

}  // namespace ricci
