// Generated with its header by the test ArrayOpList.IsCurrent.
#include "ricci/build/op_list.h"

#include <utility>

#include "ricci/build/build.h"

namespace ricci {

// clang-format off
Value iota(Graph& graph, op::Iota attributes, std::source_location loc) {
  return detail::build<op::Iota>(graph, std::move(attributes), loc);
}
Value dim_size(Graph& graph, op::DimSize attributes, std::source_location loc) {
  return detail::build<op::DimSize>(graph, std::move(attributes), loc);
}
Value rng_normal(Graph& graph, op::RngNormal attributes, std::source_location loc) {
  return detail::build<op::RngNormal>(graph, std::move(attributes), loc);
}
Value rng_normal(Value template_, op::RngNormal attributes, std::source_location loc) {
  return detail::build<op::RngNormal>(std::array{template_}, std::move(attributes), loc);
}
Value rng_normal(Value template_, Value key_operand, op::RngNormal attributes, std::source_location loc) {
  return detail::build<op::RngNormal>(std::array{template_, key_operand}, std::move(attributes), loc);
}
Value rng_uniform(Graph& graph, op::RngUniform attributes, std::source_location loc) {
  return detail::build<op::RngUniform>(graph, std::move(attributes), loc);
}
Value rng_uniform(Value template_, op::RngUniform attributes, std::source_location loc) {
  return detail::build<op::RngUniform>(std::array{template_}, std::move(attributes), loc);
}
Value rng_uniform(Value template_, Value key_operand, op::RngUniform attributes, std::source_location loc) {
  return detail::build<op::RngUniform>(std::array{template_, key_operand}, std::move(attributes), loc);
}
Value rng_bits(Graph& graph, op::RngBits attributes, std::source_location loc) {
  return detail::build<op::RngBits>(graph, std::move(attributes), loc);
}
Value rng_bits(Value key_operand, op::RngBits attributes, std::source_location loc) {
  return detail::build<op::RngBits>(std::array{key_operand}, std::move(attributes), loc);
}
Value where(Value cond, Value a, Value b, op::Where attributes, std::source_location loc) {
  return detail::build<op::Where>(std::array{cond, a, b}, std::move(attributes), loc);
}
Value cast(Value x, op::Cast attributes, std::source_location loc) {
  return detail::build<op::Cast>(std::array{x}, std::move(attributes), loc);
}
Value stop_gradient(Value x, op::StopGradient attributes, std::source_location loc) {
  return detail::build<op::StopGradient>(std::array{x}, std::move(attributes), loc);
}
Value relu_backward(Value x, Value dy, op::ReluBackward attributes, std::source_location loc) {
  return detail::build<op::ReluBackward>(std::array{x, dy}, std::move(attributes), loc);
}
Value activation_backward(Value x, Value dy, op::ActivationBackward attributes, std::source_location loc) {
  return detail::build<op::ActivationBackward>(std::array{x, dy}, std::move(attributes), loc);
}
Value reshape(Value x, op::Reshape attributes, std::source_location loc) {
  return detail::build<op::Reshape>(std::array{x}, std::move(attributes), loc);
}
Value transpose(Value x, op::Transpose attributes, std::source_location loc) {
  return detail::build<op::Transpose>(std::array{x}, std::move(attributes), loc);
}
Value expand(Value x, op::Expand attributes, std::source_location loc) {
  return detail::build<op::Expand>(std::array{x}, std::move(attributes), loc);
}
Value narrow(Value x, op::Narrow attributes, std::source_location loc) {
  return detail::build<op::Narrow>(std::array{x}, std::move(attributes), loc);
}
Value take_every(Value x, op::TakeEvery attributes, std::source_location loc) {
  return detail::build<op::TakeEvery>(std::array{x}, std::move(attributes), loc);
}
Value concat(std::span<const Value> operands, op::Concat attributes, std::source_location loc) {
  return detail::build<op::Concat>(operands, std::move(attributes), loc);
}
Value concat(std::initializer_list<Value> operands, op::Concat attributes, std::source_location loc) {
  return detail::build<op::Concat>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value reverse(Value x, op::Reverse attributes, std::source_location loc) {
  return detail::build<op::Reverse>(std::array{x}, std::move(attributes), loc);
}
Value pad(Value x, Value value, op::Pad attributes, std::source_location loc) {
  return detail::build<op::Pad>(std::array{x, value}, std::move(attributes), loc);
}
Value gather(Value table, Value indices, op::Gather attributes, std::source_location loc) {
  return detail::build<op::Gather>(std::array{table, indices}, std::move(attributes), loc);
}
Value gather_backward(Value dy, Value indices, op::GatherBackward attributes, std::source_location loc) {
  return detail::build<op::GatherBackward>(std::array{dy, indices}, std::move(attributes), loc);
}
Value scatter_add(Value updates, Value indices, op::ScatterAdd attributes, std::source_location loc) {
  return detail::build<op::ScatterAdd>(std::array{updates, indices}, std::move(attributes), loc);
}
Value scatter(Value x, Value updates, Value indices, op::Scatter attributes, std::source_location loc) {
  return detail::build<op::Scatter>(std::array{x, updates, indices}, std::move(attributes), loc);
}
Value take_along_axis(Value x, Value indices, op::TakeAlongAxis attributes, std::source_location loc) {
  return detail::build<op::TakeAlongAxis>(std::array{x, indices}, std::move(attributes), loc);
}
Value scatter_add_along_axis(Value updates, Value indices, op::ScatterAddAlongAxis attributes, std::source_location loc) {
  return detail::build<op::ScatterAddAlongAxis>(std::array{updates, indices}, std::move(attributes), loc);
}
Value dynamic_narrow(Value x, Value start, op::DynamicNarrow attributes, std::source_location loc) {
  return detail::build<op::DynamicNarrow>(std::array{x, start}, std::move(attributes), loc);
}
Value dynamic_update(Value x, Value update, Value start, op::DynamicUpdate attributes, std::source_location loc) {
  return detail::build<op::DynamicUpdate>(std::array{x, update, start}, std::move(attributes), loc);
}
Value reduce(Value x, op::Reduce attributes, std::source_location loc) {
  return detail::build<op::Reduce>(std::array{x}, std::move(attributes), loc);
}
Value cumsum_backward(Value dy, op::CumsumBackward attributes, std::source_location loc) {
  return detail::build<op::CumsumBackward>(std::array{dy}, std::move(attributes), loc);
}
Value softmax(Value x, op::Softmax attributes, std::source_location loc) {
  return detail::build<op::Softmax>(std::array{x}, std::move(attributes), loc);
}
std::array<Value, 2> sort(Value x, op::Sort attributes, std::source_location loc) {
  return detail::build<op::Sort>(std::array{x}, std::move(attributes), loc);
}
std::array<Value, 2> top_k(Value x, op::TopK attributes, std::source_location loc) {
  return detail::build<op::TopK>(std::array{x}, std::move(attributes), loc);
}
Value sample(Value logits, op::Sample attributes, std::source_location loc) {
  return detail::build<op::Sample>(std::array{logits}, std::move(attributes), loc);
}
Value sample(Value logits, Value key_operand, op::Sample attributes, std::source_location loc) {
  return detail::build<op::Sample>(std::array{logits, key_operand}, std::move(attributes), loc);
}
Value matmul(Value a, Value b, op::Matmul attributes, std::source_location loc) {
  return detail::build<op::Matmul>(std::array{a, b}, std::move(attributes), loc);
}
Value dot_general(Value lhs, Value rhs, op::DotGeneral attributes, std::source_location loc) {
  return detail::build<op::DotGeneral>(std::array{lhs, rhs}, std::move(attributes), loc);
}
Value dense_solve(Value a, Value b, op::DenseSolve attributes, std::source_location loc) {
  return detail::build<op::DenseSolve>(std::array{a, b}, std::move(attributes), loc);
}
Value batched_dense_solve(Value a, Value b, op::BatchedDenseSolve attributes, std::source_location loc) {
  return detail::build<op::BatchedDenseSolve>(std::array{a, b}, std::move(attributes), loc);
}
Value triangular_solve(Value a, Value b, op::TriangularSolve attributes, std::source_location loc) {
  return detail::build<op::TriangularSolve>(std::array{a, b}, std::move(attributes), loc);
}
Value grouped_matmul(Value x, Value w, Value expert_idx, op::GroupedMatmul attributes, std::source_location loc) {
  return detail::build<op::GroupedMatmul>(std::array{x, w, expert_idx}, std::move(attributes), loc);
}
std::array<Value, 2> grouped_matmul_backward(Value x, Value w, Value expert_idx, Value dy, op::GroupedMatmulBackward attributes, std::source_location loc) {
  return detail::build<op::GroupedMatmulBackward>(std::array{x, w, expert_idx, dy}, std::move(attributes), loc);
}
Value lora_matmul(Value x, Value w, Value a, Value b, op::LoraMatmul attributes, std::source_location loc) {
  return detail::build<op::LoraMatmul>(std::array{x, w, a, b}, std::move(attributes), loc);
}
Value cholesky(Value a, op::Cholesky attributes, std::source_location loc) {
  return detail::build<op::Cholesky>(std::array{a}, std::move(attributes), loc);
}
std::array<Value, 3> lu(Value a, op::Lu attributes, std::source_location loc) {
  return detail::build<op::Lu>(std::array{a}, std::move(attributes), loc);
}
std::array<Value, 2> qr(Value a, op::Qr attributes, std::source_location loc) {
  return detail::build<op::Qr>(std::array{a}, std::move(attributes), loc);
}
std::array<Value, 2> eigh(Value a, op::Eigh attributes, std::source_location loc) {
  return detail::build<op::Eigh>(std::array{a}, std::move(attributes), loc);
}
std::array<Value, 3> svd(Value a, op::Svd attributes, std::source_location loc) {
  return detail::build<op::Svd>(std::array{a}, std::move(attributes), loc);
}
Value matrix_exp(Value a, op::MatrixExp attributes, std::source_location loc) {
  return detail::build<op::MatrixExp>(std::array{a}, std::move(attributes), loc);
}
Value adjugate(Value a, op::Adjugate attributes, std::source_location loc) {
  return detail::build<op::Adjugate>(std::array{a}, std::move(attributes), loc);
}
Value det(Value a, op::Det attributes, std::source_location loc) {
  return detail::build<op::Det>(std::array{a}, std::move(attributes), loc);
}
Value pinv(Value a, op::Pinv attributes, std::source_location loc) {
  return detail::build<op::Pinv>(std::array{a}, std::move(attributes), loc);
}
Value layer_norm(Value x, Value gamma, Value beta, op::LayerNorm attributes, std::source_location loc) {
  return detail::build<op::LayerNorm>(std::array{x, gamma, beta}, std::move(attributes), loc);
}
Value rms_norm(Value x, Value gamma, Value beta, op::RmsNorm attributes, std::source_location loc) {
  return detail::build<op::RmsNorm>(std::array{x, gamma, beta}, std::move(attributes), loc);
}
Value group_norm(Value x, Value gamma, Value beta, op::GroupNorm attributes, std::source_location loc) {
  return detail::build<op::GroupNorm>(std::array{x, gamma, beta}, std::move(attributes), loc);
}
Value batch_norm_inference(Value x, Value gamma, Value beta, Value mean, Value var, op::BatchNormInference attributes, std::source_location loc) {
  return detail::build<op::BatchNormInference>(std::array{x, gamma, beta, mean, var}, std::move(attributes), loc);
}
std::array<Value, 3> layer_norm_backward(Value x, Value gamma, Value dy, op::LayerNormBackward attributes, std::source_location loc) {
  return detail::build<op::LayerNormBackward>(std::array{x, gamma, dy}, std::move(attributes), loc);
}
std::array<Value, 3> rms_norm_backward(Value x, Value gamma, Value dy, op::RmsNormBackward attributes, std::source_location loc) {
  return detail::build<op::RmsNormBackward>(std::array{x, gamma, dy}, std::move(attributes), loc);
}
std::array<Value, 3> group_norm_backward(Value x, Value gamma, Value dy, op::GroupNormBackward attributes, std::source_location loc) {
  return detail::build<op::GroupNormBackward>(std::array{x, gamma, dy}, std::move(attributes), loc);
}
std::array<Value, 5> batch_norm_inference_backward(Value x, Value gamma, Value mean, Value var, Value dy, op::BatchNormInferenceBackward attributes, std::source_location loc) {
  return detail::build<op::BatchNormInferenceBackward>(std::array{x, gamma, mean, var, dy}, std::move(attributes), loc);
}
Value conv(Value x, Value w, op::Conv attributes, std::source_location loc) {
  return detail::build<op::Conv>(std::array{x, w}, std::move(attributes), loc);
}
Value conv2d_backward_input(Value dy, Value w, op::Conv2dBackwardInput attributes, std::source_location loc) {
  return detail::build<op::Conv2dBackwardInput>(std::array{dy, w}, std::move(attributes), loc);
}
Value conv2d_backward_weight(Value x, Value dy, op::Conv2dBackwardWeight attributes, std::source_location loc) {
  return detail::build<op::Conv2dBackwardWeight>(std::array{x, dy}, std::move(attributes), loc);
}
Value pool(Value x, op::Pool attributes, std::source_location loc) {
  return detail::build<op::Pool>(std::array{x}, std::move(attributes), loc);
}
Value max_pool2d_backward(Value x, Value dy, op::MaxPool2dBackward attributes, std::source_location loc) {
  return detail::build<op::MaxPool2dBackward>(std::array{x, dy}, std::move(attributes), loc);
}
Value max_pool2d_select(Value x, Value v, op::MaxPool2dSelect attributes, std::source_location loc) {
  return detail::build<op::MaxPool2dSelect>(std::array{x, v}, std::move(attributes), loc);
}
Value quantize(Value x, op::Quantize attributes, std::source_location loc) {
  return detail::build<op::Quantize>(std::array{x}, std::move(attributes), loc);
}
Value dequantize(Value q, op::Dequantize attributes, std::source_location loc) {
  return detail::build<op::Dequantize>(std::array{q}, std::move(attributes), loc);
}
Value fake_quantize(Value x, op::FakeQuantize attributes, std::source_location loc) {
  return detail::build<op::FakeQuantize>(std::array{x}, std::move(attributes), loc);
}
Value fake_quantize(Value x, Value state, op::FakeQuantize attributes, std::source_location loc) {
  return detail::build<op::FakeQuantize>(std::array{x, state}, std::move(attributes), loc);
}
Value fake_quantize_backward(Value x, Value scale, Value dy, op::FakeQuantizeBackward attributes, std::source_location loc) {
  return detail::build<op::FakeQuantizeBackward>(std::array{x, scale, dy}, std::move(attributes), loc);
}
Value fake_quantize_lsq(Value x, Value scale, op::FakeQuantizeLsq attributes, std::source_location loc) {
  return detail::build<op::FakeQuantizeLsq>(std::array{x, scale}, std::move(attributes), loc);
}
std::array<Value, 2> fake_quantize_lsq_backward(Value x, Value scale, Value dy, op::FakeQuantizeLsqBackward attributes, std::source_location loc) {
  return detail::build<op::FakeQuantizeLsqBackward>(std::array{x, scale, dy}, std::move(attributes), loc);
}
Value q_matmul(Value x, Value w, op::QMatmul attributes, std::source_location loc) {
  return detail::build<op::QMatmul>(std::array{x, w}, std::move(attributes), loc);
}
Value q_matmul(Value x, Value w, Value bias, op::QMatmul attributes, std::source_location loc) {
  return detail::build<op::QMatmul>(std::array{x, w, bias}, std::move(attributes), loc);
}
Value q_conv2d(Value x, Value w, op::QConv2d attributes, std::source_location loc) {
  return detail::build<op::QConv2d>(std::array{x, w}, std::move(attributes), loc);
}
Value q_conv2d(Value x, Value w, Value bias, op::QConv2d attributes, std::source_location loc) {
  return detail::build<op::QConv2d>(std::array{x, w, bias}, std::move(attributes), loc);
}
Value dequant_matmul(Value x, Value w, op::DequantMatmul attributes, std::source_location loc) {
  return detail::build<op::DequantMatmul>(std::array{x, w}, std::move(attributes), loc);
}
Value dequant_matmul(Value x, Value w, Value scale, op::DequantMatmul attributes, std::source_location loc) {
  return detail::build<op::DequantMatmul>(std::array{x, w, scale}, std::move(attributes), loc);
}
Value dequant_matmul(Value x, Value w, Value scale, Value offset, op::DequantMatmul attributes, std::source_location loc) {
  return detail::build<op::DequantMatmul>(std::array{x, w, scale, offset}, std::move(attributes), loc);
}
Value dequant_grouped_matmul(Value x, Value w, Value expert_idx, op::DequantGroupedMatmul attributes, std::source_location loc) {
  return detail::build<op::DequantGroupedMatmul>(std::array{x, w, expert_idx}, std::move(attributes), loc);
}
Value dequant_moe_weights(Value w, op::DequantMoeWeights attributes, std::source_location loc) {
  return detail::build<op::DequantMoeWeights>(std::array{w}, std::move(attributes), loc);
}
Value resize(Value x, op::Resize attributes, std::source_location loc) {
  return detail::build<op::Resize>(std::array{x}, std::move(attributes), loc);
}
Value softmax_cross_entropy_with_logits(Value logits, Value labels, op::SoftmaxCrossEntropyWithLogits attributes, std::source_location loc) {
  return detail::build<op::SoftmaxCrossEntropyWithLogits>(std::array{logits, labels}, std::move(attributes), loc);
}
Value softmax_cross_entropy_backward(Value logits, Value labels, Value d_loss, op::SoftmaxCrossEntropyBackward attributes, std::source_location loc) {
  return detail::build<op::SoftmaxCrossEntropyBackward>(std::array{logits, labels, d_loss}, std::move(attributes), loc);
}
Value selective_scan(Value x, Value delta, Value a, Value b, Value c, op::SelectiveScan attributes, std::source_location loc) {
  return detail::build<op::SelectiveScan>(std::array{x, delta, a, b, c}, std::move(attributes), loc);
}
Value selective_scan(Value x, Value delta, Value a, Value b, Value c, Value h0, op::SelectiveScan attributes, std::source_location loc) {
  return detail::build<op::SelectiveScan>(std::array{x, delta, a, b, c, h0}, std::move(attributes), loc);
}
std::array<Value, 5> selective_scan_backward(Value x, Value delta, Value a, Value b, Value c, Value h0, op::SelectiveScanBackward attributes, std::source_location loc) {
  return detail::build<op::SelectiveScanBackward>(std::array{x, delta, a, b, c, h0}, std::move(attributes), loc);
}
std::array<Value, 5> selective_scan_backward(Value x, Value delta, Value a, Value b, Value c, Value h0, Value dy, op::SelectiveScanBackward attributes, std::source_location loc) {
  return detail::build<op::SelectiveScanBackward>(std::array{x, delta, a, b, c, h0, dy}, std::move(attributes), loc);
}
std::array<Value, 5> selective_scan_backward(Value x, Value delta, Value a, Value b, Value c, Value h0, Value dy, Value dh_final, op::SelectiveScanBackward attributes, std::source_location loc) {
  return detail::build<op::SelectiveScanBackward>(std::array{x, delta, a, b, c, h0, dy, dh_final}, std::move(attributes), loc);
}
Value gated_delta_net(Value q, Value k, Value v, Value g, Value beta, op::GatedDeltaNet attributes, std::source_location loc) {
  return detail::build<op::GatedDeltaNet>(std::array{q, k, v, g, beta}, std::move(attributes), loc);
}
Value gated_delta_net(Value q, Value k, Value v, Value g, Value beta, Value state, op::GatedDeltaNet attributes, std::source_location loc) {
  return detail::build<op::GatedDeltaNet>(std::array{q, k, v, g, beta, state}, std::move(attributes), loc);
}
std::array<Value, 5> gated_delta_net_backward(Value q, Value k, Value v, Value g, Value beta, Value state, op::GatedDeltaNetBackward attributes, std::source_location loc) {
  return detail::build<op::GatedDeltaNetBackward>(std::array{q, k, v, g, beta, state}, std::move(attributes), loc);
}
std::array<Value, 5> gated_delta_net_backward(Value q, Value k, Value v, Value g, Value beta, Value state, Value do_, op::GatedDeltaNetBackward attributes, std::source_location loc) {
  return detail::build<op::GatedDeltaNetBackward>(std::array{q, k, v, g, beta, state, do_}, std::move(attributes), loc);
}
std::array<Value, 5> gated_delta_net_backward(Value q, Value k, Value v, Value g, Value beta, Value state, Value do_, Value dstate_final, op::GatedDeltaNetBackward attributes, std::source_location loc) {
  return detail::build<op::GatedDeltaNetBackward>(std::array{q, k, v, g, beta, state, do_, dstate_final}, std::move(attributes), loc);
}
Value fft(Value x, op::Fft attributes, std::source_location loc) {
  return detail::build<op::Fft>(std::array{x}, std::move(attributes), loc);
}
Value rfft(Value x, op::Rfft attributes, std::source_location loc) {
  return detail::build<op::Rfft>(std::array{x}, std::move(attributes), loc);
}
Value irfft(Value x, op::Irfft attributes, std::source_location loc) {
  return detail::build<op::Irfft>(std::array{x}, std::move(attributes), loc);
}
Value frame(Value x, op::Frame attributes, std::source_location loc) {
  return detail::build<op::Frame>(std::array{x}, std::move(attributes), loc);
}
Value overlap_add(Value x, op::OverlapAdd attributes, std::source_location loc) {
  return detail::build<op::OverlapAdd>(std::array{x}, std::move(attributes), loc);
}
Value log_mel(Value spectrum, Value filters, op::LogMel attributes, std::source_location loc) {
  return detail::build<op::LogMel>(std::array{spectrum, filters}, std::move(attributes), loc);
}
std::array<Value, 2> log_mel_backward(Value spectrum, Value filters, Value dy, op::LogMelBackward attributes, std::source_location loc) {
  return detail::build<op::LogMelBackward>(std::array{spectrum, filters, dy}, std::move(attributes), loc);
}
Value attention(Value q, Value k, Value v, op::Attention attributes, std::source_location loc) {
  return detail::build<op::Attention>(std::array{q, k, v}, std::move(attributes), loc);
}
Value attention(Value q, Value k, Value v, Value mask, op::Attention attributes, std::source_location loc) {
  return detail::build<op::Attention>(std::array{q, k, v, mask}, std::move(attributes), loc);
}
std::array<Value, 3> attention_backward(Value q, Value k, Value v, Value dy, op::AttentionBackward attributes, std::source_location loc) {
  return detail::build<op::AttentionBackward>(std::array{q, k, v, dy}, std::move(attributes), loc);
}
std::array<Value, 3> attention_backward(Value q, Value k, Value v, Value dy, Value mask, op::AttentionBackward attributes, std::source_location loc) {
  return detail::build<op::AttentionBackward>(std::array{q, k, v, dy, mask}, std::move(attributes), loc);
}
std::array<Value, 3> attention_backward(Value q, Value k, Value v, Value dy, Value mask, Value lse, op::AttentionBackward attributes, std::source_location loc) {
  return detail::build<op::AttentionBackward>(std::array{q, k, v, dy, mask, lse}, std::move(attributes), loc);
}
std::array<Value, 3> attention_backward(Value q, Value k, Value v, Value dy, Value mask, Value lse, Value mean, op::AttentionBackward attributes, std::source_location loc) {
  return detail::build<op::AttentionBackward>(std::array{q, k, v, dy, mask, lse, mean}, std::move(attributes), loc);
}
Value rope(Value x, Value cos, Value sin, op::Rope attributes, std::source_location loc) {
  return detail::build<op::Rope>(std::array{x, cos, sin}, std::move(attributes), loc);
}
Value rope_backward(Value dy, Value cos, Value sin, op::RopeBackward attributes, std::source_location loc) {
  return detail::build<op::RopeBackward>(std::array{dy, cos, sin}, std::move(attributes), loc);
}
Value rope_backward(Value dy, Value cos, Value sin, Value x, op::RopeBackward attributes, std::source_location loc) {
  return detail::build<op::RopeBackward>(std::array{dy, cos, sin, x}, std::move(attributes), loc);
}
Value axial_rope2d(Value x, op::AxialRope2d attributes, std::source_location loc) {
  return detail::build<op::AxialRope2d>(std::array{x}, std::move(attributes), loc);
}
Value gaussian_splat_render(Value positions, Value scales, Value rotations, Value opacities, Value colors, Value sh_coeffs, Value meta, op::GaussianSplatRender attributes, std::source_location loc) {
  return detail::build<op::GaussianSplatRender>(std::array{positions, scales, rotations, opacities, colors, sh_coeffs, meta}, std::move(attributes), loc);
}
std::array<Value, 7> gaussian_splat_backward(Value positions, Value scales, Value rotations, Value opacities, Value colors, Value sh_coeffs, Value meta, Value drgba, op::GaussianSplatBackward attributes, std::source_location loc) {
  return detail::build<op::GaussianSplatBackward>(std::array{positions, scales, rotations, opacities, colors, sh_coeffs, meta, drgba}, std::move(attributes), loc);
}
std::array<Value, 7> gaussian_splat_prepare(Value positions, Value scales, Value rotations, Value opacities, Value colors, Value sh_coeffs, Value meta, op::GaussianSplatPrepare attributes, std::source_location loc) {
  return detail::build<op::GaussianSplatPrepare>(std::array{positions, scales, rotations, opacities, colors, sh_coeffs, meta}, std::move(attributes), loc);
}
Value gaussian_splat_rasterize(Value color_alpha, Value pos_local, Value inv_scale, Value quaternion, Value ids, Value tile_ranges, Value rays, Value meta, op::GaussianSplatRasterize attributes, std::source_location loc) {
  return detail::build<op::GaussianSplatRasterize>(std::array{color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays, meta}, std::move(attributes), loc);
}
Value fused_matmul_bias_act(Value x, Value w, Value bias, op::FusedMatmulBiasAct attributes, std::source_location loc) {
  return detail::build<op::FusedMatmulBiasAct>(std::array{x, w, bias}, std::move(attributes), loc);
}
Value fused_residual_ln(std::span<const Value> operands, op::FusedResidualLn attributes, std::source_location loc) {
  return detail::build<op::FusedResidualLn>(operands, std::move(attributes), loc);
}
Value fused_residual_ln(std::initializer_list<Value> operands, op::FusedResidualLn attributes, std::source_location loc) {
  return detail::build<op::FusedResidualLn>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value fused_residual_rms_norm(std::span<const Value> operands, op::FusedResidualRmsNorm attributes, std::source_location loc) {
  return detail::build<op::FusedResidualRmsNorm>(operands, std::move(attributes), loc);
}
Value fused_residual_rms_norm(std::initializer_list<Value> operands, op::FusedResidualRmsNorm attributes, std::source_location loc) {
  return detail::build<op::FusedResidualRmsNorm>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value fused_swiglu(Value packed, op::FusedSwiglu attributes, std::source_location loc) {
  return detail::build<op::FusedSwiglu>(std::array{packed}, std::move(attributes), loc);
}
Value fused_attention_block(std::span<const Value> operands, op::FusedAttentionBlock attributes, std::source_location loc) {
  return detail::build<op::FusedAttentionBlock>(operands, std::move(attributes), loc);
}
Value fused_attention_block(std::initializer_list<Value> operands, op::FusedAttentionBlock attributes, std::source_location loc) {
  return detail::build<op::FusedAttentionBlock>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value fused_transformer_layer(std::span<const Value> operands, op::FusedTransformerLayer attributes, std::source_location loc) {
  return detail::build<op::FusedTransformerLayer>(operands, std::move(attributes), loc);
}
Value fused_transformer_layer(std::initializer_list<Value> operands, op::FusedTransformerLayer attributes, std::source_location loc) {
  return detail::build<op::FusedTransformerLayer>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
std::vector<Value> elementwise_region(std::span<const Value> operands, op::ElementwiseRegion attributes, std::source_location loc) {
  return detail::build<op::ElementwiseRegion>(operands, std::move(attributes), loc);
}
std::vector<Value> elementwise_region(std::initializer_list<Value> operands, op::ElementwiseRegion attributes, std::source_location loc) {
  return detail::build<op::ElementwiseRegion>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value batch_elementwise_region(std::span<const Value> operands, op::BatchElementwiseRegion attributes, std::source_location loc) {
  return detail::build<op::BatchElementwiseRegion>(operands, std::move(attributes), loc);
}
Value batch_elementwise_region(std::initializer_list<Value> operands, op::BatchElementwiseRegion attributes, std::source_location loc) {
  return detail::build<op::BatchElementwiseRegion>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value transform_region(std::span<const Value> operands, op::TransformRegion attributes, std::source_location loc) {
  return detail::build<op::TransformRegion>(operands, std::move(attributes), loc);
}
Value transform_region(std::initializer_list<Value> operands, op::TransformRegion attributes, std::source_location loc) {
  return detail::build<op::TransformRegion>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value linear(Value x, Value w, op::Linear attributes, std::source_location loc) {
  return detail::build<op::Linear>(std::array{x, w}, std::move(attributes), loc);
}
Value linear(Value x, Value w, Value bias, op::Linear attributes, std::source_location loc) {
  return detail::build<op::Linear>(std::array{x, w, bias}, std::move(attributes), loc);
}
Value linear_fused(Value x, Value w, Value bias, op::LinearFused attributes, std::source_location loc) {
  return detail::build<op::LinearFused>(std::array{x, w, bias}, std::move(attributes), loc);
}
std::array<Value, 2> shared_linear_pair(Value x, Value w_first, Value w_second, op::SharedLinearPair attributes, std::source_location loc) {
  return detail::build<op::SharedLinearPair>(std::array{x, w_first, w_second}, std::move(attributes), loc);
}
Value swiglu(Value x, Value up_w, Value gate_w, Value down_w, op::Swiglu attributes, std::source_location loc) {
  return detail::build<op::Swiglu>(std::array{x, up_w, gate_w, down_w}, std::move(attributes), loc);
}
Value residual_rms_norm(Value x, Value residual, Value gamma, Value beta, op::ResidualRmsNorm attributes, std::source_location loc) {
  return detail::build<op::ResidualRmsNorm>(std::array{x, residual, gamma, beta}, std::move(attributes), loc);
}
Value depthwise_conv1d_causal(Value x, Value w, op::DepthwiseConv1dCausal attributes, std::source_location loc) {
  return detail::build<op::DepthwiseConv1dCausal>(std::array{x, w}, std::move(attributes), loc);
}
Value depthwise_conv1d_causal(Value x, Value w, Value left_pad, op::DepthwiseConv1dCausal attributes, std::source_location loc) {
  return detail::build<op::DepthwiseConv1dCausal>(std::array{x, w, left_pad}, std::move(attributes), loc);
}
Value llama_decoder_block(std::span<const Value> operands, op::LlamaDecoderBlock attributes, std::source_location loc) {
  return detail::build<op::LlamaDecoderBlock>(operands, std::move(attributes), loc);
}
Value llama_decoder_block(std::initializer_list<Value> operands, op::LlamaDecoderBlock attributes, std::source_location loc) {
  return detail::build<op::LlamaDecoderBlock>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
Value qwen35_mtp_head(std::span<const Value> operands, op::Qwen35MtpHead attributes, std::source_location loc) {
  return detail::build<op::Qwen35MtpHead>(operands, std::move(attributes), loc);
}
Value qwen35_mtp_head(std::initializer_list<Value> operands, op::Qwen35MtpHead attributes, std::source_location loc) {
  return detail::build<op::Qwen35MtpHead>(std::span(operands.begin(), operands.size()), std::move(attributes), loc);
}
// clang-format on

}  // namespace ricci
