#include "array/print.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <vector>

#include <fmt/format.h>

#include "support/float_environment.h"

namespace ricci::detail {
namespace {

// How the elements of one array are written.
struct Style {
  ArrayPrintOptions options;
  std::string_view format;  // of each number; empty: as NumPy has it
};

// The fewest digits that read back to the same element, at most `most` behind the point.
std::string shortest(double v, bool single, bool exponent, int most) {
  const std::string all = single ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
  // A text of the shortest digits may have an exponent where none is wanted, and the other way.
  std::string digits;
  for (const char c : all.substr(0, all.find('e'))) {
    if (c >= '0' && c <= '9') digits += c;
  }
  const std::size_t lead = digits.find_first_not_of('0');
  const int significant =
      lead == std::string::npos ? 1 : static_cast<int>(digits.find_last_not_of('0') - lead) + 1;
  if (exponent) {
    std::string s = fmt::format("{:.{}e}", v, std::min(significant - 1, most));
    return s;
  }
  const int magnitude = v == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(v))));
  const int behind = std::clamp(significant - 1 - magnitude, 0, most);
  return fmt::format("{:.{}f}", v, behind);
}

// Pieces of a number around its point, for columns.
struct Piece {
  std::string before;  // with sign
  std::string behind;  // digits after the point
  std::string tail;    // exponent
  bool number = true;
};

Piece cut(double v, bool single, bool exponent, int most) {
  if (std::isnan(v)) return {"nan", "", "", false};
  if (std::isinf(v)) return {v < 0 ? "-inf" : "inf", "", "", false};
  std::string s = shortest(v, single, exponent, most);
  Piece p;
  if (const std::size_t e = s.find('e'); e != std::string::npos) {
    p.tail = s.substr(e);
    s.resize(e);
  }
  const std::size_t point = s.find('.');
  p.before = s.substr(0, point);
  if (point != std::string::npos) p.behind = s.substr(point + 1);
  while (!p.behind.empty() && p.behind.back() == '0') p.behind.pop_back();
  return p;
}

bool wants_exponent(const std::vector<double>& values) {
  double low = 0;
  double high = 0;
  bool any = false;
  for (const double v : values) {
    const double a = std::abs(v);
    if (!std::isfinite(a) || a == 0) continue;
    low = any ? std::min(low, a) : a;
    high = any ? std::max(high, a) : a;
    any = true;
  }
  return any && (high >= 1e8 || low < 1e-4 || high / low > 1000);
}

// Columns of real numbers: points below points.
std::vector<std::string> columns(const std::vector<double>& values, bool single, int most) {
  const bool exponent = wants_exponent(values);
  std::vector<Piece> pieces;
  std::size_t before = 0;
  std::size_t behind = 0;
  std::size_t whole = 0;
  for (const double v : values) {
    const Piece& p = pieces.emplace_back(cut(v, single, exponent, most));
    if (!p.number) {
      whole = std::max(whole, p.before.size());
      continue;
    }
    before = std::max(before, p.before.size());
    behind = std::max(behind, p.behind.size());
  }
  std::vector<std::string> out;
  for (const Piece& p : pieces) {
    std::string s = p.before;
    if (p.number) {
      s.insert(0, before - p.before.size(), ' ');
      s += '.' + p.behind;
      s.append(behind - p.behind.size(), exponent ? '0' : ' ');
      s += p.tail;
    }
    out.push_back(std::move(s));
  }
  for (const std::string& s : out) whole = std::max(whole, s.size());
  for (std::string& s : out) s.insert(0, whole - s.size(), ' ');
  return out;
}

// Numbers as a format says.
template <class T>
std::vector<std::string> formatted_as(const std::vector<T>& values, std::string_view format) {
  const std::string one = fmt::format("{{:{}}}", format);
  std::vector<std::string> out;
  for (const T& v : values) out.push_back(fmt::vformat(one, fmt::make_format_args(v)));
  return out;
}

std::vector<std::string> texts_of(const Tensor& shown, const Style& style) {
  const DType dtype = shown.dtype();
  const int most = style.options.precision;
  std::vector<std::string> out;
  if (!style.format.empty() && is_float(dtype)) {
    out = formatted_as(shown.numbers<double>(), style.format);
  } else if (!style.format.empty() && is_int(dtype)) {
    out = formatted_as(shown.numbers<std::int64_t>(), style.format);
  } else if (is_complex(dtype)) {
    const bool single = dtype == DType::C64;
    std::vector<double> re;
    std::vector<double> im;
    for (const auto& z : shown.numbers<std::complex<double>>()) {
      re.push_back(z.real());
      im.push_back(z.imag());
    }
    const std::vector<std::string> a = columns(re, single, most);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const std::string b = columns({std::abs(im[i])}, single, most)[0];
      out.push_back(fmt::format("{}{}{}j", a[i], std::signbit(im[i]) ? '-' : '+', b));
    }
  } else if (is_float(dtype)) {
    return columns(shown.numbers<double>(), dtype != DType::F64, most);
  } else {
    for (const std::int64_t v : shown.numbers<std::int64_t>()) {
      out.push_back(dtype == DType::Bool ? (v != 0 ? "True" : "False") : fmt::format("{}", v));
    }
  }
  std::size_t width = 0;
  for (const std::string& s : out) width = std::max(width, s.size());
  for (std::string& s : out) s.insert(0, width - s.size(), ' ');
  return out;
}

// Indices of an axis that are shown; -1 stands for the gap.
std::vector<std::int64_t> shown_of(std::int64_t n, bool elide, std::int64_t edge) {
  std::vector<std::int64_t> out;
  if (!elide || n <= 2 * edge) {
    for (std::int64_t i = 0; i < n; ++i) out.push_back(i);
    return out;
  }
  for (std::int64_t i = 0; i < edge; ++i) out.push_back(i);
  out.push_back(-1);
  for (std::int64_t i = n - edge; i < n; ++i) out.push_back(i);
  return out;
}

// The elements that are shown, as a small tensor.
Tensor corners(Tensor t, std::int64_t edge) {
  for (std::size_t a = 0; a < t.rank(); ++a) {
    const std::int64_t n = t.dims()[a];
    if (n <= 2 * edge) continue;
    const Tensor head = t.narrowed(a, 0, edge);
    const Tensor tail = t.narrowed(a, n - edge, edge);
    StaticDims dims = t.dims();
    dims[a] = 2 * edge;
    Type type = t.type();
    type.dims[a] = 2 * edge;
    // Both ends side by side, as bytes: no element changes on the way.
    const Tensor first = head.contiguous();
    const Tensor last = tail.contiguous();
    std::int64_t inner = edge * size_of(t.dtype());
    for (std::size_t b = a + 1; b < dims.size(); ++b) inner *= dims[b];
    const auto part = static_cast<std::size_t>(inner);
    std::vector<std::byte> joined;
    for (std::size_t at = 0; at < first.bytes().size(); at += part) {
      for (const Tensor* end : {&first, &last}) {
        const auto bytes = end->bytes().subspan(at, part);
        joined.insert(joined.end(), bytes.begin(), bytes.end());
      }
    }
    t = Tensor::from_bytes(type, joined);
  }
  return t;
}

struct Printer {
  const StaticDims& dims;
  std::vector<std::string> texts;
  bool elide;
  const ArrayPrintOptions& options;
  std::size_t next = 0;

  // One row; long ones are wrapped.
  std::string row(std::size_t axis) {
    std::string out = "[";
    std::size_t line = axis + 1;
    bool first = true;
    for (const std::int64_t i : shown_of(dims[axis], elide, options.edge_items)) {
      const std::string word = i < 0 ? "..." : texts[next++];
      if (!first && line + 1 + word.size() > static_cast<std::size_t>(options.line_width) - 1) {
        out += '\n' + std::string(axis + 1, ' ');
        line = axis + 1;
      } else if (!first) {
        out += ' ';
        ++line;
      }
      out += word;
      line += word.size();
      first = false;
    }
    return out + ']';
  }

  std::string block(std::size_t axis) {  // NOLINT: as deep as the array has axes
    if (axis + 1 == dims.size()) return row(axis);
    std::string out = "[";
    bool first = true;
    const std::string gap(dims.size() - axis - 1, '\n');
    for (const std::int64_t i : shown_of(dims[axis], elide, options.edge_items)) {
      if (!first) out += gap + std::string(axis + 1, ' ');
      out += i < 0 ? "..." : block(axis + 1);
      first = false;
    }
    return out + ']';
  }
};

}  // namespace

std::string printed(const Tensor& value, std::string_view format) {
  const DefaultFloatEnvironment floats;
  const Style style{print_options(), format};
  if (value.rank() == 0) {
    const std::string s = texts_of(value, style)[0];
    return format.empty() && is_float(value.dtype()) && s.ends_with('.') ? s + '0' : s;
  }
  if (value.numel() == 0) {
    return value.rank() == 1 ? "[]" : fmt::format("[] {}", value.type().to_string());
  }
  const bool elide = value.numel() > style.options.threshold;
  Printer printer{value.dims(),
                  texts_of(elide ? corners(value, style.options.edge_items) : value, style), elide,
                  style.options};
  return printer.block(0);
}

}  // namespace ricci::detail
