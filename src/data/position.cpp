// Where a loader stands, as text.
#include <algorithm>
#include <charconv>
#include <map>

#include <fmt/format.h>

#include "ricci/data/loader.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

[[noreturn]] void no_position(std::string_view text) {
  throw UserError(ErrorCode::Parse,
                  fmt::format("{} is no position in data", quote(std::string(text.substr(0, 200)))),
                  "it is what DataPosition::to_text gives: epoch=0 batch=3 step=3 samples=100 "
                  "batch_size=8 shuffle=none drop_last=0");
}

template <class T>
T number(std::string_view text, std::string_view all) {
  T value = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault != std::errc() || end != text.data() + text.size() || text.empty()) no_position(all);
  return value;
}

std::map<std::string_view, std::string_view> fields_of(std::string_view text) {
  std::map<std::string_view, std::string_view> out;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t space = std::min(left.find(' '), left.size());
    const std::string_view field = left.substr(0, space);
    left.remove_prefix(std::min(space + 1, left.size()));
    const std::size_t sign = field.find('=');
    if (sign == std::string_view::npos) no_position(text);
    if (!out.emplace(field.substr(0, sign), field.substr(sign + 1)).second) no_position(text);
  }
  return out;
}

}  // namespace

std::string DataPosition::to_text() const {
  return fmt::format("epoch={} batch={} step={} samples={} batch_size={} shuffle={} drop_last={}",
                     epoch, batch, step, samples, batch_size,
                     shuffle ? std::to_string(*shuffle) : "none", drop_last ? 1 : 0);
}

DataPosition DataPosition::from_text(std::string_view text) {
  const std::map<std::string_view, std::string_view> fields = fields_of(text);
  const auto field = [&](std::string_view name) {
    const auto it = fields.find(name);
    if (it == fields.end()) no_position(text);
    return it->second;
  };
  const auto count = [&](std::string_view name) {
    const auto value = number<std::int64_t>(field(name), text);
    if (value < 0) no_position(text);
    return value;
  };
  DataPosition out;
  out.epoch = count("epoch");
  out.batch = count("batch");
  out.step = count("step");
  out.samples = count("samples");
  out.batch_size = count("batch_size");
  if (field("shuffle") != "none") out.shuffle = number<std::uint64_t>(field("shuffle"), text);
  const std::int64_t drop_last = count("drop_last");
  if (drop_last > 1 || fields.size() != 7) no_position(text);
  out.drop_last = drop_last == 1;
  return out;
}

}  // namespace ricci
