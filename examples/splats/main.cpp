// Fits a scene of Gaussian splats to images that it renders itself from another scene, seen by
// several cameras at once, and writes what it sees as it goes:
//
//   example_splats [--steps N] [--out FOLDER]
//
// FOLDER gets target.png and fit_<step>.png, all cameras side by side. What is seen is a knot of
// coloured beads; what is fitted starts as grey fog.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>
#include <random>
#include <string>

#include "ricci/graph.h"
#include "ricci/io/file.h"
#include "ricci/ricci.h"

#include "png.h"

using namespace ricci;  // NOLINT: an example reads better without prefixes

namespace {

constexpr std::int64_t Side = 64;  // of an image, in pixels
constexpr std::int64_t Zoom = 2;   // of the files
constexpr std::int64_t Cameras = 4;
constexpr std::int64_t Splats = 72;
constexpr std::int64_t Coefficients = 4;  // of spherical harmonics: colours that depend on the view

const GaussianSplatRenderParams Params = {.width = Side,
                                          .height = Side,
                                          .tile_size = 8,
                                          .radius_scale = 1,
                                          .max_splat_steps = 0,
                                          .transmittance_threshold = 1e-3,
                                          .opacity_space = OpacitySpace::Logit};

// Where each param of a scene starts, uniformly.
struct Start {
  const char* name;
  std::int64_t size;
  double low;
  double high;
};
std::vector<Start> fog() {
  return {{"positions", 3 * Splats, -0.9, 0.9},
          {"scales", 3 * Splats, -2, -1.8},
          {"rotations", 4 * Splats, -1, 1},
          {"opacities", Splats, -2, -1},
          {"sh_coeffs", 3 * Splats * Coefficients, -0.05, 0.05}};
}
Tensor tensor_of(const std::vector<float>& numbers) {
  return Tensor::of<float>({static_cast<std::int64_t>(numbers.size())}, numbers);
}
Feeds scene_to_fit() {
  std::mt19937 random(2);
  Feeds out;
  for (const Start& s : fog()) {
    std::vector<float> numbers;
    for (std::int64_t i = 0; i < s.size; ++i) {
      const double part = static_cast<double>(random()) / 4294967296.0;
      numbers.push_back(static_cast<float>(s.low + (s.high - s.low) * part));
    }
    out.emplace(s.name, tensor_of(numbers));
  }
  return out;
}

// Beads on a trefoil knot. Each is longest along the third of its axes, and its colour goes round
// the wheel once; seen from above it is lighter.
Feeds scene_to_see() {
  std::vector<float> positions;
  std::vector<float> scales;
  std::vector<float> rotations;
  std::vector<float> sh;
  for (std::int64_t i = 0; i < Splats; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / Splats;
    const double out = 0.6 + 0.3 * std::cos(3 * angle);
    for (const double v :
         {out * std::cos(2 * angle), 0.35 * std::sin(3 * angle), out * std::sin(2 * angle)}) {
      positions.push_back(static_cast<float>(v));
    }
    for (const double v : {-2.7, -2.7, -2.2}) scales.push_back(static_cast<float>(v));
    for (const double v : {std::cos(angle), 0.0, -std::sin(angle), 0.0}) {
      rotations.push_back(static_cast<float>(v));
    }
    for (std::int64_t k = 0; k < Coefficients; ++k) {
      for (const double shift : {0.0, 2.0, 4.0}) {  // red, green, blue
        const double hue = 1.6 * std::cos(angle - shift * std::numbers::pi / 3);
        sh.push_back(static_cast<float>(k == 0 ? hue : k == 1 ? 0.3 : 0));
      }
    }
  }
  return {{"positions", tensor_of(positions)},
          {"scales", tensor_of(scales)},
          {"rotations", tensor_of(rotations)},
          {"opacities", tensor_of(std::vector<float>(Splats, 3))},
          {"sh_coeffs", tensor_of(sh)}};
}

// Cameras on a circle around the scene, as rows of `meta`.
Value cameras(Graph& g) {
  std::vector<double> rows;
  for (std::int64_t c = 0; c < Cameras; ++c) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(c) / Cameras;
    const std::vector<double> row = gaussian_splat_meta_numbers(
        {.position = {2.4 * std::sin(angle), 1.6, -2.4 * std::cos(angle)},
         .field_of_view = 45,
         .background = {0.05, 0.05, 0.08}},
        Params);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return g.constant(Tensor::from_numbers<double>(f32({Cameras, SplatMetaLength}), rows));
}

// The images [Cameras, Side·Side·4] of a scene of params.
Value images_of(Graph& g) {
  std::vector<Value> v;
  for (const Start& s : fog()) v.push_back(g.param(s.name, f32({s.size})));
  const Value colors = filled(g, f32({3 * Splats}), 0);  // colours come from the harmonics
  return gaussian_splat_render({v[0], v[1], v[2], v[3], colors, v[4], cameras(g)}, Params);
}

Type image_type() { return f32({Cameras, Side * Side * 4}); }

Graph make_view() {
  Graph g("view");
  g.set_outputs({images_of(g)});
  return g;
}

Graph make_loss() {
  Graph g("loss");
  const Value target = g.input("target", image_type());
  const Value images = images_of(g);
  g.set_outputs({mean(square(images - target)), images});
  return g;
}

// All cameras side by side.
void write_images(const Tensor& images, const std::string& path) {
  const std::vector<double> rgba = images.numbers<double>();
  std::vector<std::uint8_t> rgb;
  for (std::int64_t row = 0; row < Side * Zoom; ++row) {
    for (std::int64_t column = 0; column < Side * Zoom * Cameras; ++column) {
      const std::int64_t camera = column / (Side * Zoom);
      const std::int64_t y = Side - 1 - row / Zoom;  // up is up
      const std::int64_t pixel = (camera * Side + y) * Side + column % (Side * Zoom) / Zoom;
      for (std::int64_t channel = 0; channel < 3; ++channel) {
        // What is rendered is light; screens expect its root.
        const double light =
            std::clamp(rgba[static_cast<std::size_t>(4 * pixel + channel)], 0., 1.);
        rgb.push_back(static_cast<std::uint8_t>(std::lround(255 * std::pow(light, 1 / 2.2))));
      }
    }
  }
  io::write_file(path, splats::png_bytes(rgb, Side * Zoom * Cameras, Side * Zoom));
}

int fit(int steps, const std::string& folder) {
  CompiledGraph view = compile(make_view());
  const Tensor target = view.run(scene_to_see())[0];
  if (!folder.empty()) write_images(target, folder + "/target.png");

  TrainingStep training = compile_training(make_loss(), {.optimizer = Adam{.learning_rate = 0.03}});
  for (const auto& [name, value] : scene_to_fit()) training.set_param(name, value);
  double first = 0;
  double last = 0;
  for (int step = 0; step <= steps; ++step) {
    const auto [loss, aux, norm] = training.step({{"target", target}});
    last = loss.item();
    if (step == 0) first = last;
    const bool shown = step == steps || (step & (step - 1)) == 0;
    if (!shown) continue;
    std::printf("step %4d  mean squared error %.6f\n", step, last);
    if (!folder.empty()) write_images(aux[0], folder + "/fit_" + std::to_string(step) + ".png");
  }
  std::printf("the error fell from %.6f to %.6f\n", first, last);
  return last < first ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  int steps = 500;
  std::string folder;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--steps") steps = std::atoi(argv[i + 1]);
    if (option == "--out") folder = argv[i + 1];
  }
  try {
    return fit(steps, folder);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
