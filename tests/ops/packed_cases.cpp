// Cases of products with weights in few bits, in every transform and on every device
// [dequant-rest] [dequant-outputs], and of sizes that do not fit [dequant-shape-check]. Weights are
// encoded from numbers, so that scales are ordinary ones.
#include <cmath>

#include "ricci/quant/scheme.h"

#include "ops/cases.h"

namespace ricci::testing {
namespace {

std::vector<float> some_numbers(std::int64_t count, int start) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(std::sin(1.7 * static_cast<double>(i) + start)));
  }
  return out;
}

In numbers(DType dtype, Dims dims, std::vector<double> values) {
  return Fixed(dtype, std::move(dims)).with(std::move(values));
}

// The operands of a weight [k, n].
std::vector<In> weight(const std::string& name, std::int64_t k, std::int64_t n) {
  const quant::Scheme scheme = quant::scheme_from_name(name).value();
  const quant::Matrix m = quant::encode_matrix(scheme, k, n, some_numbers(k * n, 3));
  const bool is_signed = scheme.kind == quant::SchemeKind::Int8Block ||
                         scheme.kind == quant::SchemeKind::Int8BlockAsym;
  std::vector<double> codes;
  for (const std::byte b : m.codes) {
    codes.push_back(is_signed ? std::to_integer<std::int8_t>(b) : std::to_integer<std::uint8_t>(b));
  }
  const bool whole_bytes = !scheme.is_packed() && std::ssize(codes) == k * n;
  const Dims dims = whole_bytes ? Dims{k, n} : Dims{Dim(std::ssize(codes))};
  std::vector<In> out{numbers(is_signed ? DType::I8 : DType::U8, dims, codes)};
  const Dims blocks =
      scheme.group() == 0 ? Dims{n} : Dims{(k + scheme.group() - 1) / scheme.group(), n};
  if (!m.scales.empty()) {
    out.push_back(numbers(DType::F32, blocks, {m.scales.begin(), m.scales.end()}));
  }
  if (!m.fp8_scales.empty()) {
    std::vector<double> bytes;
    for (const std::byte b : m.fp8_scales) bytes.push_back(std::to_integer<std::uint8_t>(b));
    out.push_back(numbers(DType::U8, blocks, bytes));
    out.push_back(numbers(DType::F32, {1}, {m.global}));
  }
  if (!m.zero_points.empty()) {
    out.push_back(numbers(DType::F32, blocks, {m.zero_points.begin(), m.zero_points.end()}));
  }
  return out;
}

std::vector<In> with_x(In x, std::vector<In> rest) {
  rest.insert(rest.begin(), std::move(x));
  return rest;
}

In stack(const std::string& name, std::int64_t experts, std::int64_t k, std::int64_t n) {
  std::vector<double> bytes;
  for (std::int64_t e = 0; e < experts; ++e) {
    const quant::Scheme scheme = quant::scheme_from_name(name).value();
    const quant::Matrix m =
        quant::encode_matrix(scheme, k, n, some_numbers(k * n, static_cast<int>(e)));
    for (const std::byte b : m.codes) bytes.push_back(std::to_integer<std::uint8_t>(b));
  }
  return numbers(DType::U8, {Dim(std::ssize(bytes))}, bytes);
}

const DTypeSet Once = {DType::F64};

}  // namespace

Cases cases(const op::DequantMatmul*) {
  using Op = op::DequantMatmul;
  std::vector<CaseOf<Op>> list;
  // Every scheme, both ways; depths that are no multiple of a block where that can be.
  for (const char* name : {"int8_block_4", "int8_block_asym_4", "int4_block_4", "fp8_e4m3",
                           "fp8_e5m2", "nvfp4_block"}) {
    list.push_back(
        {.name = name, .in = with_x(T({2, 7}), weight(name, 7, 3)), .op = {.scheme = name}});
    list.push_back({.name = std::string(name) + "_transposed",
                    .in = with_x(T({2, 3}), weight(name, 7, 3)),
                    .op = {.scheme = name, .transpose = true, .depth = 7}});
  }
  for (const quant::FormatInfo& f : quant::all_formats()) {
    if (f.block_length == 1) continue;
    const std::string name(f.name);
    const std::int64_t k = f.block_length;
    list.push_back(
        {.name = name, .in = with_x(T({2, k}), weight(name, k, 3)), .op = {.scheme = name}});
    list.push_back({.name = name + "_transposed",
                    .in = with_x(T({2, 3}), weight(name, k, 3)),
                    .op = {.scheme = name, .transpose = true}});
  }
  const std::vector<In> q8 = weight("q8_0", 64, 5);
  const std::vector<In> int8 = weight("int8_block_32", 32, 70);
  for (CaseOf<Op> c : std::vector<CaseOf<Op>>{
           {.name = "vector", .in = with_x(T({64}), q8), .op = {.scheme = "q8_0"}},
           {.name = "leading_axes", .in = with_x(T({2, 3, 64}), q8), .op = {.scheme = "q8_0"}},
           {.name = "many_rows", .in = with_x(T({13, 64}), q8), .op = {.scheme = "q8_0"}},
           {.name = "many_rows_transposed",
            .in = with_x(T({13, 5}), q8),
            .op = {.scheme = "q8_0", .transpose = true}},
           {.name = "wide", .in = with_x(T({3, 32}), int8), .op = {.scheme = "int8_block_32"}},
           {.name = "wide_rows",
            .in = with_x(T({11, 32}), int8),
            .op = {.scheme = "int8_block_32"}},
           {.name = "wide_transposed",
            .in = with_x(T({11, 70}), int8),
            .op = {.scheme = "int8_block_32", .transpose = true}},
           {.name = "no_rows", .in = with_x(T({0, 64}), q8), .op = {.scheme = "q8_0"}},
           {.name = "odd_nibbles",
            .in = with_x(T({2, 3}), weight("int4_block_2", 3, 3)),
            .op = {.scheme = "int4_block_2"}},
           {.name = "fp8_without_scales",
            .in = {T({2, 3}), Fixed(DType::U8, {3, 2}).with({56, 60, 192, 1, 0, 64})},
            .op = {.scheme = "fp8_e4m3"}},
           {.name = "scale_gradient",
            .in = {T({2, 4}), Fixed(DType::I8, {4, 1}).with({1, -2, 3, 4}),
                   Fixed(DType::F32, {2, 1}).with({0.5, 0.25}),
                   Fixed(DType::F32, {2, 1}).with({1, -1})},
            .op = {.scheme = "int8_block_asym_2"}},
           {.name = "int8_activations",
            .in = with_x(T({1, 32}).with(std::vector<double>(32, 12.7)), weight("q8_0", 32, 2)),
            .op = {.scheme = "q8_0", .int8_activations = true},
            .dtypes = Once},
           {.name = "no_such_scheme",
            .in = with_x(T({2, 64}), q8),
            .op = {.scheme = "q9_9"},
            .rejects = "c1"},
           {.name = "code_dtype",
            .in = {T({2, 32}), Fixed(DType::I8, {34})},
            .op = {.scheme = "q8_0"},
            .rejects = "c2"},
           {.name = "scalar", .in = with_x(T({}), q8), .op = {.scheme = "q8_0"}, .rejects = "c3"},
           {.name = "broken_block",
            .in = {T({2, 32}), Fixed(DType::U8, {35})},
            .op = {.scheme = "q8_0"},
            .rejects = "c4"},
           {.name = "partial_block",
            .in = {T({2, 33}), Fixed(DType::U8, {34})},
            .op = {.scheme = "q8_0"},
            .rejects = "c4"},
           {.name = "depth_of_codes",
            .in = with_x(T({2, 31}), int8),
            .op = {.scheme = "int8_block_32"},
            .rejects = "c4"},
           {.name = "scales_missing",
            .in = {T({2, 4}), Fixed(DType::I8, {4, 2})},
            .op = {.scheme = "int8_block_4"},
            .rejects = "c5"},
           {.name = "needless_parts",
            .in = {T({2, 32}), Fixed(DType::U8, {34}), Fixed(DType::F32, {1})},
            .op = {.scheme = "q8_0"},
            .rejects = "c5"},
           {.name = "other_depth",
            .in = with_x(T({2, 64}), q8),
            .op = {.scheme = "q8_0", .depth = 32},
            .rejects = "c6"},
       }) {
    list.push_back(std::move(c));
  }
  return cases_of<Op>(std::move(list));
}

Cases cases(const op::DequantGroupedMatmul*) {
  using Op = op::DequantGroupedMatmul;
  const In w = stack("q8_0", 3, 32, 4);
  const In q4 = stack("q4_k", 2, 256, 3);
  const Op q8{.scheme = "q8_0", .n = 4};
  return cases_of<Op>({
      {.name = "rows", .in = {T({5, 32}), w, Index({5}, 3)}, .op = q8},
      {.name = "picks", .in = {T({4, 32}), w, Index({4, 2}, 3)}, .op = q8},
      {.name = "q4_k", .in = {T({2, 256}), q4, Index({2}, 2)}, .op = {.scheme = "q4_k", .n = 3}},
      {.name = "transposed",
       .in = {T({5, 4}), w, Index({5}, 3)},
       .op = {.scheme = "q8_0", .n = 4, .depth = 32, .transpose = true}},
      {.name = "many_rows", .in = {T({25, 32}), w, Index({25}, 3)}, .op = q8},
      {.name = "no_rows", .in = {T({0, 32}), w, Index({0}, 3)}, .op = q8},
      {.name = "float_indices",
       .in = {T({3, 32}), w, Fixed(DType::F32, {3}).with({2, 0, 2})},
       .op = q8},
      {.name = "outside",
       .in = {T({1, 32}), w, Fixed(DType::I32, {1}).with({3})},
       .op = q8,
       .fails = OutOfRange},
      {.name = "no_block_format",
       .in = {T({5, 32}), w, Index({5}, 3)},
       .op = {.scheme = "int8_block_32", .n = 4},
       .rejects = "c1"},
      {.name = "codes",
       .in = {T({5, 32}), Fixed(DType::I8, {408}), Index({5}, 3)},
       .op = q8,
       .rejects = "c2"},
      {.name = "depth", .in = {T({5, 33}), w, Index({5}, 3)}, .op = q8, .rejects = "c3"},
      {.name = "bytes",
       .in = {T({5, 32}), Fixed(DType::U8, {409}), Index({5}, 3)},
       .op = q8,
       .rejects = "c4"},
      {.name = "indices", .in = {T({5, 32}), w, Index({4}, 3)}, .op = q8, .rejects = "c5"},
      {.name = "index_dtype",
       .in = {T({5, 32}), w, Fixed(DType::BF16, {5})},
       .op = q8,
       .rejects = "c6"},
      {.name = "no_columns",
       .in = {T({5, 32}), w, Index({5}, 3)},
       .op = {.scheme = "q8_0", .n = 0},
       .rejects = "c7"},
  });
}

Cases cases(const op::DequantMoeWeights*) {
  using Op = op::DequantMoeWeights;
  return cases_of<Op>({
      {.name = "q8_0",
       .in = {stack("q8_0", 2, 32, 3)},
       .op = {.scheme = "q8_0", .k = 32, .n = 3},
       .dtypes = Once},
      {.name = "q4_0",
       .in = {stack("q4_0", 3, 64, 1)},
       .op = {.scheme = "q4_0", .k = 64, .n = 1},
       .dtypes = Once},
      {.name = "q6_k",
       .in = {stack("q6_k", 1, 256, 2)},
       .op = {.scheme = "q6_k", .k = 256, .n = 2},
       .dtypes = Once},
      {.name = "none",
       .in = {Fixed(DType::U8, {0})},
       .op = {.scheme = "q8_0", .k = 32, .n = 3},
       .dtypes = Once},
      {.name = "no_format",
       .in = {Fixed(DType::U8, {34})},
       .op = {.scheme = "fp8_e4m3", .k = 32, .n = 1},
       .dtypes = Once,
       .rejects = "c1"},
      {.name = "codes",
       .in = {Fixed(DType::I8, {34})},
       .op = {.scheme = "q8_0", .k = 32, .n = 1},
       .dtypes = Once,
       .rejects = "c2"},
      {.name = "depth",
       .in = {Fixed(DType::U8, {34})},
       .op = {.scheme = "q8_0", .k = 30, .n = 1},
       .dtypes = Once,
       .rejects = "c3"},
      {.name = "bytes",
       .in = {Fixed(DType::U8, {35})},
       .op = {.scheme = "q8_0", .k = 32, .n = 1},
       .dtypes = Once,
       .rejects = "c4"},
  });
}

}  // namespace ricci::testing
