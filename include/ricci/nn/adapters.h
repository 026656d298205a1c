// Fine-tuning a few numbers of a large model: adapters on the linear maps whose names match a
// pattern. The model stays of its type; a Linear carries its adapter, as leaves under `adapter`.
//
//   Net tuned = nn::adapt(net, "*.attention.*", nn::LoRA{.rank = 8});
//   Trainer train(tuned, loss, AdamW{}, {.trainable = nn::is_adapter});
//   Net plain = nn::merge_adapters(train.model());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/array/tree.h"
#include "ricci/nn/linear.h"

namespace ricci::nn {

/// w + alpha/rank · a·b, with b zero at first (Hu et al., 2021).
struct LoRA {
  std::int64_t rank = 8;
  double alpha = 16;
};
/// The same with every column of the weight brought to a learned length (Liu et al., 2024).
struct DoRA {
  std::int64_t rank = 8;
  double alpha = 16;
};
/// A learned factor for every output, 1 at first (Liu et al., 2022).
struct IA3 {};
using AdapterKind = std::variant<LoRA, DoRA, IA3>;

/// Whether a leaf belongs to an adapter: for TrainerOptions::trainable.
[[nodiscard]] bool is_adapter(std::string_view name);
/// `*` stands for any characters, `?` for one.
[[nodiscard]] bool matches(std::string_view name, std::string_view pattern);

}  // namespace ricci::nn

namespace ricci::detail {

/// Calls `at` for every Linear of a tree, with its name.
class LinearVisitor : public NamingVisitor {
 public:
  void array(Array&) override {}
  void object(const TreeType& type, void* self) override {
    if (type.id == TreeTypeOf<nn::Linear>.id) at(path(), *static_cast<nn::Linear*>(self));
  }

 protected:
  virtual void at(const std::string& name, nn::Linear& linear) = 0;
};

class Adapting final : public LinearVisitor {
 public:
  Adapting(std::string pattern, nn::AdapterKind kind);
  /// UserError(name) when nothing was adapted.
  void require_some() const;

 protected:
  void at(const std::string& name, nn::Linear& linear) override;

 private:
  std::string pattern_;
  nn::AdapterKind kind_;
  std::size_t adapted_ = 0;
  std::vector<std::string> others_;
};

class Merging final : public LinearVisitor {
 protected:
  void at(const std::string& name, nn::Linear& linear) override;
};

}  // namespace ricci::detail

namespace ricci::nn {

/// The model with new adapters on its linear maps whose names match; they change nothing yet.
template <class Model>
[[nodiscard]] Model adapt(Model model, std::string_view pattern, AdapterKind kind = LoRA{}) {
  ricci::detail::Adapting visitor{std::string(pattern), kind};
  visitor.visit(model);
  visitor.require_some();
  return model;
}

/// The model with its adapters worked into the weights, and without them.
template <class Model>
[[nodiscard]] Model merge_adapters(Model model) {
  ricci::detail::Merging().visit(model);
  return model;
}

}  // namespace ricci::nn
