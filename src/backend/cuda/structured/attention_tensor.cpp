#include "backend/cuda/structured/attention_tensor.h"

#include <algorithm>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"

namespace ricci::cuda {
namespace {

// May eight numbers of a head be read at once?
bool reads_whole(const CallStep& step, std::size_t operand, const Place& place,
                 const loop::HeadStrides& s, std::int64_t width) {
  const auto whole = [](std::int64_t n) { return n % 8 == 0; };
  const bool lies_well =
      place.in != Place::In::Operand || whole(step.operands[operand].layout.offset);
  return lies_well && whole(width) && whole(s.batch) && whole(s.position) && whole(s.head);
}

bool has_pairs(const loop::HeadStrides& s, std::int64_t width) {
  return (width | s.batch | s.position | s.head) % 2 == 0;
}

DType mask_type(const PlanBuilder& builder, const loop::Attention& a) {
  return builder.dtype(a.mask_operand >= 0 ? static_cast<std::size_t>(a.mask_operand) : 0);
}

}  // namespace

std::int64_t tensor_depth(std::int64_t width) { return (width + 15) / 16 * 16; }

std::int64_t tensor_bytes(const loop::Attention& a, std::int64_t keys, std::int64_t values) {
  constexpr std::int64_t Apart = 8;  // so that rows begin in different banks
  return 2 *
         (keys * (tensor_depth(a.width) + Apart) + values * (tensor_depth(a.value_width) + Apart));
}

std::int64_t tensor_groups(std::int64_t heads, std::int64_t rows) {
  constexpr AttentionBlock Wide{.groups = 2};
  constexpr std::int64_t Fewest = 132;  // blocks that keep a large GPU busy
  return tensor_blocks(heads, rows, Wide) >= Fewest && rows > Wide.rows() / 2 ? 2 : 1;
}

std::int64_t tensor_blocks(std::int64_t heads, std::int64_t rows, const AttentionBlock& block) {
  return heads * ((rows + block.rows() - 1) / block.rows());
}

std::vector<Parameter> tensor_inputs(const PlanBuilder& builder, const loop::Attention& a,
                                     const AttentionArrays& arrays) {
  const DType dtype = builder.dtype(0);
  return {{arrays.q, dtype, "q"},
          {arrays.k, dtype, "k"},
          {arrays.v, dtype, "v"},
          {arrays.mask, mask_type(builder, a), "mask"}};
}

std::string tensor_names(const PlanBuilder& builder, const loop::Attention& a,
                         const AttentionArrays& arrays, const AttentionBlock& block) {
  const CallStep& step = builder.step();
  const DType dtype = builder.dtype(0);
  const bool half = dtype == DType::F16;
  const bool ordered =
      a.mask.kind == MaskKind::Kind::Causal || a.mask.kind == MaskKind::Kind::SlidingWindow;
  const bool plain = a.cap.value == 0 && a.mask.kind != MaskKind::Kind::Bias && a.scale.value > 0;
  std::string out = attention_names(a, {.dtype = dtype,
                                        .sum = DType::F32,
                                        .mask = mask_type(builder, a),
                                        .rows = block.rows(),
                                        .tile = block.tile,
                                        .size_suffix = ""});
  out += fmt::format(
      "#define LOG2E 1.4426950408889634\n#define GROUPS {}\n#define THREADS {}\n#define ROWS {}\n"
      "#define DEPTH {}\n#define VALUE_DEPTH {}\n#define SMALL \"{}\"\n#define SMALLER {}\n"
      "#define ORDERED {}\n#define PLAIN {:d}\n",
      block.groups, AttentionBlock::threads, block.rows(), tensor_depth(a.width),
      tensor_depth(a.value_width), half ? "f16" : "bf16", half ? "to_f16" : "to_bf16", ordered,
      plain);
  if (a.cap.value != 0) out += fmt::format("#define CAP {:.17g}\n", a.cap.value);
  // A weight is 2^(STEEP score - …).
  out += plain ? "#define STEEP float(LOG2E * SCALE)\n" : "#define STEEP 1.0f\n";
  out += fmt::format(
      "#define Q_WHOLE {}\n#define K_WHOLE {}\n#define V_WHOLE {}\n#define Q_PAIRS {}\n"
      "#define K_PAIRS {}\n#define V_PAIRS {}\n#define OUT_PAIRS {}\n",
      reads_whole(step, 0, arrays.q, a.q, a.width), reads_whole(step, 1, arrays.k, a.k, a.width),
      reads_whole(step, 2, arrays.v, a.v, a.value_width), has_pairs(a.q, a.width),
      has_pairs(a.k, a.width), has_pairs(a.v, a.value_width), has_pairs(a.out, a.value_width));
  if (a.pass == loop::Pass::Backward) {
    out +=
        fmt::format("#define DY_WHOLE {}\n", reads_whole(step, 3, arrays.dy, a.out, a.value_width));
  }
  return out + std::string(attention_fragments());
}

// In f16 the gradient of a score may be too large or too small to be rounded before it is
// multiplied.
bool has_tensor_attention(const loop::Attention& a, DType dtype) {
  const bool forward = a.pass == loop::Pass::Forward;
  constexpr std::int64_t Fewest = 16;     // fewer queries fill no tile
  constexpr std::int64_t Most = 1 << 30;  // of which numbers of rows are of 32 bits
  return (dtype == DType::BF16 || (dtype == DType::F16 && forward)) && a.queries >= Fewest &&
         std::max(a.queries, a.keys) <= Most;
}

}  // namespace ricci::cuda
