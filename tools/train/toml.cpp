// Settings from TOML: the only place that knows its library.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include "ricci/support/error.h"
#include "ricci/support/file.h"
#include "ricci/support/text.h"

#include "train/settings.h"

namespace ricci::tool {
namespace {

constexpr std::size_t MostOfALine = 200;  // bytes of a line in a message

// Tables nest as deep as a name has dots, and the library walks them one in the other.
struct TooDeep {
  std::size_t at = 0;
  const char* message = "";
};
std::optional<TooDeep> too_deep(std::string_view text) {
  constexpr int MostDots = 16;
  constexpr int MostOpen = 64;
  int dots = 0;
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      dots = 0;
    } else if (c == '"' || c == '\'') {
      const bool is_long = text.substr(i, 3) == std::string(3, c);
      const std::string_view end = text.substr(i, is_long ? 3 : 1);
      for (i += end.size(); i < text.size() && text.substr(i, end.size()) != end; ++i) {
        if (c == '"' && text[i] == '\\') ++i;
        if (!is_long && text[i] == '\n') break;  // not a text; the parser says so
      }
      i += end.size() - 1;
    } else if (c == '.') {
      if (++dots > MostDots) return TooDeep{i, "names nest deeper than 16 tables"};
    } else if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) {
      dots = 0;
      if (c == '[' || c == '{') ++open;
      if (c == ']' || c == '}') --open;
      if (open > MostOpen) return TooDeep{i, "lists and tables nest deeper than 64"};
    }
  }
  return std::nullopt;
}

class TomlReader {
 public:
  TomlReader(RunSettings& settings, std::string path, std::string text)
      : settings_(settings), path_(std::move(path)), text_(std::move(text)) {}

  void read() {
    if (const auto fault = too_deep(text_)) {
      const auto before = std::string_view(text_).substr(0, fault->at);
      const auto line = static_cast<toml::source_index>(1 + std::ranges::count(before, '\n'));
      const auto column = static_cast<toml::source_index>(fault->at - (before.rfind('\n') + 1) + 1);
      refuse({.begin = {line, column}, .end = {line, column}, .path = nullptr}, fault->message, "");
    }
    toml::table root;
    try {
      root = toml::parse(text_, path_);
    } catch (const toml::parse_error& e) {
      refuse(e.source(), std::string(e.description()), "");
    }
    for (auto&& [key, node] : root) {
      if (key == "kind") {
        kind(node);
      } else if (node.is_table()) {
        table(key, *node.as_table());
      } else {
        setting("", key, node);
      }
    }
  }

 private:
  [[noreturn]] void refuse(const toml::source_region& at, std::string message, std::string help) {
    SourcePosition where{path_, at.begin.line, at.begin.column, {}};
    std::size_t from = 0;
    for (std::uint32_t i = 1; i < where.line && from != std::string::npos; ++i) {
      from = text_.find('\n', from);
      if (from != std::string::npos) ++from;
    }
    if (from != std::string::npos) {
      where.text = shortened(text_.substr(from, text_.find('\n', from) - from), MostOfALine);
    }
    throw UserError(Diagnostic{.code = ErrorCode::Parse,
                               .detail = "toml",
                               .message = std::move(message),
                               .where = std::move(where),
                               .notes = {},
                               .help = std::move(help)});
  }

  void kind(const toml::node& node) {
    const auto name = node.value_exact<std::string>();
    if (!name) refuse(node.source(), "'kind' takes a text", "");
    if (!settings_.kind.empty() && settings_.kind != *name) {
      refuse(node.source(),
             fmt::format("this file is for '{}', and '{}' is asked for", shortened(*name),
                         settings_.kind),
             "");
    }
    settings_.kind = *name;
  }

  void table(const toml::key& name, const toml::table& table) {
    std::vector<std::string> known;
    for (const Setting& s : all_settings()) {
      if (known.empty() || known.back() != s.table) known.emplace_back(s.table);
    }
    const std::string text(name.str());
    if (std::ranges::find(known, text) == known.end()) unknown(name, "table", known);
    for (auto&& [key, node] : table) setting(text, key, node);
  }

  void setting(const std::string& table, const toml::key& key, const toml::node& node) {
    const Setting* found = find_setting(key.str());
    if (found == nullptr) {
      std::vector<std::string> known = {"kind"};
      for (const Setting& s : all_settings()) known.emplace_back(s.name);
      unknown(key, "setting", known);
    }
    if (!table.empty() && table != found->table) {
      refuse(key.source(), fmt::format("'{}' belongs in [{}]", found->name, found->table), "");
    }
    if (std::ranges::find(given_, found, [](const auto& g) { return g.first; }) != given_.end()) {
      refuse(key.source(), fmt::format("'{}' is given twice", found->name), "");
    }
    const std::string fault = set(*found, node);
    if (!fault.empty()) refuse(node.source(), fault, "");
    given_.push_back({found, key.source()});
  }

  std::string set(const Setting& s, const toml::node& node) {
    if (const auto whole = node.value_exact<std::int64_t>()) return set_value(settings_, s, *whole);
    if (const auto real = node.value_exact<double>()) return set_value(settings_, s, *real);
    if (const auto text = node.value_exact<std::string>()) return set_value(settings_, s, *text);
    return fmt::format(
        "'{}' takes a {}", s.name,
        std::holds_alternative<std::string RunSettings::*>(s.place) ? "text" : "number");
  }

  [[noreturn]] void unknown(const toml::key& key, const char* what,
                            const std::vector<std::string>& known) {
    const auto close = nearest(key.str(), known);
    refuse(key.source(), fmt::format("there is no {} '{}'", what, shortened(key.str())),
           close ? fmt::format("did you mean '{}'?", *close)
                 : fmt::format("there are {}", join(known, ", ")));
  }

 public:
  /// Settings that are for other kinds.
  void check_kinds() {
    for (const auto& [s, where] : given_) {
      if (s->is_for(settings_.kind)) continue;
      refuse(where, fmt::format("'{}' is no setting of {}", s->name, settings_.kind),
             fmt::format("it is one of {}", s->kinds));
    }
  }

 private:
  RunSettings& settings_;
  std::string path_;
  std::string text_;
  std::vector<std::pair<const Setting*, toml::source_region>> given_;
};

}  // namespace

void read_toml_text(RunSettings& settings, std::string text, const std::string& path) {
  TomlReader reader(settings, path, std::move(text));
  reader.read();
  reader.check_kinds();
}

void read_toml(RunSettings& settings, const std::string& path) {
  constexpr std::int64_t MostBytes = 1 << 20;
  const std::vector<std::byte> bytes = read_file(path, MostBytes);
  read_toml_text(settings, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace ricci::tool
