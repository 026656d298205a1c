// Sorting, where the extremes are, and running totals, along an axis.
#include <bit>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/roles.h"
#include "schedule/sums_over_rows.h"

namespace ricci::cuda {
namespace {

// Elements as unsigned numbers in their order: NaN above all others, -0.0 equal to 0.0.
std::string key_code(DType dtype) {
  const bool wide = size_of(dtype) == 8;
  if (dtype == DType::F64) {
    return R"(__device__ inline u64 key_of(double x) {
  const u64 bits = __double_as_longlong(x + 0.0);
  if (x != x) return ~0ULL;
  return bits ^ (bits >> 63 ? ~0ULL : 1ULL << 63);
})";
  }
  if (is_float(dtype)) {
    return R"(__device__ inline unsigned key_of(float x) {
  const unsigned bits = __float_as_uint(x + 0.0f);
  if (x != x) return ~0u;
  return bits ^ (bits >> 31 ? ~0u : 1u << 31);
})";
  }
  if (wide) return "__device__ inline u64 key_of(i64 x) { return u64(x) ^ (1ULL << 63); }";
  return "__device__ inline unsigned key_of(i64 x) { return unsigned(x + (1LL << 31)); }";
}

std::string key_expression(DType dtype, std::string_view x, bool descending) {
  const std::string value = from_stored(dtype, std::string(x));
  // u32 goes beyond what is signed; all others fit.
  const std::string number =
      dtype == DType::U32 ? fmt::format("i64({}) - (1LL << 31)", value) : value;
  return fmt::format("{}key_of({})", descending ? "~" : "", number);
}

// A row in shared memory, sorted by a network: items are all different, so it is as if stable.
constexpr std::string_view SortCode = R"(__shared__ Item items[PADDED];
  const i64 t = blockIdx.x % INNER, o = blockIdx.x / INNER;
  for (int i = threadIdx.x; i < PADDED; i += blockDim.x) {
    items[i].key = i < SIZE ? Key(KEY) : ~Key(0);
    items[i].place = i;
  }
  for (int width = 2; width <= PADDED; width *= 2)
    for (int step = width / 2; step > 0; step /= 2) {
      __syncthreads();
      for (int i = threadIdx.x; i < PADDED / 2; i += blockDim.x) {
        const int low = 2 * i - i % step, high = low + step;
        const bool up = (low & width) == 0;
        const Item a = items[low], b = items[high];
        if (less(b, a) == up) {
          items[low] = b;
          items[high] = a;
        }
      }
    }
  __syncthreads();
  for (int i = threadIdx.x; i < KEPT; i += blockDim.x) {
    const i64 to = (o * KEPT + i) * INNER + t;
    if (values != nullptr) values[to] = x[(o * SIZE + items[i].place) * INNER + t];
    if (indices != nullptr) indices[to] = items[i].place;
  })";

constexpr std::string_view ItemCode = R"(
struct Item {
  Key key;
  int place;
};
__device__ inline bool less(const Item& a, const Item& b) {
  return a.key != b.key ? a.key < b.key : a.place < b.place;
}
)";

// The same in memory, a launch for every step of the network.
void sort_in_memory(PlanBuilder& builder, const loop::Sort& s, const std::string& before,
                    const std::string& key, std::int64_t padded) {
  const DType dtype = builder.dtype(0);
  const std::int64_t rows = s.x.outer * s.x.inner;
  const DType word = size_of(dtype) == 8 ? DType::C128 : DType::C64;  // as large as an item
  const Place items = builder.reserve(rows * padded * size_of(word));
  const Place x = builder.row_major(0);
  const std::string shape = fmt::format(
      "#define SIZE {}LL\n#define INNER {}LL\n#define PADDED {}LL\n", s.x.size, s.x.inner, padded);
  const std::vector<Parameter> filled = {{x, dtype, "x"}, {items, DType::U8, "room", true}};
  builder.for_each(
      rows * padded, filled,
      fmt::format("const i64 row = i / PADDED, at = i % PADDED;\n"
                  "    const i64 t = row % INNER, o = row / INNER;\n"
                  "    Item item;\n    item.key = ~Key(0);\n    item.place = int(at);\n"
                  "    if (at < SIZE) {{\n      const i64 i = at;\n"
                  "      item.key = Key({});\n    }}\n    ((Item*)room)[i] = item;",
                  key),
      before + shape);
  // One kernel: a step of the network is told by its numbers.
  for (std::int64_t width = 2; width <= padded; width *= 2) {
    for (std::int64_t step = width / 2; step > 0; step /= 2) {
      const std::vector<Parameter> swapped = {{items, DType::U8, "room", true},
                                              {number(step), DType::I64, "step"},
                                              {number(width), DType::I64, "width"}};
      builder.for_each(rows * padded / 2, swapped,
                       "const i64 row = i / (PADDED / 2), at = i % (PADDED / 2);\n"
                       "    const i64 low = 2 * at - (at & (step - 1));\n"
                       "    Item* const items = (Item*)room + row * PADDED;\n"
                       "    const Item a = items[low], b = items[low + step];\n"
                       "    if (less(b, a) == ((low & width) == 0)) {\n"
                       "      items[low] = b;\n      items[low + step] = a;\n    }",
                       before + shape);
    }
  }
  const std::vector<Parameter> given = {
      {x, dtype, "x"},
      {items, DType::U8, "room"},
      {result(0), dtype, "values", true},
      {result(1), builder.step().results[1].type.dtype, "indices", true}};
  builder.for_each(
      rows * s.kept, given,
      fmt::format("const i64 t = i % INNER, place = i / INNER % {0}LL;\n"
                  "    const i64 o = i / INNER / {0}LL;\n"
                  "    const i64 at = ((const Item*)room)[(o * INNER + t) * PADDED + "
                  "place].place;\n"
                  "    if (values != nullptr) values[i] = x[(o * SIZE + at) * INNER + t];\n"
                  "    if (indices != nullptr) indices[i] = at;",
                  s.kept),
      before + shape);
}

}  // namespace

void plan_sort(PlanBuilder& builder, const loop::Sort& s) {
  constexpr std::int64_t Shared = 4096;  // items of up to 16 bytes
  if (s.kept == 0 || s.x.outer * s.x.inner == 0) return;
  const DType dtype = builder.dtype(0);
  const bool wide = size_of(dtype) == 8;
  const auto padded =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(s.x.size)));
  const std::string before =
      fmt::format("{}\ntypedef {} Key;\n{}", key_code(dtype), wide ? "u64" : "unsigned", ItemCode);
  const std::string key = key_expression(dtype, "x[(o * SIZE + i) * INNER + t]", s.descending);
  if (padded > (wide ? Shared / 2 : Shared)) {
    return sort_in_memory(builder, s, before, key, padded);
  }
  const DType indices = builder.step().results[1].type.dtype;
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "x"},
                                             {result(0), dtype, "values", true},
                                             {result(1), indices, "indices", true}};
  const auto threads = static_cast<std::int32_t>(std::clamp<std::int64_t>(padded / 2, 32, 512));
  builder.launch(s.x.outer * s.x.inner, threads, parameters, SortCode,
                 before + fmt::format("#define SIZE {}\n#define PADDED {}\n#define INNER {}LL\n"
                                      "#define KEPT {}\n#define KEY ({})\n",
                                      s.x.size, padded, s.x.inner, s.kept, key));
}

// A warp for every row.
void plan_arg_reduce(PlanBuilder& builder, const loop::ArgReduce& r) {
  const DType dtype = builder.dtype(0);
  const std::int64_t rows = r.x.outer * r.x.inner;
  const std::string body = fmt::format(
      R"(const i64 row = i64(blockIdx.x) * 8 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (row >= {0}LL) return;
  const i64 t = row % {1}LL, o = row / {1}LL;
  i64 place = -1;
  H best = H(0);
  for (i64 i = lane; i < {2}LL; i += 32) {{
    const H here = {3};
    if (place < 0 || (best == best && (here != here || here {4} best))) {{
      best = here;
      place = i;
    }}
  }}
  for (int step = 16; step > 0; step /= 2) {{
    const H other = __shfl_xor_sync(0xffffffffu, best, step);
    const i64 at = __shfl_xor_sync(0xffffffffu, place, step);
    if (at < 0) continue;
    const bool nan = best != best, other_nan = other != other;
    const bool better = place < 0 || (other_nan && !nan) ||
                        (other_nan == nan && (nan || other == best ? at < place
                                                                    : other {4} best));
    if (better) {{
      best = other;
      place = at;
    }}
  }}
  if (lane == 0) out[row] = place;)",
      rows, r.x.inner, r.x.size,
      from_stored(dtype, fmt::format("x[(o * {}LL + i) * {}LL + t]", r.x.size, r.x.inner)),
      r.largest ? ">" : "<");
  const DType out = builder.step().results[0].type.dtype;
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "x"},
                                             {result(0), out, "out", true}};
  // Small integers have no shuffles of their own.
  const char* held = is_float(dtype) ? held_type(dtype) : "i64";
  builder.launch((rows + 7) / 8, 256, parameters, body, fmt::format("typedef {} H;", held));
}

namespace {

ReduceKind total_kind(CumulativeKind kind) {
  switch (kind) {
    case CumulativeKind::Cumprod: return ReduceKind::Prod;
    case CumulativeKind::Cummax: return ReduceKind::Max;
    case CumulativeKind::Cummin: return ReduceKind::Min;
    case CumulativeKind::Cumsum: break;
  }
  return ReduceKind::Sum;
}

// Totals are as long as the axis: what is added is kept in twice the digits too.
DType kept_in(ReduceKind kind, DType dtype) {
  const bool grows = kind == ReduceKind::Sum || kind == ReduceKind::Prod;
  return grows ? schedule::product_in(dtype) : dtype;
}

}  // namespace

// A thread for every row, one element after the other.
void plan_cumulative(PlanBuilder& builder, const loop::Cumulative& c) {
  const DType dtype = builder.dtype(0);
  const ReduceKind kind = total_kind(c.kind);
  const DType kept = kept_in(kind, dtype);
  const DType held = reduced_in(kind, kept);
  const std::string body = fmt::format(
      R"(const i64 t = i % {0}LL, o = i / {0}LL;
    {1} total = {2};
    for (i64 k = 0; k < {3}LL; ++k) {{
      const i64 at = (o * {3}LL + {4}) * {0}LL + t;
      const {1} before = total;
      const {1} here = {5};
      total = {6};
      out[at] = {7};
    }})",
      c.x.inner, held_type(held), reduction_of_nothing(kind, kept), c.x.size,
      c.from_end ? fmt::format("({}LL - k)", c.x.size - 1) : "k",
      cast_text(dtype, kept, from_stored(dtype, "x[at]")),
      combined_text(kind, kept, "before", "here"),
      to_stored(dtype, cast_text(kept, dtype, c.exclusive ? "before" : "total")));
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "x"},
                                             {result(0), dtype, "out", true}};
  builder.for_each(c.x.outer * c.x.inner, parameters, body);
}

}  // namespace ricci::cuda
