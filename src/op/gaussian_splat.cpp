#include "ricci/op/gaussian_splat.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

constexpr std::int64_t LargestSide = 65536;
constexpr std::int64_t MostCoefficients = 16;
constexpr std::int64_t MostEntries = 2147483647;  // of lists, which i32 counts
const Dim Three = 3;
const Dim Four = 4;

// The operands' batch in front, and their flat lengths.
struct FlatOperands {
  std::optional<Dim> batch;
  std::vector<Dim> lengths;

  explicit FlatOperands(const InferContext& in) {
    for (const Type& t : in.operands) {
      if (t.rank() != 1 && t.rank() != 2) {
        in.reject("c2", fmt::format("an operand is {}", t.to_string()),
                  "arrays of splats are flat: [3N], or [batch, 3N]");
      }
      lengths.push_back(t.dims.back());
      if (t.rank() == 1) continue;
      if (batch && *batch != t.dims[0]) {
        in.reject("c2", fmt::format("one operand has a batch of {}, another one of {}",
                                    batch->to_string(), t.dims[0].to_string()));
      }
      batch = t.dims[0];
    }
  }

  [[nodiscard]] Type type(DType dtype, Dim length) const {
    return batch ? Type{dtype, {*batch, std::move(length)}} : Type{dtype, {std::move(length)}};
  }
};

void require_length(const InferContext& in, std::string_view label, std::string_view operand,
                    const Dim& length, const Dim& expected) {
  if (length == expected) return;
  in.reject(label, fmt::format("{} has {} numbers instead of {}", operand, length.to_string(),
                               expected.to_string()));
}

Dim splat_count(const InferContext& in, std::string_view operand, const Dim& length,
                const Dim& each) {
  const auto count = Dim::divide(length, each);
  if (count) return *count;
  in.reject("c3", fmt::format("{} has {} numbers, which are not {} for every splat", operand,
                              length.to_string(), each.to_string()));
}

void check_meta(const InferContext& in, std::string_view label, const Dim& length) {
  if (length.is(SplatMetaLength) || length.is(SplatLensMetaLength)) return;
  in.reject(label, fmt::format("meta has {} numbers instead of {}, or {} with a lens",
                               length.to_string(), SplatMetaLength, SplatLensMetaLength));
}

// Operands 0 to 6 of the ops that see the scene; gives the number of splats.
Dim check_scene(const InferContext& in, const FlatOperands& flat) {
  const Dim count = splat_count(in, "positions", flat.lengths[0], Three);
  require_length(in, "c3", "scales", flat.lengths[1], Three * count);
  require_length(in, "c3", "rotations", flat.lengths[2], Four * count);
  require_length(in, "c3", "opacities", flat.lengths[3], count);
  require_length(in, "c3", "colors", flat.lengths[4], Three * count);
  const Dim& sh = flat.lengths[5];
  if (count.is(0)) {
    require_length(in, "c4", "sh_coeffs", sh, 0);
  } else {
    const auto coefficients = Dim::divide(sh, Three * count);
    const auto known = coefficients ? coefficients->try_value() : std::nullopt;
    if (!coefficients || (known && (*known < 1 || *known > MostCoefficients))) {
      in.reject("c4", fmt::format("sh_coeffs has {} numbers for {} splats", sh.to_string(),
                                  count.to_string()));
    }
  }
  check_meta(in, "c5", flat.lengths[6]);
  return count;
}

void check_sides(const auto& op, const InferContext& in, std::string_view label) {
  for (const std::int64_t side : {op.width, op.height, op.tile_size}) {
    if (side < 1 || side > LargestSide) {
      in.reject(label, fmt::format("the image is {} x {} in tiles of {}", op.width, op.height,
                                   op.tile_size));
    }
  }
}

void check_cutoff(const auto& op, const InferContext& in, std::string_view label) {
  if (op.alpha_cutoff > 0 && op.alpha_cutoff < 1) return;
  in.reject(label, fmt::format("alpha_cutoff is {}", op.alpha_cutoff.value));
}

void check_radius(const auto& op, const InferContext& in) {
  if (op.radius_scale > 0) return;
  in.reject("c7", fmt::format("radius_scale is {}", op.radius_scale.value));
}

void check_composing(const auto& op, const InferContext& in, std::string_view label) {
  if (op.gamma > 0 && op.transmittance_threshold >= 0 && op.transmittance_threshold < 1) return;
  in.reject(label, fmt::format("gamma is {} and transmittance_threshold {}", op.gamma.value,
                               op.transmittance_threshold.value));
}

void check_entries(const auto& op, const InferContext& in, std::string_view label) {
  if (op.max_list_entries >= 0 && op.max_list_entries <= MostEntries) return;
  in.reject(label, fmt::format("max_list_entries is {}", op.max_list_entries));
}

void check_steps(const auto& op, const InferContext& in, std::string_view label) {
  if (op.max_splat_steps >= 0) return;
  in.reject(label, fmt::format("max_splat_steps is {}", op.max_splat_steps));
}

void check_band(const auto& op, const InferContext& in) {
  if (op.sh_band >= 0 && op.sh_band <= 3) return;
  in.reject("c8", fmt::format("sh_band is {}", op.sh_band));
}

void check_render(const auto& op, const InferContext& in) {
  check_sides(op, in, "c6");
  check_radius(op, in);
  check_cutoff(op, in, "c7");
  check_composing(op, in, "c7");
  check_steps(op, in, "c8");
  check_entries(op, in, "c8");
  check_band(op, in);
}

Dim pixels(const auto& op) { return Dim(op.width) * Dim(op.height); }
Dim tiles(const auto& op) {
  const auto along = [&](std::int64_t side) { return (side + op.tile_size - 1) / op.tile_size; };
  return along(op.width) * along(op.height);
}

// What the way there has found: operands 8 to 17 of the way back.
void check_known(const op::GaussianSplatBackward& op, const InferContext& in,
                 const FlatOperands& flat, const Dim& count) {
  constexpr std::size_t First = 8;
  constexpr std::size_t Ids = 15;
  struct Known {
    std::string_view name;
    DType dtype;
    Dim length;
  };
  const DType dtype = in[0].dtype;
  const std::vector<Known> all = {{"rgba", dtype, Four * pixels(op)},
                                  {"before_last", dtype, pixels(op)},
                                  {"last_hit", DType::I32, pixels(op)},
                                  {"color_alpha", DType::F64, Four * count},
                                  {"pos_local", DType::F64, Three * count},
                                  {"inv_scale", DType::F64, Three * count},
                                  {"quaternion", DType::F64, Four * count},
                                  {"ids", DType::I32, {}},
                                  {"tile_ranges", DType::I32, Dim(2) * tiles(op)},
                                  {"rays", DType::F64, Three * pixels(op)}};
  if (in.operands.size() != First + all.size()) {
    in.reject("c10", fmt::format("{} of {} operands that say what is known are given",
                                 in.operands.size() - First, all.size()));
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& [name_of_it, wanted, length] = all[k];
    if (in[First + k].dtype != wanted) {
      in.reject("c10", fmt::format("{} is {} instead of {}", name_of_it, name(in[First + k].dtype),
                                   name(wanted)));
    }
    if (First + k != Ids) require_length(in, "c10", name_of_it, flat.lengths[First + k], length);
  }
}

}  // namespace

Inferred infer(const op::GaussianSplatRender& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 7, {DType::F32, DType::F64});
  const FlatOperands flat(in);
  (void)check_scene(in, flat);
  check_render(op, in);
  return flat.type(in[0].dtype, Four * pixels(op));
}

Inferred infer(const op::GaussianSplatBackward& op, const InferContext& in) {
  const DType dtype = in[0].dtype;
  require_dtypes(in, "c1", 0, 8, {DType::F32, DType::F64});
  const FlatOperands flat(in);
  const Dim count = check_scene(in, flat);
  check_render(op, in);
  require_length(in, "c9", "drgba", flat.lengths[7], Four * pixels(op));
  if (in.operands.size() > 8) check_known(op, in, flat, count);
  std::vector<Type> gradients;
  for (std::size_t k = 0; k < 7; ++k) gradients.push_back(flat.type(dtype, flat.lengths[k]));
  return gradients;
}

Inferred infer(const op::GaussianSplatPrepare& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 7, {DType::F32, DType::F64});
  const FlatOperands flat(in);
  const Dim count = check_scene(in, flat);
  check_sides(op, in, "c6");
  check_radius(op, in);
  check_cutoff(op, in, "c7");
  check_entries(op, in, "c8");
  check_band(op, in);
  const Dim entries = op.max_list_entries > 0 ? Dim(op.max_list_entries) : count * tiles(op);
  if (const auto known = entries.try_value(); known && *known > MostEntries) {
    in.reject("c8",
              fmt::format("lists of {} splats in {} tiles may have {} entries", count.to_string(),
                          tiles(op).to_string(), *known),
              "give max_list_entries");
  }
  return std::vector<Type>{
      flat.type(DType::F64, Four * count),      flat.type(DType::F64, Three * count),
      flat.type(DType::F64, Three * count),     flat.type(DType::F64, Four * count),
      flat.type(DType::I32, entries),           flat.type(DType::I32, Dim(2) * tiles(op)),
      flat.type(DType::F64, Three * pixels(op))};
}

Inferred infer(const op::GaussianSplatRasterize& op, const InferContext& in) {
  require_dtypes(in, "c1", 0, 4, {DType::F64});
  require_dtypes(in, "c1", 4, 6, {DType::I32});
  require_dtypes(in, "c1", 6, 7, {DType::F64});
  require_dtypes(in, "c1", 7, 8, {DType::F32, DType::F64});
  const FlatOperands flat(in);
  const Dim count = splat_count(in, "color_alpha", flat.lengths[0], Four);
  require_length(in, "c3", "pos_local", flat.lengths[1], Three * count);
  require_length(in, "c3", "inv_scale", flat.lengths[2], Three * count);
  require_length(in, "c3", "quaternion", flat.lengths[3], Four * count);
  check_sides(op, in, "c5");
  require_length(in, "c4", "tile_ranges", flat.lengths[5], Dim(2) * tiles(op));
  require_length(in, "c4", "rays", flat.lengths[6], Three * pixels(op));
  check_meta(in, "c4", flat.lengths[7]);
  check_cutoff(op, in, "c6");
  check_composing(op, in, "c6");
  check_steps(op, in, "c7");
  check_entries(op, in, "c7");
  const DType dtype = in[7].dtype;
  return std::vector<Type>{flat.type(dtype, Four * pixels(op)), flat.type(dtype, pixels(op)),
                           flat.type(DType::I32, pixels(op))};
}

}  // namespace ricci
