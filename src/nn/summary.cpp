#include "ricci/nn/summary.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/nn/training_scope.h"

namespace ricci::detail {
namespace {

std::string with_commas(std::int64_t n) {
  std::string out = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(out.size()) - 3; at > 0; at -= 3) {
    out.insert(static_cast<std::size_t>(at), ",");
  }
  return out;
}

std::string size_text(std::int64_t bytes) {
  auto size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  const char* unit = "KiB";
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    size /= 1024;
    if (size < 1024) break;
    unit = next;
  }
  if (size >= 1024) size /= 1024;
  return fmt::format("{:.1f} {}", size, unit);
}

}  // namespace

void ModelSummary::object(const TreeType& type, void* /*self*/) {
  if (type.id == TreeTypeOf<nn::Buffer>.id) return;
  open_.push_back(rows_.size());
  rows_.push_back({.name = path(), .type = std::string(type.name), .arrays = {}, .params = 0});
}

void ModelSummary::leave() {
  // The struct that is left is the only one with this name.
  if (!open_.empty() && open_.back() > 0 && rows_[open_.back()].name == path()) open_.pop_back();
  NamingVisitor::leave();
}

void ModelSummary::add(const Array& leaf, bool is_buffer) {
  if (open_.empty()) {
    open_.push_back(rows_.size());
    rows_.push_back({});
  }
  Row& row = rows_[open_.back()];
  const std::size_t skip = row.name.empty() ? 0 : row.name.size() + 1;
  const std::string type = leaf.type().to_string();
  if (!row.arrays.empty()) row.arrays += ", ";
  row.arrays += path().size() > skip ? path().substr(skip) + " " + type : type;
  if (is_buffer) row.arrays += " (buffer)";
  (is_buffer ? buffers_ : params_) += leaf.size();
  if (!is_buffer) row.params += leaf.size();
  bytes_ += leaf.size() * size_of(leaf.dtype());
}

std::string ModelSummary::table() const {
  std::vector<std::array<std::string, 4>> lines = {{"name", "type", "arrays", "params"}};
  for (const Row& row : rows_) {
    if (!row.arrays.empty()) {
      lines.push_back({row.name, row.type, row.arrays, with_commas(row.params)});
    }
  }
  std::array<std::size_t, 4> widths = {};
  for (const auto& line : lines) {
    for (std::size_t c = 0; c < 4; ++c) widths[c] = std::max(widths[c], line[c].size());
  }
  std::string out;
  for (const auto& line : lines) {
    out += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}\n", line[0], widths[0], line[1], widths[1],
                       line[2], widths[2], line[3], widths[3]);
  }
  const std::string whole = rows_.empty() ? std::string() : rows_.front().type;
  out += fmt::format("{}{}{} params", whole, whole.empty() ? "" : ": ", with_commas(params_));
  if (buffers_ > 0) out += fmt::format(", {} in buffers", with_commas(buffers_));
  return out + fmt::format(", {}\n", size_text(bytes_));
}

}  // namespace ricci::detail
