// Attention with many heads: causal or not, rotary positions, heads that share keys and values, and
// a cache of keys and values for decoding.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "ricci/array/array.h"
#include "ricci/array/tree.h"
#include "ricci/nn/linear.h"

namespace ricci::nn {

/// Keys and values of the places so far.
struct KvCache {
  Array k, v;    ///< [batch, places, kv_heads·head width]
  Array length;  ///< i32: how many places have a value
};

/// Keys and values of sequences of different lengths, one a row.
struct KvRows {
  Array k, v;  ///< [rows, places, kv_heads·head width]
};

/// Where the new places of such sequences are.
struct StepPlaces {
  Array first;  ///< i32 [rows]: how many places of a row come before
  Array count;  ///< i32 [rows]: how many of the new places count; those behind are padding
};

struct MultiHeadAttentionOptions {
  std::int64_t kv_heads = 0;  ///< heads of keys and values, shared by groups; 0: all have their own
  bool causal = false;
  std::optional<double> rope = {};  ///< rotary positions with this base, 10000 usually
  std::int64_t memory_width = 0;    ///< of what keys and values are made of; 0: the same
  bool bias = true;
  Initializer init = glorot_uniform;
  DType dtype = DType::F32;
};

/// softmax(q kᵀ/√(head width)) v in every head, x [batch, places, width].
struct MultiHeadAttention {
  Linear q, k, v, out;
  std::int64_t heads = 1, kv_heads = 1;
  bool causal = false;
  std::optional<double> rope = {};

  MultiHeadAttention() = default;
  MultiHeadAttention(std::int64_t width, std::int64_t head_count,
                     const MultiHeadAttentionOptions& options = {});
  [[nodiscard]] Array operator()(const Array& x, Here where = Here::current()) const;
  /// Keys and values of something else, [batch, other places, memory width].
  [[nodiscard]] Array operator()(const Array& x, const Array& memory,
                                 Here where = Here::current()) const;

  /// Room for so many places.
  [[nodiscard]] KvCache make_cache(std::int64_t batch, std::int64_t places) const;
  /// The next places of a sequence, which see those in the cache and, up to their own, each other:
  /// what the whole sequence would give there, causally. UserError when there is no room and the
  /// length is known.
  [[nodiscard]] std::pair<Array, KvCache> decode(const Array& x, const KvCache& cache,
                                                 Here where = Here::current()) const;

  /// The next places of sequences of different lengths. Of `past` a row's first `at.first` places
  /// are read and nothing is written: what comes with the result are keys and values of the new
  /// places, [rows, new places, ..], for the owner of the past to put behind it.
  [[nodiscard]] std::pair<Array, KvRows> advance(const Array& x, const KvRows& past,
                                                 const StepPlaces& at,
                                                 Here where = Here::current()) const;
  /// What `advance` takes as a past, all zeros.
  [[nodiscard]] KvRows make_past(std::int64_t rows, std::int64_t places) const;

  void visit(TreeVisitor& visitor) {
    visitor.visit("q", q);
    visitor.visit("k", k);
    visitor.visit("v", v);
    visitor.visit("out", out);
    visitor.visit("heads", heads);
    visitor.visit("kv_heads", kv_heads);
    visitor.visit("causal", causal);
    visitor.visit("rope", rope);
  }

 private:
  [[nodiscard]] std::int64_t head_width() const { return q.out_width() / heads; }
  // Turned by their places, which start at `first`.
  [[nodiscard]] Array turned(const Array& x, const Array& first, Here where) const;
  // The same with a place for every row of [rows, heads·head width].
  [[nodiscard]] Array turned_to(const Array& x, const Array& places, Here where) const;
};

}  // namespace ricci::nn
