// Rules that are still to be written. Delete a line here when its rule is written.
#include "rule/batch_rules.h"
#include "rule/expand_rules.h"
#include "rule/jvp_rules.h"
#include "rule/vjp_rules.h"

namespace ricci {
namespace {
[[noreturn]] void pending(const char* what) { throw UserError(ErrorCode::Refused, what); }
}  // namespace
namespace rule {
// clang-format off
Cotangents vjp(const op::Gather&, const VjpContext&) { pending("vjp Gather"); }
Cotangents vjp(const op::GatherBackward&, const VjpContext&) { pending("vjp GatherBackward"); }
Cotangents vjp(const op::ScatterAdd&, const VjpContext&) { pending("vjp ScatterAdd"); }
Cotangents vjp(const op::TakeAlongAxis&, const VjpContext&) { pending("vjp TakeAlongAxis"); }
Cotangents vjp(const op::ScatterAddAlongAxis&, const VjpContext&) { pending("vjp ScatterAddAlongAxis"); }
Cotangents vjp(const op::DynamicNarrow&, const VjpContext&) { pending("vjp DynamicNarrow"); }
Cotangents vjp(const op::DynamicUpdate&, const VjpContext&) { pending("vjp DynamicUpdate"); }
Cotangents vjp(const op::Cumulative&, const VjpContext&) { pending("vjp Cumulative"); }
Cotangents vjp(const op::CumsumBackward&, const VjpContext&) { pending("vjp CumsumBackward"); }
Cotangents vjp(const op::Sort&, const VjpContext&) { pending("vjp Sort"); }
Cotangents vjp(const op::TopK&, const VjpContext&) { pending("vjp TopK"); }
Tangents jvp(const op::Cumulative&, JvpContext&) { pending("jvp Cumulative"); }
Tangents jvp(const op::Sort&, JvpContext&) { pending("jvp Sort"); }
Tangents jvp(const op::TopK&, JvpContext&) { pending("jvp TopK"); }
BatchedValues batch(const op::RngNormal&, const VmapContext&) { pending("batch RngNormal"); }
BatchedValues batch(const op::RngUniform&, const VmapContext&) { pending("batch RngUniform"); }
BatchedValues batch(const op::RngBits&, const VmapContext&) { pending("batch RngBits"); }
BatchedValues batch(const op::Gather&, const VmapContext&) { pending("batch Gather"); }
BatchedValues batch(const op::GatherBackward&, const VmapContext&) { pending("batch GatherBackward"); }
BatchedValues batch(const op::ScatterAdd&, const VmapContext&) { pending("batch ScatterAdd"); }
BatchedValues batch(const op::TakeAlongAxis&, const VmapContext&) { pending("batch TakeAlongAxis"); }
BatchedValues batch(const op::ScatterAddAlongAxis&, const VmapContext&) { pending("batch ScatterAddAlongAxis"); }
BatchedValues batch(const op::DynamicNarrow&, const VmapContext&) { pending("batch DynamicNarrow"); }
BatchedValues batch(const op::DynamicUpdate&, const VmapContext&) { pending("batch DynamicUpdate"); }
BatchedValues batch(const op::Cumulative&, const VmapContext&) { pending("batch Cumulative"); }
BatchedValues batch(const op::CumsumBackward&, const VmapContext&) { pending("batch CumsumBackward"); }
BatchedValues batch(const op::Sort&, const VmapContext&) { pending("batch Sort"); }
BatchedValues batch(const op::ArgReduce&, const VmapContext&) { pending("batch ArgReduce"); }
BatchedValues batch(const op::TopK&, const VmapContext&) { pending("batch TopK"); }
BatchedValues batch(const op::Sample&, const VmapContext&) { pending("batch Sample"); }
// clang-format on
}  // namespace rule
}  // namespace ricci
