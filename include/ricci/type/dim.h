// A dimension: a number, or a polynomial of named symbols (`n`, `b*s`, `n - 3`) kept in normal
// form, so that equal polynomials compare equal.
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace ricci {

/// Values for symbols, by name.
using SymbolBindings = std::map<std::string, std::int64_t, std::less<>>;

class Dim {
 public:
  Dim() = default;
  /// Numbers are dimensions; one that does not fit in 64 bits is UserError(shape).
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Dim(T value) : constant_(checked(value)) {}  // NOLINT
  /// `Dim("n")` is a symbol, so that f32({"n", 3}) reads as it prints.
  Dim(const char* name) : Dim(symbol(name)) {}  // NOLINT
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
  /// Numbers have an order: for (int i = 0; i < x.dim(0); ++i). UserError(needs_static_dim) when a
  /// symbol is left.
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  friend std::strong_ordering operator<=>(const Dim& a, T b) {
    return a.value() <=> checked(b);
  }
  friend std::strong_ordering operator<=>(const Dim& a, const Dim& b) {
    return a.value() <=> b.value();
  }
  /// a / b when it is exact (b a number or a single product of symbols); nothing otherwise.
  [[nodiscard]] static std::optional<Dim> divide(const Dim& a, const Dim& b);

 private:
  template <class T>
  static std::int64_t checked(T value) {
    if (!std::in_range<std::int64_t>(value)) refuse_size();
    return static_cast<std::int64_t>(value);
  }
  [[noreturn]] static void refuse_size();
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
