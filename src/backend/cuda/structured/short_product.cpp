#include "backend/cuda/structured/short_product.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "backend/cuda/structured/implicit_product.h"

namespace ricci::cuda {
namespace {

constexpr std::int64_t Vector = 4;  // elements of 16 bytes

// What a multiprocessor does a cycle of what such a tile needs.
struct Candidate {
  ProductTile tile;
  double products = 64;
};

constexpr auto Candidates = std::to_array<Candidate>({
    {{.rows = 16, .columns = 32, .own_rows = 4, .own_columns = 4, .slices = 8, .depth = 64}, 64},
    {{.rows = 32,
      .columns = 32,
      .own_rows = 4,
      .own_columns = 8,
      .lanes_down = 8,
      .slices = 8,
      .depth = 64},
     80},
    {{.rows = 32, .columns = 64, .slices = 8, .depth = 32}, 90},
    {{.rows = 64, .columns = 64, .slices = 4, .depth = 32}, 100},
});

double cycles_of(const ShortProduct& p, const Candidate& c) {
  constexpr double Multiprocessors = 132;
  constexpr double BytesACycle = 32;  // that one of them reads of what is near
  constexpr double BeginAndEnd = 2500;
  const ProductTile& t = c.tile;
  const auto blocks = static_cast<double>(p.matrices * tiles_over(p.rows, t.rows) *
                                          tiles_over(p.columns, t.columns));
  const auto depth = static_cast<double>(tiles_over(p.depth, t.depth) * t.depth);
  const double products = static_cast<double>(t.rows * t.columns) * depth / c.products;
  const double bytes = static_cast<double>(4 * (t.rows + t.columns)) * depth / BytesACycle;
  const double at_once = std::max(blocks / Multiprocessors, 1.0);
  return BeginAndEnd + at_once * std::max(products, bytes);
}

std::optional<ProductTile> tile_for(const ShortProduct& p) {
  constexpr double MostCycles = 12'000;
  constexpr std::int64_t FewProducts = 1 << 17;
  if (p.matrices * p.rows * p.columns * p.depth < FewProducts) return std::nullopt;
  const auto cycles = [&](const Candidate& c) { return cycles_of(p, c); };
  const Candidate& best = *std::ranges::min_element(Candidates, {}, cycles);
  return cycles(best) <= MostCycles ? std::optional(best.tile) : std::nullopt;
}

// A factor, and how it is called in the code: across are the results, deep is what is added up.
struct Copied {
  const FactorLayout& layout;
  std::int64_t stride_across = 0;
  std::int64_t stride_deep = 0;
  std::int64_t count = 0;  ///< across
  std::int64_t tile = 0;   ///< of them
  std::string_view first;
  std::string_view from;
  std::string_view to;
  std::string_view row;  ///< of `to`: how long it is
};

// Copies a factor's part of tile `t`. Neighbours across
// come four at a time; else eight neighbours in depth and four across are those of a warp, whose
// places in shared memory are all in other banks.
std::string load_text(const Copied& f, const ProductTile& t, std::int64_t depth) {
  const bool whole = f.stride_across == 1 && f.stride_deep % Vector == 0 &&
                     f.layout.alignment % Vector == 0 && f.count % Vector == 0;
  const std::int64_t across = f.tile;
  const std::int64_t count = across * t.depth / (whole ? Vector : 1);
  const std::string places =
      whole ? fmt::format("k = e / {0}, x = e % {0} * {1}", across / Vector, Vector)
            : fmt::format("k = e % 8 + e / 32 % {} * 8, x = e / 8 % 4 + e / {} * 4", t.depth / 8,
                          4 * t.depth);
  const std::int64_t rounds = tiles_over(count, t.threads());
  return fmt::format(
      R"(
#pragma unroll
      for (int i = 0; i < {0}; ++i) {{
        const int e = threadIdx.x + i * THREADS;
        {1}const int {2};
        const I deep = t * TILE_DEPTH + k, at = {3} + x;
        {4}({5} + k * {6} + x, {7} + ({8} + at * I({9}) + deep * I({10})), deep < {11} && at < {12});
      }})",
      rounds, count % t.threads() == 0 ? "" : fmt::format("if (e >= {}) break;\n        ", count),
      places, f.first, whole ? "copy_four" : "copy_element", f.to, f.row, f.from, f.layout.offset,
      f.stride_across, f.stride_deep, depth, f.count);
}

constexpr std::string_view CopyFour = R"(
// Four neighbours, or zeros.
__device__ inline void copy_four(T* to, const T* from, bool real) {
  const unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(at), "l"(from), "r"(real ? 16 : 0) : "memory");
}
)";

// The kernel behind the call as what the thread that has stored elements does with them.
void do_behind(const Program& program, const CallStep& call, ImplicitProductText& text,
               std::vector<std::string>& names) {
  const loop::Kernel& kernel = program.kernels[call.after->kernel];
  loop::Kernel unnamed = kernel;
  unnamed.name.clear();
  const auto at_points = print_at_points(unnamed, "behind", static_cast<int>(Vector));
  if (!at_points) return;
  std::string arguments;
  names.reserve(kernel.arguments.size());
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const loop::Argument& g = kernel.arguments[a];
    if (g.role == loop::ArgumentRole::Local) continue;
    names.push_back(fmt::format("behind_{}", a));
    text.behind_parameters.push_back({after(static_cast<std::int32_t>(a)), g.dtype, names.back(),
                                      g.role == loop::ArgumentRole::Out, true});
    arguments += names.back() + ", ";
  }
  text.before += at_points->text;
  text.behind = fmt::format(R"(
#pragma unroll
    for (int j = 0; j < WIDE; j += {0}) {{
      const I n = first_n + j;
      if (n < N) behind({1}scratch, fault, origin, (PLACE) / {0});
    }})",
                            at_points->lanes, arguments)
                    .substr(1);
}

}  // namespace

bool plan_short_product(PlanBuilder& builder, const Program& program, const ShortProduct& s) {
  const std::optional<ProductTile> tile = tile_for(s);
  if (!tile || !s.in_order) return false;
  ImplicitProduct p{.sizes = {.dtype = DType::F32,
                              .matrices = s.matrices,
                              .rows = s.rows,
                              .columns = s.columns,
                              .depth_tiles = tiles_over(s.depth, tile->depth),
                              .row_padding = Vector},
                    .split = {.tile = *tile},
                    .narrow = s.narrow,
                    .columns_adjoin = true,
                    .all_store = true};
  ImplicitProductText text;
  text.before = CopyFour.substr(1);
  const Copied left{s.a, s.a.row, s.a.column, s.rows, tile->rows, "m0", "a", "left", "LEFT"};
  const Copied right{s.b,  s.b.column, s.b.row, s.columns, tile->columns,
                     "n0", "b",        "right", "RIGHT"};
  text.load = load_text(left, *tile, s.depth).substr(1) + load_text(right, *tile, s.depth);
  text.place = "(i64(z) * M + m) * N + n";
  std::vector<std::string> names;
  if (builder.step().after) do_behind(program, builder.step(), text, names);
  builder.plan.has_after = !text.behind.empty();
  plan_implicit_product(builder, p, text, operand(0), operand(1));
  return true;
}

}  // namespace ricci::cuda
