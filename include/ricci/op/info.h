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
  Linear = 2,         ///< linear in the operands that have a derivative, taken together
  Multilinear = 4,    ///< linear in each operand for itself
  Random = 8,         ///< draws numbers; never merged, folded or duplicated
  NoGradient = 16,    ///< no derivative by definition (comparisons, indices, samples)
  DataMovement = 32,  ///< moves elements without changing them; any dtype
  Commutative = 64,   ///< two operands that may be exchanged
  Faults = 128,       ///< looks at values a run may fault on, even where its results are empty
  /// Its derivative is not that of its function, on purpose: rounding lets it pass.
  StraightThrough = 256,
  /// Of complex operands it depends on their conjugates too: it is not holomorphic.
  Conjugates = 512,
};
constexpr Trait operator|(Trait a, Trait b) noexcept {
  return static_cast<Trait>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
constexpr bool has(Trait set, Trait t) noexcept {
  return (static_cast<std::uint32_t>(set) & static_cast<std::uint32_t>(t)) != 0;
}

/// Where an op's rule for a transform comes from. `Default` is resolved from class and traits.
enum class RuleSource : std::uint8_t {
  Default,
  Written,      ///< a function in the file of the op's family
  Linear,       ///< the op applied to tangents
  Multilinear,  ///< the op once per operand with a tangent, summed
  Elementwise,  ///< the op on operands whose ranks are aligned
  Expansion,    ///< the op's expansion is transformed instead
  Zero,         ///< no derivative, by definition
  Leaf,         ///< a value from outside: the transform itself deals with it
  Refused,      ///< not at this stage
};

[[nodiscard]] std::string_view name(RuleSource s) noexcept;

/// What few bits do to an op: the classes a precision policy speaks of. `Default` is resolved from
/// class and traits.
enum class Numerics : std::uint8_t {
  Default,
  Boundary,      ///< keeps the dtype it has: leaves, random numbers, what has bodies
  Compute,       ///< products that dominate a program's time
  Reduction,     ///< sums over many elements, and what is made of them
  Elementwise,   ///< functions of single elements
  DataMovement,  ///< moves elements
};

struct OpInfo {
  std::string_view name;         ///< text mnemonic, builder name, documentation anchor
  std::string_view operands;     ///< `"x, gamma, beta?"`
  std::string_view results;      ///< `"out, lse?"`; an optional result is computed when asked for
  std::string_view bodies = {};  ///< roles of sub-graphs: `"cond, body"`
  Trait traits = Trait::None;
  std::string_view help;     ///< one line
  std::string_view formula;  ///< the definition, with shapes
  std::string_view constraints = {};
  std::string_view no_gradient = {};  ///< operands that never carry a derivative: `"indices"`
  /// Operands and results whose integers are codes of real numbers: they carry a derivative, in
  /// f32.
  std::string_view codes = {};
  RuleSource vjp = RuleSource::Default;
  RuleSource jvp = RuleSource::Default;
  RuleSource batch = RuleSource::Default;
  bool keeps_residuals = false;  ///< reverse mode runs a forward that keeps more than the results
  Numerics numerics = Numerics::Default;
};

/// The numerics an op's class and traits give when it says nothing else.
[[nodiscard]] constexpr Numerics numerics_of(OpClass c, const OpInfo& info) noexcept {
  if (info.numerics != Numerics::Default) return info.numerics;
  if (c == OpClass::Leaf || c == OpClass::Control || c == OpClass::Block) return Numerics::Boundary;
  if (has(info.traits, Trait::Random)) return Numerics::Boundary;
  if (has(info.traits, Trait::DataMovement)) return Numerics::DataMovement;
  if (has(info.traits, Trait::Elementwise)) return Numerics::Elementwise;
  const bool is_call = c == OpClass::Structured || c == OpClass::Custom;
  return is_call ? Numerics::Compute : Numerics::Reduction;
}

/// Is an op of the class defined by its expansion?
[[nodiscard]] constexpr bool is_written_out(OpClass c) noexcept {
  return c == OpClass::Composite || c == OpClass::Block;
}

/// The sources an op's class and traits give when it says nothing else.
[[nodiscard]] constexpr RuleSource vjp_source(OpClass c, const OpInfo& info) noexcept {
  if (info.vjp != RuleSource::Default) return info.vjp;
  if (c == OpClass::Leaf) return RuleSource::Leaf;
  if (has(info.traits, Trait::NoGradient)) return RuleSource::Zero;
  return is_written_out(c) ? RuleSource::Expansion : RuleSource::Written;
}
[[nodiscard]] constexpr RuleSource jvp_source(OpClass c, const OpInfo& info) noexcept {
  if (info.jvp != RuleSource::Default) return info.jvp;
  if (c == OpClass::Leaf) return RuleSource::Leaf;
  if (has(info.traits, Trait::NoGradient)) return RuleSource::Zero;
  if (has(info.traits, Trait::Linear)) return RuleSource::Linear;
  if (has(info.traits, Trait::Multilinear)) return RuleSource::Multilinear;
  return is_written_out(c) ? RuleSource::Expansion : RuleSource::Written;
}
[[nodiscard]] constexpr RuleSource batch_source(OpClass c, const OpInfo& info) noexcept {
  if (info.batch != RuleSource::Default) return info.batch;
  if (c == OpClass::Leaf) return RuleSource::Leaf;
  if (has(info.traits, Trait::Elementwise)) return RuleSource::Elementwise;
  return is_written_out(c) ? RuleSource::Expansion : RuleSource::Written;
}

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
