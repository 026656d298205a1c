#include "ricci/nn/losses.h"

#include "ricci/array/create.h"
#include "ricci/array/more.h"
#include "ricci/array/nn.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"

#include "array/wide.h"
#include "nn/layer.h"
#include "support/float_environment.h"

namespace ricci::nn {
namespace {

Array mean_of(const Array& x, Here where) { return mean(x, {}, false, where); }

}  // namespace

Array cross_entropy(const Array& logits, const Array& classes, const CrossEntropyOptions& options,
                    Here where) {
  const DefaultFloatEnvironment floats;
  const double smooth = options.label_smoothing;
  require_setting(smooth >= 0 && smooth <= 1, "cross_entropy", "a smoothing in [0, 1]");
  // A class that is ignored may be no class at all: 0 is looked up in its place.
  const Array counts = options.ignored ? ne(classes, *options.ignored, where) : Array();
  const Array known = counts.valid() ? ricci::where(counts, classes, 0, where) : classes;
  const auto of = [&](const Array& z) {
    const Array log_p = log_softmax(z, -1, where);
    const Array picked = squeeze(take_along_axis(log_p, expand_dims(known, -1, where), -1, where),
                                 one_axis(-1), where);
    const Array even = mean(log_p, -1, false, where);
    const Array each =
        neg(add(mul(picked, 1 - smooth, where), mul(even, smooth, where), where), where);
    if (!counts.valid()) return mean_of(each, where);
    const Array many = cast(sum(counts, {}, false, where), each.dtype(), where);
    return div(sum(ricci::where(counts, each, 0.0, where), {}, false, where), max(many, 1, where),
               where);
  };
  return detail::in_wide(where, of, logits);
}

Array focal_loss(const Array& logits, const Array& target, const FocalOptions& options,
                 Here where) {
  const DefaultFloatEnvironment floats;
  const Array entropy = sub(softplus(logits, where), mul(logits, target, where), where);
  const Array p = sigmoid(logits, where);
  const Array other = sub(1, target, where);
  const Array missed = add(mul(target, sub(1, p, where), where), mul(other, p, where), where);
  Array each = mul(entropy, pow(missed, options.gamma, where), where);
  if (options.alpha >= 0) {
    const Array weight =
        add(mul(target, options.alpha, where), mul(other, 1 - options.alpha, where), where);
    each = mul(each, weight, where);
  }
  return mean_of(each, where);
}

Array triplet_loss(const Array& anchor, const Array& positive, const Array& negative, double margin,
                   Here where) {
  const auto distance = [&](const Array& x) {
    return norm(sub(anchor, x, where), -1, false, where);
  };
  const Array gap = sub(distance(positive), distance(negative), where);
  return mean_of(relu(add(gap, margin, where), where), where);
}

Array hinge_loss(const Array& score, const Array& target, Here where) {
  return mean_of(relu(sub(1, mul(score, target, where), where), where), where);
}

Array gaussian_nll_loss(const Array& mean, const Array& target, const Array& var, double eps,
                        Here where) {
  const Array spread = max(var, eps, where);
  const Array miss = div(square(sub(mean, target, where), where), spread, where);
  return mul(mean_of(add(log(spread, where), miss, where), where), 0.5, where);
}

Array poisson_nll_loss(const Array& log_rate, const Array& target, Here where) {
  return mean_of(sub(exp(log_rate, where), mul(target, log_rate, where), where), where);
}

Array contrastive_loss(const Array& a, const Array& b, double temperature, Here where) {
  require_setting(temperature > 0, "contrastive_loss", "a positive temperature");
  const Array rows = normalize(a, -1, 1e-12, where);
  const Array columns = transpose(normalize(b, -1, 1e-12, where), {}, where);
  const Array scores = div(matmul(rows, columns, where), temperature, where);
  const Array own = arange(a.dim(0).value());
  const Array both = add(ricci::cross_entropy(scores, own, where),
                         ricci::cross_entropy(transpose(scores, {}, where), own, where), where);
  return mul(both, 0.5, where);
}

}  // namespace ricci::nn
