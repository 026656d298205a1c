// Generated with its header by the test ArrayOpList.IsCurrent.
#include "ricci/array/op_list.h"

#include "array/apply_op.h"

namespace ricci {

using detail::apply_op;
using detail::apply_op_all;
using detail::apply_op_some;

// clang-format off
Array iota(const op::Iota& attributes, Here where) {
  return apply_op(Op(attributes), {}, where);
}
Array take_every(const Array& x, const op::TakeEvery& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array gather(const Array& table, const Array& indices, const op::Gather& attributes, Here where) {
  return apply_op(Op(attributes), {table, indices}, where);
}
Array scatter_add(const Array& updates, const Array& indices, const op::ScatterAdd& attributes, Here where) {
  return apply_op(Op(attributes), {updates, indices}, where);
}
Array scatter(const Array& x, const Array& updates, const Array& indices, const op::Scatter& attributes, Here where) {
  return apply_op(Op(attributes), {x, updates, indices}, where);
}
Array scatter_add_along_axis(const Array& updates, const Array& indices, const op::ScatterAddAlongAxis& attributes, Here where) {
  return apply_op(Op(attributes), {updates, indices}, where);
}
Array dynamic_narrow(const Array& x, const Array& start, const op::DynamicNarrow& attributes, Here where) {
  return apply_op(Op(attributes), {x, start}, where);
}
Array dynamic_update(const Array& x, const Array& update, const Array& start, const op::DynamicUpdate& attributes, Here where) {
  return apply_op(Op(attributes), {x, update, start}, where);
}
Array reduce(const Array& x, const op::Reduce& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
std::array<Array, 2> top_k(const Array& x, const op::TopK& attributes, Here where) {
  return apply_op_some<2>(Op(attributes), {x}, where);
}
Array dot_general(const Array& lhs, const Array& rhs, const op::DotGeneral& attributes, Here where) {
  return apply_op(Op(attributes), {lhs, rhs}, where);
}
Array dense_solve(const Array& a, const Array& b, const op::DenseSolve& attributes, Here where) {
  return apply_op(Op(attributes), {a, b}, where);
}
Array batched_dense_solve(const Array& a, const Array& b, const op::BatchedDenseSolve& attributes, Here where) {
  return apply_op(Op(attributes), {a, b}, where);
}
Array triangular_solve(const Array& a, const Array& b, const op::TriangularSolve& attributes, Here where) {
  return apply_op(Op(attributes), {a, b}, where);
}
Array grouped_matmul(const Array& x, const Array& w, const Array& expert_idx, const op::GroupedMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, expert_idx}, where);
}
Array lora_matmul(const Array& x, const Array& w, const Array& a, const Array& b, const op::LoraMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, a, b}, where);
}
std::array<Array, 3> lu(const Array& a, const op::Lu& attributes, Here where) {
  return apply_op_some<3>(Op(attributes), {a}, where);
}
std::array<Array, 2> qr(const Array& a, const op::Qr& attributes, Here where) {
  return apply_op_some<2>(Op(attributes), {a}, where);
}
std::array<Array, 3> svd(const Array& a, const op::Svd& attributes, Here where) {
  return apply_op_some<3>(Op(attributes), {a}, where);
}
Array matrix_exp(const Array& a, const op::MatrixExp& attributes, Here where) {
  return apply_op(Op(attributes), {a}, where);
}
Array adjugate(const Array& a, const op::Adjugate& attributes, Here where) {
  return apply_op(Op(attributes), {a}, where);
}
Array pinv(const Array& a, const op::Pinv& attributes, Here where) {
  return apply_op(Op(attributes), {a}, where);
}
Array layer_norm(const Array& x, const Array& gamma, const Array& beta, const op::LayerNorm& attributes, Here where) {
  return apply_op(Op(attributes), {x, gamma, beta}, where);
}
Array rms_norm(const Array& x, const Array& gamma, const Array& beta, const op::RmsNorm& attributes, Here where) {
  return apply_op(Op(attributes), {x, gamma, beta}, where);
}
Array group_norm(const Array& x, const Array& gamma, const Array& beta, const op::GroupNorm& attributes, Here where) {
  return apply_op(Op(attributes), {x, gamma, beta}, where);
}
Array batch_norm_inference(const Array& x, const Array& gamma, const Array& beta, const Array& mean, const Array& var, const op::BatchNormInference& attributes, Here where) {
  return apply_op(Op(attributes), {x, gamma, beta, mean, var}, where);
}
Array conv(const Array& x, const Array& w, const op::Conv& attributes, Here where) {
  return apply_op(Op(attributes), {x, w}, where);
}
Array pool(const Array& x, const op::Pool& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array quantize(const Array& x, const op::Quantize& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array dequantize(const Array& q, const op::Dequantize& attributes, Here where) {
  return apply_op(Op(attributes), {q}, where);
}
Array fake_quantize(const Array& x, const op::FakeQuantize& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array fake_quantize(const Array& x, const Array& state, const op::FakeQuantize& attributes, Here where) {
  return apply_op(Op(attributes), {x, state}, where);
}
Array fake_quantize_lsq(const Array& x, const Array& scale, const op::FakeQuantizeLsq& attributes, Here where) {
  return apply_op(Op(attributes), {x, scale}, where);
}
Array q_matmul(const Array& x, const Array& w, const op::QMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w}, where);
}
Array q_matmul(const Array& x, const Array& w, const Array& bias, const op::QMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, bias}, where);
}
Array q_conv2d(const Array& x, const Array& w, const op::QConv2d& attributes, Here where) {
  return apply_op(Op(attributes), {x, w}, where);
}
Array q_conv2d(const Array& x, const Array& w, const Array& bias, const op::QConv2d& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, bias}, where);
}
Array dequant_matmul(const Array& x, const Array& w, const op::DequantMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w}, where);
}
Array dequant_matmul(const Array& x, const Array& w, const Array& scale, const op::DequantMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, scale}, where);
}
Array dequant_matmul(const Array& x, const Array& w, const Array& scale, const Array& offset, const op::DequantMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, scale, offset}, where);
}
Array dequant_grouped_matmul(const Array& x, const Array& w, const Array& expert_idx, const op::DequantGroupedMatmul& attributes, Here where) {
  return apply_op(Op(attributes), {x, w, expert_idx}, where);
}
Array dequant_moe_weights(const Array& w, const op::DequantMoeWeights& attributes, Here where) {
  return apply_op(Op(attributes), {w}, where);
}
Array resize(const Array& x, const op::Resize& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array softmax_cross_entropy_with_logits(const Array& logits, const Array& labels, const op::SoftmaxCrossEntropyWithLogits& attributes, Here where) {
  return apply_op(Op(attributes), {logits, labels}, where);
}
Array selective_scan(const Array& x, const Array& delta, const Array& a, const Array& b, const Array& c, const op::SelectiveScan& attributes, Here where) {
  return apply_op(Op(attributes), {x, delta, a, b, c}, where);
}
Array selective_scan(const Array& x, const Array& delta, const Array& a, const Array& b, const Array& c, const Array& h0, const op::SelectiveScan& attributes, Here where) {
  return apply_op(Op(attributes), {x, delta, a, b, c, h0}, where);
}
Array gated_delta_net(const Array& q, const Array& k, const Array& v, const Array& g, const Array& beta, const op::GatedDeltaNet& attributes, Here where) {
  return apply_op(Op(attributes), {q, k, v, g, beta}, where);
}
Array gated_delta_net(const Array& q, const Array& k, const Array& v, const Array& g, const Array& beta, const Array& state, const op::GatedDeltaNet& attributes, Here where) {
  return apply_op(Op(attributes), {q, k, v, g, beta, state}, where);
}
Array frame(const Array& x, const op::Frame& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array overlap_add(const Array& x, const op::OverlapAdd& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array log_mel(const Array& spectrum, const Array& filters, const op::LogMel& attributes, Here where) {
  return apply_op(Op(attributes), {spectrum, filters}, where);
}
Array attention(const Array& q, const Array& k, const Array& v, const op::Attention& attributes, Here where) {
  return apply_op(Op(attributes), {q, k, v}, where);
}
Array attention(const Array& q, const Array& k, const Array& v, const Array& mask, const op::Attention& attributes, Here where) {
  return apply_op(Op(attributes), {q, k, v, mask}, where);
}
Array rope(const Array& x, const Array& cos, const Array& sin, const op::Rope& attributes, Here where) {
  return apply_op(Op(attributes), {x, cos, sin}, where);
}
Array axial_rope2d(const Array& x, const op::AxialRope2d& attributes, Here where) {
  return apply_op(Op(attributes), {x}, where);
}
Array gaussian_splat_render(const Array& positions, const Array& scales, const Array& rotations, const Array& opacities, const Array& colors, const Array& sh_coeffs, const Array& meta, const op::GaussianSplatRender& attributes, Here where) {
  return apply_op(Op(attributes), {positions, scales, rotations, opacities, colors, sh_coeffs, meta}, where);
}
std::array<Array, 7> gaussian_splat_prepare(const Array& positions, const Array& scales, const Array& rotations, const Array& opacities, const Array& colors, const Array& sh_coeffs, const Array& meta, const op::GaussianSplatPrepare& attributes, Here where) {
  return apply_op_some<7>(Op(attributes), {positions, scales, rotations, opacities, colors, sh_coeffs, meta}, where);
}
Array gaussian_splat_rasterize(const Array& color_alpha, const Array& pos_local, const Array& inv_scale, const Array& quaternion, const Array& ids, const Array& tile_ranges, const Array& rays, const Array& meta, const op::GaussianSplatRasterize& attributes, Here where) {
  return apply_op(Op(attributes), {color_alpha, pos_local, inv_scale, quaternion, ids, tile_ranges, rays, meta}, where);
}
// clang-format on

}  // namespace ricci
