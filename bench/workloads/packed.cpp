#include "workloads/packed.h"

#include "ricci/build/build.h"
#include "ricci/quant/format.h"

namespace ricci::bench {
namespace {

// Bytes below this make f16 scales that are positive and less than 2, whatever block they are in.
constexpr std::int64_t TameByte = 60;
constexpr std::int64_t Block = 32;

std::int64_t width(Scale scale) { return scale != Scale::Small ? 4096 : 256; }

Workload product(Draft& draft, Value y) {
  draft.graph.set_outputs({y});
  std::string name = draft.graph.name();
  return finished(std::move(name), std::move(draft), {"y"});
}

Workload q4_k(const char* name, std::int64_t rows, Scale scale, bool int8 = false) {
  const std::int64_t k = width(scale);
  Draft draft(name);
  const Value x = draft.input("x", f32({rows, k}), FeedRule::normal(1));
  const std::int64_t bytes = quant::packed_bytes(quant::Format::Q4K, k * k);
  const Value w = draft.param("w", u8({bytes}), FeedRule::integer(TameByte));
  return product(draft, dequant_matmul(x, w, {.scheme = "q4_k", .int8_activations = int8}));
}

Workload int8(const char* name, std::int64_t rows, Scale scale) {
  const std::int64_t k = width(scale);
  Draft draft(name);
  const Value x = draft.input("x", f32({rows, k}), FeedRule::normal(1));
  const Value w = draft.param("w", i8({k, k}), FeedRule::integer(127));
  const Value s = draft.param("s", f32({k / Block, k}), FeedRule::uniform(0.01, 0.02));
  return product(draft, dequant_matmul(x, w, s, {.scheme = "int8_block_32"}));
}

Workload plain(const char* name, std::int64_t rows, Scale scale) {
  const std::int64_t k = width(scale);
  Draft draft(name);
  const Value x = draft.input("x", f32({rows, k}), FeedRule::normal(1));
  const Value w = draft.param("w", f32({k, k}), FeedRule::normal(0.02));
  return product(draft, matmul(x, w));
}

Workload codes(const char* name, std::int64_t rows, Scale scale) {
  const std::int64_t k = width(scale);
  Draft draft(name);
  const Value x = draft.input("x", i8({rows, k}), FeedRule::integer(127));
  const Value w = draft.param("w", i8({k, k}), FeedRule::integer(127));
  return product(draft, q_matmul(x, w, {.mult = {1e-6}}));
}

struct ExpertSizes {
  std::int64_t rows;
  std::int64_t width;
  std::int64_t experts = 8;
  explicit ExpertSizes(Scale scale)
      : rows(scale != Scale::Small ? 256 : 5), width(scale == Scale::Full ? 1024 : 256) {}
};

}  // namespace

Workload q4_k_row(Scale scale) { return q4_k("q4_k_row", 1, scale); }
Workload q4_k_rows(Scale scale) { return q4_k("q4_k_rows", 64, scale); }
Workload int8_row(Scale scale) { return int8("int8_row", 1, scale); }
Workload int8_rows(Scale scale) { return int8("int8_rows", 64, scale); }
Workload f32_row(Scale scale) { return plain("f32_row", 1, scale); }
Workload f32_rows(Scale scale) { return plain("f32_rows", 64, scale); }

Workload q4_k_experts(Scale scale) {
  const ExpertSizes e(scale);
  Draft draft("q4_k_experts");
  const Value x = draft.input("x", f32({e.rows, e.width}), FeedRule::normal(1));
  const Value i = draft.input("i", i32({e.rows}), FeedRule::integer(e.experts));
  const std::int64_t bytes = quant::packed_bytes(quant::Format::Q4K, e.experts * e.width * e.width);
  const Value w = draft.param("w", u8({bytes}), FeedRule::integer(TameByte));
  return product(draft, dequant_grouped_matmul(x, w, i, {.scheme = "q4_k", .n = e.width}));
}

Workload f32_experts(Scale scale) {
  const ExpertSizes e(scale);
  Draft draft("f32_experts");
  const Value x = draft.input("x", f32({e.rows, e.width}), FeedRule::normal(1));
  const Value i = draft.input("i", i32({e.rows}), FeedRule::integer(e.experts));
  const Value w = draft.param("w", f32({e.experts, e.width, e.width}), FeedRule::normal(0.02));
  return product(draft, grouped_matmul(x, w, i));
}

Workload code_row(Scale scale) { return codes("code_row", 1, scale); }
Workload code_rows(Scale scale) { return codes("code_rows", 64, scale); }
Workload q4_k_int8_row(Scale scale) { return q4_k("q4_k_int8_row", 1, scale, true); }

}  // namespace ricci::bench
