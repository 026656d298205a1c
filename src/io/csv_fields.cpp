#include "io/csv_fields.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"

namespace ricci::io {
namespace {

constexpr std::string_view ByteOrderMark = "\xEF\xBB\xBF";

class Splitter {
 public:
  Splitter(std::string_view text, const CsvOptions& options) : text_(text), options_(options) {
    if (text_.starts_with(ByteOrderMark)) at_ = ByteOrderMark.size();
  }

  CsvFields split() {
    while (at_ < text_.size()) {
      if (!take_line_end()) row();
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool at_line_end() const {
    return at_ == text_.size() || text_[at_] == '\n' || text_[at_] == '\r';
  }
  bool take_line_end() {
    if (at_ == text_.size() || !at_line_end()) return false;
    at_ += text_.substr(at_, 2) == "\r\n" ? 2 : 1;
    return true;
  }

  void row() {
    const std::size_t start = at_;
    const std::size_t before = out_.fields.size();
    for (;;) {
      if (out_.fields.size() - before == static_cast<std::size_t>(options_.max_columns)) {
        csv_fault(text_, at_, fmt::format("a row has more than {} fields", options_.max_columns));
      }
      field();
      if (at_line_end()) break;
      ++at_;  // the delimiter
    }
    take_line_end();
    const std::size_t count = out_.fields.size() - before;
    if (before == 0) out_.columns = count;
    if (count != out_.columns) {
      csv_fault(text_, start,
                fmt::format("this row has {} fields, the first one has {}", count, out_.columns),
                "is the delimiter right, and is a field with one in it in quotes?");
    }
  }

  void field() {
    const std::size_t start = at_;
    const bool quoted = at_ < text_.size() && text_[at_] == '"';
    const std::string_view value = quoted ? quoted_field() : plain_field();
    if (std::cmp_greater(value.size(), options_.max_field_bytes)) {
      csv_fault(
          text_, start,
          fmt::format("a field has {} bytes, more than {}", value.size(), options_.max_field_bytes),
          "is a quote open? CsvOptions::max_field_bytes allows more");
    }
    out_.fields.push_back({value, start});
  }

  std::string_view plain_field() {
    const std::size_t start = at_;
    while (!at_line_end() && text_[at_] != options_.delimiter) {
      if (text_[at_] == '"') {
        csv_fault(text_, at_, "a quote stands within a field that does not begin with one",
                  "put all of the field in quotes, and double those inside");
      }
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  std::string_view quoted_field() {
    const std::size_t open = at_++;
    const std::size_t start = at_;
    bool doubled = false;
    for (;;) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        csv_fault(text_, open, "a quote is opened here and never closed");
      }
      at_ = quote + 1;
      if (at_ == text_.size() || text_[at_] != '"') break;
      doubled = true;
      ++at_;
    }
    const std::string_view inside = text_.substr(start, at_ - 1 - start);
    if (!at_line_end() && text_[at_] != options_.delimiter) {
      csv_fault(text_, at_, "a quoted field goes on behind its quote",
                "a quote inside a quoted field is doubled");
    }
    if (!doubled) return inside;
    std::string& own = out_.unquoted.emplace_back();
    for (std::size_t i = 0; i < inside.size(); ++i) {
      own += inside[i];
      if (inside[i] == '"') ++i;
    }
    return own;
  }

  std::string_view text_;
  const CsvOptions& options_;
  std::size_t at_ = 0;
  CsvFields out_;
};

}  // namespace

void csv_fault(std::string_view text, std::size_t offset, std::string message, std::string help) {
  const std::string_view before = text.substr(0, offset);
  // A line ends with "\n", "\r\n" or "\r".
  std::size_t line = 1;
  std::size_t start = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] != '\n' && (before[i] != '\r' || text.substr(i, 2) == "\r\n")) continue;
    ++line;
    start = i + 1;
  }
  const std::string_view rest = text.substr(start);
  const std::string_view whole = rest.substr(0, rest.find_first_of("\r\n"));
  std::string shown;
  for (const char c : whole.substr(0, 120)) {
    shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  }
  throw UserError(Diagnostic{.code = ErrorCode::File,
                             .detail = "csv",
                             .message = std::move(message),
                             .where = {.file = {},
                                       .line = static_cast<std::uint32_t>(line),
                                       .column = static_cast<std::uint32_t>(offset - start + 1),
                                       .text = std::move(shown)},
                             .notes = {},
                             .help = std::move(help)});
}

CsvFields split_csv(std::string_view text, const CsvOptions& options) {
  return Splitter(text, options).split();
}

}  // namespace ricci::io
