#include "backend/cuda/structured/attention_tiles.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "backend/cuda/codegen/expression.h"
#include "backend/cuda/structured/warpgroups.h"

namespace ricci::cuda {
namespace {

// May 16 bytes of a head be read at once, and are they read as they are?
bool reads_whole(const PlanBuilder& builder, const AttentionBlock& block, std::size_t operand,
                 const Place& place, const loop::HeadStrides& s, std::int64_t width) {
  const CallStep& step = builder.step();
  if (!block.tensors && builder.dtype(operand) != DType::F32) return false;
  const std::int64_t many = 16 / size_of(builder.dtype(operand));
  const auto whole = [&](std::int64_t n) { return n % many == 0; };
  const bool lies_well =
      place.in != Place::In::Operand || whole(step.operands[operand].layout.offset);
  return lies_well && whole(width) && whole(s.batch) && whole(s.position) && whole(s.head);
}

// Are neighbours written at once that begin at even places?
bool has_pairs(const PlanBuilder& builder, std::size_t result, const loop::HeadStrides& s,
               std::int64_t width) {
  const CallStep& step = builder.step();
  const std::int64_t offset = is_wanted(step, result) ? step.results[result].layout.offset : 0;
  return (width | s.batch | s.position | s.head | offset) % 2 == 0;
}

DType mask_type(const PlanBuilder& builder, const loop::Attention& a) {
  return builder.dtype(a.mask_operand >= 0 ? static_cast<std::size_t>(a.mask_operand) : 0);
}

// Rows in shared memory begin in different banks.
constexpr std::int64_t ApartBytes = 16;
std::int64_t item_bytes(const AttentionBlock& block) { return block.tensors ? 2 : 4; }

// Numbers that a lane holds.
std::int64_t numbers(const AttentionBlock& block, const AttentionNeeds& needs) {
  return block.groups * (needs.scores * block.tile + needs.sums) / 2;
}

std::int64_t shared_bytes(const AttentionBlock& block, const AttentionNeeds& needs) {
  // Of each row: a head or two of them, what keeps rows apart, and two numbers in f32.
  constexpr std::int64_t Beside = 2 * ApartBytes + 2 * sizeof(float);
  const std::int64_t item = item_bytes(block);
  const std::int64_t weights = block.tensors ? 0 : block.rows() * (block.tile * item + ApartBytes);
  return block.rows() * (needs.own * item + Beside) +
         block.copies * block.tile * (needs.other * item + Beside) + weights;
}

bool has_room(const AttentionBlock& block, const AttentionNeeds& needs, std::int64_t shared) {
  constexpr std::int64_t Most = 192;  // beside all else
  return numbers(block, needs) <= Most && shared_bytes(block, needs) <= shared;
}

// With so much shared memory; nothing where there is no room.
std::optional<AttentionBlock> largest_block(AttentionBlock block, std::int64_t heads,
                                            std::int64_t rows, const AttentionNeeds& needs,
                                            std::int64_t shared) {
  constexpr std::int64_t Fewest = 132;  // blocks that keep a large GPU busy
  // The lanes have more to do with a tile than it takes to come.
  for (const std::int64_t copies : {needs.overlaps && block.tensors ? 2 : 1, 1}) {
    for (const std::int64_t groups : {2, 1}) {
      for (const std::int64_t tile : {block.tensors ? 64 : 32, 32, 16}) {
        block.copies = copies;
        block.groups = groups;
        block.tile = tile;
        const bool few = rows <= block.rows() / 2 || tile_blocks(heads, rows, block) < Fewest;
        if (tile > needs.tile || (groups > 1 && few)) continue;
        if (has_room(block, needs, shared)) return block;
      }
    }
  }
  return std::nullopt;
}

// The arrays' names for how they are cut, beside what all kernels for attention begin with.
std::string block_text(const loop::Attention& a, const AttentionBlock& block, DType dtype) {
  const bool ordered =
      a.mask.kind == MaskKind::Kind::Causal || a.mask.kind == MaskKind::Kind::SlidingWindow;
  const bool plain = a.cap.value == 0 && a.mask.kind != MaskKind::Kind::Bias && a.scale.value > 0;
  std::string out = fmt::format(
      "#define LOG2E 1.4426950408889634\n#define GROUPS {}\n#define THREADS {}\n#define ROWS {}\n"
      "#define SPLITS {}\n#define TOGETHER {:d}\n#define COPIES {}\n#define DEPTH {}\n#define "
      "VALUE_DEPTH {}\n#define ORDERED {}\n"
      "#define PLAIN {:d}\n",
      block.groups, AttentionBlock::threads, block.rows(), block.splits, block.together,
      block.copies, tile_depth(a.width), tile_depth(a.value_width), ordered, plain);
  if (a.cap.value != 0) out += fmt::format("#define CAP {:.17g}\n", a.cap.value);
  // Gradients want what a cap makes of scores: they define it anew.
  out += "#define KEEP_SLOPE(slope)\n";
  out += "// A weight is 2^(STEEP score - …).\n";
  out += plain ? "#define STEEP float(LOG2E * SCALE)\n" : "#define STEEP 1.0f\n";
  // Where all warps of a block multiply together they have 16 of every 64 rows.
  const bool together =
      block.tensors && (tile_depth(a.width) | tile_depth(a.value_width)) % 64 == 0;
  out += fmt::format(
      "#if {} && {}\n#define WARPGROUPS 1\n#define PAD 0\n#define GROUP_ROWS 64\n"
      "#define OWN_ROW(warp) (warp * 16)\n#define OWN_ROWS(warp) 0\n#define SEEN_LOW(low) first\n"
      "#define SEEN_HIGH(low) (first + ROWS - 1)\n#else\n#define WARPGROUPS 0\n#define PAD {}\n"
      "#define GROUP_ROWS 16\n#define OWN_ROW(warp) (warp * 16 * GROUPS)\n"
      "#define OWN_ROWS(warp) OWN_ROW(warp)\n#define SEEN_LOW(low) low\n"
      "#define SEEN_HIGH(low) (low + 16 * GROUPS - 1)\n#endif\n",
      together ? 1 : 0, HasWarpgroups, ApartBytes / item_bytes(block));
  if (block.tensors) {
    const bool half = dtype == DType::F16;
    out += fmt::format(
        "typedef T S;\n#define SMALL \"{}\"\n#define SMALLER {}\n#define AS_SHARED(x) (x)\n"
        "#define AS_FLOAT(x) to_float(x)\n#define NOTHING T{{0}}\n",
        half ? "f16" : "bf16", half ? "to_f16" : "to_bf16");
  } else {
    out += fmt::format("typedef float S;\n#define AS_SHARED(x) {}\n#define AS_FLOAT(x) (x)\n"
                       "#define NOTHING 0.0f\n",
                       from_stored(dtype, "(x)"));
  }
  return out + fmt::format("__device__ inline T as_stored(float y) {{ return {}; }}\n",
                           to_stored(dtype, "y"));
}

}  // namespace

std::int64_t tile_depth(std::int64_t width) { return (width + 15) / 16 * 16; }

AttentionBlock attention_block(const PlanBuilder& builder, bool tensors, std::int64_t heads,
                               std::int64_t rows, const AttentionNeeds& needs) {
  constexpr std::int64_t Reserved = 1024;  // of each block
  const std::int64_t most = builder.shared_bytes();
  const AttentionBlock least{.tensors = tensors, .tile = 16};
  for (const std::int64_t shared : {(most + Reserved) / 2 - Reserved, most}) {
    if (const auto block = largest_block(least, heads, rows, needs, shared)) return *block;
  }
  return least;
}

BlockRoom room_of(const AttentionBlock& block, const AttentionNeeds& needs) {
  // A third one hides what the others wait for, where it does not cost registers that are used.
  const bool has_few = block.tensors && numbers(block, needs) <= 128;
  return {.shared_bytes = shared_bytes(block, needs), .at_once = has_few ? 3 : 1};
}

std::int64_t tile_blocks(std::int64_t heads, std::int64_t rows, const AttentionBlock& block) {
  return heads * ((rows + block.rows() - 1) / block.rows());
}

std::vector<Parameter> tile_inputs(const PlanBuilder& builder, const loop::Attention& a,
                                   const AttentionArrays& arrays) {
  const DType dtype = builder.dtype(0);
  return {{arrays.q, dtype, "q"},
          {arrays.k, dtype, "k"},
          {arrays.v, dtype, "v"},
          {arrays.mask, mask_type(builder, a), "mask"}};
}

std::string tile_names(const PlanBuilder& builder, const loop::Attention& a,
                       const AttentionArrays& arrays, const AttentionBlock& block) {
  const DType dtype = builder.dtype(0);
  std::string out = attention_names(a, arrays,
                                    {.dtype = dtype,
                                     .sum = DType::F32,
                                     .mask = mask_type(builder, a),
                                     .rows = block.rows(),
                                     .tile = block.tile,
                                     .size_suffix = ""});
  out += block_text(a, block, dtype);
  const auto whole = [&](std::size_t operand, const Place& place, const loop::HeadStrides& s,
                         std::int64_t width) {
    return reads_whole(builder, block, operand, place, s, width);
  };
  out += fmt::format(
      "#define Q_WHOLE {}\n#define K_WHOLE {}\n#define V_WHOLE {}\n#define DQ_PAIRS {}\n"
      "#define DK_PAIRS {}\n#define DV_PAIRS {}\n#define OUT_PAIRS {}\n",
      whole(0, arrays.q, arrays.q_at, a.width), whole(1, arrays.k, arrays.k_at, a.width),
      whole(2, arrays.v, arrays.v_at, a.value_width), has_pairs(builder, 0, arrays.dq_at, a.width),
      has_pairs(builder, 1, arrays.dk_at, a.width),
      has_pairs(builder, 2, arrays.dv_at, a.value_width),
      has_pairs(builder, 0, arrays.out_at, a.value_width));
  if (a.pass == loop::Pass::Backward) {
    out += fmt::format("#define DY_WHOLE {}\n", whole(3, arrays.dy, arrays.dy_at, a.value_width));
  }
  return out + attention_fragments(block.tensors, block.tile);
}

bool multiplies_with_tensors(DType dtype, loop::Pass pass) {
  return dtype == DType::BF16 || (dtype == DType::F16 && pass == loop::Pass::Forward);
}

// Positions are of 32 bits.
bool has_tiles(const loop::Attention& a, DType dtype) {
  constexpr std::int64_t Most = 1 << 30;
  return dtype != DType::F64 && std::max(a.queries, a.keys) <= Most;
}

}  // namespace ricci::cuda
