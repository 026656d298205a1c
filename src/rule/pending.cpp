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
Cotangents vjp(const op::DotGeneral&, const VjpContext&) { pending("vjp DotGeneral"); }
Cotangents vjp(const op::DenseSolve&, const VjpContext&) { pending("vjp DenseSolve"); }
Cotangents vjp(const op::BatchedDenseSolve&, const VjpContext&) { pending("vjp BatchedDenseSolve"); }
Cotangents vjp(const op::TriangularSolve&, const VjpContext&) { pending("vjp TriangularSolve"); }
Cotangents vjp(const op::Conv&, const VjpContext&) { pending("vjp Conv"); }
Cotangents vjp(const op::Conv2dBackwardInput&, const VjpContext&) { pending("vjp Conv2dBackwardInput"); }
Cotangents vjp(const op::Conv2dBackwardWeight&, const VjpContext&) { pending("vjp Conv2dBackwardWeight"); }
Cotangents vjp(const op::Pool&, const VjpContext&) { pending("vjp Pool"); }
Cotangents vjp(const op::MaxPool2dBackward&, const VjpContext&) { pending("vjp MaxPool2dBackward"); }
Cotangents vjp(const op::MaxPool2dSelect&, const VjpContext&) { pending("vjp MaxPool2dSelect"); }
Tangents jvp(const op::Cumulative&, JvpContext&) { pending("jvp Cumulative"); }
Tangents jvp(const op::Sort&, JvpContext&) { pending("jvp Sort"); }
Tangents jvp(const op::TopK&, JvpContext&) { pending("jvp TopK"); }
Tangents jvp(const op::DenseSolve&, JvpContext&) { pending("jvp DenseSolve"); }
Tangents jvp(const op::BatchedDenseSolve&, JvpContext&) { pending("jvp BatchedDenseSolve"); }
Tangents jvp(const op::TriangularSolve&, JvpContext&) { pending("jvp TriangularSolve"); }
Tangents jvp(const op::Pool&, JvpContext&) { pending("jvp Pool"); }
Tangents jvp(const op::MaxPool2dBackward&, JvpContext&) { pending("jvp MaxPool2dBackward"); }
Tangents jvp(const op::MaxPool2dSelect&, JvpContext&) { pending("jvp MaxPool2dSelect"); }
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
BatchedValues batch(const op::DotGeneral&, const VmapContext&) { pending("batch DotGeneral"); }
BatchedValues batch(const op::DenseSolve&, const VmapContext&) { pending("batch DenseSolve"); }
BatchedValues batch(const op::BatchedDenseSolve&, const VmapContext&) { pending("batch BatchedDenseSolve"); }
BatchedValues batch(const op::TriangularSolve&, const VmapContext&) { pending("batch TriangularSolve"); }
BatchedValues batch(const op::Conv&, const VmapContext&) { pending("batch Conv"); }
BatchedValues batch(const op::Conv2dBackwardInput&, const VmapContext&) { pending("batch Conv2dBackwardInput"); }
BatchedValues batch(const op::Conv2dBackwardWeight&, const VmapContext&) { pending("batch Conv2dBackwardWeight"); }
BatchedValues batch(const op::Pool&, const VmapContext&) { pending("batch Pool"); }
BatchedValues batch(const op::MaxPool2dBackward&, const VmapContext&) { pending("batch MaxPool2dBackward"); }
BatchedValues batch(const op::MaxPool2dSelect&, const VmapContext&) { pending("batch MaxPool2dSelect"); }
// clang-format on
}  // namespace rule
}  // namespace ricci
