// Linear maps and tables of vectors.
#pragma once

#include <cstdint>
#include <optional>

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

  Linear() = default;
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w", w);
    v.visit("b", b);
    v.visit("adapter", adapter);
  }

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

  Embedding() = default;
  Embedding(std::int64_t count, std::int64_t width, const EmbeddingOptions& options = {});
  [[nodiscard]] Array operator()(const Array& indices, Here where = Here::current()) const;
  /// x·wᵀ: the same table as the last layer, [.., width] to [.., count].
  [[nodiscard]] Array attend(const Array& x, Here where = Here::current()) const;
  void visit(TreeVisitor& v) { v.visit("w", w); }
};

}  // namespace ricci::nn
