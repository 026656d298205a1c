// Picking and adding by index, and slices whose place is a number. What is added to a place is
// added in the order of the operand, by one thread: the same bits always.
#include <algorithm>
#include <complex>
#include <limits>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/roles.h"

namespace ricci::cuda {
namespace {

// Sums of any number of elements are kept in this.
DType wide_sum(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16: return DType::F32;
    default: return dtype;
  }
}

std::string zero_text(DType dtype) {
  if (is_complex(dtype)) return constant_text(dtype, std::complex<double>(0));
  return is_float(dtype) ? constant_text(dtype, 0.0) : constant_text(dtype, std::int64_t{0});
}

// An index that is out of range is reported once, and taken for none.
std::string checked(std::string_view index, std::int64_t limit) {
  return fmt::format("index_of(i64({}), {}LL, fault, origin)", index, limit);
}

// Updates are put in order of their rows, each row's in their own: `counts` says how many those of
// a row are, `starts` where they begin in `order`.
struct Ordered {
  Place counts;
  Place starts;
  Place order;
};

// Rows get their part of `order` in whatever order their blocks come, and updates their place in it
// likewise; then each counts those of its row that come before it.
Ordered order_by_row(PlanBuilder& builder, std::size_t indices, std::int64_t count,
                     std::int64_t rows) {
  constexpr std::int32_t Threads = 256;
  const DType dtype = builder.dtype(indices);
  const Place from = builder.row_major(indices);
  const Place counts = builder.reserve((rows + 1) * 8);  // behind them, how many have a place
  const Place starts = builder.reserve(rows * 4);
  const Place ranks = builder.reserve(count * 4);
  const Place unordered = builder.reserve(count * 4);
  const Place order = builder.reserve(count * 4);
  builder.zeros(counts, (rows + 1) * 8);
  const std::vector<Parameter> ranked = {{from, dtype, "indices"},
                                         {counts, DType::I64, "counts", true},
                                         {ranks, DType::I32, "ranks", true}};
  builder.for_each(count, ranked,
                   fmt::format("const i64 row = {};\n"
                               "    if (row >= 0) ranks[i] = int(atomicAdd((u64*)counts + row, "
                               "1ULL));",
                               checked("indices[i]", rows)));
  const std::vector<Parameter> begun = {{counts, DType::I64, "counts", true},
                                        {starts, DType::I32, "starts", true}};
  builder.launch((rows + Threads - 1) / Threads, Threads, begun,
                 fmt::format(R"(__shared__ int sums[{0}];
  __shared__ int first;
  const int t = threadIdx.x;
  const i64 row = i64(blockIdx.x) * {0} + t;
  const int own = row < {1}LL ? int(counts[row]) : 0;
  sums[t] = own;
  __syncthreads();
  for (int step = 1; step < {0}; step *= 2) {{
    const int other = t >= step ? sums[t - step] : 0;
    __syncthreads();
    sums[t] += other;
    __syncthreads();
  }}
  if (t == {0} - 1) first = int(atomicAdd((u64*)counts + {1}LL, u64(sums[t])));
  __syncthreads();
  if (row < {1}LL) starts[row] = first + sums[t] - own;)",
                             Threads, rows));
  const std::vector<Parameter> placed = {{from, dtype, "indices"},
                                         {starts, DType::I32, "starts"},
                                         {ranks, DType::I32, "ranks"},
                                         {unordered, DType::I32, "unordered", true}};
  builder.for_each(
      count, placed,
      fmt::format("const i64 row = i64(indices[i]);\n"
                  "    if (u64(row) < u64({}LL)) unordered[starts[row] + ranks[i]] = int(i);",
                  rows));
  const std::vector<Parameter> ordered = {{from, dtype, "indices"},
                                          {counts, DType::I64, "counts"},
                                          {starts, DType::I32, "starts"},
                                          {unordered, DType::I32, "unordered"},
                                          {order, DType::I32, "order", true}};
  builder.for_each(count, ordered,
                   fmt::format("const i64 row = i64(indices[i]);\n"
                               "    if (u64(row) >= u64({}LL)) continue;\n"
                               "    const int first = starts[row], last = first + "
                               "int(counts[row]);\n"
                               "    int at = first;\n"
                               "    for (int e = first; e < last; ++e) at += unordered[e] < i;\n"
                               "    order[at] = int(i);",
                               rows));
  builder.plan.can_fault = true;
  return {counts, starts, order};
}

// What numbers the places of arrays of up to so many elements.
const char* index_type(std::int64_t elements) {
  return elements <= std::numeric_limits<std::int32_t>::max() ? "unsigned" : "u64";
}

// Every column of the result goes down its updates.
void scatter_columns(PlanBuilder& builder, const loop::Scatter& s) {
  const DType dtype = builder.dtype(0);
  const DType sum = wide_sum(dtype);
  const std::int64_t count = *builder.step().results[0].type.numel();
  const bool wider = sum != dtype;
  const Place sums = wider ? builder.reserve(count * size_of(sum)) : result(0);
  builder.zeros(sums, count * size_of(sum));
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "updates"},
                                             {builder.row_major(1), builder.dtype(1), "indices"},
                                             {sums, sum, "sums", true}};
  const std::string body = fmt::format(
      R"(const i64 t = i % {0}LL, o = i / {0}LL;
    for (i64 k = 0; k < {1}LL; ++k) {{
      const i64 from = (o * {1}LL + k) * {0}LL + t;
      const i64 row = {2};
      if (row < 0) continue;
      const i64 to = (o * {3}LL + row) * {0}LL + t;
      sums[to] = {4};
    }})",
      s.out.inner, s.added, checked(s.each ? "indices[from]" : "indices[k]", s.out.size),
      s.out.size,
      binary_text(BinaryKind::Add, sum, "sums[to]", from_stored(dtype, "updates[from]")));
  builder.for_each(s.out.outer * s.out.inner, parameters, body);
  builder.plan.can_fault = true;
  if (!wider) return;
  const std::vector<Parameter> rounded = {{sums, sum, "sums"}, {result(0), dtype, "out", true}};
  builder.for_each(count, rounded, fmt::format("out[i] = {};", to_stored(dtype, "sums[i]")));
}

void scatter_rows(PlanBuilder& builder, const loop::Scatter& s) {
  const DType dtype = builder.dtype(0);
  const DType sum = wide_sum(dtype);
  const std::int64_t count = *builder.step().results[0].type.numel();
  const Place updates = builder.row_major(0);
  const Ordered by_row = order_by_row(builder, 1, s.added, s.out.size);
  const std::vector<Parameter> parameters = {{updates, dtype, "updates"},
                                             {by_row.counts, DType::I64, "counts"},
                                             {by_row.starts, DType::I32, "starts"},
                                             {by_row.order, DType::I32, "order"},
                                             {result(0), dtype, "out", true}};
  const int lanes = builder.lanes(0, s.out.inner);
  const std::string body = fmt::format(
      R"(const {9} n = i, t = n % {0}u * {8}, row = n / {0}u % {1}u, o = n / {0}u / {1}u;
    {2} sum[{8}];
    for (int j = 0; j < {8}; ++j) sum[j] = {3};
    const int first = starts[row], last = first + int(counts[row]);
    for (int e = first; e < last; ++e) {{
      const Pack<{7}, {8}> from =
          *(const Pack<{7}, {8}>*)(updates + (o * {4}u + order[e]) * {10} + t);
#pragma unroll
      for (int j = 0; j < {8}; ++j) sum[j] = {5};
    }}
    Pack<{7}, {8}> rounded;
#pragma unroll
    for (int j = 0; j < {8}; ++j) rounded.at[j] = {6};
    ((Pack<{7}, {8}>*)out)[i] = rounded;)",
      s.out.inner / lanes, s.out.size, held_type(sum), zero_text(sum), s.added,
      binary_text(BinaryKind::Add, sum, "sum[j]", from_stored(dtype, "from.at[j]")),
      to_stored(dtype, "sum[j]"), stored_type(dtype), lanes,
      index_type(std::max(count, s.out.outer * s.added * s.out.inner)), s.out.inner);
  builder.for_each(count / lanes, parameters, body);
}

std::string combined_with(ScatterKind kind, DType dtype) {
  switch (kind) {
    case ScatterKind::Add: return binary_text(BinaryKind::Add, dtype, "there", "update");
    case ScatterKind::Mul: return binary_text(BinaryKind::Mul, dtype, "there", "update");
    case ScatterKind::Max: return "there > update || there != there ? there : update";
    case ScatterKind::Min: return "there < update || there != there ? there : update";
    case ScatterKind::Set: break;
  }
  return "update";
}

}  // namespace

void plan_gather(PlanBuilder& builder, const loop::Gather& g) {
  const DType dtype = builder.dtype(0);
  const std::int64_t count = *builder.step().results[0].type.numel();
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "table"},
                                             {builder.row_major(1), builder.dtype(1), "indices"},
                                             {result(0), dtype, "out", true}};
  const int lanes = g.each ? 1 : builder.lanes(0, g.table.inner);
  const std::string body = fmt::format(
      R"(const {5} n = i, t = n % {0}u * {7}, k = n / {0}u % {1}u, o = n / {0}u / {1}u;
    const i64 row = {2};
    Pack<{4}, {7}> value = {{}};
    if (row >= 0) value = *(const Pack<{4}, {7}>*)(table + (o * {3}u + row) * {6} + t);
    ((Pack<{4}, {7}>*)out)[i] = value;)",
      g.table.inner / lanes, g.picked, checked(g.each ? "indices[i]" : "indices[k]", g.table.size),
      g.table.size, stored_type(dtype), index_type(count), g.table.inner, lanes);
  builder.for_each(count / lanes, parameters, body);
  builder.plan.can_fault = true;
}

void plan_scatter(PlanBuilder& builder, const loop::Scatter& s) {
  // To find the place of an update all of its row are looked at, which may be all there are.
  constexpr std::int64_t MostOrdered = 1 << 18;
  if (s.each || s.added > MostOrdered || s.added == 0) return scatter_columns(builder, s);
  scatter_rows(builder, s);
}

void plan_scatter_into(PlanBuilder& builder, const loop::ScatterInto& s) {
  const DType dtype = builder.dtype(0);
  const DType sum = wide_sum(dtype);
  const std::int64_t count = *builder.step().results[0].type.numel();
  const bool wider = sum != dtype;
  const Place x = builder.row_major(0);
  const Place updates = builder.row_major(1);
  const Place indices = builder.row_major(2);
  const Place numbers = wider ? builder.reserve(count * size_of(sum)) : result(0);
  const std::vector<Parameter> begun = {{x, dtype, "x"}, {numbers, sum, "numbers", true}};
  builder.for_each(count, begun, fmt::format("numbers[i] = {};", from_stored(dtype, "x[i]")));
  const std::vector<Parameter> parameters = {{updates, dtype, "updates"},
                                             {indices, builder.dtype(2), "indices"},
                                             {numbers, sum, "numbers", true}};
  const std::string body = fmt::format(
      R"(for (i64 k = 0; k < {0}LL; ++k) {{
      const i64 row = {1};
      if (row < 0) continue;
      const {2} there = numbers[row * {3}LL + i], update = {4};
      numbers[row * {3}LL + i] = {5};
    }})",
      s.updates, checked("indices[k]", s.out.size), held_type(sum), s.out.inner,
      from_stored(dtype, fmt::format("updates[k * {}LL + i]", s.out.inner)),
      combined_with(s.kind, sum));
  builder.for_each(s.out.inner, parameters, body);
  builder.plan.can_fault = true;
  if (!wider) return;
  const std::vector<Parameter> rounded = {{numbers, sum, "numbers"},
                                          {result(0), dtype, "out", true}};
  builder.for_each(count, rounded, fmt::format("out[i] = {};", to_stored(dtype, "numbers[i]")));
}

void plan_slice(PlanBuilder& builder, const loop::DynamicSlice& s) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const loop::AxisSplit x =
      loop::split_at(step.operands[0].type.static_dims(), static_cast<std::size_t>(s.axis));
  const std::size_t start = s.replaces ? 2 : 1;
  std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "x"},
                                       {operand(start), builder.dtype(start), "start"}};
  if (s.replaces) parameters.push_back({builder.row_major(1), dtype, "update"});
  parameters.push_back({result(0), dtype, "out", true});
  const std::string first =
      fmt::format("const i64 wanted = i64(start[0]);\n"
                  "    const i64 first = wanted < 0 ? 0 : wanted > {0}LL ? {0}LL : wanted;\n",
                  s.size - s.length);
  const std::string body =
      s.replaces ? fmt::format(R"({0}    const i64 t = i % {1}LL, row = i / {1}LL % {2}LL;
    const i64 o = i / {1}LL / {2}LL, at = row - first;
    out[i] = at >= 0 && at < {3}LL ? update[(o * {3}LL + at) * {1}LL + t] : x[i];)",
                               first, x.inner, s.size, s.length)
                 : fmt::format(R"({0}    const i64 t = i % {1}LL, row = i / {1}LL % {3}LL;
    const i64 o = i / {1}LL / {3}LL;
    out[i] = x[(o * {2}LL + first + row) * {1}LL + t];)",
                               first, x.inner, s.size, s.length);
  builder.for_each(*step.results[0].type.numel(), parameters, body);
}

}  // namespace ricci::cuda
