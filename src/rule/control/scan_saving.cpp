// [scan-save-policy]
#include "rule/control/scan_saving.h"

#include "ricci/build/control.h"

#include "op/loop_layout.h"
#include "rule/control/body_masks.h"
#include "rule/control/saved_values.h"

namespace ricci::rule {
namespace {

class Planner {
 public:
  Planner(const op::Scan& op, const ForwardContext& c)
      : op_(op),
        c_(c),
        body_(*c.node.body("body")),
        layout_(op),
        saving_{op.save, op.save_names, op.save_bytes} {
    const bool unsaid = op.save == ScanSave::Auto && !op.save_bytes && op.num_checkpoints == 0;
    if (!unsaid) return;
    const std::vector<std::string> names = saving_.names;
    saving_ = c.bodies.scan_saving();
    if (!names.empty()) saving_.names = names;
  }

  [[nodiscard]] ScanPlan run() const {
    switch (saving_.policy) {
      case ScanSave::Auto: return saving_.bytes ? within(*saving_.bytes) : carries();
      case ScanSave::All: return cut_or_carries(Saved::All);
      case ScanSave::Matmuls: return cut_or_carries(Saved::Matmuls);
      case ScanSave::Named: return cut_or_carries(Saved::Named);
      case ScanSave::Carries: return carries();
      case ScanSave::Recompute: return recompute(saving_.bytes.value_or(0));
    }
    return carries();
  }

 private:
  [[nodiscard]] ScanPlan carries() const {
    return {ScanSave::Carries, op_.num_checkpoints, std::nullopt};
  }

  // A plan that saves values of the body; nothing when its gradient reads none of them.
  [[nodiscard]] std::optional<ScanPlan> cut(Saved what) const {
    const std::vector<bool> needed =
        loop_closure(c_.needs, layout_.carries,
                     [&](const auto& inputs) { return c_.bodies.depends(body_, inputs); });
    const std::vector<Type> inputs = input_types(body_);
    const std::vector<Type> outputs = output_types(body_);
    const std::vector<bool> seeds = derivative_mask(outputs);
    std::vector<bool> live = c_.live;
    std::vector<bool> varying;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      varying.push_back(!layout_.is_bcast(k));
    }
    for (std::size_t k = 0; k < live.size(); ++k) {
      live[k] = seeds[k] && (k < layout_.carries ? needed[k] : live[k]);
    }
    BodyHalves halves = c_.bodies.halves(
        body_, {.seeds = seeds, .live = live, .wanted = derivative_mask(inputs), .needed = needed},
        varying,
        [&](const Node& node, std::size_t r) { return is_saved(what, saving_.names, node, r); });
    if (halves.saved.empty()) return std::nullopt;
    const auto policy = what == Saved::All       ? ScanSave::All
                        : what == Saved::Matmuls ? ScanSave::Matmuls
                                                 : ScanSave::Named;
    return ScanPlan{policy, op_.num_checkpoints, std::move(halves)};
  }
  [[nodiscard]] ScanPlan cut_or_carries(Saved what) const {
    auto plan = cut(what);
    return plan ? *std::move(plan) : carries();
  }

  // Bytes of one row of types; nothing when a size is not known.
  [[nodiscard]] static std::optional<std::int64_t> bytes_of(std::span<const Type> types) {
    std::int64_t total = 0;
    for (const Type& type : types) {
      const auto count = type.numel();
      if (!count) return std::nullopt;
      total += *count * size_of(type.dtype);
    }
    return total;
  }
  [[nodiscard]] std::vector<Type> carry_types() const {
    return StepOperands<Type>(layout_, input_types(body_)).carries;
  }
  // What a gradient keeps besides the scan's own results.
  [[nodiscard]] bool fits(const BodyHalves* halves, std::int64_t budget) const {
    std::vector<Type> kept = op_.save_trajectory ? std::vector<Type>{} : carry_types();
    if (halves != nullptr) {
      const std::vector<Type> outputs = output_types(*halves->forward);
      kept.insert(kept.end(), outputs.begin() + static_cast<std::ptrdiff_t>(body_.outputs().size()),
                  outputs.end());
    }
    const auto row = bytes_of(kept);
    const auto length = op_.length.try_value();
    if (!row || !length) return false;
    return *row == 0 || *length <= budget / *row;
  }

  // The plan that computes least again and fits; carries where sizes are not known.
  [[nodiscard]] ScanPlan within(std::int64_t budget) const {
    if (!op_.length.is_static() || !bytes_of(carry_types())) return carries();
    for (const Saved what : {Saved::All, Saved::Named, Saved::Matmuls}) {
      if (what == Saved::Named && saving_.names.empty()) continue;
      auto plan = cut(what);
      if (plan && fits(&*plan->halves, budget)) return *std::move(plan);
    }
    return fits(nullptr, budget) ? carries() : recompute(budget);
  }

  [[nodiscard]] ScanPlan recompute(std::int64_t budget) const {
    const auto length = op_.length.try_value();
    // A trajectory that is a result is there anyway.
    if (op_.num_checkpoints > 0 || op_.save_trajectory || !length || !bytes_of(carry_types())) {
      return carries();
    }
    return {ScanSave::Recompute, checkpoints_for_budget(carry_types(), *length, budget),
            std::nullopt};
  }

  const op::Scan& op_;
  const ForwardContext& c_;
  const Graph& body_;
  ScanLayout layout_;
  ScanSaving saving_;
};

}  // namespace

ScanPlan plan_saving(const op::Scan& op, const ForwardContext& c) { return Planner(op, c).run(); }

}  // namespace ricci::rule
