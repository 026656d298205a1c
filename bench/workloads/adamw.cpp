#include "workloads/adamw.h"

#include <cmath>

namespace ricci::bench {

AdamWStep next_step(Value steps, const AdamW& settings) {
  const Value count = steps + 1.0;
  // 1 - βᵗ as -expm1(t log β): in f32 the power is too close to one to be subtracted.
  const auto correction = [&](double beta) { return -expm1(count * std::log(beta)); };
  return {.count = count,
          .step_size = settings.learning_rate / correction(settings.beta1),
          .second_root = sqrt(correction(settings.beta2))};
}

AdamWUpdate adamw_update(const AdamWUpdate& before, Value gradient, const AdamWStep& step,
                         const AdamW& settings) {
  const Value first = before.first * settings.beta1 + gradient * (1 - settings.beta1);
  const Value second = before.second * settings.beta2 + square(gradient) * (1 - settings.beta2);
  const Value decayed = before.param * (1 - settings.learning_rate * settings.weight_decay);
  const Value denominator = sqrt(second) / step.second_root + settings.epsilon;
  return {
      .param = decayed - step.step_size * first / denominator, .first = first, .second = second};
}

}  // namespace ricci::bench
