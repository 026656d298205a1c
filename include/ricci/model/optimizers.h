// The optimisers. Each is one declaration: its settings with the formula they are in, which of them
// must be in which range (`fields`), what it keeps for a param (`slots`), and its rule (`update`);
// `scalars`, where there is one, has what the rule needs once a step. Names of states, checks,
// saving and restoring follow from that. To add one: a struct here and its name in `Optimizer`, a
// file in src/model/optimizers/, and a test.
//
// In formulas g is the gradient, p the param, t the number of the step from 1 on, lr the learning
// rate; products and roots go element by element, and bars are means over a whole param.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/build/build.h"
#include "ricci/model/schedule.h"

namespace ricci {

/// What a state is when the first step begins. Before it, where params lie, there are zeros.
enum class SlotStart : std::uint8_t {
  Zeros,
  Param,     ///< the param's value
  Filled,    ///< `StateSlot::value` everywhere
  Identity,  ///< `StateSlot::value` times the identity matrix
};
/// Something an optimiser keeps for a param from step to step.
struct StateSlot {
  std::string_view name;
  Type type;
  SlotStart start = SlotStart::Zeros;
  double value = 1;
};

/// What the steps taken so far do to an update; the same for every param. Scalars in f32 or f64.
struct OptimizerStep {
  Value learning_rate;
  Value count;                      ///< of steps, this one included; a float
  std::vector<Value> scalars = {};  ///< as the optimiser's `scalars` gives them
};

/// What a rule is given: all in the dtype the param is computed in, which is never f16 or bf16.
struct ParamStep {
  Value param;
  std::vector<Value> state;  ///< as `slots` lists it
  Value gradient;
  OptimizerStep step;
  /// An estimate of the Hessian's diagonal, of the param's type, for optimisers that ask for one
  /// (`needs_curvature`); only in steps t with (t - 1) mod `interval` = 0.
  Value curvature = {};
};

struct OptimizerUpdate {
  Value param;
  std::vector<Value> state;  ///< as `slots` lists it
};

/// Which numbers a setting may be.
enum class SettingRange : std::uint8_t { NotNegative, Positive, Fraction, Count };

/// g ← g + decay·p;  m ← momentum·m + g;  p ← p - lr·m, or with Nesterov p - lr·(g + momentum·m).
struct Sgd {
  Schedule learning_rate = 1e-2;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;

  static constexpr std::string_view name = "sgd";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("momentum", self.momentum, SettingRange::Fraction);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// g ← g + decay·p;  m ← β₁ m + (1 - β₁) g;  v ← β₂ v + (1 - β₂) g²;
/// p ← p - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)   (Kingma and Ba, 2014)
struct Adam {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr std::string_view name = "adam";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta1", self.beta1, SettingRange::Fraction);
    f("beta2", self.beta2, SettingRange::Fraction);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Adam with the decay apart from the gradient: p ← p (1 - lr·decay) - …
/// (Loshchilov and Hutter, 2017)
struct AdamW {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  static constexpr std::string_view name = "adamw";
  static void fields(auto& self, auto&& f) { Adam::fields(self, f); }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Adam that looks ahead: m̂ = β₁ m / (1 - β₁ᵗ⁺¹) + (1 - β₁) g / (1 - β₁ᵗ), with m already updated.
/// The decay is AdamW's. (Dozat, 2016)
struct NAdam {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;

  static constexpr std::string_view name = "nadam";
  static void fields(auto& self, auto&& f) { Adam::fields(self, f); }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Adam whose second moment counts once it rests on enough steps. With ρ∞ = 2/(1 - β₂) - 1 and
/// ρ = ρ∞ - 2t β₂ᵗ/(1 - β₂ᵗ): from `threshold` on Adam's step times
/// √((ρ - 4)(ρ - 2) ρ∞ / ((ρ∞ - 4)(ρ∞ - 2) ρ)), before that p ← p - lr·m / (1 - β₁ᵗ). The decay is
/// AdamW's. (Liu and others, 2019)
struct RAdam {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double threshold = 5;

  static constexpr std::string_view name = "radam";
  static void fields(auto& self, auto&& f) {
    Adam::fields(self, f);
    f("threshold", self.threshold, SettingRange::Positive);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// u = Adam's direction + decay·p;  p ← p - lr · (|p| / |u|) · u with Euclidean norms of the whole
/// param; their quotient is 1 where either is 0. (You and others, 2019)
struct Lamb {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0;

  static constexpr std::string_view name = "lamb";
  static void fields(auto& self, auto&& f) { Adam::fields(self, f); }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// p ← p - lr · (sign(β₁ m + (1 - β₁) g) + decay·p);  m ← β₂ m + (1 - β₂) g
/// (Chen and others, 2023)
struct Lion {
  Schedule learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 1e-3;

  static constexpr std::string_view name = "lion";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta1", self.beta1, SettingRange::Fraction);
    f("beta2", self.beta2, SettingRange::Fraction);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// g ← g + decay·p;  v ← decay_rate·v + (1 - decay_rate) g²;  u = lr · g / √(v + ε), with
/// `centered` g / √(v - a² + ε) where a is the like mean of g;  p ← p - u, or with momentum m ←
/// momentum·m + u and p ← p - m, with Nesterov p - (u + momentum·m). (Hinton; Graves, 2013)
struct RmsProp {
  Schedule learning_rate = 1e-3;
  double decay_rate = 0.9;
  double epsilon = 1e-8;
  double momentum = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool centered = false;

  static constexpr std::string_view name = "rmsprop";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("decay_rate", self.decay_rate, SettingRange::Fraction);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("momentum", self.momentum, SettingRange::Fraction);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// g ← g + decay·p;  s ← s + g², from `initial` on;  p ← p - lr · g / √(s + ε), 0 where s is 0.
/// (Duchi and others, 2011)
struct Adagrad {
  Schedule learning_rate = 1e-2;
  double initial = 0.1;
  double epsilon = 1e-7;
  double weight_decay = 0;

  static constexpr std::string_view name = "adagrad";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("initial", self.initial, SettingRange::NotNegative);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Second moments as the product of what rows and columns have: r and c follow the means of g² + ε
/// along the longest and the second longest axis with β = 1 - t^(-decay_rate);
/// u = g / √(r c / r̄), without factors g / √v;  u ← u / max(1, rms(u) / clip);
/// u ← lr · u · max(rms(p), 10⁻³) unless `scale_by_param` is off, averaged with `momentum` if there
/// is one;  p ← p - u - decay·p. A param is factored when both axes have at least `factored_from`
/// elements. (Shazeer and Stern, 2018)
struct Adafactor {
  Schedule learning_rate = inverse_sqrt(1e-2, 10000);
  double decay_rate = 0.8;
  double epsilon = 1e-30;
  double clip = 1;
  double momentum = 0;
  double weight_decay = 0;  ///< not multiplied by the learning rate
  std::int64_t factored_from = 128;
  bool scale_by_param = true;

  static constexpr std::string_view name = "adafactor";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("decay_rate", self.decay_rate, SettingRange::Positive);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("clip", self.clip, SettingRange::Positive);
    f("momentum", self.momentum, SettingRange::Fraction);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
    f("factored_from", self.factored_from, SettingRange::Count);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Matrices [in, out] move along a matrix with singular values near 1: m ← β m + (1 - β) g;
/// x = m̂ / (|m̂| + ε), with Nesterov's m̂ as in NAdam, then `iterations` times
/// x ← 3.4445 x - 4.7750 (x xᵀ) x + 2.0315 (x xᵀ)² x;
/// p ← p (1 - lr·decay) - lr · √max(1, out/in) · x. Other params follow AdamW with adam_beta1 and
/// adam_beta2. (Jordan and others, 2024)
struct Muon {
  Schedule learning_rate = 2e-2;
  double beta = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0;
  std::int64_t iterations = 5;
  bool nesterov = true;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;

  static constexpr std::string_view name = "muon";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta", self.beta, SettingRange::Fraction);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
    f("iterations", self.iterations, SettingRange::Count);
    f("adam_beta1", self.adam_beta1, SettingRange::Fraction);
    f("adam_beta2", self.adam_beta2, SettingRange::Fraction);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Adam in the eigenbasis of Shampoo's preconditioners, for matrices; other params follow AdamW.
/// l and r follow g gᵀ and gᵀ g with β₂. The first step only takes their eigenvectors as bases a
/// and b. Then m ← β₁ m + (1 - β₁) g;  v ← β₂ v + (1 - β₂) (aᵀ g b)²;
/// p ← p - lr · a ((aᵀ m̂ b) / (√v̂ + ε)) bᵀ - lr·decay·p, where t is less by the first step;
/// every `interval` steps afterwards a ← Q of the QR factors of l a, and b alike. A side longer
/// than `longest_side` has no basis. (Vyas and others, 2024)
struct Soap {
  Schedule learning_rate = 3e-3;
  double beta1 = 0.95;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::int64_t interval = 10;
  std::int64_t longest_side = 10000;

  static constexpr std::string_view name = "soap";
  static void fields(auto& self, auto&& f) {
    Adam::fields(self, f);
    f("interval", self.interval, SettingRange::Count);
    f("longest_side", self.longest_side, SettingRange::Count);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Preconditioned by a Kronecker product of two triangular factors that whiten the gradient.
/// m ← β₁ m + (1 - β₁) g;  every `interval` steps, with x = a m̂ bᵀ,
/// a ← a - rate·triu(x xᵀ - y) a / |x xᵀ + y|, where y = tr((bᵀ b)⁻¹) (a aᵀ)⁻¹, and b alike with xᵀ
/// (|·| is Frobenius' norm; y is the mean over probes of what the method estimates with one);
/// u = aᵀ a m̂ bᵀ b, brought down to a root mean square of `clip`;  p ← p - lr · (u + decay·p).
/// A side longer than `longest_side`, and params that are not matrices, have a diagonal factor.
/// (Li, 2015; Pooladzandi and Li, 2024)
struct PsgdKron {
  Schedule learning_rate = 3e-4;
  double beta1 = 0.9;
  double weight_decay = 0;
  double rate = 0.1;  ///< of the factors
  double clip = 1.1;
  double initial = 1;  ///< the scale of the first preconditioner's root
  std::int64_t interval = 1;
  std::int64_t longest_side = 8192;

  static constexpr std::string_view name = "psgd_kron";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta1", self.beta1, SettingRange::Fraction);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
    f("rate", self.rate, SettingRange::Positive);
    f("clip", self.clip, SettingRange::Positive);
    f("initial", self.initial, SettingRange::Positive);
    f("interval", self.interval, SettingRange::Count);
    f("longest_side", self.longest_side, SettingRange::Count);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Averages instead of a schedule. Gradients are taken at p = β₁ x + (1 - β₁) z:
/// v ← β₂ v + (1 - β₂) g²;  z ← z - lr · (g / (√v̂ + ε) + decay·p);  with w = (largest lr so
/// far)^power and c = w / Σ w, x ← (1 - c) x + c z. Models are evaluated at x, which
/// `TrainingStep::averaged` gives. (Defazio and others, 2024)
struct ScheduleFreeAdamW {
  Schedule learning_rate = 2.5e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double power = 2;

  static constexpr std::string_view name = "schedule_free_adamw";
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta1", self.beta1, SettingRange::Fraction);
    f("beta2", self.beta2, SettingRange::Fraction);
    f("epsilon", self.epsilon, SettingRange::NotNegative);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
    f("power", self.power, SettingRange::NotNegative);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
  /// x
  [[nodiscard]] Value averaged(const OptimizerUpdate& now) const;
};

/// m ← β₁ m + (1 - β₁) g;  u = m̂ / max(γ h, ε) kept within [-clip, clip];
/// p ← p - lr · (u + decay·p);  in the first and every `interval`-th step afterwards, behind that,
/// h ← β₂ h + (1 - β₂) ĥ, where ĥ = s · (H s) with random signs s estimates the diagonal of the
/// Hessian at p (Hutchinson). (Liu and others, 2023)
struct Sophia {
  Schedule learning_rate = 1e-3;
  double beta1 = 0.965;
  double beta2 = 0.99;
  double epsilon = 1e-8;
  double weight_decay = 1e-4;
  double gamma = 0.01;
  double clip = 1;
  std::int64_t interval = 10;

  static constexpr std::string_view name = "sophia";
  static constexpr bool needs_curvature = true;
  static void fields(auto& self, auto&& f) {
    f("learning_rate", self.learning_rate, SettingRange::NotNegative);
    f("beta1", self.beta1, SettingRange::Fraction);
    f("beta2", self.beta2, SettingRange::Fraction);
    f("epsilon", self.epsilon, SettingRange::Positive);
    f("weight_decay", self.weight_decay, SettingRange::NotNegative);
    f("gamma", self.gamma, SettingRange::Positive);
    f("clip", self.clip, SettingRange::Positive);
    f("interval", self.interval, SettingRange::Count);
  }
  [[nodiscard]] std::vector<StateSlot> slots(const Type& param) const;
  [[nodiscard]] std::vector<Value> scalars(const OptimizerStep& step) const;
  [[nodiscard]] OptimizerUpdate update(const ParamStep& now) const;
};

/// Every optimiser there is; L-BFGS, which takes more than a gradient a step, has a driver of its
/// own (ricci/model/lbfgs.h).
using Optimizer = std::variant<Sgd, Adam, AdamW, NAdam, RAdam, Lamb, Lion, RmsProp, Adagrad,
                               Adafactor, Muon, Soap, PsgdKron, ScheduleFreeAdamW, Sophia>;

}  // namespace ricci
