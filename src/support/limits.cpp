#include "ricci/support/limits.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci {

std::span<const LimitInfo> all_limits() {
  static constexpr std::array<LimitInfo, 7> limits = {{
      {"source_bytes", "bytes of a file of text", &Limits::source_bytes},
      {"graphs", "graphs in a file", &Limits::graphs},
      {"nodes", "nodes in a file, those of bodies included", &Limits::nodes},
      {"name_bytes", "bytes of a name of anything, and digits of a number", &Limits::name_bytes},
      {"values", "operands or results of one op, outputs of one graph", &Limits::values},
      {"attributes", "attributes of one op", &Limits::attributes},
      {"list_length", "elements of a list in an attribute", &Limits::list_length},
  }};
  return limits;
}

void Limits::set(std::string_view name, std::int64_t value) {
  const auto found = std::ranges::find(all_limits(), name, &LimitInfo::name);
  if (found != all_limits().end()) {
    this->*(found->value) = value;
    return;
  }
  std::vector<std::string> known;
  for (const LimitInfo& limit : all_limits()) known.emplace_back(limit.name);
  const auto close = nearest(name, known);
  throw UserError(ErrorCode::Name, fmt::format("there is no limit '{}'", shortened(name)),
                  close ? fmt::format("did you mean '{}'?", *close)
                        : fmt::format("the limits are {}", join(known, ", ")));
}

std::string raise_help(std::string_view limit) {
  return fmt::format("if you trust this text, raise the limit: --limit {0}=…, or "
                     "ParseOptions::limits.{0} in C++",
                     limit);
}

}  // namespace ricci
