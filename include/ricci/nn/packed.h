// Weights in few bits: every linear map of a model, and the tables that are its last layer too,
// decoded on the way while they are multiplied (docs/QUANTIZATION.md, "Weights alone").
//
//   gpt = nn::pack_weights(gpt, "q4_k");
//   gpt = nn::pack_weights(gpt, "q8_0", {.pattern = "blocks.*", .int8_activations = true});
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/array/tree.h"
#include "ricci/nn/adapters.h"
#include "ricci/nn/linear.h"

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
