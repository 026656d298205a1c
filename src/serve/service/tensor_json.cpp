#include "serve/service/tensor_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "io/json_value.h"
#include "support/float_environment.h"

namespace ricci::serve {
namespace {

class Reader {
 public:
  Reader(io::JsonCursor& json, std::string_view text, const Type& type)
      : json_(json), text_(text), type_(type), sizes_(type.dims.size(), -1) {}

  Tensor read() {
    axis(0);
    const Type found{type_.dtype, Dims(sizes_.begin(), sizes_.end())};
    if (is_float(type_.dtype)) {
      Tensor rounded = Tensor::from_numbers<double>(found, reals_);
      const bool finite =
          std::ranges::all_of(rounded.numbers<double>(), [](double x) { return std::isfinite(x); });
      return finite ? rounded : refuse_numbers();
    }
    Tensor wrapped = Tensor::from_numbers<std::int64_t>(found, wholes_);
    return wrapped.numbers<std::int64_t>() == wholes_ ? wrapped : refuse_numbers();
  }

 private:
  void axis(std::size_t depth) {
    if (depth == sizes_.size()) return element();
    const char first = next();
    if (first != '[') {
      json_.fault(
          fmt::format("{} has {} axes, and this is no array", type_.to_string(), sizes_.size()));
    }
    std::int64_t count = 0;
    json_.array([&] {
      ++count;
      axis(depth + 1);
    });
    std::int64_t& known = sizes_[depth];
    const Dim& wanted = type_.dims[depth];
    if (known < 0) known = count;
    if (known != count)
      json_.fault(fmt::format("a row has {} elements, and others {}", count, known));
    if (wanted.is_static() && wanted.value() != count) {
      json_.fault(
          fmt::format("axis {} of {} has {} elements here", depth, type_.to_string(), count));
    }
    // Of an axis within one that is empty nothing is known: it is as large as the type says.
    if (count > 0) return;
    for (std::size_t d = depth + 1; d < sizes_.size(); ++d) {
      if (sizes_[d] < 0) sizes_[d] = type_.dims[d].is_static() ? type_.dims[d].value() : 0;
    }
  }

  char next() {
    const std::size_t at = json_.offset();
    return at < text_.size() ? text_[at] : '\0';
  }

  void element() {
    const char first = next();
    const std::size_t start = json_.offset();
    json_.skip();
    const std::string_view word = text_.substr(start, json_.offset() - start);
    if (type_.dtype == DType::Bool) {
      if (first != 't' && first != 'f') json_.fault("true or false is expected");
      wholes_.push_back(first == 't' ? 1 : 0);
    } else if (is_float(type_.dtype)) {
      reals_.push_back(number<double>(word, first));
    } else {
      wholes_.push_back(number<std::int64_t>(word, first));
    }
  }

  template <class N>
  N number(std::string_view word, char first) const {
    const DefaultFloatEnvironment floats;
    N value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const char behind = end < word.data() + word.size() ? *end : ' ';
    const bool whole = behind != '.' && behind != 'e' && behind != 'E';
    if (error == std::errc() && whole && (first == '-' || (first >= '0' && first <= '9'))) {
      return value;
    }
    refuse_numbers();
  }

  [[noreturn]] Tensor refuse_numbers() const {
    json_.fault(fmt::format("a number is expected that {} holds", name(type_.dtype)));
  }

  io::JsonCursor& json_;
  std::string_view text_;
  const Type& type_;
  std::vector<std::int64_t> sizes_;
  std::vector<double> reals_;
  std::vector<std::int64_t> wholes_;
};

template <class N, class Write>
void write_axis(std::string& out, const StaticDims& dims, std::size_t depth, const N*& at,
                const Write& write) {
  if (depth == dims.size()) return write(out, *at++);
  out += '[';
  for (std::int64_t i = 0; i < dims[depth]; ++i) {
    if (i > 0) out += ", ";
    write_axis(out, dims, depth + 1, at, write);
  }
  out += ']';
}

}  // namespace

Tensor read_tensor(io::JsonCursor& json, std::string_view text, const Type& type) {
  return Reader(json, text, type).read();
}

void write_tensor(std::string& out, const Tensor& tensor) {
  if (is_float(tensor.dtype())) {
    const std::vector<double> numbers = tensor.numbers<double>();
    const double* at = numbers.data();
    write_axis(out, tensor.dims(), 0, at, [&](std::string& to, double x) {
      // As short as the dtype allows.
      const bool wide = tensor.dtype() == DType::F64 || !std::isfinite(x);
      to += wide ? io::json_number(x) : fmt::format("{}", static_cast<float>(x));
    });
    return;
  }
  const std::vector<std::int64_t> numbers = tensor.numbers<std::int64_t>();
  const std::int64_t* at = numbers.data();
  write_axis(out, tensor.dims(), 0, at, [&](std::string& to, std::int64_t x) {
    to += tensor.dtype() == DType::Bool ? (x != 0 ? "true" : "false") : fmt::format("{}", x);
  });
}

}  // namespace ricci::serve
