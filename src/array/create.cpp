#include "ricci/array/create.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ricci/array/ops.h"
#include "ricci/build/build.h"
#include "ricci/io/npy.h"
#include "ricci/io/weights.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"
#include "io/checkpoint_sums.h"
#include "support/float_environment.h"
#include "support/machine_memory.h"

namespace ricci {
namespace {

// More than any memory holds, and few enough for an i64.
constexpr double MostMade = 1e18;

bool fits_i32(double x) {
  return x >= std::numeric_limits<std::int32_t>::min() &&
         x <= std::numeric_limits<std::int32_t>::max();
}

}  // namespace

// The numbers of a list in order, as they are.
struct NestedList::Found {
  StaticDims dims;
  std::vector<const NestedList*> numbers;
};

void NestedList::collect(std::size_t depth, Found& found, std::source_location where) const {
  const auto fail = [&](const std::string& message) {
    detail::refuse(ErrorCode::Shape, "list", message, "all rows of a list have one length", where);
  };
  StaticDims& dims = found.dims;
  const bool first = found.numbers.empty();
  if (!is_list_) {
    if (depth != dims.size()) fail("a number stands where a list is expected");
    found.numbers.push_back(this);
    return;
  }
  const auto n = static_cast<std::int64_t>(items_.size());
  if (depth == dims.size()) {
    if (!first) fail("a list stands where a number is expected");
    dims.push_back(n);
  } else if (dims[depth] != n) {
    fail(fmt::format("a row has {} entries, others have {}", n, dims[depth]));
  }
  for (const NestedList& item : items_) item.collect(depth + 1, found, where);
}

Tensor NestedList::to_tensor(std::optional<DType> dtype, std::source_location where) const {
  Found found;
  collect(0, found, where);
  const Dims dims(found.dims.begin(), found.dims.end());
  const auto is_float = [](const NestedList* x) { return x->is_float_; };
  if (std::ranges::any_of(found.numbers, [](const NestedList* x) { return x->is_complex_; })) {
    std::vector<std::complex<double>> numbers;
    for (const NestedList* x : found.numbers) {
      numbers.emplace_back(x->is_float_ ? x->number_ : static_cast<double>(x->whole_), x->imag_);
    }
    return Tensor::from_numbers<std::complex<double>>({dtype.value_or(DType::C64), dims}, numbers);
  }
  if (found.numbers.empty() || std::ranges::any_of(found.numbers, is_float)) {
    std::vector<double> numbers;
    for (const NestedList* x : found.numbers) {
      numbers.push_back(x->is_float_ ? x->number_ : static_cast<double>(x->whole_));
    }
    return Tensor::from_numbers<double>({dtype.value_or(DType::F32), dims}, numbers);
  }
  std::vector<std::int64_t> numbers;
  DType own = DType::Bool;
  for (const NestedList* x : found.numbers) {
    numbers.push_back(x->whole_);
    if (!x->is_bool_ && own == DType::Bool) own = DType::I32;
    if (!detail::holds(DType::I32, x->whole_)) own = DType::I64;
    if (dtype && !detail::holds(*dtype, x->whole_)) {
      detail::refuse(ErrorCode::DType, "range",
                     fmt::format("{} does not fit into {}", x->whole_, name(*dtype)),
                     "ask for a wider dtype", where);
    }
  }
  return Tensor::from_numbers<std::int64_t>({dtype.value_or(own), dims}, numbers);
}

Array array(const NestedList& values, CreateOptions options, std::source_location where) {
  return values.to_tensor(options.dtype, where);
}

Array full(const Dims& shape, const Array& value, CreateOptions options,
           std::source_location where) {
  detail::require_valid(value, "full", where);
  for (const Dim& d : shape) {
    if (d.is_static() && d.value() < 0) {
      detail::refuse(ErrorCode::Shape, "size",
                     fmt::format("a size of {} is negative", to_string(shape)),
                     "sizes are 0 or more", where);
    }
  }
  Array x = value;
  if (options.dtype) {
    x = value.node()->weak ? detail::strengthened(value, *options.dtype, where)
                           : cast(value, *options.dtype, where);
  }
  x = detail::strengthened(x, where);
  return x.shape() == shape ? x : detail::apply(Op(op::Expand{.target_shape = shape}), {x}, where);
}

Array zeros(const Dims& shape, CreateOptions options, std::source_location where) {
  return full(shape, 0, {.dtype = options.dtype.value_or(DType::F32)}, where);
}
Array ones(const Dims& shape, CreateOptions options, std::source_location where) {
  return full(shape, 1, {.dtype = options.dtype.value_or(DType::F32)}, where);
}
Array zeros_like(const Array& x, std::source_location where) { return full_like(x, 0, where); }
Array ones_like(const Array& x, std::source_location where) { return full_like(x, 1, where); }
Array full_like(const Array& x, const Array& value, std::source_location where) {
  return full(x.shape(), value, {.dtype = x.dtype()}, where);
}

Array eye(std::int64_t n, std::optional<std::int64_t> columns, CreateOptions options,
          std::source_location where) {
  const std::int64_t m = columns.value_or(n);
  const auto count = [&](Axis axis) {
    return detail::apply(Op(op::Iota{.shape = {n, m}, .axis = axis, .dtype = DType::I32}), {},
                         where);
  };
  return cast(count(0) == count(1), options.dtype.value_or(DType::F32), where);
}

Array arange(std::int64_t stop, CreateOptions options, std::source_location where) {
  return detail::apply(Op(op::Iota{.shape = {std::max<std::int64_t>(stop, 0)},
                                   .axis = 0,
                                   .dtype = options.dtype.value_or(DType::I32)}),
                       {}, where);
}

Array detail::arange_of(double start, double stop, double step, CreateOptions options, Here where) {
  const DefaultFloatEnvironment floats;
  const auto fail = [&](ErrorCode code, const char* what, const char* help) {
    detail::refuse(code, "arange",
                   fmt::format("'arange' from {} to {} by {} {}", start, stop, step, what), help,
                   where);
  };
  if (step == 0) fail(ErrorCode::Attr, "goes nowhere", "give it a step other than 0");
  const double count = std::ceil((stop - start) / step);
  if (!std::isfinite(start) || !std::isfinite(step) || std::isnan(stop)) {
    fail(ErrorCode::Attr, "has no numbers", "all three are numbers, and the step is finite");
  }
  if (count > MostMade) fail(ErrorCode::Attr, "never ends", "take a longer step");
  const auto n = static_cast<std::int64_t>(std::max(0.0, count));
  require_memory(n, sizeof(double), "the number of elements");
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) values.push_back(start + static_cast<double>(i) * step);
  const bool whole = start == std::floor(start) && step == std::floor(step);
  const DType dtype = options.dtype.value_or(whole ? DType::I32 : DType::F32);
  if (n > 0 && dtype == DType::I32 && !options.dtype &&
      !(fits_i32(values.front()) && fits_i32(values.back()))) {
    return Tensor::from_numbers<double>({DType::I64, {n}}, values);
  }
  return Tensor::from_numbers<double>({dtype, {n}}, values);
}

Array linspace(double start, double stop, std::int64_t count, CreateOptions options,
               std::source_location where) {
  const DefaultFloatEnvironment floats;
  if (count < 0) {
    detail::refuse(ErrorCode::Attr, "linspace", fmt::format("'linspace' of {} numbers", count),
                   "none or more", where);
  }
  require_memory(count, sizeof(double), "the number of elements");
  std::vector<double> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const double t = count > 1 ? static_cast<double>(i) / static_cast<double>(count - 1) : 0;
    values.push_back(i + 1 == count && count > 1 ? stop : start + t * (stop - start));
  }
  return Tensor::from_numbers<double>({options.dtype.value_or(DType::F32), {count}}, values);
}

std::vector<Array> meshgrid(std::initializer_list<Array> axes, std::source_location where) {
  Dims shape;
  for (const Array& x : axes) shape.push_back(Dim(x.size()));
  std::vector<Array> out;
  for (const Array& x : axes) {
    Dims column(shape.size(), 1);
    column[out.size()] = x.size();
    out.push_back(broadcast_to(reshape(x, column, where), shape, where));
  }
  return out;
}

Array load_npy(const std::string& path) { return io::read_npy(path); }
void save_npy(const std::string& path, const Array& x) { io::write_npy(path, x.tensor()); }

std::map<std::string, Array> load_npz(const std::string& path) {
  std::map<std::string, Array> out;
  for (auto& [name, value] : io::read_npz(path)) out.emplace(name, value);
  return out;
}

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays) {
  io::NamedTensors tensors;
  for (const auto& [name, x] : arrays) tensors.emplace_back(name, x.tensor());
  io::write_npz(path, tensors);
}

namespace detail {

void save_leaves(const std::string& path, std::span<const std::string> names,
                 std::span<const Array> leaves) {
  materialize(leaves, std::source_location::current());
  io::NamedTensors tensors;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    tensors.emplace_back(names[i], leaves[i].tensor());
  }
  io::write_weights(path, tensors);
}

// Of a checkpoint of a run that averages its params, the averages are the model.
Loader::Loader(std::string file) : file_(std::move(file)) {
  for (auto& [name, value] : io::read_weights(file_)) {
    if (name.starts_with(io::AveragePrefix)) {
      found_.insert_or_assign(name.substr(io::AveragePrefix.size()), Array(value));
    } else {
      found_.emplace(name, Array(value));
    }
  }
}

void Loader::array(Array& leaf) {
  const auto it = found_.find(path());
  if (it == found_.end()) {
    throw UserError(ErrorCode::Name, fmt::format("'{}' has no array '{}'", file_, path()));
  }
  if (it->second.type() != leaf.type()) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("'{}' in '{}' is {}, {} is wanted", path(), file_,
                                it->second.type().to_string(), leaf.type().to_string()));
  }
  leaf = it->second;
}

void Loader::fill(Array& place) {
  const auto it = found_.find(path());
  if (it != found_.end()) place = it->second;
}

}  // namespace detail
}  // namespace ricci
