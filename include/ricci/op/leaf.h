// Leaves: where values come from. `input` and `param` make up a graph's signature.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "ricci/op/fields.h"

namespace ricci::op {

/// What an input means inside the body of a custom function. Ordinary inputs have none.
struct InputRole {
  enum class Kind : std::uint8_t { None, DOutput, PrimalOutput, Tangent, Residual };
  Kind kind = Kind::None;
  std::int64_t index = 0;  ///< which output, primal or residual
  bool operator==(const InputRole&) const = default;
};
constexpr auto enumerator_names(InputRole::Kind) {
  return std::array<std::string_view, 5>{"none", "d_output", "primal_output", "tangent",
                                         "residual"};
}

/// The role a conventional name stands for in a derivative body: `d_output`, `d_output_1`,
/// `primal_output`, `primal_output_1`, `tangent_0`, `residual_0`. Other names stand for none.
[[nodiscard]] InputRole implied_role(std::string_view name);
/// The conventional name of a role, numbered: `d_output_0`.
[[nodiscard]] std::string conventional_name(const InputRole& role);
/// Whether conventional names stand for roles in a body: those of derivatives.
[[nodiscard]] bool names_imply_roles(std::string_view body_role);

/// A value supplied for each run.   out = the supplied tensor
struct Input {
  std::string name = {};
  Type type = {};
  InputRole role = {};

  static constexpr OpInfo info{.name = "input",
                               .operands = "",
                               .results = "out",
                               .help = "a value supplied for each run",
                               .formula = "out = the supplied tensor",
                               .constraints = "c1 name: the name is not empty\n"
                                              "c2 shape: no dimension is negative"};
  static void fields(auto& self, auto&& f) {
    f("name", self.name, "name in the graph's signature", Presence::Positional);
    f("type", self.type, "its type", Presence::Required);
    f("role", self.role, "meaning inside a derivative body");
  }
  bool operator==(const Input&) const = default;
};

/// A value that persists across runs (a weight).   out = the stored tensor
struct Param {
  std::string name = {};
  Type type = {};

  static constexpr OpInfo info{.name = "param",
                               .operands = "",
                               .results = "out",
                               .help = "a value that persists across runs",
                               .formula = "out = the stored tensor",
                               .constraints = "c1 name: the name is not empty\n"
                                              "c2 shape: no dimension is negative"};
  static void fields(auto& self, auto&& f) {
    f("name", self.name, "name in the graph's signature", Presence::Positional);
    f("type", self.type, "its type", Presence::Required);
  }
  bool operator==(const Param&) const = default;
};

/// A tensor written into the program. One value repeated is stored once.
struct Constant {
  Tensor value = {};

  static constexpr OpInfo info{.name = "constant",
                               .operands = "",
                               .results = "out",
                               .help = "a tensor written into the program",
                               .formula = "out = value"};
  static void fields(auto& self, auto&& f) {
    f("value", self.value, "the elements", Presence::Positional);
  }
  bool operator==(const Constant& other) const { return value.identical(other.value); }
};

}  // namespace ricci::op

namespace ricci {
RICCI_DECLARE_CODEC(op::InputRole);
}  // namespace ricci
