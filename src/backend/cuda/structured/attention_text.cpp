#include "backend/cuda/structured/attention_text.h"

#include <optional>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"

namespace ricci::cuda {
namespace {

// How many there are of what strides go through.
struct Heads {
  std::int64_t batch = 1;
  std::int64_t positions = 1;
  std::int64_t heads = 1;
  std::int64_t width = 1;
};

// Where `count` steps of a row-major array lie in a view of it: steps along one axis of the view.
std::optional<std::int64_t> step_in(const BufferView& view, std::int64_t count,
                                    std::int64_t row_major) {
  if (count <= 1) return 0;
  const StaticDims dims = view.type.static_dims();
  std::int64_t below = 1;
  for (std::size_t a = dims.size(); a-- > 0;) {
    if (row_major % below == 0 && row_major / below * count <= dims[a]) {
      return row_major / below * view.layout.strides[a];
    }
    below *= dims[a];
  }
  return std::nullopt;
}

std::optional<loop::HeadStrides> heads_in(const BufferView& view, const Heads& heads,
                                          const loop::HeadStrides& row_major) {
  const auto batch = step_in(view, heads.batch, row_major.batch);
  const auto position = step_in(view, heads.positions, row_major.position);
  const auto head = step_in(view, heads.heads, row_major.head);
  const auto number = step_in(view, heads.width, 1);
  if (!batch || !position || !head || !number || (heads.width > 1 && *number != 1)) {
    return std::nullopt;
  }
  return loop::HeadStrides{*batch, *position, *head};
}

std::string allowed_text(const loop::Attention& a, DType mask) {
  switch (a.mask.kind) {
    case MaskKind::Kind::Causal: return "j <= i + KEYS - QUERIES";
    case MaskKind::Kind::SlidingWindow:
      return fmt::format("j <= i + KEYS - QUERIES && j >= i + KEYS - QUERIES - {}LL",
                         a.mask.window);
    case MaskKind::Kind::Custom:
      return fmt::format("H({}) >= H(0.5)", from_stored(mask, "mask[MASK_AT]"));
    case MaskKind::Kind::None:
    case MaskKind::Kind::Bias: break;
  }
  return "true";
}

std::string place_text(std::string_view name, const loop::HeadStrides& s) {
  return fmt::format(
      "#define {0}_AT(b, s, h) ((b) * {1}LL + (s) * {2}LL + (h) * {3}LL)\n#define {0}_STEP {2}LL\n",
      name, s.batch, s.position, s.head);
}

// Keys that a tile of queries sees, and queries that see a tile of keys: none of the others is
// read.
std::string bounds_text(const loop::Attention& a, std::int64_t tile_rows) {
  const bool sliding = a.mask.kind == MaskKind::Kind::SlidingWindow;
  const bool late = sliding || a.mask.kind == MaskKind::Kind::Causal;
  const std::string rows = fmt::format("{}LL", tile_rows);
  std::string out = fmt::format(
      "#define KEYS_BEGIN ({})\n#define KEYS_END ({})\n",
      sliding ? fmt::format("first + KEYS - QUERIES - {0}LL > 0 ? (first + KEYS - QUERIES - {0}LL) "
                            "/ TILE * TILE : 0LL",
                            a.mask.window)
              : "0LL",
      late ? fmt::format(
                 "first + {0} + KEYS - QUERIES < KEYS ? first + {0} + KEYS - QUERIES : KEYS", rows)
           : "KEYS");
  out += fmt::format(
      "#define QUERIES_BEGIN ({})\n#define QUERIES_END ({})\n",
      late ? "first + QUERIES - KEYS > 0 ? (first + QUERIES - KEYS) / TILE * TILE : 0LL" : "0LL",
      sliding
          ? fmt::format("first + {0} + {1}LL + QUERIES - KEYS < QUERIES ? first + {0} + {1}LL + "
                        "QUERIES - KEYS : QUERIES",
                        rows, a.mask.window)
          : "QUERIES");
  return out;
}

// Do queries [i, i2] see all of the keys [j, j2], or none of them?
std::string ranges_text(const loop::Attention& a) {
  std::string all = "true", none = "false";
  const bool sliding = a.mask.kind == MaskKind::Kind::SlidingWindow;
  if (a.mask.kind == MaskKind::Kind::Custom) all = "false";
  if (sliding || a.mask.kind == MaskKind::Kind::Causal) {
    all = "(j2) <= (i) + KEYS - QUERIES";
    none = "(j) > (i2) + KEYS - QUERIES";
  }
  if (sliding) {
    all += fmt::format(" && (j) >= (i2) + KEYS - QUERIES - {}LL", a.mask.window);
    none += fmt::format(" || (j2) < (i) + KEYS - QUERIES - {}LL", a.mask.window);
  }
  return fmt::format(
      "#define ALL_ALLOWED(i, i2, j, j2) ({})\n#define NONE_ALLOWED(i, i2, j, j2) ({})\n", all,
      none);
}

}  // namespace

namespace {

Heads heads_of_result(const loop::Attention& a, std::size_t result) {
  if (result == 0) return {a.batch, a.queries, a.heads, a.width};
  return {a.batch, a.keys, a.kv_heads, result == 1 ? a.width : a.value_width};
}
const loop::HeadStrides& strides_of_result(const loop::Attention& a, std::size_t result) {
  return result == 0 ? a.q : result == 1 ? a.k : a.v;
}

}  // namespace

bool writes_heads(const loop::Attention& a, std::size_t result, const Type& type,
                  const loop::Layout& layout) {
  if (a.pass != loop::Pass::Backward || result > 2) return false;
  return heads_in({-1, type, layout}, heads_of_result(a, result), strides_of_result(a, result))
      .has_value();
}

AttentionArrays attention_arrays(PlanBuilder& builder, const loop::Attention& a) {
  const CallStep& step = builder.step();
  const Heads queries{a.batch, a.queries, a.heads, a.width};
  const Heads keys{a.batch, a.keys, a.kv_heads, a.width};
  const Heads values{a.batch, a.keys, a.kv_heads, a.value_width};
  const Heads outs{a.batch, a.queries, a.heads, a.value_width};
  AttentionArrays x;
  // Heads of a part of an array are read as they lie there; what no strides say is copied.
  const auto read = [&](std::size_t k, const Heads& heads, const loop::HeadStrides& row_major,
                        Place& place, loop::HeadStrides& at) {
    const auto lies = heads_in(step.operands[k], heads, row_major);
    place = lies ? operand(k) : builder.row_major(k);
    at = lies.value_or(row_major);
  };
  read(0, queries, a.q, x.q, x.q_at);
  read(1, keys, a.k, x.k, x.k_at);
  read(2, values, a.v, x.v, x.v_at);
  // Without a mask any array stands for it: nothing reads it. So for what else is missing.
  const auto row_major = [&](std::int64_t k) {
    return k >= 0 ? builder.row_major(static_cast<std::size_t>(k)) : x.q;
  };
  x.mask = row_major(a.mask_operand);
  x.lse = row_major(a.lse_operand);
  x.mean = row_major(a.mean_operand);
  x.out_at = a.out;
  if (a.pass == loop::Pass::Forward) return x;
  read(3, outs, a.out, x.dy, x.dy_at);
  const auto written = [&](std::size_t r) {
    const loop::HeadStrides& strides = strides_of_result(a, r);
    if (!is_wanted(step, r)) return strides;
    return heads_in(step.results[r], heads_of_result(a, r), strides).value_or(strides);
  };
  x.dq_at = written(0);
  x.dk_at = written(1);
  x.dv_at = written(2);
  return x;
}

std::string attention_names(const loop::Attention& a, const AttentionArrays& arrays,
                            const AttentionText& t) {
  const auto& m = a.mask_strides;
  std::string out = fmt::format(
      "typedef {} H;\ntypedef {} T;\n#define BATCH {}LL\n#define HEADS {}LL\n#define KV_HEADS "
      "{}LL\n#define QUERIES {}{}\n#define KEYS {}{}\n#define WIDTH {}\n#define VALUE_WIDTH {}\n"
      "#define MASK_AT (b * {}LL + h * {}LL + i * {}LL + j * {}LL)\n#define TILE {}\n",
      held_type(t.sum), stored_type(t.dtype), a.batch, a.heads, a.kv_heads, a.queries,
      t.size_suffix, a.keys, t.size_suffix, a.width, a.value_width, m[0], m[1], m[2], m[3], t.tile);
  out += place_text("Q", arrays.q_at) + place_text("K", arrays.k_at) +
         place_text("V", arrays.v_at) + place_text("DY", arrays.dy_at) +
         place_text("OUT", arrays.out_at) + place_text("DQ", arrays.dq_at) +
         place_text("DK", arrays.dk_at) + place_text("DV", arrays.dv_at);
  out += fmt::format("#define SCALE {:.17g}\n", a.scale.value);
  out += fmt::format("#define ALLOWED ({})\n", allowed_text(a, t.mask));
  out += fmt::format("__device__ inline H read(const T* at) {{ return {}; }}\n",
                     from_stored(t.dtype, "(*at)"));
  out += "// Gives Z and the slope of the cap from a plain product.\n";
  out +=
      fmt::format("__device__ inline H bent(H r, H& slope) {{\n  slope = 1;\n  r *= H({:.17g});\n",
                  a.scale.value);
  if (a.cap.value != 0) {
    out += fmt::format("  const H t = tanh(r / H({0:.17g}));\n  r = H({0:.17g}) * t;\n"
                       "  slope = 1 - t * t;\n",
                       a.cap.value);
  }
  out += "  return r;\n}\n";
  const bool bias = a.mask.kind == MaskKind::Kind::Bias;
  out += fmt::format(
      "#define BIAS {}\n",
      bias ? fmt::format("(z += H({}))", from_stored(t.mask, "mask[MASK_AT]")) : "((void)0)");
  return out + bounds_text(a, t.rows) + ranges_text(a);
}

std::string stored_as(std::string_view name, DType dtype) {
  return fmt::format("#define {} ({})\n", name, to_stored(dtype, "y"));
}

}  // namespace ricci::cuda
