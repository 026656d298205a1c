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
                 "a letter an axis, as in \"ij,jk->ik\"", where);
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

Array einsum(std::string_view letters, const std::vector<Array>& operands, Here where) {
  std::string text;
  for (const char c : letters) {
    if (c != ' ') text += c;
  }
  const std::size_t arrow = text.find("->");
  std::vector<std::string> parts(1);
  for (const char c : text.substr(0, arrow)) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (parts.size() != operands.size()) {
    fail_einsum(letters,
                fmt::format("{} operands are given for {} groups of letters", operands.size(),
                            parts.size()),
                where);
  }
  std::map<char, int> counts;
  for (const std::string& p : parts) {
    for (const char c : p) {
      if (std::ranges::count(p, c) > 1)
        fail_einsum(letters, fmt::format("'{}' twice in one group", c), where);
      ++counts[c];
    }
  }
  std::string out;
  if (arrow != std::string::npos) {
    out = text.substr(arrow + 2);
  } else {
    for (const auto& [c, n] : counts) {
      if (n == 1) out += c;
    }
  }
  for (const char c : out) {
    if (!counts.contains(c)) fail_einsum(letters, fmt::format("no operand has '{}'", c), where);
  }
  std::vector<Term> terms;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    detail::require_valid(operands[i], "einsum", where);
    if (operands[i].rank() != parts[i].size()) {
      fail_einsum(letters,
                  fmt::format("\"{}\" is given {}", parts[i], operands[i].type().to_string()),
                  where);
    }
    terms.push_back({operands[i], parts[i]});
  }
  for (std::size_t i = 1; i < terms.size(); ++i) {
    detail::unify("einsum", terms[0].x, terms[i].x, where);
  }
  // From left to right; what no later operand and no result wants is summed early.
  Term total = terms[0];
  for (std::size_t i = 0; i < terms.size(); ++i) {
    std::string wanted = out;
    for (std::size_t k = i + 1; k < terms.size(); ++k) wanted += terms[k].letters;
    if (i == 0) {
      total = reduced(total, wanted, where);
      continue;
    }
    total = product_of(total, reduced(terms[i], wanted + total.letters, where), wanted, where);
    total = reduced(total, wanted, where);
  }
  Axes perm;
  for (const char c : out) perm.push_back(place(total.letters, c));
  return out == total.letters ? total.x : transpose(total.x, perm, where);
}

}  // namespace ricci
