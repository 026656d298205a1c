#include "serve/service/text_output.h"

#include <algorithm>
#include <utility>

namespace ricci::serve {
namespace {

// Bytes at the end that begin a character and do not end it.
std::size_t open_character(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if (c < 0x80) return 0;
    if (c < 0xC0) continue;
    const std::size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    return n < length ? n : 0;
  }
  return 0;
}

// Bytes at the end that a stop text begins with.
std::size_t open_stop(std::string_view text, std::string_view stop) {
  for (std::size_t n = std::min(stop.size() - 1, text.size()); n > 0; --n) {
    if (text.ends_with(stop.substr(0, n))) return n;
  }
  return 0;
}

}  // namespace

TextOutput::TextOutput(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase(stops_, std::string());
}

std::string TextOutput::add(std::string_view bytes) {
  if (stopped_) return {};
  held_ += bytes;
  std::size_t end = std::string::npos;
  for (const std::string& stop : stops_) end = std::min(end, held_.find(stop));
  if (end != std::string::npos) {
    stopped_ = true;
    held_.resize(end);
    return std::exchange(held_, {});
  }
  std::size_t keep = open_character(held_);
  for (const std::string& stop : stops_) keep = std::max(keep, open_stop(held_, stop));
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string TextOutput::finish() { return std::exchange(held_, {}); }

}  // namespace ricci::serve
