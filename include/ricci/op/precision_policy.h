// Policies of mixed precision: in which dtype each class of ops computes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/quant.h"
#include "ricci/type/dtype.h"

namespace ricci {

/// Products of numbers in FP8 (matmul, dot_general and conv of f32 values). Each operand is divided
/// by a scale that takes its largest magnitude, found in every run, to the largest code, rounded,
/// multiplied in the policy's `compute` (F32 or BF16, which hold codes exactly), and the result is
/// scaled in f32. Cotangents of the result are rounded too, when a gradient is made of the graph.
/// Codes are floats of 8 bits that are multiplied as what they stand for: numbers are those of FP8,
/// on every device.
struct Fp8Recipe {
  CodeKind operands = CodeKind::E4m3;
  CodeKind cotangents = CodeKind::E5m2;
};

/// In which dtype ops compute on f32 values: F32 (as they are), F16 or BF16.
struct PrecisionPolicy {
  DType compute = DType::F32;        ///< products, convolutions, attention
  DType reduction = DType::F32;      ///< norms, softmax, sums, scans over time, losses
  DType elementwise = DType::F32;    ///< functions of single elements
  DType data_movement = DType::F32;  ///< what moves elements

  /// What single ops do, whatever their class: the last rule that matches a node holds. A pattern
  /// has `*` for any characters and `?` for one, and is compared with the op's name (`exp`), the
  /// names of the node's results, and the label its builder gave it (`encoder/attention`).
  struct Rule {
    std::string pattern;
    DType dtype = DType::F32;
    bool ops_only = false;  ///< compared with the op's name alone
  };
  std::vector<Rule> rules = {};

  /// Products in FP8: all, or those that rules leave in `compute`.
  std::optional<Fp8Recipe> fp8 = std::nullopt;

  /// Whether no op computes in another dtype than f32.
  [[nodiscard]] bool keeps_all() const;

  /// Nothing changes.
  [[nodiscard]] static PrecisionPolicy always_f32();
  /// Everything in f16.
  [[nodiscard]] static PrecisionPolicy always_f16();
  /// f16, but reductions, exponentials, logarithms, powers, quotients and solves in f32.
  [[nodiscard]] static PrecisionPolicy auto_mixed_conservative();
  /// f16, but solves in f32.
  [[nodiscard]] static PrecisionPolicy auto_mixed();
  /// bf16, but solves in f32.
  [[nodiscard]] static PrecisionPolicy auto_mixed_bf16();
  /// Products in FP8, multiplied in bf16; everything else in f32.
  [[nodiscard]] static PrecisionPolicy auto_mixed_fp8();
};

/// The policies above by name; all but the first are passes of that name too.
struct NamedPolicy {
  std::string_view name;
  std::string_view help;
  PrecisionPolicy (*make)();
};
[[nodiscard]] std::span<const NamedPolicy> precision_policies();
/// UserError(name) with a suggestion for a name none has.
[[nodiscard]] PrecisionPolicy precision_policy_named(std::string_view name);

}  // namespace ricci
