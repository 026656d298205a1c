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
Cotangents vjp(const op::DotGeneral&, const VjpContext&) { pending("vjp DotGeneral"); }
Cotangents vjp(const op::DenseSolve&, const VjpContext&) { pending("vjp DenseSolve"); }
Cotangents vjp(const op::BatchedDenseSolve&, const VjpContext&) { pending("vjp BatchedDenseSolve"); }
Cotangents vjp(const op::TriangularSolve&, const VjpContext&) { pending("vjp TriangularSolve"); }
Cotangents vjp(const op::LayerNorm&, const VjpContext&) { pending("vjp LayerNorm"); }
Cotangents vjp(const op::RmsNorm&, const VjpContext&) { pending("vjp RmsNorm"); }
Cotangents vjp(const op::GroupNorm&, const VjpContext&) { pending("vjp GroupNorm"); }
Cotangents vjp(const op::BatchNormInference&, const VjpContext&) { pending("vjp BatchNormInference"); }
Cotangents vjp(const op::Conv&, const VjpContext&) { pending("vjp Conv"); }
Cotangents vjp(const op::Conv2dBackwardInput&, const VjpContext&) { pending("vjp Conv2dBackwardInput"); }
Cotangents vjp(const op::Conv2dBackwardWeight&, const VjpContext&) { pending("vjp Conv2dBackwardWeight"); }
Cotangents vjp(const op::Pool&, const VjpContext&) { pending("vjp Pool"); }
Cotangents vjp(const op::MaxPool2dBackward&, const VjpContext&) { pending("vjp MaxPool2dBackward"); }
Cotangents vjp(const op::MaxPool2dSelect&, const VjpContext&) { pending("vjp MaxPool2dSelect"); }
Cotangents vjp(const op::SoftmaxCrossEntropyWithLogits&, const VjpContext&) { pending("vjp SoftmaxCrossEntropyWithLogits"); }
Cotangents vjp(const op::SelectiveScan&, const VjpContext&) { pending("vjp SelectiveScan"); }
Cotangents vjp(const op::GatedDeltaNet&, const VjpContext&) { pending("vjp GatedDeltaNet"); }
Cotangents vjp(const op::Rope&, const VjpContext&) { pending("vjp Rope"); }
Cotangents vjp(const op::If&, const VjpContext&) { pending("vjp If"); }
Cotangents vjp(const op::While&, const VjpContext&) { pending("vjp While"); }
Cotangents vjp(const op::CustomFn&, const VjpContext&) { pending("vjp CustomFn"); }
Cotangents vjp(const op::Checkpoint&, const VjpContext&) { pending("vjp Checkpoint"); }
Cotangents vjp(const op::Custom&, const VjpContext&) { pending("vjp Custom"); }
ForwardResults forward_keeping(const op::While&, const ForwardContext&) { pending("forward While"); }
ForwardResults forward_keeping(const op::CustomFn&, const ForwardContext&) { pending("forward CustomFn"); }
ForwardResults forward_keeping(const op::Checkpoint&, const ForwardContext&) { pending("forward Checkpoint"); }
Tangents jvp(const op::DenseSolve&, JvpContext&) { pending("jvp DenseSolve"); }
Tangents jvp(const op::BatchedDenseSolve&, JvpContext&) { pending("jvp BatchedDenseSolve"); }
Tangents jvp(const op::TriangularSolve&, JvpContext&) { pending("jvp TriangularSolve"); }
Tangents jvp(const op::Pool&, JvpContext&) { pending("jvp Pool"); }
Tangents jvp(const op::MaxPool2dBackward&, JvpContext&) { pending("jvp MaxPool2dBackward"); }
Tangents jvp(const op::MaxPool2dSelect&, JvpContext&) { pending("jvp MaxPool2dSelect"); }
Tangents jvp(const op::If&, JvpContext&) { pending("jvp If"); }
Tangents jvp(const op::While&, JvpContext&) { pending("jvp While"); }
Tangents jvp(const op::CustomFn&, JvpContext&) { pending("jvp CustomFn"); }
Tangents jvp(const op::Checkpoint&, JvpContext&) { pending("jvp Checkpoint"); }
Tangents jvp(const op::Custom&, JvpContext&) { pending("jvp Custom"); }
BatchedValues batch(const op::DotGeneral&, const VmapContext&) { pending("batch DotGeneral"); }
BatchedValues batch(const op::DenseSolve&, const VmapContext&) { pending("batch DenseSolve"); }
BatchedValues batch(const op::BatchedDenseSolve&, const VmapContext&) { pending("batch BatchedDenseSolve"); }
BatchedValues batch(const op::TriangularSolve&, const VmapContext&) { pending("batch TriangularSolve"); }
BatchedValues batch(const op::LayerNorm&, const VmapContext&) { pending("batch LayerNorm"); }
BatchedValues batch(const op::RmsNorm&, const VmapContext&) { pending("batch RmsNorm"); }
BatchedValues batch(const op::GroupNorm&, const VmapContext&) { pending("batch GroupNorm"); }
BatchedValues batch(const op::BatchNormInference&, const VmapContext&) { pending("batch BatchNormInference"); }
BatchedValues batch(const op::Conv&, const VmapContext&) { pending("batch Conv"); }
BatchedValues batch(const op::Conv2dBackwardInput&, const VmapContext&) { pending("batch Conv2dBackwardInput"); }
BatchedValues batch(const op::Conv2dBackwardWeight&, const VmapContext&) { pending("batch Conv2dBackwardWeight"); }
BatchedValues batch(const op::Pool&, const VmapContext&) { pending("batch Pool"); }
BatchedValues batch(const op::MaxPool2dBackward&, const VmapContext&) { pending("batch MaxPool2dBackward"); }
BatchedValues batch(const op::MaxPool2dSelect&, const VmapContext&) { pending("batch MaxPool2dSelect"); }
BatchedValues batch(const op::SoftmaxCrossEntropyWithLogits&, const VmapContext&) { pending("batch SoftmaxCrossEntropyWithLogits"); }
BatchedValues batch(const op::SoftmaxCrossEntropyBackward&, const VmapContext&) { pending("batch SoftmaxCrossEntropyBackward"); }
BatchedValues batch(const op::SelectiveScan&, const VmapContext&) { pending("batch SelectiveScan"); }
BatchedValues batch(const op::SelectiveScanBackward&, const VmapContext&) { pending("batch SelectiveScanBackward"); }
BatchedValues batch(const op::GatedDeltaNet&, const VmapContext&) { pending("batch GatedDeltaNet"); }
BatchedValues batch(const op::GatedDeltaNetBackward&, const VmapContext&) { pending("batch GatedDeltaNetBackward"); }
BatchedValues batch(const op::Attention&, const VmapContext&) { pending("batch Attention"); }
BatchedValues batch(const op::AttentionBackward&, const VmapContext&) { pending("batch AttentionBackward"); }
BatchedValues batch(const op::Rope&, const VmapContext&) { pending("batch Rope"); }
BatchedValues batch(const op::RopeBackward&, const VmapContext&) { pending("batch RopeBackward"); }
BatchedValues batch(const op::If&, const VmapContext&) { pending("batch If"); }
BatchedValues batch(const op::While&, const VmapContext&) { pending("batch While"); }
BatchedValues batch(const op::CustomFn&, const VmapContext&) { pending("batch CustomFn"); }
BatchedValues batch(const op::Checkpoint&, const VmapContext&) { pending("batch Checkpoint"); }
BatchedValues batch(const op::ScanBackward&, const VmapContext&) { pending("batch ScanBackward"); }
BatchedValues batch(const op::WhileBackward&, const VmapContext&) { pending("batch WhileBackward"); }
BatchedValues batch(const op::Custom&, const VmapContext&) { pending("batch Custom"); }
std::vector<Value> expand(const op::SelectiveScanBackward&, const ExpandContext&) { pending("expand SelectiveScanBackward"); }
std::vector<Value> expand(const op::GatedDeltaNetBackward&, const ExpandContext&) { pending("expand GatedDeltaNetBackward"); }
std::vector<Value> expand(const op::ScanBackward&, const ExpandContext&) { pending("expand ScanBackward"); }
std::vector<Value> expand(const op::WhileBackward&, const ExpandContext&) { pending("expand WhileBackward"); }
std::vector<Value> expand(const op::Checkpoint&, const ExpandContext&) { pending("expand Checkpoint"); }
// clang-format on
}  // namespace rule
std::vector<Value> CustomOp::vjp(const Bytes&, const VjpContext&) const { pending("custom"); }
std::vector<Value> CustomOp::jvp(const Bytes&, JvpContext&) const { pending("custom"); }
std::vector<BatchedValue> CustomOp::vmap(const Bytes&, const VmapContext&) const {
  pending("custom");
}
}  // namespace ricci
