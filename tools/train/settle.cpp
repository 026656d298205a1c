// What settings must be together, and when a run goes on.
#include <algorithm>

#include <fmt/format.h>

#include "ricci/model/optimizer.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "train/settings.h"

namespace ricci::tool {
namespace {

void require_one_of(std::string_view name, const std::string& value,
                    const std::vector<std::string>& known) {
  if (std::ranges::find(known, value) != known.end()) return;
  const auto close = nearest(value, known);
  throw UserError(
      ErrorCode::Attr, fmt::format("'{}' is no {}", shortened(value), name),
      (close ? fmt::format("did you mean '{}'? ", *close) : "") + "there are " + join(known, ", "));
}

}  // namespace

void settle(RunSettings& s) {
  require_one_of("kind of model", s.kind, {std::begin(RunKinds), std::end(RunKinds)});
  std::vector<std::string> optimizers;
  for (const std::string_view name : optimizer_names()) optimizers.emplace_back(name);
  require_one_of("optimizer", s.optimizer, optimizers);
  require_one_of("schedule", s.schedule, {"cosine", "linear", "one_cycle", "constant"});
  require_one_of("precision", s.precision, precision_names());
  if (s.width == 0) s.width = s.kind == "cnn" ? 16 : s.kind == "vit" ? 64 : 128;
  if (s.layers == 0) s.layers = is_language(s.kind) ? 4 : s.kind == "vit" ? 3 : 2;
  const bool has_heads = find_setting("heads")->is_for(s.kind);
  if (has_heads && s.width % s.heads != 0) {
    throw UserError(ErrorCode::Attr,
                    fmt::format("{} heads do not divide a width of {}", s.heads, s.width),
                    "make the width a multiple of the heads");
  }
}

void require_same_run(const RunSettings& was, const RunSettings& now) {
  for (const Setting& setting : all_settings()) {
    if (!setting.lasts() || !setting.is_for(was.kind)) continue;
    const std::string before = plain_value(was, setting);
    const std::string after = plain_value(now, setting);
    if (before == after) continue;
    throw UserError(
        ErrorCode::Attr,
        fmt::format("'{}' is {} in this run and cannot become {}", setting.name,
                    before.empty() ? "not given" : before, after.empty() ? "nothing" : after),
        fmt::format("go on without {}, or begin another run with --out", setting.flag()));
  }
}

}  // namespace ricci::tool
