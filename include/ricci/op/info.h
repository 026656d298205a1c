// What an op says about itself. Each op struct has one `static constexpr OpInfo info`; everything
// that is not a rule (text, documentation, arity checks, bindings) is derived from it.
//
// Lists are written as people read them: `"x, gamma, beta"`, `"q, k, v, mask?"` (optional),
// `"inputs..."` (any number). Constraints are one per line, `label code: what must hold`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ricci {

/// How the compiler treats an op; the list file gives each op its class.
enum class OpClass : std::uint8_t {
  Leaf,        ///< values from outside, constants and generators
  Primitive,   ///< code generation knows these
  Structured,  ///< a tuned kernel or library call on each backend
  Composite,   ///< defined by its expansion into primitives
  Control,     ///< has bodies: sub-graphs of its own
  Custom,      ///< registered at run time
  Block,       ///< model-level, legal only before lowering
};

[[nodiscard]] std::string_view name(OpClass c) noexcept;

/// Facts about an op that passes and transforms ask for.
enum class Trait : std::uint32_t {
  None = 0,
  Elementwise = 1,    ///< out[i] depends on in[i] only, after broadcasting
  Linear = 2,         ///< linear in all its operands together: f(ax + by) = a f(x) + b f(y)
  Multilinear = 4,    ///< linear in each operand for itself
  Random = 8,         ///< draws numbers; never merged, folded or duplicated
  NoGradient = 16,    ///< no derivative by definition (comparisons, indices, samples)
  DataMovement = 32,  ///< moves elements without changing them; any dtype
  Commutative = 64,   ///< two operands that may be exchanged
};
constexpr Trait operator|(Trait a, Trait b) noexcept {
  return static_cast<Trait>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(Trait set, Trait t) noexcept {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(t)) != 0;
}

struct OpInfo {
  std::string_view name;         ///< text mnemonic, builder name, documentation anchor
  std::string_view operands;     ///< `"x, gamma, beta?"`
  std::string_view results;      ///< `"out, lse?"`; an optional result is computed when asked for
  std::string_view bodies = {};  ///< roles of sub-graphs: `"cond, body"`
  Trait traits = Trait::None;
  std::string_view help;     ///< one line
  std::string_view formula;  ///< the definition, with shapes
  std::string_view constraints = {};
};

namespace detail {

/// Entries of a list such as `"q, k, v, mask?"`, counted at compile time.
struct ListCount {
  std::size_t required = 0;
  std::size_t optional = 0;
  bool variadic = false;
};
constexpr ListCount count_list(std::string_view list) {
  ListCount n;
  bool in_entry = false;
  bool optional = false;
  bool variadic = false;
  const auto close = [&] {
    if (!in_entry) return;
    if (variadic) {
      n.variadic = true;
    } else {
      ++(optional ? n.optional : n.required);
    }
    in_entry = optional = variadic = false;
  };
  for (const char c : list) {
    if (c == ',') {
      close();
    } else if (c == '?') {
      optional = true;
    } else if (c == '.') {
      variadic = true;
    } else if (c != ' ') {
      in_entry = true;
    }
  }
  close();
  return n;
}

}  // namespace detail
}  // namespace ricci
