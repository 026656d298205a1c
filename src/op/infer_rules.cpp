#include "op/infer_rules.h"

#include <fmt/format.h>

#include "ricci/op/elementwise.h"
#include "ricci/op/table.h"

namespace ricci {

void require_dtypes(const InferContext& in, std::string_view label, std::size_t first,
                    std::size_t last, DTypeSet allowed) {
  const DType expected = in[first].dtype;
  if (!allowed.has(expected)) {
    in.reject(label, fmt::format("{} operands are not allowed here", name(expected)),
              "cast to a dtype the op takes");
  }
  for (std::size_t k = first + 1; k < last; ++k) {
    if (in[k].dtype != expected) {
      in.reject(label,
                fmt::format("operand dtypes differ: {} and {}", name(expected), name(in[k].dtype)),
                "cast one of them");
    }
  }
}

Dims require_broadcast(const InferContext& in, std::string_view label, const Dims& a,
                       const Dims& b) {
  if (auto out = broadcast(a, b)) return *std::move(out);
  in.reject(label, fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)),
            "aligned from the right, sizes must be equal or 1");
}

void require_non_negative(const InferContext& in, std::string_view label, const Dims& dims) {
  for (const Dim& d : dims) {
    if (d.is_static() && d.value() < 0) {
      in.reject(label, fmt::format("the size {} is negative", d.value()));
    }
  }
}

std::optional<Dim> floor_divide(const Dim& a, std::int64_t b) {
  std::set<std::string> symbols;
  a.collect_symbols(symbols);
  SymbolBindings zeros;
  for (const std::string& s : symbols) zeros.emplace(s, 0);
  const std::int64_t constant = a.bind(zeros).value();
  const std::int64_t remainder = constant % b + (constant % b < 0 ? b : 0);
  return Dim::divide(a - remainder, b);
}

void require_activation(const InferContext& in, std::string_view label, UnaryKind kind) {
  const ElementwiseRow& r = row(kind);
  const DType dtype = in[0].dtype;
  if (r.dtypes.has(dtype) && r.result_dtype(dtype) == dtype) return;
  in.reject(label, fmt::format("'{}' does not give {} from {}", r.name, name(dtype), name(dtype)),
            "apply it as a node of its own");
}

std::string operand_text(const InferContext& in, const OpInfo& info, std::size_t k) {
  for (const OpDescriptor& d : all_ops()) {
    if (d.info == &info) {
      return fmt::format("'{}' ({})", parameter_name(d.operands, k, in.operands.size()),
                         in[k].to_string());
    }
  }
  return in[k].to_string();
}

}  // namespace ricci
