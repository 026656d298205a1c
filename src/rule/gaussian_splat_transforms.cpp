// Derivatives and batching of Gaussian splats. The gradient of an image is an op of its own; what
// else is differentiated is so through primitives.
#include <algorithm>
#include <optional>

#include "ricci/build/elementwise.h"
#include "ricci/ir/rebuild.h"

#include "rule/derivative_parts.h"
#include "rule/gaussian_splat_expand.h"
#include "rule/gaussian_splat_parts.h"
#include "rule/tables/batch_rules.h"
#include "rule/tables/jvp_rules.h"
#include "rule/tables/vjp_rules.h"

namespace ricci::rule {

namespace {

// The most entries that lists are kept with when nobody says how many there are.
constexpr std::int64_t MostEntries = std::int64_t{1} << 24;

// Whether lists of all tiles of all images are short enough to be kept.
bool keeps_lists(const op::GaussianSplatRender& op, std::span<const Value> operands) {
  if (op.max_list_entries > 0) return true;
  const auto along = [&](std::int64_t side) { return (side + op.tile_size - 1) / op.tile_size; };
  std::int64_t most = MostEntries / (along(op.width) * along(op.height));
  for (const Value& v : operands) {
    if (v.rank() != 2) continue;
    const auto images = v.dims()[0].try_value();
    if (!images) return false;
    most /= std::max<std::int64_t>(*images, 1);
    break;
  }
  const auto splats = operands[3].dims().back().try_value();
  return splats && *splats <= most;
}

std::vector<Value> add_all(Graph& graph, Op op, std::span<const Value> operands,
                           std::size_t results) {
  return add_wanted(graph, std::move(op), operands, std::vector<bool>(results, true));
}

}  // namespace

// Keeps the projection, the tiles' lists, and where every pixel's way back begins.
// [splat-backward-reuse]
ForwardResults forward_keeping(const op::GaussianSplatRender& op, const ForwardContext& c) {
  if (!keeps_lists(op, c.operands)) {
    return {add_all(c.graph, Op(op), c.operands, 1), {}};
  }
  const std::vector<Value> prepared = add_all(c.graph, Op(prepare_of(op)), c.operands, 7);
  std::vector<Value> operands = prepared;
  operands.push_back(c.operands[6]);
  std::vector<Value> residuals = add_all(c.graph, Op(rasterize_of(op)), operands, 3);
  const Value image = residuals[0];
  residuals.insert(residuals.end(), prepared.begin(), prepared.end());
  return {{image}, residuals};
}

// An operand that all images share gets the sum of what they ask of it.
Cotangents vjp(const op::GaussianSplatRender& op, const VjpContext& c) {
  std::vector<Value> operands(c.operands().begin(), c.operands().end());
  operands.push_back(c.cotangent());
  operands.insert(operands.end(), c.residuals().begin(), c.residuals().end());
  Cotangents out = add_wanted(c.graph(), Op(backward_of(op)), operands, c.needs());
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (out[k].valid()) out[k] = unbroadcast(out[k], c[k].type());
  }
  return out;
}

namespace {

// Every operand with the batch in front, if any has one.
std::vector<Value> with_own_rows(std::span<const Value> operands) {
  std::vector<Value> out(operands.begin(), operands.end());
  const auto batched = std::ranges::find(out, std::size_t{2}, &Value::rank);
  if (batched == out.end()) return out;
  const Dim size = batched->dims()[0];
  for (Value& v : out) {
    if (v.rank() == 1) v = broadcast_to(reshape_to(v, {1, v.dims()[0]}), {size, v.dims()[0]});
  }
  return out;
}

// The gradient of the image, in primitives.
Rewriting gradient_in_primitives(const op::GaussianSplatBackward& op, const BodyTransforms& bodies,
                                 const Node& node) {
  return [&bodies, op, wanted = node.wanted](Graph& graph, std::span<const Value> in) {
    // Results have a row for every image, so operands get one too. What is known says nothing new.
    const std::vector<Value> values = with_own_rows(in.first(FirstKnown));
    std::vector<Type> inputs;
    for (std::size_t k = 0; k < 7; ++k) inputs.push_back(values[k].type());
    const BodyGraph image = make_body(
        "image", inputs,
        [&](Graph&, std::span<const Value> scene) {
          return std::vector{rendered(render_of(op), scene)};
        },
        graph);
    const auto gradient =
        bodies.vjp(*image, {.seeds = {true}, .live = {true}, .wanted = wanted, .needed = wanted});
    const std::vector<Value> given = inline_subgraph(*gradient, values, graph);
    std::vector<Value> out(wanted.size());
    std::size_t next = 0;
    for (std::size_t r = 0; r < out.size(); ++r) {
      if (wanted[r]) out[r] = given[next++];
    }
    return out;
  };
}

}  // namespace

Cotangents vjp(const op::GaussianSplatBackward& op, const VjpContext& c) {
  return c.through(gradient_in_primitives(op, c.bodies(), c.node()));
}
Tangents jvp(const op::GaussianSplatBackward& op, JvpContext& c) {
  return c.through(gradient_in_primitives(op, c.bodies(), c.node()));
}

namespace {

constexpr std::size_t Ids = 4;
constexpr std::size_t Ranges = 5;

// What was prepared, as far as `given` asks for it, in primitives; the lists as the op makes them
// of values that do not move.
std::vector<Value> prepared_in_parts(const op::GaussianSplatPrepare& op, Graph& graph,
                                     std::span<const Value> in, const std::vector<bool>& given) {
  const auto [color_alpha, pos_local, inv_scale, quaternion, rays] = prepared(op, in);
  std::vector<Value> out = {color_alpha, pos_local, inv_scale, quaternion, {}, {}, rays};
  for (std::size_t r = 0; r < out.size(); ++r) {
    if (!given[r]) out[r] = Value();
  }
  if (!given[Ids] && !given[Ranges]) return out;
  std::vector<Value> still;
  for (const Value& v : in) still.push_back(stop_gradient(v));
  std::vector<bool> lists(out.size(), false);
  lists[Ids] = given[Ids];
  lists[Ranges] = given[Ranges];
  const std::vector<Value> made = add_wanted(graph, Op(op), still, lists);
  out[Ids] = made[Ids];
  out[Ranges] = made[Ranges];
  return out;
}

}  // namespace

Cotangents vjp(const op::GaussianSplatPrepare& op, const VjpContext& c) {
  std::vector<bool> given;
  for (std::size_t r = 0; r < c.node().types.size(); ++r) {
    given.push_back(c.cotangent(r).valid() && r != Ids && r != Ranges);
  }
  return c.through([&](Graph& graph, std::span<const Value> in) {
    return prepared_in_parts(op, graph, in, given);
  });
}
Tangents jvp(const op::GaussianSplatPrepare& op, JvpContext& c) {
  return c.through([&](Graph& graph, std::span<const Value> in) {
    return prepared_in_parts(op, graph, in, c.node().wanted);
  });
}

namespace {

constexpr std::size_t LastHit = 2;

// The image and what else `given` asks for, in primitives; where lists end as the op says it.
std::vector<Value> rasterized_in_parts(const op::GaussianSplatRasterize& op, Graph& graph,
                                       std::span<const Value> in, const std::vector<bool>& given) {
  const auto [rgba, before_last] = rasterized(op, in);
  std::vector<Value> out = {given[0] ? rgba : Value(), given[1] ? before_last : Value(), Value()};
  if (!given[LastHit]) return out;
  std::vector<Value> still;
  for (const Value& v : in) still.push_back(stop_gradient(v));
  out[LastHit] = add_wanted(graph, Op(op), still, {false, false, true})[LastHit];
  return out;
}

}  // namespace

Cotangents vjp(const op::GaussianSplatRasterize& op, const VjpContext& c) {
  const std::vector<bool> given = {c.cotangent(0).valid(), c.cotangent(1).valid(), false};
  return c.through([&](Graph& graph, std::span<const Value> in) {
    return rasterized_in_parts(op, graph, in, given);
  });
}
Tangents jvp(const op::GaussianSplatRasterize& op, JvpContext& c) {
  return c.through([&](Graph& graph, std::span<const Value> in) {
    return rasterized_in_parts(op, graph, in, c.node().wanted);
  });
}

namespace {

// Images in a batch become more of them. Operands that all examples share stay as they are, unless
// they have rows already.
BatchedValues batch_images(Op op, const VmapContext& c) {
  std::optional<Dim> images;
  for (std::size_t k = 0; k < c.size(); ++k) {
    if (c.type(k).rank() == 2) images = c.type(k).dims[0];
  }
  std::vector<Value> operands;
  for (std::size_t k = 0; k < c.size(); ++k) {
    const Dim length = c.type(k).dims.back();
    if (!images || (!c.batched(k) && c.type(k).rank() == 1)) {
      operands.push_back(c[k]);
      continue;
    }
    Value v = c.lifted(k);
    if (c.type(k).rank() == 1) v = reshape_to(v, {c.batch(), 1, length});
    v = broadcast_to(v, {c.batch(), *images, length});
    operands.push_back(reshape_to(v, {c.batch() * *images, length}));
  }
  BatchedValues out = c.emit(std::move(op), operands);
  if (!images) return out;
  for (BatchedValue& v : out) {
    if (v.value.valid()) {
      v.value = reshape_to(v.value, {c.batch(), *images, v.value.dims()[1]});
    }
  }
  return out;
}

}  // namespace

BatchedValues batch(const op::GaussianSplatRender& op, const VmapContext& c) {
  return batch_images(Op(op), c);
}
BatchedValues batch(const op::GaussianSplatBackward& op, const VmapContext& c) {
  return batch_images(Op(op), c);
}
BatchedValues batch(const op::GaussianSplatPrepare& op, const VmapContext& c) {
  return batch_images(Op(op), c);
}
BatchedValues batch(const op::GaussianSplatRasterize& op, const VmapContext& c) {
  return batch_images(Op(op), c);
}

}  // namespace ricci::rule
