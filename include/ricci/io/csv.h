// Tables of text: comma-separated values (RFC 4180), with names in the first line.
//
//   const io::Csv flowers = io::read_csv("iris.csv");
//   Tensor x = flowers.matrix({"length", "width"});        // f32 [rows, 2]
//   io::Categories kind = flowers.categories("species");   // i32 codes and their names
//
// Columns have the type their fields have: whole numbers i32 (i64 where one does not fit), numbers
// f32, `true` and `false` bool, anything else text. Empty fields are NaN in a column of numbers,
// which is f32 then, and empty texts. Files from outside are not trusted: what is malformed gives
// UserError(file) with line and column, and reading takes memory in proportion to the file.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/support/file.h"
#include "ricci/type/tensor.h"

namespace ricci::io {

enum class CsvType : std::uint8_t { Bool, I32, I64, F32, F64, Text };
[[nodiscard]] std::string_view name(CsvType type) noexcept;

struct CsvOptions {
  char delimiter = ',';
  bool header = true;  ///< without one columns are named "0", "1", …
  /// Types of some columns by name; a field that is none of its type is an error.
  std::map<std::string, CsvType> types = {};
  std::int64_t max_file_bytes = MaxFileBytes;
  std::int64_t max_columns = 65536;
  std::int64_t max_field_bytes = std::int64_t{1} << 20;
};

/// A column of texts as numbers: codes into names, which are sorted.
struct Categories {
  Tensor codes;  ///< i32 [rows]
  std::vector<std::string> names;
};

class Csv {
 public:
  struct Column {
    std::string name;
    CsvType type = CsvType::Text;
    std::variant<Tensor, std::vector<std::string>> values;  ///< [rows], or texts
  };
  Csv() = default;
  Csv(std::vector<Column> columns, std::int64_t rows);

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::span<const Column> columns() const noexcept { return columns_; }
  /// UserError(name) when there is none, with the names there are.
  [[nodiscard]] const Column& find(std::string_view name) const;
  /// A column of numbers; UserError(dtype) for one of texts.
  [[nodiscard]] Tensor column(std::string_view name) const;
  [[nodiscard]] Tensor operator[](std::string_view name) const { return column(name); }
  /// Columns side by side as f32 [rows, columns]; without names all that are numbers.
  [[nodiscard]] Tensor matrix(const std::vector<std::string>& names = {},
                              DType dtype = DType::F32) const;
  /// Texts; those of a column of numbers are refused: give it CsvType::Text.
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view name) const;
  [[nodiscard]] Categories categories(std::string_view name) const;

 private:
  std::vector<Column> columns_;
  std::int64_t rows_ = 0;
};

[[nodiscard]] Csv parse_csv(std::string_view text, const CsvOptions& options = {});
[[nodiscard]] Csv read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace ricci::io
