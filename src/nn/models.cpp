#include "ricci/nn/models.h"

#include <fmt/format.h>

#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/support/error.h"

#include "nn/layer.h"

namespace ricci::nn {

MambaLm::MambaLm(const MambaLmOptions& o)
    : tokens(o.vocabulary, o.width, {.init = normal(0.02), .dtype = o.dtype}),
      norm(o.width, {.dtype = o.dtype}),
      drop(o.dropout) {
  require_setting(o.layers > 0, "MambaLm", "at least one layer");
  for (std::int64_t i = 0; i < o.layers; ++i) {
    layers.push_back({RMSNorm(o.width, {.dtype = o.dtype}),
                      MambaBlock(o.width, {.state = o.state, .dtype = o.dtype})});
  }
}

Array MambaLm::operator()(const Array& ids, Here where) const {
  Array x = tokens(ids, where);
  for (const MambaLmLayer& layer : layers) {
    x = add(x, drop(layer.mixer(layer.norm(x, where), where), where), where);
  }
  return tokens.attend(norm(x, where), where);
}

Cnn::Cnn(const CnnOptions& o) : drop(o.dropout) {
  require_setting(o.stages > 0, "Cnn", "at least one stage");
  require_setting(o.image.height >> o.stages > 0 && o.image.width >> o.stages > 0, "Cnn",
                  fmt::format("{} stages halve an image of {}x{} to nothing", o.stages,
                              o.image.height, o.image.width));
  std::int64_t in = o.image.channels;
  std::int64_t width = o.width;
  for (std::int64_t i = 0; i < o.stages; ++i) {
    stages.push_back({Conv2d(in, width, 3, {.padding = 1, .init = he_normal, .dtype = o.dtype}),
                      BatchNorm(width, {.dtype = o.dtype})});
    in = width;
    width *= 2;
  }
  out = Linear(in, o.image.classes, {.dtype = o.dtype});
}

Array Cnn::operator()(const Array& images, Here where) const {
  Array x = images;
  for (const CnnStage& stage : stages) {
    x = max_pool2d(relu(stage.norm(stage.conv(x, where), where), where), 2, {}, where);
  }
  return out(drop(mean(x, {2, 3}, false, where), where), where);
}

Mlp::Mlp(const MlpOptions& o) : drop(o.dropout) {
  require_setting(o.layers >= 0, "Mlp", "no fewer than 0 hidden layers");
  std::int64_t in = o.inputs;
  for (std::int64_t i = 0; i < o.layers; ++i) {
    hidden.emplace_back(in, o.width, LinearOptions{.init = he_normal, .dtype = o.dtype});
    in = o.width;
  }
  out = Linear(in, o.classes, {.dtype = o.dtype});
}

Array Mlp::operator()(const Array& given, Here where) const {
  Array x = flatten(given, 1, where);
  for (const Linear& map : hidden) x = drop(relu(map(x, where), where), where);
  return out(x, where);
}

Vit::Vit(const VitOptions& o) : norm(o.width, {.dtype = o.dtype}), drop(o.dropout) {
  require_setting(o.layers > 0, "Vit", "at least one layer");
  require_setting(o.patch > 0 && o.image.height % o.patch == 0 && o.image.width % o.patch == 0,
                  "Vit",
                  fmt::format("patches of {}x{} do not divide an image of {}x{}", o.patch, o.patch,
                              o.image.height, o.image.width));
  patches = Conv2d(o.image.channels, o.width, o.patch, {.stride = o.patch, .dtype = o.dtype});
  const std::int64_t count = (o.image.height / o.patch) * (o.image.width / o.patch);
  places = normal(0.02)(next_key(), {count, o.width});
  if (o.dtype != DType::F32) places = cast(places, o.dtype);
  for (std::int64_t i = 0; i < o.layers; ++i) {
    blocks.emplace_back(o.width, o.heads, BlockOptions{.dropout = o.dropout, .dtype = o.dtype});
  }
  out = Linear(o.width, o.image.classes, {.dtype = o.dtype});
}

Array Vit::operator()(const Array& images, Here where) const {
  const Array grid = patches(images, where);  // [batch, width, rows, columns]
  Array x = add(transpose(flatten(grid, 2, where), {0, 2, 1}, where), places, where);
  x = drop(x, where);
  for (const EncoderBlock& block : blocks) x = block(x, where);
  return out(mean(norm(x, where), {1}, false, where), where);
}

}  // namespace ricci::nn
