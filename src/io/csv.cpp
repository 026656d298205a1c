#include "ricci/io/csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "io/csv_fields.h"
#include "io/fault.h"
#include "support/float_environment.h"

namespace ricci::io {
namespace {

constexpr std::size_t RowsALook = 1024;
constexpr std::array<std::string_view, 6> TypeNames = {"bool", "i32", "i64", "f32", "f64", "text"};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Points are points, whatever the program that we are part of has set for its users.
locale_t plain_locale() {
  static const locale_t plain = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return plain;
}

template <class T>
std::optional<T> number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  T value{};
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || text.empty()) return std::nullopt;
  if (fault == std::errc()) return value;
  if constexpr (std::floating_point<T>) {  // too large or too small: what it rounds to
    if (fault == std::errc::result_out_of_range)
      return static_cast<T>(::strtod_l(std::string(text).c_str(), nullptr, plain_locale()));
  }
  return std::nullopt;
}

std::optional<bool> truth(std::string_view text) {
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

// One column of the table.
class Strip {
 public:
  Strip(std::string_view text, const CsvFields& from, std::size_t column, std::size_t first_row)
      : text_(text), from_(from), column_(column), first_(first_row) {}

  [[nodiscard]] std::size_t size() const {
    return from_.columns == 0 ? 0 : from_.fields.size() / from_.columns - first_;
  }
  [[nodiscard]] const CsvField& field(std::size_t row) const {
    if (row % RowsALook == 0) throw_if_stopped();
    return from_.fields[(first_ + row) * from_.columns + column_];
  }
  [[nodiscard]] std::string_view operator[](std::size_t row) const {
    return trimmed(field(row).text);
  }

  [[nodiscard]] CsvType type() const {
    bool holes = false;
    bool bools = true;
    bool small = true;
    bool whole = true;
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) {
      const std::string_view x = (*this)[i];
      if (x.empty()) {
        holes = true;
        continue;
      }
      ++count;
      bools = bools && truth(x);
      const auto integer = whole ? number<std::int64_t>(x) : std::nullopt;
      whole = whole && integer;
      small = small && integer && std::in_range<std::int32_t>(*integer);
      if (!bools && !whole && !number<double>(x)) return CsvType::Text;
    }
    if (count == 0 || (bools && holes)) return CsvType::Text;
    if (bools) return CsvType::Bool;
    if (!whole || holes) return CsvType::F32;
    return small ? CsvType::I32 : CsvType::I64;
  }

  [[nodiscard]] Csv::Column read(std::string name, CsvType type) const {
    switch (type) {
      case CsvType::Bool: return {std::move(name), type, numbers<bool>(truth, type)};
      case CsvType::I32:
        return {std::move(name), type, numbers<std::int32_t>(number<std::int32_t>, type)};
      case CsvType::I64:
        return {std::move(name), type, numbers<std::int64_t>(number<std::int64_t>, type)};
      case CsvType::F32: return {std::move(name), type, numbers<float>(real<float>, type)};
      case CsvType::F64: return {std::move(name), type, numbers<double>(real<double>, type)};
      case CsvType::Text: break;
    }
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < size(); ++i) texts.emplace_back(field(i).text);
    return {std::move(name), CsvType::Text, std::move(texts)};
  }

 private:
  // What is not there is no number.
  template <class T>
  static std::optional<T> real(std::string_view text) {
    if (text.empty()) return std::numeric_limits<T>::quiet_NaN();
    const auto value = number<double>(text);
    return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
  }

  template <class T, class Read>
  [[nodiscard]] Tensor numbers(Read parse, CsvType type) const {
    Tensor out = Tensor::zeros({dtype_of<T>, {static_cast<std::int64_t>(size())}});
    if (size() == 0) return out;
    std::byte* to = out.mutable_data();
    for (std::size_t i = 0; i < size(); ++i) {
      const std::optional<T> value = parse((*this)[i]);
      if (!value) {
        csv_fault(text_, field(i).offset,
                  fmt::format("{} is no {}", quote(shortened(std::string(field(i).text))),
                              io::name(type)),
                  "CsvOptions::types says what a column is");
      }
      std::memcpy(to + i * sizeof(T), &*value, sizeof(T));
    }
    return out;
  }

  std::string_view text_;
  const CsvFields& from_;
  std::size_t column_;
  std::size_t first_;
};

std::vector<std::string> names_of(std::string_view text, const CsvFields& fields,
                                  const CsvOptions& options) {
  std::vector<std::string> out;
  std::set<std::string> taken;
  for (std::size_t c = 0; c < fields.columns; ++c) {
    const CsvField& field = fields.fields[c];
    out.push_back(options.header ? std::string(trimmed(field.text)) : std::to_string(c));
    if (taken.insert(out.back()).second) continue;
    csv_fault(text, field.offset,
              fmt::format("two columns are named {}", quote(shortened(out.back()))),
              "name them apart, or read the table with header = false");
  }
  for (const auto& [name, type] : options.types) {
    if (taken.contains(name)) continue;
    throw UserError(
        ErrorCode::Name, fmt::format("there is no column {} to be {}", quote(name), io::name(type)),
        fmt::format("there are: {}", shortened(fmt::format("{}", fmt::join(out, ", ")))));
  }
  return out;
}

[[noreturn]] void wrong_kind(std::string_view name, std::string_view is, std::string help) {
  throw UserError(ErrorCode::DType, fmt::format("column {} is {}", quote(std::string(name)), is),
                  std::move(help));
}

}  // namespace

std::string_view name(CsvType type) noexcept { return TypeNames[static_cast<std::size_t>(type)]; }

Csv::Csv(std::vector<Column> columns, std::int64_t rows)
    : columns_(std::move(columns)), rows_(rows) {}

const Csv::Column& Csv::find(std::string_view name) const {
  const auto it = std::ranges::find(columns_, name, &Column::name);
  if (it != columns_.end()) return *it;
  std::vector<std::string_view> names;
  for (const Column& c : columns_) names.push_back(c.name);
  throw UserError(
      ErrorCode::Name, fmt::format("there is no column {}", quote(std::string(name))),
      fmt::format("there are: {}", shortened(fmt::format("{}", fmt::join(names, ", ")))));
}

Tensor Csv::column(std::string_view name) const {
  const Column& c = find(name);
  if (const auto* numbers = std::get_if<Tensor>(&c.values)) return *numbers;
  wrong_kind(name, "text", "categories(name) gives codes for texts");
}

const std::vector<std::string>& Csv::texts(std::string_view name) const {
  const Column& c = find(name);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&c.values)) return *texts;
  wrong_kind(name, fmt::format("{}, not text", io::name(c.type)),
             "give it CsvType::Text in CsvOptions::types");
}

Tensor Csv::matrix(const std::vector<std::string>& names, DType dtype) const {
  std::vector<std::vector<double>> given;
  for (const Column& c : columns_) {
    if (names.empty() && c.type != CsvType::Text) given.push_back(column(c.name).numbers<double>());
  }
  for (const std::string& name : names) given.push_back(column(name).numbers<double>());
  std::vector<double> all;
  all.reserve(static_cast<std::size_t>(rows_) * given.size());
  for (std::size_t r = 0; std::cmp_less(r, rows_); ++r) {
    for (const auto& c : given) all.push_back(c[r]);
  }
  return Tensor::from_numbers<double>({dtype, {rows_, static_cast<std::int64_t>(given.size())}},
                                      all);
}

Categories Csv::categories(std::string_view name) const {
  const std::vector<std::string>& values = texts(name);
  const std::set<std::string_view> known(values.begin(), values.end());
  Categories out;
  out.names.assign(known.begin(), known.end());
  std::vector<std::int32_t> codes;
  for (const std::string& v : values) {
    const auto at = std::ranges::lower_bound(out.names, v);
    codes.push_back(static_cast<std::int32_t>(at - out.names.begin()));
  }
  out.codes = Tensor::of<std::int32_t>({rows_}, codes);
  return out;
}

Csv parse_csv(std::string_view text, const CsvOptions& options) try {
  const DefaultFloatEnvironment floats;
  if (std::string_view("\"\r\n").find(options.delimiter) != std::string_view::npos) {
    throw UserError(ErrorCode::Attr, "a quote or the end of a line cannot be a delimiter",
                    "give ',', ';' or a tab");
  }
  const CsvFields fields = split_csv(text, options);
  const std::vector<std::string> names = names_of(text, fields, options);
  const std::size_t first = options.header && fields.columns > 0 ? 1 : 0;
  const std::size_t rows = fields.columns == 0 ? 0 : fields.fields.size() / fields.columns - first;
  std::vector<Csv::Column> columns;
  for (std::size_t c = 0; c < fields.columns; ++c) {
    const Strip strip(text, fields, c, first);
    const auto asked = options.types.find(names[c]);
    columns.push_back(
        strip.read(names[c], asked == options.types.end() ? strip.type() : asked->second));
  }
  return {std::move(columns), static_cast<std::int64_t>(rows)};
} catch (const std::bad_alloc&) {
  throw UserError(ErrorCode::OutOfMemory, "there is no memory for the table in the file");
}

Csv read_csv(const std::string& path, const CsvOptions& options) {
  const std::vector<std::byte> bytes = read_file(path, options.max_file_bytes);
  try {
    return parse_csv(as_text(bytes), options);
  } catch (const UserError& e) {
    if (e.code() != ErrorCode::File) throw;
    throw in_file(e, path);
  }
}

}  // namespace ricci::io
