#include "backend/cuda/structured/attention_text.h"

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"

namespace ricci::cuda {
namespace {

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

std::string attention_names(const loop::Attention& a, const AttentionText& t) {
  const auto& m = a.mask_strides;
  std::string out = fmt::format(
      "typedef {} H;\ntypedef {} T;\n#define BATCH {}LL\n#define HEADS {}LL\n#define KV_HEADS "
      "{}LL\n#define QUERIES {}{}\n#define KEYS {}{}\n#define WIDTH {}\n#define VALUE_WIDTH {}\n"
      "#define MASK_AT (b * {}LL + h * {}LL + i * {}LL + j * {}LL)\n#define TILE {}\n",
      held_type(t.sum), stored_type(t.dtype), a.batch, a.heads, a.kv_heads, a.queries,
      t.size_suffix, a.keys, t.size_suffix, a.width, a.value_width, m[0], m[1], m[2], m[3], t.tile);
  out +=
      place_text("Q", a.q) + place_text("K", a.k) + place_text("V", a.v) + place_text("OUT", a.out);
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
