#include "ricci/op/conv.h"

#include <algorithm>

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

// The labels under which an op declares what all these ops check.
struct Labels {
  const char* geometry;
  const char* fits;
  const char* needs_static;
};

// One direction of sliding a kernel over an image.
struct Sliding {
  Dim size;
  Dim kernel;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
};

void require_entries(const InferContext& in, const char* label, const char* field,
                     std::size_t given, std::size_t axes) {
  if (given == axes) return;
  in.reject(label, fmt::format("'{}' has {} entries, not {}", field, given, axes),
            axes == 2 ? "give a height and a width" : "give one for every spatial axis");
}

void require_list(const InferContext& in, const char* label, const char* field,
                  const HeightWidth& list, std::size_t axes, std::int64_t least) {
  require_entries(in, label, field, list.size(), axes);
  for (const std::int64_t v : list) {
    if (v < least) {
      in.reject(label, fmt::format("'{}' holds {}, but at least {} is needed", field, v, least));
    }
  }
}

void require_rank_four(const InferContext& in, const OpInfo& info, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    if (in[k].rank() == 4) continue;
    in.reject("c1", fmt::format("{} has rank {}, not 4", operand_text(in, info, k), in[k].rank()),
              "images are [N, C, H, W]");
  }
}

// Operands of a convolution: [N, C, spatial…], of one rank.
void require_grids(const InferContext& in, const OpInfo& info) {
  for (std::size_t k = 0; k < 2; ++k) {
    if (in[k].rank() >= 3 && in[k].rank() == in[0].rank()) continue;
    in.reject("c1",
              fmt::format("{} has rank {}, and {} rank {}", operand_text(in, info, 0), in[0].rank(),
                          operand_text(in, info, 1), in[1].rank()),
              "grids are [N, C, spatial…] with one spatial axis or more: [N, C, H, W]");
  }
}

// ⌊(size + 2p - d(k - 1) - 1) / s⌋ + 1
Dim output_size(const InferContext& in, const Labels& labels, const Sliding& s) {
  const Dim reach = s.size + Dim(s.padding) * 2 - Dim(s.dilation) * (s.kernel - 1) - 1;
  const bool too_small =
      (s.kernel.is_static() && s.kernel.value() < 1) || (reach.is_static() && reach.value() < 0);
  if (too_small) {
    in.reject(labels.fits,
              fmt::format("a kernel of {} with dilation {} does not fit into {} with padding {}",
                          s.kernel.to_string(), s.dilation, s.size.to_string(), s.padding),
              "pad the image, or use a smaller kernel");
  }
  const auto steps = floor_divide(reach, s.stride);
  if (!steps) {
    in.reject(
        labels.needs_static,
        fmt::format("({}) / {} is not a whole number of symbols", reach.to_string(), s.stride),
        "bind the size, or write it as a multiple of the stride");
  }
  return *steps + 1;
}

// Shared by conv and its gradients; `kernel` has one entry a spatial axis.
template <class Op>
Dims convolved_size(const Op& op, const InferContext& in, const Labels& labels, const Dims& size,
                    const Dims& kernel) {
  Dims out;
  for (std::size_t i = 0; i < size.size(); ++i) {
    out.push_back(
        output_size(in, labels, {size[i], kernel[i], op.stride[i], op.padding[i], op.dilation[i]}));
  }
  return out;
}

template <class Op>
void require_conv_geometry(const Op& op, const InferContext& in) {
  const std::size_t axes = in[0].rank() - 2;
  require_list(in, "c3", "stride", op.stride, axes, 1);
  require_list(in, "c3", "padding", op.padding, axes, 0);
  require_list(in, "c3", "dilation", op.dilation, axes, 1);
}

// Geometry that is left at its default is for as many axes as there are.
template <class Op>
void fit_defaults(Op& op, std::size_t rank) {
  if (rank < 3) return;
  const auto fit = [&](HeightWidth& list, std::int64_t value) {
    if (list == HeightWidth{value, value}) list.assign(rank - 2, value);
  };
  fit(op.stride, 1);
  fit(op.padding, 0);
  fit(op.dilation, 1);
}

// A kernel size that says what the weight says is left out.
void drop_agreeing(std::optional<HeightWidth>& kernel, const Type& w) {
  if (!kernel || w.rank() < 3) return;
  const Dims given(kernel->begin(), kernel->end());
  if (std::ranges::equal(given, std::span(w.dims).subspan(2))) kernel.reset();
}

void require_no_kernel_size(const InferContext& in, const std::optional<HeightWidth>& kernel) {
  if (!kernel) return;
  const Dims given(kernel->begin(), kernel->end());
  in.reject("c4",
            fmt::format("kernel_size is {}, but 'w' is {}", to_string(given), in[1].to_string()),
            "leave kernel_size out: it is the weight's");
}

// Does `groups` divide a channel count? A symbol may turn out to be a multiple.
bool may_divide(std::int64_t groups, const Dim& channels) {
  return groups > 0 && (!channels.is_static() || channels.value() % groups == 0);
}

Dims spatial(const Type& t) { return {t.dims.begin() + 2, t.dims.end()}; }

Dims with_spatial(const Dim& images, const Dim& channels, const Dims& sizes) {
  Dims out{images, channels};
  out.insert(out.end(), sizes.begin(), sizes.end());
  return out;
}

// The pooled type of x for all pooling ops.
template <class Op>
Type pooled(const Op& op, const InferContext& in, const Labels& labels) {
  require_list(in, labels.geometry, "kernel_size", op.kernel_size, 2, 1);
  require_list(in, labels.geometry, "stride", op.stride, 2, 1);
  require_list(in, labels.geometry, "padding", op.padding, 2, 0);
  Type out = in[0];
  for (std::size_t i = 0; i < 2; ++i) {
    const Dim& size = in[0].dims[2 + i];
    if (op.padding[i] >= op.kernel_size[i]) {
      in.reject(labels.geometry,
                fmt::format("padding {} is not less than the kernel's {}", op.padding[i],
                            op.kernel_size[i]),
                "a window must touch the image");
    }
    if (size.is(0)) in.reject(labels.fits, fmt::format("{} is empty", in[0].to_string()));
    out.dims[2 + i] =
        output_size(in, labels, {size, op.kernel_size[i], op.stride[i], op.padding[i], 1});
  }
  return out;
}

}  // namespace

void op::Conv::normalize(std::span<const Type> operands) {
  drop_agreeing(kernel_size, operands[1]);
  fit_defaults(*this, operands[0].rank());
}
void op::Conv2dBackwardInput::normalize(std::span<const Type> operands) {
  drop_agreeing(kernel_size, operands[1]);
  fit_defaults(*this, operands[0].rank());
}
void op::Conv2dBackwardWeight::normalize(std::span<const Type> operands) {
  fit_defaults(*this, operands[0].rank());
}

Inferred infer(const op::Conv& op, const InferContext& in) {
  require_grids(in, op.info);
  require_dtypes(in, "c2", 0, 2, dtypes::floats | dtypes::complexes);
  require_conv_geometry(op, in);
  require_no_kernel_size(in, op.kernel_size);
  const Dims& x = in[0].dims;
  const Dims& w = in[1].dims;
  if (!may_divide(op.groups, w[0]) || x[1] != w[1] * op.groups) {
    in.reject("c5",
              fmt::format("{} groups do not fit the channels of 'x' {} and 'w' {}", op.groups,
                          in[0].to_string(), in[1].to_string()),
              "w is [C_out, C_in/groups, kernel…]");
  }
  const Dims size = convolved_size(op, in, {"c3", "c6", "c7"}, spatial(in[0]), spatial(in[1]));
  return in[0].with(with_spatial(x[0], w[0], size));
}

Inferred infer(const op::Conv2dBackwardInput& op, const InferContext& in) {
  require_grids(in, op.info);
  require_dtypes(in, "c2", 0, 2, dtypes::floats | dtypes::complexes);
  require_entries(in, "c3", "input_size", op.input_size.size(), in[0].rank() - 2);
  require_non_negative(in, "c3", op.input_size);
  require_conv_geometry(op, in);
  require_no_kernel_size(in, op.kernel_size);
  const Dims& dy = in[0].dims;
  const Dims& w = in[1].dims;
  if (!may_divide(op.groups, w[0]) || dy[1] != w[0]) {
    in.reject("c5", fmt::format("{} groups do not fit the channels of 'dy' {} and 'w' {}",
                                op.groups, in[0].to_string(), in[1].to_string()));
  }
  const Dims size = convolved_size(op, in, {"c3", "c6", "c7"}, op.input_size, spatial(in[1]));
  if (size != spatial(in[0])) {
    in.reject("c8", fmt::format("conv of {} gives {}, but 'dy' is {}", to_string(op.input_size),
                                to_string(size), in[0].to_string()));
  }
  return in[0].with(with_spatial(dy[0], w[1] * op.groups, op.input_size));
}

Inferred infer(const op::Conv2dBackwardWeight& op, const InferContext& in) {
  require_grids(in, op.info);
  require_dtypes(in, "c2", 0, 2, dtypes::floats | dtypes::complexes);
  require_entries(in, "c3", "kernel_size", op.kernel_size.size(), in[0].rank() - 2);
  require_conv_geometry(op, in);
  const Dims& x = in[0].dims;
  const Dims& dy = in[1].dims;
  if (x[0] != dy[0]) {
    in.reject("c4",
              fmt::format("batch sizes differ: {} in 'x' {} and {} in 'dy' {}", x[0].to_string(),
                          in[0].to_string(), dy[0].to_string(), in[1].to_string()));
  }
  if (!may_divide(op.groups, x[1]) || !may_divide(op.groups, dy[1])) {
    in.reject("c5", fmt::format("{} groups do not divide the channels of 'x' {} and 'dy' {}",
                                op.groups, in[0].to_string(), in[1].to_string()));
  }
  const Dims kernel(op.kernel_size.begin(), op.kernel_size.end());
  const Dims size = convolved_size(op, in, {"c3", "c6", "c7"}, spatial(in[0]), kernel);
  const auto group_channels = Dim::divide(x[1], op.groups);
  if (!group_channels) {
    in.reject("c7",
              fmt::format("{} / {} is not a whole number of symbols", x[1].to_string(), op.groups));
  }
  if (size != spatial(in[1])) {
    in.reject("c8", fmt::format("conv of 'x' {} gives {}, but 'dy' is {}", in[0].to_string(),
                                to_string(size), in[1].to_string()));
  }
  return in[0].with(with_spatial(dy[1], *group_channels, kernel));
}

Inferred infer(const op::Pool& op, const InferContext& in) {
  require_rank_four(in, op.info, 1);
  require_dtypes(in, "c2", 0, 1, dtypes::floats | dtypes::complexes);
  switch (op.kind) {
    case ReduceKind::Sum:
    case ReduceKind::Mean: break;
    case ReduceKind::Max:
    case ReduceKind::Min:
    case ReduceKind::Prod:
      if (!is_complex(in[0].dtype)) break;
      in.reject(
          "c3",
          fmt::format("windows of complex numbers cannot be combined by '{}'", name_of(op.kind)),
          "use sum or mean");
    case ReduceKind::Any:
    case ReduceKind::All:
    case ReduceKind::LogSumExp:
      in.reject("c3", fmt::format("windows cannot be combined by '{}'", name_of(op.kind)),
                "use sum, mean, max, min or prod");
  }
  return pooled(op, in, {"c4", "c5", "c6"});
}

Inferred infer(const op::MaxPool2dBackward& op, const InferContext& in) {
  require_rank_four(in, op.info, 2);
  require_dtypes(in, "c2", 0, 2, dtypes::floats);
  const Type expected = pooled(op, in, {"c3", "c4", "c5"});
  if (in[1] != expected) {
    in.reject("c6", fmt::format("pooling 'x' {} gives {}, but 'dy' is {}", in[0].to_string(),
                                expected.to_string(), in[1].to_string()));
  }
  return in[0];
}

Inferred infer(const op::MaxPool2dSelect& op, const InferContext& in) {
  require_rank_four(in, op.info, 1);
  require_dtypes(in, "c2", 0, 2, dtypes::floats);
  Type out = pooled(op, in, {"c3", "c4", "c5"});
  if (in[1] != in[0]) {
    in.reject("c6", fmt::format("'x' is {}, but 'v' is {}", in[0].to_string(), in[1].to_string()));
  }
  return out;
}

}  // namespace ricci
