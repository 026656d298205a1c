#include "ricci/type/dim.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/checked.h"
#include "ricci/support/hash.h"
#include "ricci/support/limits.h"
#include "ricci/support/text.h"

namespace ricci {
namespace {

// Symbols written while a product is multiplied out, before terms that are alike are added.
constexpr std::size_t MostWritten = 16384;

// Products of sums grow without bound; nobody's shapes need this many terms.
[[noreturn]] void refuse_complicated() {
  throw UserError(ErrorCode::Shape, "a symbolic size has become too complicated",
                  fmt::format("name a part of it with a symbol of its own; a size has at most {} "
                              "terms of {} symbols",
                              MostDimTerms, MostDimDegree));
}

// a / b when it is exact; nothing otherwise. The least number divided by -1 does not fit.
std::optional<std::int64_t> exact_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  if (b == -1) return checked_mul(a, -1);
  if (a % b != 0) return std::nullopt;
  return a / b;
}

}  // namespace

void Dim::refuse_size() { throw UserError(ErrorCode::Shape, "a size does not fit in 64 bits"); }

Dim Dim::symbol(std::string name) {
  // Words the text form reads as something else.
  for (const char* word : {"inf", "nan", "true", "false", "hex"}) {
    if (name == word) {
      throw UserError(ErrorCode::Name, fmt::format("'{}' cannot name a dimension", name),
                      "it has another meaning in the text form");
    }
  }
  if (!is_identifier(name)) {
    throw UserError(ErrorCode::Name, fmt::format("'{}' cannot name a dimension", shortened(name)),
                    "use letters, digits and underscores, not starting with a digit");
  }
  return from(0, {Term{{std::move(name)}, 1}});
}

const Dim::Terms& Dim::terms() const noexcept {
  static const Terms none;
  return terms_ ? *terms_ : none;
}

Dim Dim::from(std::int64_t constant, Terms terms) {
  std::ranges::sort(terms, [](const Term& a, const Term& b) {
    if (a.symbols.size() != b.symbols.size()) return a.symbols.size() > b.symbols.size();
    return a.symbols < b.symbols;
  });
  Terms merged;
  for (Term& t : terms) {
    if (!merged.empty() && merged.back().symbols == t.symbols) {
      merged.back().coefficient = checked_add(merged.back().coefficient, t.coefficient);
    } else {
      merged.push_back(std::move(t));
    }
  }
  if (merged.size() > MostDimTerms) refuse_complicated();
  std::erase_if(merged, [](const Term& t) { return t.coefficient == 0; });
  Dim d(constant);
  if (!merged.empty()) d.terms_ = std::make_shared<const Terms>(std::move(merged));
  return d;
}

std::optional<std::int64_t> Dim::try_value() const noexcept {
  if (!is_static()) return std::nullopt;
  return constant_;
}

std::int64_t Dim::value() const {
  if (is_static()) return constant_;
  throw UserError(ErrorCode::NeedsStaticDim,
                  fmt::format("the size '{}' is not known yet", to_string()),
                  "bind its symbols before running or compiling");
}

std::optional<std::string> Dim::as_symbol() const {
  if (constant_ != 0 || terms().size() != 1) return std::nullopt;
  const Term& t = terms().front();
  if (t.coefficient != 1 || t.symbols.size() != 1) return std::nullopt;
  return t.symbols.front();
}

Dim operator+(const Dim& a, const Dim& b) {
  const std::int64_t constant = checked_add(a.constant_, b.constant_);
  if (a.is_static() && b.is_static()) return constant;
  Dim::Terms terms = a.terms();
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return Dim::from(constant, std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  const std::int64_t constant = checked_mul(a.constant_, b.constant_);
  if (a.is_static() && b.is_static()) return constant;
  Dim::Terms terms;
  const auto scale = [&terms](const Dim::Terms& ts, std::int64_t factor) {
    if (factor == 0) return;
    for (const Dim::Term& t : ts) {
      terms.push_back({t.symbols, checked_mul(t.coefficient, factor)});
    }
  };
  scale(a.terms(), b.constant_);
  scale(b.terms(), a.constant_);
  std::size_t written = 0;
  for (const Dim::Term& s : a.terms()) {
    for (const Dim::Term& t : b.terms()) {
      const std::size_t degree = s.symbols.size() + t.symbols.size();
      written += degree;
      if (degree > MostDimDegree || written > MostWritten) refuse_complicated();
      std::vector<std::string> symbols = s.symbols;
      symbols.insert(symbols.end(), t.symbols.begin(), t.symbols.end());
      std::ranges::sort(symbols);
      terms.push_back({std::move(symbols), checked_mul(s.coefficient, t.coefficient)});
    }
  }
  return Dim::from(constant, std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) {
  return a.constant_ == b.constant_ && a.terms() == b.terms();
}

std::optional<Dim> Dim::divide(const Dim& a, const Dim& b) {
  if (b.is_static()) {
    const auto constant = exact_quotient(a.constant_, b.constant_);
    if (!constant) return std::nullopt;
    Terms terms = a.terms();
    for (Term& t : terms) {
      const auto coefficient = exact_quotient(t.coefficient, b.constant_);
      if (!coefficient) return std::nullopt;
      t.coefficient = *coefficient;
    }
    return from(*constant, std::move(terms));
  }
  if (a == b) return Dim(1);
  if (b.constant_ != 0 || b.terms().size() != 1 || a.constant_ != 0) return std::nullopt;
  const Term& divisor = b.terms().front();
  std::int64_t constant = 0;
  Terms quotient;
  for (const Term& t : a.terms()) {
    std::vector<std::string> rest;
    std::ranges::set_difference(t.symbols, divisor.symbols, std::back_inserter(rest));
    if (rest.size() + divisor.symbols.size() != t.symbols.size()) return std::nullopt;
    const auto coefficient = exact_quotient(t.coefficient, divisor.coefficient);
    if (!coefficient) return std::nullopt;
    if (rest.empty()) {
      constant = checked_add(constant, *coefficient);
    } else {
      quotient.push_back({std::move(rest), *coefficient});
    }
  }
  return from(constant, std::move(quotient));
}

Dim Dim::bind(const SymbolBindings& bindings) const {
  Dim result(constant_);
  for (const Term& t : terms()) {
    Dim product(t.coefficient);
    for (const std::string& s : t.symbols) {
      const auto it = bindings.find(s);
      product = product * (it != bindings.end() ? Dim(it->second) : symbol(s));
    }
    result += product;
  }
  return result;
}

void Dim::collect_symbols(std::set<std::string>& into) const {
  for (const Term& t : terms()) into.insert(t.symbols.begin(), t.symbols.end());
}

std::string Dim::to_string() const {
  std::string out;
  const auto append = [&out](std::int64_t coefficient, const std::string& product) {
    const bool negative = coefficient < 0;
    const std::string sign = out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    const auto magnitude = negative ? 0 - static_cast<std::uint64_t>(coefficient)
                                    : static_cast<std::uint64_t>(coefficient);
    out += sign;
    if (product.empty()) {
      out += std::to_string(magnitude);
    } else if (magnitude == 1) {
      out += product;
    } else {
      out += fmt::format("{}*{}", magnitude, product);
    }
  };
  for (const Term& t : terms()) append(t.coefficient, join(t.symbols, "*"));
  if (constant_ != 0 || is_static()) append(constant_, "");
  return out;
}

std::uint64_t Dim::hash() const {
  Hasher h;
  h.add(static_cast<std::uint64_t>(constant_));
  for (const Term& t : terms()) {
    h.add(static_cast<std::uint64_t>(t.coefficient));
    for (const std::string& s : t.symbols) h.add(s);
  }
  return h.value();
}

}  // namespace ricci
