// Linear maps and tables of vectors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/initializers.h"

namespace ricci::nn {

/// What fine-tuning adds to a weight w [in, out] that stays as it is: see ricci/nn/adapters.h.
struct Adapter {
  enum class Kind : std::uint8_t { LoRA, DoRA, IA3 };
  Kind kind = Kind::LoRA;
  double scale = 1;  ///< alpha / rank
  Array a, b;        ///< [in, rank] and [rank, out]: w + scale·a·b
  Array magnitude;   ///< [out], DoRA: the length of every column of the weight
  Array factor;      ///< [out], IA3: what every output is multiplied by
};

/// A weight [in, out] in few bits, in a scheme of ricci/quant/scheme.h: see ricci/nn/packed.h.
struct PackedWeight {
  std::string scheme;             ///< q4_k, int8_block_32, …
  bool int8_activations = false;  ///< what it is multiplied with is rounded to 8 bits
  std::int64_t in = 0, out = 0;
  Array codes;          ///< u8, or i8, as the scheme has them
  Array scale, offset;  ///< or without a value

  /// x·Ŵ, [.., in] to [.., out].
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
};

struct LinearOptions {
  bool bias = true;
  Initializer init = lecun_normal;
  DType dtype = DType::F32;
};

/// x [.., in] to x·w + b [.., out].
struct Linear {
  Array w;  ///< [in, out]
  Array b;  ///< [out], or without a value
  std::optional<Adapter> adapter = {};
  std::optional<PackedWeight> packed = {};  ///< in the place of w, which has no value then

  Linear() = default;
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("adapter", adapter);
    v.visit("packed", packed);
  }
  [[nodiscard]] std::int64_t in_width() const;
  [[nodiscard]] std::int64_t out_width() const;

  /// The weight with the adapter in it.
  [[nodiscard]] Array effective_weight(Here where = Here::current()) const;
};

struct EmbeddingOptions {
  Initializer init = normal(1.0);
  DType dtype = DType::F32;
};

/// Rows of a table by number: indices [..] to [.., width].
struct Embedding {
  Array w;  ///< [count, width]
  /// What `attend` reads in its place: [width, count] in few bits.
  std::optional<PackedWeight> packed = {};

  Embedding() = default;
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Array operator()(const Array& indices, Here where = Here::current()) const;
  /// x·wᵀ: the same table as the last layer, [.., width] to [.., count].
  [[nodiscard]] Array attend(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("packed", packed);
  }
};

}  // namespace ricci::nn
