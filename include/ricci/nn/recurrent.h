// Recurrent layers over sequences [batch, places, width]. Gates lie as PyTorch has them, its
// weights transposed.
#pragma once

#include <cstdint>
#include <optional>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/initializers.h"

namespace ricci::nn {

struct RecurrentOptions {
  Initializer init = glorot_uniform;
  Initializer hidden_init = orthogonal;
  DType dtype = DType::F32;
};

/// i, f, o = σ(..), g = tanh(..), of x·w_in + h·w_hidden + b in the order i, f, g, o;
/// c ← f·c + i·g;  h ← o·tanh(c)
struct LSTM {
  Array w_in;      ///< [in, 4·hidden]
  Array w_hidden;  ///< [hidden, 4·hidden]
  Array b;         ///< [4·hidden]: the sum of PyTorch's two

  struct State {
    Array h, c;  ///< [batch, hidden]
  };
  struct Result {
    Array y;  ///< h of every place, [batch, places, hidden]
    State last;
  };

  LSTM() = default;
  LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {});
  /// From a state, or from zeros.
  [[nodiscard]] Result operator()(const Array& x, const std::optional<State>& start = {},
                                  Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w_in", w_in);
    v.visit("w_hidden", w_hidden);
    v.visit("b", b);
  }
};

/// r, z = σ(x·w_in + h·w_hidden + biases), n = tanh(x·w_in + b + r·(h·w_hidden + b_hidden)), in the
/// order r, z, n;  h ← (1 - z)·n + z·h
struct GRU {
  Array w_in;      ///< [in, 3·hidden]
  Array w_hidden;  ///< [hidden, 3·hidden]
  Array b;         ///< [3·hidden]
  Array b_hidden;  ///< [3·hidden]

  struct Result {
    Array y;     ///< [batch, places, hidden]
    Array last;  ///< [batch, hidden]
  };

  GRU() = default;
  GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {});
  [[nodiscard]] Result operator()(const Array& x, const std::optional<Array>& start = {},
                                  Here where = Here::current()) const;
  void visit(TreeVisitor& v) {
    v.visit("w_in", w_in);
    v.visit("w_hidden", w_hidden);
    v.visit("b", b);
    v.visit("b_hidden", b_hidden);
  }
};

}  // namespace ricci::nn
