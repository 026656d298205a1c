// A dimension: a number, or a polynomial of named symbols (`n`, `b*s`, `n - 3`) kept in normal
// form, so that equal polynomials compare equal.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ricci {

/// Values for symbols, by name.
using SymbolBindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t value) : constant_(value) {}  // NOLINT: numbers are dimensions
  Dim(int value) : constant_(value) {}           // NOLINT
  [[nodiscard]] static Dim symbol(std::string name);

  [[nodiscard]] bool is_static() const noexcept { return terms_ == nullptr; }
  /// The number; UserError(needs_static_dim) when a symbol is left.
  [[nodiscard]] std::int64_t value() const;
  /// The number, or nothing when a symbol is left.
  [[nodiscard]] std::optional<std::int64_t> try_value() const noexcept;
  [[nodiscard]] bool is(std::int64_t v) const noexcept { return is_static() && constant_ == v; }

  /// The name, when this is one symbol and nothing else.
  [[nodiscard]] std::optional<std::string> as_symbol() const;

  /// Replaces the symbols that have a binding.
  [[nodiscard]] Dim bind(const SymbolBindings& bindings) const;
  void collect_symbols(std::set<std::string>& into) const;

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::uint64_t hash() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  Dim& operator+=(const Dim& b) { return *this = *this + b; }
  friend bool operator==(const Dim& a, const Dim& b);
  /// a / b when it is exact (b a number or a single product of symbols); nothing otherwise.
  [[nodiscard]] static std::optional<Dim> divide(const Dim& a, const Dim& b);

 private:
  struct Term {
    std::vector<std::string> symbols;  // sorted, with repetition; never empty
    std::int64_t coefficient = 0;      // never zero
    bool operator==(const Term&) const = default;
  };
  using Terms = std::vector<Term>;  // higher degree first, then by name
  static Dim from(std::int64_t constant, Terms terms);
  [[nodiscard]] const Terms& terms() const noexcept;

  std::int64_t constant_ = 0;
  std::shared_ptr<const Terms> terms_;  // null when static
};

}  // namespace ricci
