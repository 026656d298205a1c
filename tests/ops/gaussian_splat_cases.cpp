#include "ops/cases.h"

namespace ricci::testing {
namespace {

const DTypeSet Wide = {DType::F32, DType::F64};

// A camera in front of the origin, a little to the side.
std::vector<double> camera(double distance = 4) {
  return {0.3, 0.2, -distance, 0.1, -0.05, 0.02, 0.05, 1, 0.1, 40, 0.01, 100,
          0.2, 0.3, 0.4,       0,   0,     0,    0,    0, 0,   0,  0};
}

In meta() { return T({SplatMetaLength}).with(camera()); }

// The same camera with a lens for images of 5 by 4 pixels.
In meta_with_lens() {
  std::vector<double> numbers = camera();
  numbers.insert(numbers.end(),
                 {5.2, 5.6, 2.6, 1.9, 0.12, -0.05, 0.02, -0.03, 0.01, 0.04, 0.02, 0});
  return T({SplatLensMetaLength}).with(numbers);
}

// So many splats with so many coefficients, all before the camera.
std::vector<In> scene(std::int64_t count, std::int64_t coefficients = 1) {
  return {T({3 * count}).between(-0.7, 0.7),
          T({3 * count}).between(-1.8, -0.9),
          T({4 * count}).between(0.2, 1),
          T({count}).between(0.3, 0.9),
          T({3 * count}).between(0.2, 0.9),
          T({3 * count * coefficients}).between(-0.4, 0.4),
          meta()};
}
std::vector<In> replaced(std::vector<In> list, std::size_t k, In by) {
  list[k] = std::move(by);
  return list;
}
std::vector<In> with_image(std::vector<In> list, std::int64_t numbers) {
  list.push_back(T({numbers}).between(-1, 1));
  return list;
}
// Operands with rows of their own for two images; the others are shared.
std::vector<In> in_pairs(std::vector<In> list, const std::vector<std::size_t>& which) {
  for (const std::size_t k : which) {
    list[k].dims.insert(list[k].dims.begin(), 2);
    const std::vector<double> once = list[k].values;
    for (const double v : once) list[k].values.push_back(v * 1.01);
  }
  return list;
}

// What every op that sees the scene does with it: names, scenes and attributes.
template <class O>
struct SceneCase {
  std::string name;
  std::vector<In> in;
  O op;
};

template <class O>
std::vector<SceneCase<O>> scene_cases() {
  const O small{.width = 5, .height = 4, .tile_size = 2};
  const auto with = [&](auto&& change) {
    O op = small;
    change(op);
    return op;
  };
  const In behind = T({9}).with({0.1, 0.1, 0, 0.2, 0, -9, 0, 0.3, -4});
  return {
      {"few", scene(3), small},
      {"no_splats", scene(0), small},
      {"one", scene(1), small},
      {"one_pixel", scene(2), {.width = 1, .height = 1}},
      {"band_1", scene(2, 4), small},
      {"band_2", scene(2, 9), small},
      {"band_3", scene(2, 16), small},
      {"lower_band", scene(2, 16), with([](O& op) { op.sh_band = 1; })},
      {"odd_coefficients", scene(2, 7), small},
      {"rgb", scene(3), with([](O& op) { op.color_source = SplatColor::Rgb; })},
      {"logits", replaced(scene(3), 3, T({3}).between(-1, 2)),
       with([](O& op) { op.opacity_space = OpacitySpace::Logit; })},
      {"seen_from_splats", scene(2, 4), with([](O& op) { op.view_from_splat = true; })},
      {"behind_the_camera", replaced(scene(3), 0, behind), small},
      {"opacity_outside", replaced(scene(3), 3, T({3}).with({-0.5, 1.5, 0.001})), small},
      {"flat_splats", replaced(scene(2), 1, T({6}).with({-40, -1, -1, -1, -30, -1.2})), small},
      {"lens", replaced(scene(2), 6, meta_with_lens()), small},
      {"nowhere", replaced(scene(3), 0, T({9}).with({NaN, 0, 0, 0.1, -0.1, 0, Inf, 0, 0})), small},
      {"no_size", replaced(scene(3), 1, T({9}).with({-1, NaN, -1, -1.1, -1, -1, -1, -1, Inf})),
       small},
      {"no_turn", replaced(scene(2), 2, T({8}).with({1, NaN, 0, 0, 1, 0.2, 0.1, 0})), small},
      {"no_opacity", replaced(scene(3), 3, T({3}).with({NaN, 0.5, Inf})), small},
      {"around_all", replaced(scene(2), 1, T({6}).with({30, 30, 30, -1, -1, -1})), small},
      {"large_splats", replaced(scene(2), 1, T({6}).with({2, 2.5, 1.8, 0.5, -1, 3})), small},
      {"camera_inside", replaced(scene(2), 6, T({SplatMetaLength}).with(camera(0.5))),
       with([](O& op) { op.radius_scale = 6; })},
      {"no_rotation", replaced(scene(2), 2, T({8}).with({0, 0, 0, 0, 1, 0, 0, 0})), small},
      {"two_cameras", in_pairs(scene(2), {6}), small},
      {"two_scenes", in_pairs(scene(2), {0, 1, 2, 3, 4, 5}), small},
      {"symbolic",
       {T({Dim(3) * Symbol}), T({Dim(3) * Symbol}), T({Dim(4) * Symbol}), T({Symbol}),
        T({Dim(3) * Symbol}), T({Dim(12) * Symbol}), meta()},
       small},
  };
}

template <class O>
std::vector<CaseOf<O>> scene_refusals() {
  const auto with = [](auto&& change) {
    O op{.width = 5, .height = 4};
    change(op);
    return op;
  };
  const O op;
  const auto good = scene(2);
  std::vector<CaseOf<O>> list;
  const auto add = [&](std::string name, std::vector<In> in, O attrs, std::string rejects) {
    list.push_back({.name = std::move(name),
                    .in = std::move(in),
                    .op = attrs,
                    .dtypes = Wide,
                    .rejects = std::move(rejects)});
  };
  list.push_back({.name = "halves", .in = good, .op = op, .dtypes = {DType::F16}, .rejects = "c1"});
  add("matrix", replaced(good, 0, T({1, 1, 6})), op, "c2");
  add("batches", replaced(replaced(good, 0, T({2, 6})), 1, T({3, 6})), op, "c2");
  add("no_triples", replaced(good, 0, T({7})), op, "c3");
  add("rotations", replaced(good, 2, T({6})), op, "c3");
  add("coefficients", replaced(good, 5, T({7})), op, "c4");
  add("too_many_coefficients", replaced(good, 5, T({102})), op, "c4");
  add("meta", replaced(good, 6, T({22})), op, "c5");
  add("half_a_lens", replaced(good, 6, T({27})), op, "c5");
  add("no_width", good, with([](O& o) { o.width = 0; }), "c6");
  add("too_high", good, with([](O& o) { o.height = 65537; }), "c6");
  add("no_tile", good, with([](O& o) { o.tile_size = 0; }), "c6");
  add("radius", good, with([](O& o) { o.radius_scale = 0; }), "c7");
  add("cutoff", good, with([](O& o) { o.alpha_cutoff = 0; }), "c7");
  add("entries", good, with([](O& o) { o.max_list_entries = -1; }), "c8");
  add("band", good, with([](O& o) { o.sh_band = 4; }), "c8");
  return list;
}

// How pixels are composed.
template <class O>
std::vector<SceneCase<O>> composing_cases() {
  return {
      {"linear", scene(3), {.width = 5, .height = 4, .gamma = 1}},
      {"two_steps", scene(5), {.width = 4, .height = 3, .max_splat_steps = 2}},
      {"any_steps", scene(4), {.width = 4, .height = 3, .max_splat_steps = 0}},
      {"early_stop",
       replaced(replaced(scene(4), 3, T({4}).between(0.9, 0.99)), 1, T({12}).between(-0.6, -0.3)),
       {.width = 4, .height = 3, .transmittance_threshold = 0.4}},
      {"to_the_last", scene(4), {.width = 4, .height = 3, .transmittance_threshold = 0}},
      {"low_cutoff", scene(2), {.width = 3, .height = 7, .alpha_cutoff = 1e-8}},
  };
}

}  // namespace

Cases cases(const op::GaussianSplatRender*) {
  using O = op::GaussianSplatRender;
  std::vector<CaseOf<O>> list = scene_refusals<O>();
  for (const auto& part : {scene_cases<O>(), composing_cases<O>()}) {
    for (const auto& [name, in, op] : part) {
      list.push_back({.name = name, .in = in, .op = op, .dtypes = Wide});
    }
  }
  list.push_back(
      {.name = "gamma", .in = scene(2), .op = {.gamma = 0}, .dtypes = Wide, .rejects = "c7"});
  list.push_back({.name = "steps",
                  .in = scene(2),
                  .op = {.max_splat_steps = -1},
                  .dtypes = Wide,
                  .rejects = "c8"});
  // A splat of opacity 1 in the middle of the only pixel's view hides the background.
  list.push_back({.name = "opaque",
                  .in = {T({3}).with({0, 0, 0}), T({3}).with({0, 0, 0}), T({4}).with({2, 0, 0, 0}),
                         T({1}).with({1}), T({3}).with({0.25, 0.5, 2}), T({3}).with({0, 0, 0}),
                         T({SplatMetaLength}).with({0, 0, -3, 0, 0, 0, 0, 1, 0, 60, 0, 1,
                                                    9, 9, 9,  0, 0, 0, 0, 0, 0, 0,  0})},
                  .op = {.width = 1, .height = 1, .color_source = SplatColor::Rgb, .gamma = 2},
                  .dtypes = Wide,
                  .out = {{0.0625, 0.25, 4, 1}}});
  return cases_of<O>(std::move(list));
}

Cases cases(const op::GaussianSplatBackward*) {
  using O = op::GaussianSplatBackward;
  std::vector<CaseOf<O>> list;
  for (CaseOf<O>& c : scene_refusals<O>()) {
    c.in = with_image(c.in, 4 * c.op.width * c.op.height);
    list.push_back(std::move(c));
  }
  for (const auto& part : {scene_cases<O>(), composing_cases<O>()}) {
    for (const auto& [name, in, op] : part) {
      list.push_back(
          {.name = name, .in = with_image(in, 4 * op.width * op.height), .op = op, .dtypes = Wide});
    }
  }
  list.push_back({.name = "few_wanted",
                  .in = with_image(scene(2, 4), 80),
                  .op = {.width = 5, .height = 4},
                  .dtypes = Wide,
                  .wanted = {false, true, false, true, false, true, false}});
  list.push_back({.name = "gamma",
                  .in = with_image(scene(2), 80),
                  .op = {.width = 5, .height = 4, .gamma = -1},
                  .dtypes = Wide,
                  .rejects = "c7"});
  list.push_back({.name = "some_known",
                  .in = with_image(with_image(scene(2), 80), 80),
                  .op = {.width = 5, .height = 4},
                  .dtypes = Wide,
                  .rejects = "c10"});
  list.push_back({.name = "image",
                  .in = with_image(scene(2), 60),
                  .op = {.width = 5, .height = 4},
                  .dtypes = Wide,
                  .rejects = "c9"});
  return cases_of<O>(std::move(list));
}

Cases cases(const op::GaussianSplatPrepare*) {
  using O = op::GaussianSplatPrepare;
  std::vector<CaseOf<O>> list = scene_refusals<O>();
  for (const auto& [name, in, op] : scene_cases<O>()) {
    list.push_back({.name = name, .in = in, .op = op, .dtypes = Wide});
  }
  list.push_back({.name = "lists_overflow",
                  .in = replaced(scene(2), 1, T({6}).between(1, 2)),
                  .op = {.width = 8, .height = 8, .tile_size = 2, .max_list_entries = 5},
                  .dtypes = Wide,
                  .fails = ErrorCode::OutOfMemory});
  list.push_back({.name = "lists_fit",
                  .in = replaced(scene(2), 1, T({6}).between(1, 2)),
                  .op = {.width = 8, .height = 8, .tile_size = 4, .max_list_entries = 8},
                  .dtypes = Wide});
  return cases_of<O>(std::move(list));
}

namespace {

In in_f64(Dims dims) { return Fixed(DType::F64, std::move(dims)); }

// Three prepared splats, two of them in the list of the first tile, one in that of the second.
std::vector<In> prepared() {
  return {in_f64({12}).between(0.3, 0.9),
          in_f64({9}).between(-0.3, 0.3),
          in_f64({9}).between(0.3, 0.6),
          in_f64({12}).between(0.2, 0.6),
          Fixed(DType::I32, {5}).with({2, 0, 1, 0, 0}),
          Fixed(DType::I32, {4}).with({0, 2, 2, 3}),
          in_f64({12}).with({0.1, 0.2, 0.9, -0.1, 0.1, 1, 0.3, 0.1, 0.8, 0.2, -0.2, 0.9}),
          meta()};
}

}  // namespace

Cases cases(const op::GaussianSplatRasterize*) {
  using O = op::GaussianSplatRasterize;
  const O small{.width = 2, .height = 2, .tile_size = 2};
  const O two{.width = 4, .height = 1, .tile_size = 2};
  std::vector<CaseOf<O>> list;
  const auto add = [&](std::string name, std::vector<In> in, O op, std::string rejects = {}) {
    list.push_back({.name = std::move(name),
                    .in = std::move(in),
                    .op = op,
                    .dtypes = Wide,
                    .rejects = std::move(rejects)});
  };
  const auto with = [&](auto&& change) {
    O op = two;
    change(op);
    return op;
  };
  const auto good = prepared();
  add("two_tiles", good, two);
  add("linear", good, with([](O& o) { o.gamma = 1; }));
  add("one_step", good, with([](O& o) { o.max_splat_steps = 1; }));
  add("empty_tile", replaced(good, 5, Fixed(DType::I32, {4}).with({0, 2, -1, 0})), two);
  add("one_tile", replaced(good, 5, Fixed(DType::I32, {2}).with({0, 3})), small);
  add("two_images", in_pairs(good, {0, 6}), two);
  add("no_splats",
      {in_f64({0}), in_f64({0}), in_f64({0}), in_f64({0}), Fixed(DType::I32, {3}).with({0, 0, 0}),
       Fixed(DType::I32, {4}).with({-1, 0, -1, 0}), good[6], good[7]},
      two);
  list.push_back({.name = "no_such_splat",
                  .in = replaced(good, 4, Fixed(DType::I32, {5}).with({2, 3, 1, 0, 0})),
                  .op = two,
                  .dtypes = Wide,
                  .fails = OutOfRange});
  list.push_back({.name = "past_the_list",
                  .in = replaced(good, 5, Fixed(DType::I32, {4}).with({0, 2, 2, 6})),
                  .op = two,
                  .dtypes = Wide,
                  .fails = OutOfRange});
  list.push_back({.name = "too_long_a_list",
                  .in = replaced(good, 5, Fixed(DType::I32, {4}).with({0, 4, 2, 3})),
                  .op = two,
                  .dtypes = Wide,
                  .fails = OutOfRange});
  list.push_back({.name = "where_lists_end",
                  .in = good,
                  .op = two,
                  .dtypes = Wide,
                  .wanted = {true, true, true}});
  list.push_back({.name = "where_they_end_alone",
                  .in = good,
                  .op = with([](O& o) { o.max_splat_steps = 1; }),
                  .dtypes = Wide,
                  .wanted = {false, true, true}});
  add("no_length", replaced(good, 2, in_f64({9}).with({0, 0.4, 0.5, 0.3, 0, 0, 0.3, 0.4, 0.4})),
      two);
  add("float_ids", replaced(good, 4, T({5})), two, "c1");
  add("narrow_rays", replaced(good, 6, Fixed(DType::F32, {12})), two, "c1");
  add("matrix", replaced(good, 0, in_f64({1, 1, 12})), two, "c2");
  add("quaternions", replaced(good, 3, in_f64({9})), two, "c3");
  add("rays", replaced(good, 6, in_f64({9})), two, "c4");
  add("meta", replaced(good, 7, T({24})), two, "c4");
  add("no_width", good, with([](O& o) { o.width = 0; }), "c5");
  add("gamma", good, with([](O& o) { o.gamma = 0; }), "c6");
  add("cutoff", good, with([](O& o) { o.alpha_cutoff = 1; }), "c6");
  add("steps", good, with([](O& o) { o.max_splat_steps = -1; }), "c7");
  return cases_of<O>(std::move(list));
}

}  // namespace ricci::testing
