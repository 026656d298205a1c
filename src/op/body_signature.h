// Checks of body signatures, shared by the type rules of control flow.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/op/infer.h"

namespace ricci {

/// `(f32[2], i32[])`
[[nodiscard]] std::string list_types(std::span<const Type> types);

/// Rejects `label` unless the body's inputs, in order, have the expected types.
void require_inputs(const InferContext& in, std::string_view label, const BodySignature& body,
                    std::span<const Type> expected);
/// Rejects `label` unless the body's first outputs have the expected types; extra ones are allowed
/// or not.
enum class Extra : bool { Refused, Allowed };
void require_outputs(const InferContext& in, std::string_view label, const BodySignature& body,
                     std::span<const Type> expected, Extra extra, std::string help = {});

/// The inputs of a derivative body, sorted by what they mean.
class RoleInputs {
 public:
  using Kind = op::InputRole::Kind;
  /// Rejects `label` when two inputs have one role.
  RoleInputs(const InferContext& in, std::string_view label, const BodySignature& body);

  [[nodiscard]] std::span<const Type> ordinary() const noexcept { return ordinary_; }
  /// Rejects `label` unless the body has the special input, with this type.
  void require(Kind kind, std::size_t index, const Type& expected);
  /// Rejects `label` when the body has the special input with another type.
  void permit(Kind kind, std::size_t index, const Type& expected);
  /// Lets the body have the special input, with a type of its own choice.
  void permit_any(Kind kind, std::size_t index);
  /// Rejects `label` when the body has a special input nobody asked about.
  void refuse_others() const;

 private:
  struct Special {
    Type type;
    bool known = false;
  };
  [[nodiscard]] static std::string name(Kind kind, std::int64_t index);

  const InferContext& in_;
  std::string label_;
  std::string role_;
  std::vector<Type> ordinary_;
  std::map<std::pair<Kind, std::int64_t>, Special> special_;
};

}  // namespace ricci
