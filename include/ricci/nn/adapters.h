// Other weights for linear maps of a model: adapters to fine-tune it by, weights in few bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ricci/array/tree.h"
#include "ricci/nn/layers.h"

// Fine-tuning a few numbers of a large model: adapters on the linear maps whose names match a
// pattern. The model stays of its type; a Linear carries its adapter, as leaves under `adapter`.
//
//   Net tuned = nn::adapt(net, "*.attention.*", nn::LoRA{.rank = 8});
//   Trainer train(tuned, loss, AdamW{}, {.trainable = nn::is_adapter});
//   Net plain = nn::merge_adapters(train.model());

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

// Weights in few bits: every linear map of a model, and the tables that are its last layer too,
// decoded on the way while they are multiplied (docs/QUANTIZATION.md, "Weights alone").
//
//   gpt = nn::pack_weights(gpt, "q4_k");
//   gpt = nn::pack_weights(gpt, "q8_0", {.pattern = "blocks.*", .int8_activations = true});

namespace ricci::nn {

struct PackOptions {
  std::string pattern = "*";      ///< which maps, by name: `*` any characters, `?` one
  bool int8_activations = false;  ///< round what is multiplied to 8 bits: faster, less exact
};

}  // namespace ricci::nn

namespace ricci::detail {

class Packing final : public NamingVisitor {
 public:
  Packing(std::string scheme, nn::PackOptions options);
  void array(Array&) override {}
  void object(const TreeType& type, void* self) override;
  /// UserError(name) when nothing was packed.
  void require_some() const;

 private:
  [[nodiscard]] bool takes(const Array& w, std::int64_t depth);

  std::string scheme_;
  nn::PackOptions options_;
  bool ties_ = true;  // the table of tokens is the last layer
  std::size_t packed_ = 0;
  std::vector<std::string> others_;
};

}  // namespace ricci::detail

namespace ricci::nn {

/// The model with its weights in few bits, in a scheme of ricci/quant/scheme.h: `q4_k`, `q8_0`,
/// `int8_block_32`, …. Maps whose depth is no whole number of blocks, those with adapters, and
/// all arrays that are no weight of a map, stay as they are. Tables of tokens stay too, and get the
/// packed weight beside it for `attend`, where they are a last layer: so a model without a head of
/// its own.
template <class Model>
[[nodiscard]] Model pack_weights(Model model, std::string_view scheme, PackOptions options = {}) {
  ricci::detail::Packing visitor(std::string(scheme), std::move(options));
  visitor.visit(model);
  visitor.require_some();
  return model;
}

}  // namespace ricci::nn
