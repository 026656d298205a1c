#include "train/report/html.h"

#include <cmath>

#include <fmt/format.h>

#include "ricci/support/text.h"

namespace ricci::report {

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t good = valid_utf8_prefix(text);
    for (const char c : text.substr(0, good)) {
      switch (c) {
        case '&': out += "&amp;"; break;
        case '<': out += "&lt;"; break;
        case '>': out += "&gt;"; break;
        case '"': out += "&quot;"; break;
        case '\'': out += "&#39;"; break;
        case '`': out += "&#96;"; break;
        case '\n':
        case '\t': out += c; break;
        // Other control characters have no place in a page.
        default: out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
      }
    }
    text.remove_prefix(good);
    if (text.empty()) break;
    out += "\xef\xbf\xbd";  // the mark of what is no character
    text.remove_prefix(1);
  }
  return out;
}

std::string in_script(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string count_text(std::int64_t n) {
  std::string out = std::to_string(n);
  const std::size_t sign = n < 0 ? 1 : 0;
  for (std::size_t at = out.size(); at > sign + 3;) {
    at -= 3;
    out.insert(at, ",");
  }
  return out;
}

std::string bytes_text(double bytes) {
  if (bytes < 1000) return fmt::format("{:.0f} B", bytes);
  if (bytes < 1e6) return fmt::format("{:.1f} kB", bytes / 1e3);
  if (bytes < 1e9) return fmt::format("{:.1f} MB", bytes / 1e6);
  return fmt::format("{:.2f} GB", bytes / 1e9);
}

std::string seconds_text(double s) {
  if (!std::isfinite(s)) return "-";
  if (s < 1e-3) return fmt::format("{:.1f} µs", s * 1e6);
  if (s < 1) return fmt::format("{:.2f} ms", s * 1e3);
  if (s < 120) return fmt::format("{:.1f} s", s);
  if (s < 7200) return fmt::format("{:.1f} min", s / 60);
  return fmt::format("{:.1f} h", s / 3600);
}

std::string number_text(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v > 0 ? "∞" : "-∞";
  return fmt::format("{:.4g}", v);
}

Cell text_cell(std::string_view text) { return {.html = escaped(text)}; }
Cell number_cell(std::string_view text) { return {.html = escaped(text), .is_number = true}; }

std::string table(std::span<const std::string> heads, std::span<const std::vector<Cell>> rows) {
  std::string out = "<div class=\"scroll\"><table><thead><tr>";
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const bool number = !rows.empty() && i < rows[0].size() && rows[0][i].is_number;
    out += fmt::format("<th{}>{}</th>", number ? " class=\"n\"" : "", heads[i]);
  }
  out += "</tr></thead><tbody>\n";
  for (const std::vector<Cell>& row : rows) {
    out += "<tr>";
    for (const Cell& c : row) {
      out += fmt::format("<td class=\"{}{}\">{}</td>", c.is_number ? "n" : "",
                         c.is_marked ? " mark" : "", c.html);
    }
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string section(std::string_view id, std::string_view heading, std::string_view html) {
  return fmt::format("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, escaped(heading), html);
}

std::string swatch(std::size_t run) {
  return fmt::format("<span class=\"swatch c{}\"></span>", run % 8);
}

}  // namespace ricci::report
