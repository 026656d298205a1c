// Matrix products: a kernel of our own where they are short, cuBLASLt where it takes the operands
// as they lie, and a kernel elsewhere.
#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/cublas_product.h"
#include "backend/cuda/structured/roles.h"
#include "backend/cuda/structured/short_product.h"
#include "backend/cuda/structured/tiles.h"
#include "support/fork.h"

namespace ricci::cuda {
namespace {

// A matrix of a batch, in elements.
struct ProductMatrix {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::vector<std::int64_t> batch;
};

struct ProductShape {
  DType dtype = DType::F32;
  StaticDims batch;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  ProductMatrix a;
  ProductMatrix b;
  ProductMatrix c;

  [[nodiscard]] std::array<ProductMatrix*, 3> all() { return {&a, &b, &c}; }
};

// `batch`: for every axis of the batch the view's own, or -1 where it repeats.
ProductMatrix matrix_of(const BufferView& v, const std::vector<std::int64_t>& batch) {
  const std::vector<std::int64_t>& strides = v.layout.strides;
  ProductMatrix out{strides[strides.size() - 2], strides[strides.size() - 1], {}};
  for (const std::int64_t axis : batch) {
    out.batch.push_back(axis < 0 ? 0 : strides[static_cast<std::size_t>(axis)]);
  }
  return out;
}

ProductShape shape_of(const loop::MatrixProduct& product, const CallStep& step) {
  std::vector<std::int64_t> own(product.batch.size());
  std::iota(own.begin(), own.end(), std::int64_t{0});
  return {.dtype = step.operands[0].type.dtype,
          .batch = product.batch,
          .rows = product.rows,
          .depth = product.depth,
          .columns = product.columns,
          .a = matrix_of(step.operands[0], product.a_batch),
          .b = matrix_of(step.operands[1], product.b_batch),
          .c = matrix_of(step.results[0], own)};
}

void drop_axis(ProductShape& s, std::size_t axis) {
  const auto at = static_cast<std::ptrdiff_t>(axis);
  s.batch.erase(s.batch.begin() + at);
  for (ProductMatrix* m : s.all()) m->batch.erase(m->batch.begin() + at);
}

// Batches that share b and follow each other are rows; neighbouring axes become one.
void fold(ProductShape& s) {
  for (std::size_t i = s.batch.size(); i-- > 0;) {
    if (s.batch[i] == 1) drop_axis(s, i);
  }
  while (!s.batch.empty() && s.b.batch.back() == 0 && s.a.batch.back() == s.rows * s.a.row &&
         s.c.batch.back() == s.rows * s.c.row) {
    s.rows *= s.batch.back();
    drop_axis(s, s.batch.size() - 1);
  }
  for (std::size_t i = s.batch.size(); i-- > 1;) {
    const auto follow = [&](const ProductMatrix* m) {
      return m->batch[i - 1] == m->batch[i] * s.batch[i];
    };
    const auto all = s.all();
    if (!std::ranges::all_of(all, follow)) continue;
    for (ProductMatrix* m : all) m->batch[i - 1] = m->batch[i];
    s.batch[i - 1] *= s.batch[i];
    drop_axis(s, i);
  }
}

// As the library has it, if it does: one of the strides is 1 and the other leaves no overlap.
std::optional<LibraryMatrix> library_matrix(const ProductMatrix& m, std::int64_t rows,
                                            std::int64_t columns) {
  LibraryMatrix out;
  out.batch = m.batch.empty() ? 0 : m.batch.back();
  const bool by_rows = (m.column == 1 || columns == 1) && (m.row >= columns || rows == 1);
  const bool by_columns = (m.row == 1 || rows == 1) && (m.column >= rows || columns == 1);
  if (!by_rows && !by_columns) return std::nullopt;
  if (out.batch < 0) return std::nullopt;
  out.transposed = !by_rows;
  const std::int64_t least = by_rows ? columns : rows;
  const bool one = by_rows ? rows == 1 : columns == 1;
  out.leading = one ? least : std::max(by_rows ? m.row : m.column, least);
  return out;
}

std::int64_t element_count_of(const StaticDims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t n : dims) count *= n;
  return count;
}

std::int64_t alignment_of(std::int64_t bytes) { return std::gcd(std::int64_t{16}, bytes); }

// Where the matrices of the outer axes of the batch begin; the last axis is the library's.
struct Starts {
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};

std::vector<Starts> outer_starts(const ProductShape& s) {
  std::vector<Starts> out(1);
  for (std::size_t axis = 0; axis + 1 < s.batch.size(); ++axis) {
    std::vector<Starts> next;
    for (const Starts& at : out) {
      for (std::int64_t i = 0; i < s.batch[axis]; ++i) {
        next.push_back(
            {at.a + i * s.a.batch[axis], at.b + i * s.b.batch[axis], at.c + i * s.c.batch[axis]});
      }
    }
    out = std::move(next);
  }
  return out;
}

// How reports name a product of the library. They are few, and kept.
std::string_view name_of(const LibraryShape& s, const std::optional<Epilogue>& epilogue) {
  static ForkMutex mutex;
  static auto* const names = new std::set<std::string>;
  std::string name = s.tf32 ? "cublaslt tf32" : "cublaslt";
  const std::string behind = epilogue ? words_for(*epilogue) : std::string();
  if (!behind.empty()) name += " " + behind;
  const std::lock_guard lock(mutex);
  return *names->insert(std::move(name)).first;
}

// Products as they lie, if the library takes them; the alignment of each in all calls.
struct LibraryCalls {
  LibraryShape shape;
  std::vector<Starts> starts;
};

std::optional<LibraryCalls> library_calls(const ProductShape& s, const CallStep& step) {
  constexpr std::int64_t MostCalls = 64;
  constexpr std::int64_t MostBatch = 1 << 30;
  std::int64_t calls = 1;
  for (std::size_t i = 0; i + 1 < s.batch.size(); ++i) calls *= s.batch[i];
  const std::int64_t batch = s.batch.empty() ? 1 : s.batch.back();
  const auto a = library_matrix(s.a, s.rows, s.depth);
  const auto b = library_matrix(s.b, s.depth, s.columns);
  const auto c = library_matrix(s.c, s.rows, s.columns);
  const bool takes = has_library_product(s.dtype) && calls <= MostCalls && batch <= MostBatch;
  if (!takes || !a || !b || !c || c->transposed) return std::nullopt;
  LibraryCalls out{{s.dtype, s.rows, s.depth, s.columns, batch, *a, *b, *c, s.dtype},
                   outer_starts(s)};
  LibraryShape& shape = out.shape;
  const std::int64_t size = size_of(s.dtype);
  shape.a.alignment = alignment_of(step.operands[0].layout.offset * size);
  shape.b.alignment = alignment_of(step.operands[1].layout.offset * size);
  shape.c.alignment = alignment_of(0);
  for (const Starts& at : out.starts) {
    shape.a.alignment = std::gcd(shape.a.alignment, at.a * size);
    shape.b.alignment = std::gcd(shape.b.alignment, at.b * size);
    shape.c.alignment = std::gcd(shape.c.alignment, at.c * size);
  }
  return out;
}

// The shape with what the kernel behind the call does; nothing where the library does not.
std::optional<LibraryShape> with_epilogue(const LibraryCalls& calls, const Epilogue& e) {
  constexpr std::int64_t Aligned = 16;  // bytes; of what is stored beside the result also 8 numbers
  LibraryShape shape = calls.shape;
  const std::int64_t size = size_of(e.dtype);
  const bool dense = shape.c.leading == shape.columns &&
                     (shape.batch == 1 || shape.c.batch == shape.rows * shape.columns);
  const bool small = e.dtype == DType::F32 || e.dtype == DType::F16 || e.dtype == DType::BF16;
  const bool applies = e.function != Epilogue::Function::None;
  if (calls.starts.size() != 1 || !dense || !small || e.bias_offset * size % Aligned != 0) {
    return std::nullopt;
  }
  if (applies && e.bias < 0 && e.added < 0) return std::nullopt;  // it could not be tried
  if (e.inner >= 0 && (shape.columns % 8 != 0 || shape.batch != 1)) return std::nullopt;
  shape.result = e.dtype;
  shape.epilogue = {e.function, e.bias >= 0, e.added >= 0, e.inner >= 0};
  return shape;
}

// One call that does what the kernel behind the product does too.
bool plan_with_epilogue(PlanBuilder& builder, const Program& program, const LibraryCalls& calls,
                        const Means& means) {
  const std::optional<Epilogue> e = epilogue_of(program, builder.step());
  const std::optional<LibraryShape> shape = e ? with_epilogue(calls, *e) : std::nullopt;
  if (!shape) return false;
  if (means.gpu != nullptr) {
    const auto how = Multiplication::make(means, *shape);
    if (how == nullptr) return false;
    const auto maybe = [&](std::int32_t argument, std::int64_t offset) {
      return argument < 0 ? std::nullopt : std::optional<Place>(after(argument, offset));
    };
    builder.plan.parts.emplace_back(LibraryProduct{
        how, operand(0), operand(1), after(e->result), builder.reserve(how->workspace_bytes()),
        maybe(e->bias, e->bias_offset * size_of(e->dtype)), maybe(e->added, 0),
        maybe(e->inner, 0)});
  }
  builder.plan.how = name_of(*shape, e);
  builder.plan.has_after = true;
  return true;
}

bool plan_library(PlanBuilder& builder, const Program& program, const ProductShape& s,
                  const Means& means) {
  std::optional<LibraryCalls> calls = library_calls(s, builder.step());
  if (!calls) return false;
  calls->shape.tf32 = means.tf32 && s.dtype == DType::F32;
  if (plan_with_epilogue(builder, program, *calls, means)) return true;
  builder.plan.how = name_of(calls->shape, std::nullopt);
  if (means.gpu == nullptr) return true;
  const auto how = Multiplication::make(means, calls->shape);
  if (how == nullptr) {
    builder.plan.how = CallPlan().how;
    return false;
  }
  const std::int64_t size = size_of(s.dtype);
  const Place workspace = builder.reserve(how->workspace_bytes());
  for (const Starts& at : calls->starts) {
    builder.plan.parts.emplace_back(LibraryProduct{
        how, operand(0, at.a * size), operand(1, at.b * size), result(0, at.c * size), workspace});
  }
  return true;
}

// What reports say of products that the library would have.
std::string_view kernel_without_library() {
  static const std::string words =
      fmt::format("kernel ({})", cublas_library().why_not.empty() ? "cuBLASLt does not start"
                                                                  : cublas_library().why_not);
  return words;
}

// An expression of the first element of matrix z.
std::string matrix_offset(const ProductShape& s, const ProductMatrix& m) {
  std::string out = "0";
  std::int64_t behind = 1;
  for (std::size_t i = s.batch.size(); i-- > 0;) {
    if (m.batch[i] != 0) {
      out += fmt::format(" + I(z / {} % {}) * I({})", behind, s.batch[i], m.batch[i]);
    }
    behind *= s.batch[i];
  }
  return out;
}

std::int64_t far_of(const ProductShape& s, const ProductMatrix& m, std::int64_t rows,
                    std::int64_t columns) {
  std::int64_t far = (rows - 1) * std::abs(m.row) + (columns - 1) * std::abs(m.column);
  for (std::size_t i = 0; i < s.batch.size(); ++i) far += (s.batch[i] - 1) * std::abs(m.batch[i]);
  return far;
}

void plan_tiles(PlanBuilder& builder, const ProductShape& s) {
  TiledSums sums{.dtype = s.dtype,
                 .matrices = element_count_of(s.batch),
                 .rows = s.rows,
                 .depth = s.depth,
                 .columns = s.columns};
  sums.begin = "I rest = z, ao = 0, bo = 0, co = 0;\n";
  sums.reach = std::max({far_of(s, s.a, s.rows, s.depth), far_of(s, s.b, s.depth, s.columns),
                         far_of(s, s.c, s.rows, s.columns)});
  for (std::size_t i = s.batch.size(); i-- > 0;) {
    sums.begin +=
        fmt::format("  {{\n    const I at = rest % I({0});\n    rest /= I({0});\n"
                    "    ao += at * I({1}); bo += at * I({2}); co += at * I({3});\n  }}\n",
                    s.batch[i], s.a.batch[i], s.b.batch[i], s.c.batch[i]);
  }
  const auto load = [&](std::string_view place) {
    return fmt::format("value = {};", from_stored(s.dtype, std::string(place)));
  };
  sums.a = load(fmt::format("a[ao + m * I({}) + k * I({})]", s.a.row, s.a.column));
  sums.b = load(fmt::format("b[bo + k * I({}) + n * I({})]", s.b.row, s.b.column));
  sums.c = fmt::format("co + m * I({}) + n * I({})", s.c.row, s.c.column);
  sums.a_by_rows = s.a.column == 1;
  plan_tiled_sums(builder, sums, operand(0), operand(1));
}

bool plan_short(PlanBuilder& builder, const Program& program, const ProductShape& s) {
  constexpr std::int64_t Narrow = std::int64_t{1} << 30;
  if (s.dtype != DType::F32) return false;
  const auto factor = [&](const ProductMatrix& m, std::size_t k) {
    FactorLayout out{m.row, m.column,
                     std::gcd(std::int64_t{4}, builder.step().operands[k].layout.offset),
                     matrix_offset(s, m)};
    for (const std::int64_t stride : m.batch) out.alignment = std::gcd(out.alignment, stride);
    return out;
  };
  const BufferView& to = builder.step().results[0];
  const std::int64_t count = element_count_of(s.batch);
  const std::int64_t far =
      std::max({far_of(s, s.a, s.rows, s.depth), far_of(s, s.b, s.depth, s.columns),
                count * s.rows * s.columns});
  return plan_short_product(
      builder, program,
      {.matrices = count,
       .rows = s.rows,
       .depth = s.depth,
       .columns = s.columns,
       .a = factor(s.a, 0),
       .b = factor(s.b, 1),
       .narrow = far < Narrow,
       .in_order = to.layout.offset == 0 &&
                   loop::is_contiguous({0, to.layout.strides}, to.type.static_dims())});
}

}  // namespace

void plan_product(PlanBuilder& builder, const Program& program, const loop::MatrixProduct& product,
                  const Means& means) {
  if (product.depth == 0) {
    builder.zeros(result(0), bytes_of(builder.step().results[0]));
    return;
  }
  ProductShape shape = shape_of(product, builder.step());
  fold(shape);
  if (plan_short(builder, program, shape)) return;
  const bool has_library = means.gpu != nullptr || means.library;
  if (has_library && plan_library(builder, program, shape, means)) return;
  if (means.gpu != nullptr && has_library_product(shape.dtype) && means.gpu->cublas() == nullptr) {
    builder.plan.how = kernel_without_library();
  }
  plan_tiles(builder, shape);
}

}  // namespace ricci::cuda
