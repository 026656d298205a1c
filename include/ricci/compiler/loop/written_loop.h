// A loop with a small body, written out: the arrays a trip works with and, one after another, what
// fills each of them. A target makes one function of it, whose arrays are registers as far as there
// are any, or walks it element by element.
//
//   body(s0, s1) -> (s3) {
//     s2[4] : f32 = tanh s0
//     s3[4] : f32 = add s2, s1
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ricci/compiler/loop/kernel.h"
#include "ricci/compiler/loop/layout.h"
#include "ricci/compiler/loop/loop_plan.h"
#include "ricci/type/tensor.h"

namespace ricci::loop {

/// An array of a body, by position.
using StorageId = std::int32_t;

struct Storage {
  DType dtype = DType::F32;
  std::int64_t elements = 0;
  std::optional<Tensor> constant = {};  ///< its elements, when every trip finds the same ones
};

/// What an item reads: elements of an array, one number, or the place itself.
struct StoredRead {
  StorageId storage = -1;
  Layout layout;
};
struct SplatRead {
  DType dtype = DType::F32;
  Number number = 0.0;
};
struct SequenceRead {
  DType dtype = DType::I64;
  Layout layout;
};
using Read = std::variant<StoredRead, SplatRead, SequenceRead>;

/// Fills an array, or a part of it.
struct WrittenItem {
  enum class Kind : std::uint8_t {
    Pointwise,  ///< to[i] = f(reads[i]…) for all i of `dims`
    Reduction,  ///< combines reads[0] over the `reduced` axes of `dims`; the result is row-major
    Product,    ///< of matrices [m, k] and [k, n]; `dims` is [m, k, n], the result row-major
  };
  Kind kind = Kind::Pointwise;
  std::vector<std::int64_t> dims;
  std::vector<Read> reads;  ///< Product: with their own two axes
  /// Pointwise: Copy, Unary, Binary, Compare, Select or Cast; its registers mean nothing. Of others
  /// the dtype of the result.
  Instr instr;
  ReduceKind reduce = ReduceKind::Sum;
  std::vector<bool> reduced;
  StorageId storage = -1;
  Layout to;  ///< Pointwise
};

/// Storages are filled in order, from the inputs and constants to the outputs.
struct WrittenBody {
  std::vector<Storage> storages;
  std::vector<WrittenItem> items;
  std::vector<StorageId> inputs;
  std::vector<StorageId> outputs;
};

struct WrittenLoop {
  LoopPlan plan;
  WrittenBody body;
  std::optional<WrittenBody> condition = {};
};

[[nodiscard]] DType read_dtype(const WrittenBody& body, const Read& read);
[[nodiscard]] std::vector<ArraySize> sizes(const WrittenBody& body,
                                           const std::vector<StorageId>& storages);

/// How long it is: instructions, each for a vector of `vector_bytes`.
[[nodiscard]] std::int64_t vector_instructions(const WrittenLoop& loop, std::int64_t vector_bytes);
/// What one trip computes, in arithmetic of any dtype.
[[nodiscard]] double flops_per_trip(const WrittenLoop& loop);

/// What is wrong with a loop between arrays of these sizes: see `find_fault` of plans; and items
/// that are none, read what is not there yet, or reach outside an array. It may come from anywhere.
[[nodiscard]] std::optional<std::string> find_fault(const WrittenLoop& loop,
                                                    std::vector<ArraySize> operands,
                                                    std::vector<std::optional<ArraySize>> results);

/// What a body computes, for reports: `mul+add+tanh`.
[[nodiscard]] std::string functions_of(const WrittenBody& body);
/// Readable text; the same loop always prints the same.
[[nodiscard]] std::string to_string(const WrittenLoop& loop);

}  // namespace ricci::loop
