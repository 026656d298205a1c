// The reference kernel of every op, declared from the list; each is defined in its family's file.
#pragma once

#include "ricci/op/ops.h"
#include "ricci/rule/eval.h"

namespace ricci::rule {

#define RICCI_OP(Type, builder) void eval(const op::Type& op, EvalContext& c);
#include "ricci/op/list.def"

/// One element of a member of a family.
[[nodiscard]] double eval_unary(UnaryKind kind, double x);
[[nodiscard]] std::int64_t eval_unary(UnaryKind kind, std::int64_t x);
[[nodiscard]] std::complex<double> eval_unary(UnaryKind kind, std::complex<double> x);
[[nodiscard]] double eval_binary(BinaryKind kind, double a, double b);
[[nodiscard]] std::complex<double> eval_binary(BinaryKind kind, std::complex<double> a,
                                               std::complex<double> b);
[[nodiscard]] bool eval_compare(CompareKind kind, double a, double b);

}  // namespace ricci::rule
