#include "backend/cuda/structured/convolution_geometry.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace ricci::cuda {
namespace {

GatherAxis image_axis(const loop::Convolution& g, std::size_t a) {
  return {.source = g.size_in[a],
          .target = g.size_out[a],
          .grid = g.size_out[a],
          .kernel = g.kernel[a],
          .taps = g.kernel[a],
          .step = g.stride[a],
          .tap_step = g.dilation[a],
          .padding = g.padding[a]};
}

GatherAxis gradient_axis(const loop::Convolution& g, std::size_t a) {
  const std::int64_t stride = g.stride[a];
  const std::int64_t unit = stride / std::gcd(stride, g.dilation[a]);
  return {.source = g.size_out[a],
          .target = g.size_in[a],
          .classes = stride,
          .grid = (g.size_in[a] + stride - 1) / stride,
          .kernel = g.kernel[a],
          .taps = (g.kernel[a] + unit - 1) / unit,
          .unit = unit,
          .tap_step = -(unit * g.dilation[a] / stride),
          .padding = g.padding[a],
          .stride = stride,
          .dilation = g.dilation[a]};
}

constexpr std::string_view FirstTaps = R"(
// The taps of a class: the first, how many, and where the first meets the source from place 0.
struct Taps {
  I first, count, place;
};
__device__ inline Taps taps_of(I which, I kernel, I unit, I padding, I stride, I dilation) {
  for (I u = 0; u < unit && u < kernel; ++u) {
    const I at = which + padding - u * dilation;
    if (at % stride == 0) return {u, (kernel - u + unit - 1) / unit, at / stride};
  }
  return {0, 0, 0};
}
)";

std::string axis_text(const char* name, const GatherAxis& a) {
  return fmt::format(
      "const I SOURCE_{0} = {1}, TARGET_{0} = {2}, CLASSES_{0} = {3}, GRID_{0} = {4}, "
      "KERNEL_{0} = {5};\n"
      "const I TAPS_{0} = {6}, UNIT_{0} = {7}, STEP_{0} = {8}, TAP_STEP_{0} = {9};\n",
      name, a.source, a.target, a.classes, a.grid, a.kernel, a.taps, a.unit, a.step, a.tap_step);
}

std::string taps_text(const Gathering& g, const char* name, const GatherAxis& a) {
  if (!g.gradient)
    return fmt::format("const Taps {} = {{0, {}, -{}}};\n", name, a.kernel, a.padding);
  return fmt::format("const Taps {0} = taps_of({1}, {2}, {3}, {4}, {5}, {6});\n", name,
                     name[0] == 'd' ? "z / CLASSES_X % CLASSES_Y" : "z % CLASSES_X", a.kernel,
                     a.unit, a.padding, a.stride, a.dilation);
}

}  // namespace

Gathering gathering_of(const loop::Convolution& g) {
  const bool gradient = g.of == loop::Convolution::Of::ImageGradient;
  const std::int64_t in = g.channels_in / g.groups;
  const std::int64_t out = g.channels_out / g.groups;
  const auto axis = [&](std::size_t a) {
    return gradient ? gradient_axis(g, a) : image_axis(g, a);
  };
  return {.dtype = g.dtype,
          .gradient = gradient,
          .images = g.images,
          .groups = g.groups,
          .channels = gradient ? out : in,
          .results = gradient ? in : out,
          .y = axis(0),
          .x = axis(1)};
}

std::string gather_constants(const Gathering& g) {
  return fmt::format(
             "const I IMAGES = {}, GROUPS = {}, CHANNELS = {}, RESULTS = {}, CLASSES = {};\n",
             g.images, g.groups, g.channels, g.results, g.classes()) +
         axis_text("Y", g.y) + axis_text("X", g.x) + "const I TAPS = TAPS_Y * TAPS_X;\n" +
         std::string(FirstTaps.substr(1));
}

std::string gather_taps(const Gathering& g) {
  return taps_text(g, "down", g.y) + "  " + taps_text(g, "across", g.x);
}

std::int64_t area(const loop::HeightAndWidth& size) { return size[0] * size[1]; }

bool is_narrow(const loop::Convolution& g) {
  constexpr std::int64_t Narrow = std::int64_t{1} << 29;
  std::int64_t reach = std::max({g.images * g.x_image(), g.images * g.y_image(), g.weights()});
  for (std::size_t a = 0; a < 2; ++a) {
    reach = std::max({reach, g.size_in[a] + g.kernel[a] * g.dilation[a] + g.padding[a],
                      g.size_out[a] * g.stride[a] + g.kernel[a] * g.dilation[a]});
  }
  // What is outside is never read, but its place is reckoned.
  const std::int64_t outside =
      (g.padding[0] + g.kernel[0] * g.dilation[0]) * std::max(g.size_in[1], g.size_out[1]);
  return reach < Narrow && outside < Narrow;
}

std::string gather_place(const char* image, const char* y, const char* x) {
  return fmt::format("(((i64({}) * GROUPS + z / CLASSES) * RESULTS + m) * TARGET_Y + {} * "
                     "CLASSES_Y + z / CLASSES_X "
                     "% CLASSES_Y) * TARGET_X + {} * CLASSES_X + z % CLASSES_X",
                     image, y, x);
}

std::string gather_is_real(const char* y, const char* x) {
  return fmt::format(
      "{} * CLASSES_Y + z / CLASSES_X % CLASSES_Y < TARGET_Y && {} * CLASSES_X + z % CLASSES_X < "
      "TARGET_X",
      y, x);
}

std::string gather_filter(const Gathering& g) {
  return g.gradient ? "(z / CLASSES * CHANNELS + channel) * i64(RESULTS) + m"
                    : "(z / CLASSES * RESULTS + m) * i64(CHANNELS) + channel";
}

std::string weight_constants(const loop::Convolution& g) {
  return fmt::format(
      "const I CHANNELS_IN = {}, CHANNELS_OUT = {}, CHANNELS = {}, DEPTH = {}, TAPS = {};\n"
      "const I IN_Y = {}, IN_X = {}, OUT_Y = {}, OUT_X = {}, KERNEL_Y = {}, KERNEL_X = {};\n"
      "const I STRIDE_Y = {}, STRIDE_X = {}, PADDING_Y = {}, PADDING_X = {}, DILATION_Y = {}, "
      "DILATION_X = {};\n",
      g.channels_in, g.channels_out, g.channels_in / g.groups, g.images * area(g.size_out),
      area(g.kernel), g.size_in[0], g.size_in[1], g.size_out[0], g.size_out[1], g.kernel[0],
      g.kernel[1], g.stride[0], g.stride[1], g.padding[0], g.padding[1], g.dilation[0],
      g.dilation[1]);
}

}  // namespace ricci::cuda
