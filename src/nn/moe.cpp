#include "ricci/array/create.h"
#include "ricci/array/nn.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/transformer.h"

#include "nn/layer.h"

namespace ricci::nn {
namespace {

// One draw a matrix: an initialiser knows nothing of experts.
Array drawn_experts(const Initializer& init, std::int64_t experts, std::int64_t in,
                    std::int64_t out, DType dtype) {
  std::vector<Array> all;
  for (std::int64_t e = 0; e < experts; ++e) {
    all.push_back(drawn_weight("MixtureOfExperts", init, {in, out}, dtype));
  }
  return stack(all);
}

}  // namespace

MixtureOfExperts::MixtureOfExperts(std::int64_t width, std::int64_t hidden, std::int64_t experts,
                                   const MixtureOfExpertsOptions& options)
    : picks(options.picks) {
  require_setting(picks > 0 && picks <= experts, "MixtureOfExperts",
                  "a row picks at least one expert, and each once");
  router = Linear(width, experts, {.bias = false, .dtype = options.dtype});
  w_in = drawn_experts(options.init, experts, width, hidden, options.dtype);
  w_out = drawn_experts(options.init, experts, hidden, width, options.dtype);
}

Array MixtureOfExperts::operator()(const Array& x, Here where) const { return route(x, where).y; }

MixtureOfExperts::Routed MixtureOfExperts::route(const Array& x, Here where) const {
  const std::int64_t width = w_in.dim(1).value();
  const std::int64_t hidden = w_in.dim(2).value();
  const std::int64_t experts = w_in.dim(0).value();
  const Array rows = reshape(x, {-1, width}, where);
  const Array scores = router(rows, where);
  const auto [best, index] = topk(scores, picks, where);
  const Array weights = expand_dims(softmax(best, -1, where), 2, where);
  const Array h = gelu(grouped_matmul(rows, w_in, index, {}, where), where);
  const Array each = grouped_matmul(reshape(h, {-1, hidden}, where), w_out,
                                    reshape(index, {-1}, where), {}, where);
  const Array y =
      sum(mul(reshape(each, {-1, picks, width}, where), weights, where), 1, false, where);
  const Array picked = one_hot(index, experts, scores.dtype(), where);
  const Array share = stop_gradient(mean(picked, {0, 1}, false, where), where);
  const Array probability = mean(softmax(scores, -1, where), 0, false, where);
  const Array balance = mul(sum(mul(share, probability, where), {}, false, where), experts, where);
  return {reshape(y, x.shape(), where), balance};
}

}  // namespace ricci::nn
