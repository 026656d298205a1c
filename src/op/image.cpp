#include "ricci/op/image.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

// Does every sample of the result lie in a known cell although the size is a symbol?
bool repeats_samples(const op::Resize& op, const Dim& from, const Dim& to) {
  if (from == to) return true;  // each sample is its own, in every mode
  const auto factor = Dim::divide(to, from);
  return factor && factor->is_static() && op.mode == ResizeMode::Nearest &&
         op.coordinates != ResizeCoordinates::AlignCorners;
}

}  // namespace

Inferred infer(const op::Resize& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 1, dtypes::floats | dtypes::complexes);
  if (in[0].rank() < 3) {
    in.reject("c2", fmt::format("x has rank {}", in[0].rank()),
              "reshape it to [N, C, spatial…], with N and C of 1 if need be");
  }
  if (op.sizes.size() != in[0].rank() - 2) {
    in.reject("c3", fmt::format("sizes has {} entries for {} spatial axes", op.sizes.size(),
                                in[0].rank() - 2));
  }
  Type out = in[0];
  for (std::size_t i = 0; i < op.sizes.size(); ++i) {
    const Dim& from = in[0].dims[2 + i];
    const Dim& to = op.sizes[i];
    if (to.is_static() && to.value() < 1) {
      in.reject("c3", fmt::format("the size {} is not positive", to.value()));
    }
    if ((!from.is_static() || !to.is_static()) && !repeats_samples(op, from, to)) {
      in.reject("c4",
                fmt::format("{} cannot become {} before sizes are known", from.to_string(),
                            to.to_string()),
                "bind the symbols");
    }
    if (from.is(0)) in.reject("c5", fmt::format("x is {}", in[0].to_string()));
    out.dims[2 + i] = to;
  }
  return out;
}

}  // namespace ricci
