// Picking and adding by index, and slices whose place is a number. What is added to a place is
// added in the order of the operand, by one thread: the same bits always.
#include <algorithm>
#include <complex>

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

// Updates are put in order of their rows, each row's in their own: `starts` says where those of a
// row begin in `order`.
struct Ordered {
  Place starts;
  Place order;
};

Ordered order_by_row(PlanBuilder& builder, std::size_t indices, std::int64_t count,
                     std::int64_t rows) {
  const DType dtype = builder.dtype(indices);
  const Place from = builder.row_major(indices);
  const Place counts = builder.reserve((rows + 1) * 8);
  const Place ranks = builder.reserve(count * 8);
  const Place order = builder.reserve(count * 8);
  builder.zeros(counts, (rows + 1) * 8);
  // The rank of an update is how many before it go to the same row.
  const std::vector<Parameter> ranked = {{from, dtype, "indices"},
                                         {counts, DType::I64, "counts", true},
                                         {ranks, DType::I64, "ranks", true}};
  builder.for_each(count, ranked,
                   fmt::format("const i64 row = {};\n"
                               "    i64 rank = 0;\n"
                               "    for (i64 e = 0; e < i; ++e) rank += i64(indices[e]) == row;\n"
                               "    ranks[i] = rank;\n"
                               "    if (row >= 0) atomicAdd((u64*)counts + row + 1, 1ULL);",
                               checked("indices[i]", rows)));
  const std::vector<Parameter> summed = {{counts, DType::I64, "counts", true}};
  builder.launch(1, 1024, summed,
                 fmt::format(R"(__shared__ i64 sums[1024];
  i64 carried = 0;
  for (i64 first = 0; first <= {0}LL; first += 1024) {{
    const i64 at = first + threadIdx.x;
    sums[threadIdx.x] = at <= {0}LL ? counts[at] : 0;
    __syncthreads();
    for (int step = 1; step < 1024; step *= 2) {{
      const i64 other = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
      __syncthreads();
      sums[threadIdx.x] += other;
      __syncthreads();
    }}
    if (at <= {0}LL) counts[at] = carried + sums[threadIdx.x];
    carried += sums[1023];
    __syncthreads();
  }})",
                             rows));
  const std::vector<Parameter> placed = {{from, dtype, "indices"},
                                         {counts, DType::I64, "starts"},
                                         {ranks, DType::I64, "ranks"},
                                         {order, DType::I64, "order", true}};
  builder.for_each(count, placed,
                   fmt::format("const i64 row = i64(indices[i]);\n"
                               "    if (u64(row) < u64({}LL)) order[starts[row] + ranks[i]] = i;",
                               rows));
  builder.plan.can_fault = true;
  return {counts, order};
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
  const Place updates = builder.row_major(0);
  const Ordered by_row = order_by_row(builder, 1, s.added, s.out.size);
  const std::vector<Parameter> parameters = {{updates, dtype, "updates"},
                                             {by_row.starts, DType::I64, "starts"},
                                             {by_row.order, DType::I64, "order"},
                                             {result(0), dtype, "out", true}};
  const std::string body = fmt::format(
      R"(const i64 t = i % {0}LL, row = i / {0}LL % {1}LL, o = i / {0}LL / {1}LL;
    {2} sum = {3};
    for (i64 e = starts[row]; e < starts[row + 1]; ++e) {{
      const i64 from = (o * {4}LL + order[e]) * {0}LL + t;
      sum = {5};
    }}
    out[i] = {6};)",
      s.out.inner, s.out.size, held_type(sum), zero_text(sum), s.added,
      binary_text(BinaryKind::Add, sum, "sum", from_stored(dtype, "updates[from]")),
      to_stored(dtype, "sum"));
  builder.for_each(*builder.step().results[0].type.numel(), parameters, body);
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
  const std::vector<Parameter> parameters = {{builder.row_major(0), dtype, "table"},
                                             {builder.row_major(1), builder.dtype(1), "indices"},
                                             {result(0), dtype, "out", true}};
  const std::string body = fmt::format(
      R"(const i64 t = i % {0}LL, k = i / {0}LL % {1}LL, o = i / {0}LL / {1}LL;
    const i64 row = {2};
    {4} value = {{}};
    if (row >= 0) value = table[(o * {3}LL + row) * {0}LL + t];
    out[i] = value;)",
      g.table.inner, g.picked, checked(g.each ? "indices[i]" : "indices[k]", g.table.size),
      g.table.size, stored_type(dtype));
  builder.for_each(*builder.step().results[0].type.numel(), parameters, body);
  builder.plan.can_fault = true;
}

void plan_scatter(PlanBuilder& builder, const loop::Scatter& s) {
  // To find the rank of an update all before it are looked at.
  constexpr std::int64_t MostOrdered = 1 << 16;
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
