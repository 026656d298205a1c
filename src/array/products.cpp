// Products: matmul in all its forms, and einsum.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "ricci/array/ops.h"
#include "ricci/op/ops.h"
#include "ricci/support/error.h"

#include "array/node.h"

namespace ricci {

using detail::apply;

Array matmul(const Array& a, const Array& b, Here where) {
  Array x = a;
  Array y = b;
  detail::unify("matmul", x, y, where);
  const bool row = x.rank() == 1;
  const bool column = y.rank() == 1;
  if (row) x = expand_dims(x, 0, where);
  if (column) y = expand_dims(y, 1, where);
  Array out = apply(Op(op::Matmul{}), {x, y}, where);
  if (column) out = squeeze(out, -1, where);
  if (row) out = squeeze(out, column ? -1 : -2, where);
  return out;
}

Array dot(const Array& a, const Array& b, Here where) {
  if (a.rank() == 0 || b.rank() == 0) return mul(a, b, where);
  return matmul(a, b, where);
}
Array matvec(const Array& a, const Array& x, Here where) { return matmul(a, x, where); }
Array outer(const Array& a, const Array& b, Here where) {
  return mul(reshape(a, {-1, 1}, where), reshape(b, {1, -1}, where), where);
}

namespace {

[[noreturn]] void fail_einsum(std::string_view letters, const std::string& what, Here where) {
  detail::refuse(ErrorCode::Attr, "einsum", fmt::format("einsum \"{}\": {}", letters, what),
                 "a letter an axis, as in \"ij,jk->ik\"; \"...\" for those without", where);
}

struct Term {
  Array x;
  std::string letters;
};

Axis place(const std::string& letters, char c) {
  return static_cast<std::int64_t>(letters.find(c));
}

// Without the letters that nobody else wants.
Term reduced(Term t, const std::string& wanted, Here where) {
  Axes axes;
  std::string left;
  for (std::size_t i = 0; i < t.letters.size(); ++i) {
    if (wanted.find(t.letters[i]) == std::string::npos) {
      axes.emplace_back(static_cast<std::int64_t>(i));
    } else {
      left += t.letters[i];
    }
  }
  if (!axes.empty()) t.x = sum(t.x, axes, false, where);
  return {t.x, left};
}

Term product_of(const Term& a, const Term& b, const std::string& wanted, Here where) {
  op::DotGeneral op;
  std::string batch;
  for (const char c : a.letters) {
    if (b.letters.find(c) == std::string::npos) continue;
    const bool kept = wanted.find(c) != std::string::npos;
    (kept ? op.lhs_batch : op.lhs_contracting).push_back(place(a.letters, c));
    (kept ? op.rhs_batch : op.rhs_contracting).push_back(place(b.letters, c));
    if (kept) batch += c;
  }
  std::string out = batch;
  for (const char c : a.letters) {
    if (b.letters.find(c) == std::string::npos) out += c;
  }
  for (const char c : b.letters) {
    if (a.letters.find(c) == std::string::npos) out += c;
  }
  return {apply(Op(std::move(op)), {a.x, b.x}, where), out};
}

}  // namespace

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Letters as they are read: groups of operands and of the result. Axes that "..." stands for have
// letters of their own, 1, 2, …, which nobody can write.
class Letters {
 public:
  Letters(std::string_view letters, const std::vector<Array>& operands, Here where)
      : letters_(letters), where_(where) {
    std::string text;
    for (const char c : letters) {
      if (c != ' ') text += c;
    }
    const std::size_t arrow = text.find("->");
    std::vector<std::string> parts(1);
    for (const char c : text.substr(0, arrow)) {
      c == ',' ? void(parts.emplace_back()) : void(parts.back() += c);
    }
    if (parts.size() != operands.size()) {
      fail(fmt::format("{} operands are given for {} groups of letters", operands.size(),
                       parts.size()));
    }
    find_hidden(parts, operands);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::size_t hidden = operands[i].rank() - named(parts[i]);
      groups.push_back(spelled(parts[i], hidden));
    }
    result = arrow == std::string::npos ? implied() : given(text.substr(arrow + 2));
  }

  [[noreturn]] void fail(const std::string& what) const { fail_einsum(letters_, what, where_); }

  std::vector<std::string> groups;
  std::string result;

 private:
  // How many letters stand beside "..."; what is no letter is refused.
  [[nodiscard]] std::size_t named(const std::string& part) const {
    const std::size_t dots = part.find("...");
    std::size_t n = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (dots != std::string::npos && i >= dots && i < dots + 3) continue;
      if (!is_letter(part[i])) {
        fail(fmt::format("'{}' is no letter", part[i]));
      }
      ++n;
    }
    return n;
  }

  // The most axes that "..." stands for in an operand.
  void find_hidden(const std::vector<std::string>& parts, const std::vector<Array>& operands) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      detail::require_valid(operands[i], "einsum", where_);
      const std::size_t rank = operands[i].rank();
      const std::size_t n = named(parts[i]);
      const bool dots = parts[i].find("...") != std::string::npos;
      if (dots ? rank < n : rank != n) {
        fail(fmt::format("\"{}\" is given {}", parts[i], operands[i].type().to_string()));
      }
      hidden_ = std::max(hidden_, rank - n);
    }
  }

  // "..." written out: the last ones of all hidden axes.
  [[nodiscard]] std::string spelled(const std::string& part, std::size_t hidden) const {
    const std::size_t dots = part.find("...");
    if (dots == std::string::npos) return part;
    std::string axes;
    for (std::size_t k = hidden_ - hidden; k < hidden_; ++k) axes += static_cast<char>(k + 1);
    return part.substr(0, dots) + axes + part.substr(dots + 3);
  }

  [[nodiscard]] std::map<char, int> counts() const {
    std::map<char, int> out;
    for (const std::string& g : groups) {
      for (const char c : g) ++out[c];
    }
    return out;
  }

  // Without an arrow: hidden axes, then letters that are there once, in the order of the alphabet.
  [[nodiscard]] std::string implied() const {
    std::string out = spelled("...", hidden_);
    for (const auto& [c, n] : counts()) {
      if (n == 1 && is_letter(c)) out += c;
    }
    return out;
  }

  [[nodiscard]] std::string given(const std::string& part) const {
    (void)named(part);
    if (hidden_ > 0 && part.find("...") == std::string::npos) {
      fail("the operands have \"...\" and the result has none");
    }
    const std::map<char, int> there = counts();
    for (const char c : part) {
      if (c == '.') continue;
      if (!there.contains(c)) fail(fmt::format("no operand has '{}'", c));
      if (std::ranges::count(part, c) > 1) fail(fmt::format("'{}' twice in the result", c));
    }
    return spelled(part, hidden_);
  }

  std::string letters_;
  Here where_;
  std::size_t hidden_ = 0;
};

// A letter that is there twice is the diagonal of its axes.
Term without_repeats(Term t, const Letters& all, Here where) {
  for (std::size_t i = 0; i < t.letters.size(); ++i) {
    const char c = t.letters[i];
    const std::size_t other = t.letters.find(c, i + 1);
    if (other == std::string::npos) continue;
    const auto a = static_cast<std::int64_t>(i);
    const auto b = static_cast<std::int64_t>(other);
    if (t.x.dim(a) != t.x.dim(b)) {
      all.fail(fmt::format("'{}' is {} and {} of one operand", c, t.x.dim(a).to_string(),
                           t.x.dim(b).to_string()));
    }
    // The later axis goes last first, which leaves the other where it is.
    t.x = diagonal(moveaxis(moveaxis(t.x, b, -1, where), a, -2, where), 0, where);
    t.letters.erase(other, 1);
    t.letters.erase(i, 1);
    t.letters += c;
    --i;
  }
  return t;
}

// Hidden axes of size 1 are left out where another operand has more: they are spread.
void spread_hidden(std::vector<Term>& terms, const Letters& all, Here where) {
  std::map<char, Dim> sizes;
  for (const Term& t : terms) {
    for (std::size_t i = 0; i < t.letters.size(); ++i) {
      if (is_letter(t.letters[i])) continue;
      const Dim& n = t.x.shape()[i];
      Dim& size = sizes.try_emplace(t.letters[i], n).first->second;
      if (size == Dim(1)) size = n;
      if (n == size || n == Dim(1)) continue;
      all.fail(fmt::format("an axis of \"...\" is {} and {}", size.to_string(), n.to_string()));
    }
  }
  for (Term& t : terms) {
    for (std::size_t i = t.letters.size(); i-- > 0;) {
      const auto it = sizes.find(t.letters[i]);
      if (it == sizes.end() || t.x.shape()[i] == it->second) continue;
      t.x = squeeze(t.x, static_cast<std::int64_t>(i), where);
      t.letters.erase(i, 1);
    }
  }
}

// One letter is one size.
void require_sizes(const std::vector<Term>& terms, const Letters& all) {
  std::map<char, std::pair<Dim, std::size_t>> sizes;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    for (std::size_t i = 0; i < terms[k].letters.size(); ++i) {
      const char c = terms[k].letters[i];
      if (!is_letter(c)) continue;
      const Dim& n = terms[k].x.shape()[i];
      const auto& [size, first] = sizes.try_emplace(c, n, k).first->second;
      if (n == size) continue;
      all.fail(fmt::format("'{}' is {} in operand {}, {}, and {} in operand {}, {}", c,
                           size.to_string(), first, terms[first].x.type().to_string(),
                           n.to_string(), k, terms[k].x.type().to_string()));
    }
  }
}

// All in the dtype they meet in: the first finds it, the others follow.
void unify_terms(std::vector<Term>& terms, Here where) {
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 1; i < terms.size(); ++i) {
      detail::unify("einsum", terms[0].x, terms[i].x, where);
    }
  }
}

}  // namespace

Array einsum(std::string_view letters, const std::vector<Array>& operands, Here where) {
  const Letters all(letters, operands, where);
  std::vector<Term> terms;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    terms.push_back(without_repeats({operands[i], all.groups[i]}, all, where));
  }
  require_sizes(terms, all);
  unify_terms(terms, where);
  spread_hidden(terms, all, where);
  // From left to right; what no later operand and no result wants is summed early.
  Term total = terms[0];
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::string wanted = all.result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) wanted += terms[k].letters;
    if (i == 0) {
      total = reduced(total, wanted, where);
      continue;
    }
    total = product_of(total, reduced(terms[i], wanted + total.letters, where), wanted, where);
    total = reduced(total, wanted, where);
  }
  Axes perm;
  for (const char c : all.result) perm.push_back(place(total.letters, c));
  return all.result == total.letters ? total.x : transpose(total.x, perm, where);
}

Array einsum(std::string_view letters, const Array& a, Here where) {
  return einsum(letters, std::vector{a}, where);
}
Array einsum(std::string_view letters, const Array& a, const Array& b, Here where) {
  return einsum(letters, std::vector{a, b}, where);
}
Array einsum(std::string_view letters, const Array& a, const Array& b, const Array& c, Here where) {
  return einsum(letters, std::vector{a, b, c}, where);
}
Array einsum(std::string_view letters, const Array& a, const Array& b, const Array& c,
             const Array& d, Here where) {
  return einsum(letters, std::vector{a, b, c, d}, where);
}

}  // namespace ricci
