// The fields of a table of text, before anybody asks what they are.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/io/csv.h"

namespace ricci::io {

struct CsvField {
  std::string_view text;
  std::size_t offset = 0;  ///< where it begins, its quote included
};

struct CsvFields {
  std::vector<CsvField> fields;  ///< row by row
  std::size_t columns = 0;
  std::deque<std::string> unquoted;  ///< what fields with doubled quotes are
};

/// UserError(file.csv) at a line and column.
[[noreturn]] void csv_fault(std::string_view text, std::size_t offset, std::string message,
                            std::string help = {});

/// Every row has as many fields as the first one. Blank lines are passed over.
[[nodiscard]] CsvFields split_csv(std::string_view text, const CsvOptions& options);

}  // namespace ricci::io
