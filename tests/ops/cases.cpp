#include "ops/cases.h"

#include <array>
#include <complex>

#include <fmt/format.h>

#include "ricci/support/hash.h"

#include "support/compare.h"

namespace ricci::testing {
namespace {

// Drawn numbers may be complex just as well where the op takes such: it is then tried on them
// everywhere, whatever its table says. Given ones lie on branch cuts as likely as not.
void widen_to_complex(Case& c) {
  if (!c.rejects.empty() || c.fails || !c.out.empty() || !c.dtypes.has(DType::F64)) return;
  bool crossed = false;
  for (const In& in : c.in) {
    if (in.dtype) continue;
    if (!in.values.empty()) return;
    crossed = true;
  }
  if (!crossed) return;
  for (const DType dtype : {DType::C64, DType::C128}) {
    try {
      (void)build_case(c, dtype);
      c.dtypes = c.dtypes | DTypeSet{dtype};
    } catch (const UserError&) {
      return;
    }
  }
}

}  // namespace

Cases cases_for(OpKind kind) {
  static constexpr auto Tables = std::to_array<Cases (*)()>({
#define RICCI_OP(Type, builder) [] { return cases(static_cast<const op::Type*>(nullptr)); },
#include "ricci/op/list.def"
  });
  Cases table = Tables[static_cast<std::size_t>(kind)]();
  for (Case& c : table) widen_to_complex(c);
  return table;
}

Tensor random_values(const In& in, const Type& type, std::uint64_t seed) {
  const Tensor random = random_tensor(seed, type, in.low, in.high);
  if (in.diagonal == 0) return random;
  auto numbers = random.numbers<std::complex<double>>();
  const std::int64_t columns = type.dims.back().value();
  const std::int64_t rows = type.dims[type.rank() - 2].value();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i) % (rows * columns);
    if (at / columns == at % columns) numbers[i] += in.diagonal;
  }
  return Tensor::from_numbers<std::complex<double>>(type, numbers);
}

void replace_size(Case& c, std::int64_t from, std::int64_t to) {
  for (In& in : c.in) {
    for (Dim& d : in.dims) {
      if (!d.is(from)) continue;
      d = to;
      in.values.clear();
    }
  }
}

BuiltCase build_case(const Case& c, DType dtype) {
  BuiltCase b;
  std::vector<ValueId> operands;
  for (std::size_t k = 0; k < c.in.size(); ++k) {
    const In& in = c.in[k];
    const Type type{in.dtype.value_or(dtype), in.dims};
    const std::string name = fmt::format("x{}", k);
    operands.push_back(b.graph.input(name, type).id());
    if (!type.is_static()) continue;
    Hasher seed;
    seed.add(c.name).add(static_cast<std::uint64_t>(k));
    b.feeds.emplace_back(name, in.values.empty() ? random_values(in, type, seed.value())
                                                 : Tensor::from_numbers<double>(type, in.values));
  }
  NodeSpec spec{.op = *c.op,
                .operands = operands,
                .bodies = c.bodies != nullptr ? c.bodies(dtype) : std::vector<Body>{},
                .wanted = c.wanted};
  const NodeId id = b.graph.add(std::move(spec));
  const Type& first = b.graph.node(id).types[0];
  if (const auto* in = c.op->as<op::Input>(); in != nullptr && first.is_static()) {
    b.feeds.emplace_back(in->name, random_tensor(1, first));
  } else if (const auto* p = c.op->as<op::Param>(); p != nullptr && first.is_static()) {
    b.feeds.emplace_back(p->name, random_tensor(1, first));
  }
  std::vector<ValueId> outputs;
  const Node& node = b.graph.node(id);
  for (std::uint32_t r = 0; r < node.types.size(); ++r) {
    if (node.wanted[r]) outputs.push_back({id, r});
  }
  b.graph.set_outputs(std::move(outputs));
  return b;
}

}  // namespace ricci::testing
