#include "backend/lir/number.h"

#include <array>

#include "ricci/compiler/rule/nd.h"
#include "ricci/support/error.h"

#include "rule/number_functions.h"
#include "type/elements.h"

namespace ricci::lir {

Number load(DType dtype, const std::byte* at) {
  return with_number_class(dtype,
                           [&]<class N>() -> Number { return detail::load_number<N>(dtype, at); });
}

void store(DType dtype, std::byte* at, const Number& number) {
  std::visit([&](auto n) { detail::store_number(dtype, at, n); }, number);
}

Number as_stored(DType dtype, const Number& number) {
  std::array<std::byte, sizeof(std::complex<double>)> element{};
  store(dtype, element.data(), number);
  return load(dtype, element.data());
}

bool is_nonzero(const Number& number) {
  return std::visit([]<class N>(N n) { return n != N(0); }, number);
}

Number truth(bool value) { return std::int64_t{value ? 1 : 0}; }

Number unary(UnaryKind kind, DType dtype, const Number& x) {
  return std::visit([&](auto n) -> Number { return rule::eval_unary(kind, n, dtype); }, x);
}

Number binary(BinaryKind kind, DType dtype, const Number& a, const Number& b) {
  if (kind == BinaryKind::MakeComplex) {
    return std::complex<double>(std::get<double>(a), std::get<double>(b));
  }
  return with_number_class(dtype, [&]<class N>() -> Number {
    return rule::eval_binary(kind, std::get<N>(a), std::get<N>(b), dtype);
  });
}

bool compare(CompareKind kind, DType dtype, const Number& a, const Number& b) {
  return with_number_class(dtype, [&]<class N>() {
    return rule::compare_numbers(kind, std::get<N>(a), std::get<N>(b));
  });
}

Number reduced_with(ReduceKind kind, DType dtype, const Number& so_far, const Number& x) {
  switch (kind) {
    case ReduceKind::Sum: return binary(BinaryKind::Add, dtype, so_far, x);
    case ReduceKind::Prod: return binary(BinaryKind::Mul, dtype, so_far, x);
    // Of equals, such as 0 and -0, the first stays.
    case ReduceKind::Max: return binary(BinaryKind::Max, dtype, x, so_far);
    case ReduceKind::Min: return binary(BinaryKind::Min, dtype, x, so_far);
    case ReduceKind::Any: return truth(is_nonzero(so_far) || is_nonzero(x));
    case ReduceKind::All: return truth(is_nonzero(so_far) && is_nonzero(x));
    case ReduceKind::Mean:
    case ReduceKind::LogSumExp: break;
  }
  throw InternalError("a reduction was not rewritten");
}

}  // namespace ricci::lir
