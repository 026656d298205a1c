#include "ops/cases.h"

namespace ricci::testing {

Cases cases(const op::Iota*) {
  constexpr DTypeSet once = {DType::F32};
  std::vector<CaseOf<op::Iota>> list = {
      {.name = "rows",
       .op = {.shape = {2, 3}, .axis = 0},
       .dtypes = once,
       .out = {{0, 0, 0, 1, 1, 1}}},
      {.name = "last_axis",
       .op = {.shape = {2, 3}, .axis = -1},
       .dtypes = once,
       .out = {{0, 1, 2, 0, 1, 2}}},
      {.name = "empty", .op = {.shape = {0}, .axis = 0}, .dtypes = once},
      {.name = "symbolic", .op = {.shape = {Dim::symbol("n")}, .axis = 0}, .dtypes = once},
      {.name = "bool",
       .op = {.shape = {2}, .axis = 0, .dtype = DType::Bool},
       .dtypes = once,
       .rejects = "c1"},
      {.name = "negative", .op = {.shape = {-2}, .axis = 0}, .dtypes = once, .rejects = "c2"},
  };
  for (const DType d : AllDTypes) {
    if (d == DType::Bool) continue;
    list.push_back({.name = "dtype_" + std::string(name(d)),
                    .op = {.shape = {5}, .axis = 0, .dtype = d},
                    .dtypes = once,
                    .out = {{0, 1, 2, 3, 4}}});
  }
  return cases_of<op::Iota>(std::move(list));
}

Cases cases(const op::DimSize*) {
  constexpr DTypeSet once = {DType::F32};
  const Dim n = Dim::symbol("n");
  std::vector<CaseOf<op::DimSize>> list = {
      {.name = "number", .op = {.dim = 12}, .dtypes = once, .out = {{12}}},
      {.name = "zero", .op = {.dim = 0}, .dtypes = once, .out = {{0}}},
      {.name = "symbol", .op = {.dim = n, .dtype = DType::F32}, .dtypes = once},
      {.name = "polynomial", .op = {.dim = n * Dim::symbol("m") - 3}, .dtypes = once},
      {.name = "bool", .op = {.dim = 2, .dtype = DType::Bool}, .dtypes = once, .rejects = "c1"},
      {.name = "complex", .op = {.dim = 2, .dtype = DType::C64}, .dtypes = once, .rejects = "c1"},
      {.name = "negative", .op = {.dim = -1}, .dtypes = once, .rejects = "c2"},
  };
  for (const DType d : AllDTypes) {
    if (!is_float(d) && !is_int(d)) continue;
    list.push_back({.name = "dtype_" + std::string(name(d)),
                    .op = {.dim = 5, .dtype = d},
                    .dtypes = once,
                    .out = {{5}}});
  }
  return cases_of<op::DimSize>(std::move(list));
}

namespace {

// What rng_normal and rng_uniform share; `op` has a shape of [3] and a key.
template <class Random>
std::vector<CaseOf<Random>> draw_cases(const Random& op) {
  constexpr DTypeSet once = {DType::F32};
  const auto shaped = [&](std::optional<Dims> shape) {
    Random r = op;
    r.shape = std::move(shape);
    return r;
  };
  Random fresh = op;
  fresh.key = {};
  Random integer = op;
  integer.dtype = DType::I32;
  std::vector<CaseOf<Random>> list = {
      {.name = "fresh_key", .op = fresh, .dtypes = once},
      {.name = "template", .in = {T({2, 3})}, .op = shaped({})},
      {.name = "template_and_key", .in = {T({2}), Index({}, 9)}, .op = shaped({})},
      {.name = "shape_and_key", .in = {Index({}, 9, DType::U32)}, .op = op, .dtypes = once},
      {.name = "symbolic_template", .in = {T({Dim::symbol("n"), 2})}, .op = shaped({})},
      {.name = "symbolic_shape", .op = shaped(Dims{Dim::symbol("n")}), .dtypes = once},
      {.name = "integer", .op = integer, .dtypes = once, .rejects = "c1"},
      {.name = "integer_template",
       .in = {T({2})},
       .op = shaped({}),
       .dtypes = dtypes::ints,
       .rejects = "c1"},
      {.name = "no_shape", .op = shaped({}), .dtypes = once, .rejects = "c2"},
      {.name = "shape_and_template",
       .in = {T({2}), Index({}, 9)},
       .op = op,
       .dtypes = once,
       .rejects = "c2"},
      {.name = "negative", .op = shaped(Dims{Dim(-1)}), .dtypes = once, .rejects = "c3"},
      {.name = "real_key", .in = {T({})}, .op = op, .rejects = "c4"},
      {.name = "many_keys",
       .in = {T({2}), Index({2}, 9)},
       .op = shaped({}),
       .dtypes = once,
       .rejects = "c4"},
  };
  for (const Dims& dims : shape_classes()) {
    list.push_back({.name = shape_name("shape", dims), .op = shaped(dims), .dtypes = once});
  }
  return list;
}

template <class Random>
Random in_dtype(Random op, DType dtype) {
  op.dtype = dtype;
  return op;
}

}  // namespace

// Expected draws come from another program's Philox words of key 7 and seed 0: 4262320617,
// 2582680718, 2380230673, 770385741, 1378268273, 3592066526, 984455765, 4071751758.
Cases cases(const op::RngNormal*) {
  constexpr DTypeSet once = {DType::F32};
  const op::RngNormal op{.mean = 0.5, .scale = 2.0, .shape = Dims{3}, .key = 7};
  auto list = draw_cases(op);
  const std::vector<double> drawn = {0.301336856043515, 1.4330059125224524, 2.0568368790642992};
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    list.push_back({.name = "known_" + std::string(name(d)),
                    .op = in_dtype(op, d),
                    .dtypes = once,
                    .out = {drawn}});
  }
  op::RngNormal two = in_dtype(op, DType::F64);
  two.shape = Dims{2};
  list.push_back({.name = "known_f64",
                  .op = two,
                  .dtypes = once,
                  .out = {{0.2671180364741194, 0.8927533744061615}}});
  return cases_of<op::RngNormal>(std::move(list));
}

Cases cases(const op::RngUniform*) {
  constexpr DTypeSet once = {DType::F32};
  const op::RngUniform op{.low = -1.0, .high = 2.0, .shape = Dims{3}, .key = 7};
  auto list = draw_cases(op);
  const std::vector<double> drawn = {1.9771963953971863, 0.8039815425872803, 0.662571907043457};
  for (const DType d : {DType::F32, DType::F16, DType::BF16}) {
    list.push_back({.name = "known_" + std::string(name(d)),
                    .op = in_dtype(op, d),
                    .dtypes = once,
                    .out = {drawn}});
  }
  list.push_back({.name = "known_f64",
                  .op = {.shape = Dims{2}, .dtype = DType::F64, .key = 7},
                  .dtypes = once,
                  .out = {{0.9923988528552761, 0.5541906396810359}}});
  // key, op_seed and key operand add up.
  list.push_back({.name = "keys_add",
                  .in = {Fixed(DType::I64, {}).with({-1})},
                  .op = {.low = -1.0, .high = 2.0, .shape = Dims{3}, .key = 3, .op_seed = 5},
                  .dtypes = once,
                  .out = {drawn}});
  return cases_of<op::RngUniform>(std::move(list));
}

Cases cases(const op::RngBits*) {
  constexpr DTypeSet once = {DType::F32};
  std::vector<CaseOf<op::RngBits>> list = {
      {.name = "known",
       .op = {.shape = {2, 3}, .key = 7},
       .dtypes = once,
       .out = {{4262320617, 2582680718, 2380230673, 770385741, 1378268273, 3592066526}}},
      {.name = "key_operand",
       .in = {Fixed(DType::I8, {}).with({3})},
       .op = {.shape = {2}, .key = 4},
       .dtypes = once,
       .out = {{4262320617, 2582680718}}},
      {.name = "fresh_key", .op = {.shape = {5}}, .dtypes = once},
      {.name = "symbolic", .op = {.shape = {Dim::symbol("n")}}, .dtypes = once},
      {.name = "negative", .op = {.shape = {-3}}, .dtypes = once, .rejects = "c1"},
      {.name = "real_key", .in = {T({})}, .op = {.shape = {2}}, .rejects = "c2"},
  };
  for (const Dims& dims : shape_classes()) {
    list.push_back({.name = shape_name("shape", dims), .op = {.shape = dims}, .dtypes = once});
  }
  return cases_of<op::RngBits>(std::move(list));
}

}  // namespace ricci::testing
