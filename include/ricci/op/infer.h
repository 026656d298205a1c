// Type inference: from operand types and body signatures to result types. Each rule checks the
// op's labelled constraints in their order; a rule that finds one broken says so with `reject`.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/leaf.h"
#include "ricci/op/op.h"
#include "ricci/support/error.h"

namespace ricci {

/// A constraint that does not hold. Graph builders catch it and add op, operands and place.
struct Rejection {
  ErrorCode code = ErrorCode::Attr;
  std::string detail;  ///< `concat_c2`
  std::string message;
  std::string help;
};

/// What infer may know of a body: its inputs and outputs.
struct BodySignature {
  std::string role;
  std::vector<Type> inputs;
  std::vector<op::InputRole> input_roles;
  std::vector<Type> outputs;
};

/// Result types; those from `optional_from` on are computed only when asked for.
struct Inferred {
  std::vector<Type> types;
  std::optional<std::size_t> optional_from;

  Inferred(std::vector<Type> ts) : types(std::move(ts)) {}  // NOLINT
  Inferred(Type t) { types.push_back(std::move(t)); }       // NOLINT
  Inferred(std::vector<Type> ts, std::size_t optional)
      : types(std::move(ts)), optional_from(optional) {}
};

class Registry;

class InferContext {
 public:
  InferContext(const Op& op, std::span<const Type> operand_types,
               std::span<const BodySignature> body_signatures, const Registry* custom_ops)
      : operands(operand_types), bodies(body_signatures), registry(custom_ops), op_(op) {}

  std::span<const Type> operands;
  std::span<const BodySignature> bodies;
  const Registry* registry;  ///< where custom ops are looked up

  [[nodiscard]] const Type& operator[](std::size_t k) const { return operands[k]; }
  /// The body with a role, or nullptr when the node has none.
  [[nodiscard]] const BodySignature* body(std::string_view role) const;
  /// Throws the Rejection of a constraint declared in the op's info.
  [[noreturn]] void reject(std::string_view label, std::string message,
                           std::string help = {}) const;

 private:
  const Op& op_;
};

/// Does the op take this many operands and these bodies? Rejection when not.
void check_signature(const Op& op, std::size_t operands, std::span<const BodySignature> bodies);
/// The types of the results; the attributes are in normal form.
[[nodiscard]] Inferred infer_types(const Op& op, std::span<const Type> operands,
                                   std::span<const BodySignature> bodies, const Registry* registry);
/// Attributes in the form graphs hold: axes non-negative, -1 sizes filled in.
[[nodiscard]] Op normalize(const Op& op, std::span<const Type> operands);

}  // namespace ricci
