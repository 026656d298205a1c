// Pieces of a page.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::report {

/// Text as HTML takes it, in elements and in attributes.
[[nodiscard]] std::string escaped(std::string_view text);
/// JSON that may stand in a `script` element: it has no `<`.
[[nodiscard]] std::string in_script(std::string_view json);

/// `1,234`, `12.3 MB`, `4.5 ms`, `3.2 G`
[[nodiscard]] std::string count_text(std::int64_t n);
[[nodiscard]] std::string bytes_text(double bytes);
[[nodiscard]] std::string seconds_text(double seconds);
/// Four digits or so; `-` for what is not finite.
[[nodiscard]] std::string number_text(double value);

/// A cell of a table, as HTML.
struct Cell {
  std::string html;
  bool is_number = false;
  bool is_marked = false;
};
[[nodiscard]] Cell text_cell(std::string_view text);
[[nodiscard]] Cell number_cell(std::string_view text);
[[nodiscard]] std::string table(std::span<const std::string> heads,
                                std::span<const std::vector<Cell>> rows);
/// A section with a heading, which is text.
[[nodiscard]] std::string section(std::string_view id, std::string_view heading,
                                  std::string_view html);
/// One of the colours that runs are told apart by.
[[nodiscard]] std::string swatch(std::size_t run);

}  // namespace ricci::report
