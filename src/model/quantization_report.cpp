#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ricci/ir/text.h"
#include "ricci/model/quantization.h"

#include "model/product_layers.h"

namespace ricci {
namespace {

using Row = std::vector<std::string>;

std::string decibels(double db) { return std::isinf(db) ? "exact" : fmt::format("{:.1f} dB", db); }

Row row_of(const LayerReport& r) {
  if (!r.why.empty()) return {r.name, r.op, "stays: " + r.why, "", "", "", ""};
  const bool is_output = r.op == "output";
  Row row = {r.name, r.op, r.became, is_output ? "" : decibels(r.weight_sqnr)};
  if (r.compared == 0) {
    row.insert(row.end(), {"", "", ""});
    return row;
  }
  row.push_back(decibels(r.sqnr));
  row.push_back(fmt::format("{:.3g}", r.max_error));
  row.push_back(is_output ? "" : fmt::format("{:.2f}%", 100 * r.saturated));
  return row;
}

}  // namespace

std::string Quantized::report() const {
  std::vector<Row> rows = {{"layer", "op", "became", "weight", "result", "max error", "saturated"}};
  for (const LayerReport& r : layers) rows.push_back(row_of(r));
  for (const LayerReport& r : outputs) rows.push_back(row_of(r));
  std::vector<std::size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      line += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + '\n';
  }
  return out;
}

void compare_outputs(const Graph& before, Quantized& out, std::vector<Compared>& values) {
  const auto names = value_names(before);
  out.outputs.reserve(before.outputs().size());  // pointers to them are kept
  for (std::size_t i = 0; i < before.outputs().size(); ++i) {
    const ValueId v = before.outputs()[i];
    if (!is_float(before.type(v).dtype)) continue;
    LayerReport& r = out.outputs.emplace_back();
    r.name = "%" + names[v.node][v.result];
    r.op = "output";
    values.push_back({.before = v, .after = out.graph.outputs()[i], .report = &r});
  }
}

}  // namespace ricci
