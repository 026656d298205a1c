// Element-wise ops as the reference computes them, for what the code generator does not know:
// quotients and functions of complex numbers, and quotients of integers, which may fault.
#include <array>

#include "backend/cpu/host/element.h"
#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/numbers.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/view.h"
#include "rule/number_functions.h"
#include "rule/tables/eval_rules.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t PieceSize = 256;
template <class N>
using Piece = std::array<N, PieceSize>;

// Calls `f(begin, count)` for pieces of the result.
template <class F>
void for_each_piece(const HostArguments& c, const F& f) {
  constexpr std::int64_t PiecesPerTile = 16;
  const std::int64_t count = count_of(c.results[0].dims);
  const std::int64_t pieces = (count + PieceSize - 1) / PieceSize;
  parallel_for(c.pool, pieces, PiecesPerTile, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      f(i * PieceSize, std::min(PieceSize, count - i * PieceSize));
    }
  });
}

// An operand repeated to the result's shape.
OwnedView broadcast(const HostArguments& c, std::size_t k) {
  return OwnedView(c.operands[k]).broadcast_to(c.results[0].dims);
}

void run_unary(const HostArguments& c) {
  const auto kind = std::get<UnaryKind>(c.as<loop::Elementwise>().function);
  const DType dtype = c.operands[0].dtype;
  with_number_class(dtype, [&]<class N>() {
    for_each_piece(c, [&](std::int64_t begin, std::int64_t count) {
      Piece<N> x;
      read_numbers(c.operands[0], begin, count, x.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        x[i] = rule::eval_unary(kind, x[i], dtype);
      }
      write_numbers(c.results[0], begin, count, x.data());
    });
  });
}

// result = f(a, b) on pieces of both operands as numbers.
template <class N, class R, class F>
void run_pairs(const HostArguments& c, const F& f) {
  const OwnedView a = broadcast(c, 0);
  const OwnedView b = broadcast(c, 1);
  for_each_piece(c, [&](std::int64_t begin, std::int64_t count) {
    Piece<N> x;
    Piece<N> y;
    Piece<R> out;
    read_numbers(a.view(), begin, count, x.data());
    read_numbers(b.view(), begin, count, y.data());
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) out[i] = f(x[i], y[i]);
    write_numbers(c.results[0], begin, count, out.data());
  });
}

void run_binary(const HostArguments& c) {
  const auto kind = std::get<BinaryKind>(c.as<loop::Elementwise>().function);
  const DType dtype = c.operands[0].dtype;
  with_number_class(dtype, [&]<class N>() {
    run_pairs<N, N>(c, [&](N a, N b) { return rule::eval_binary(kind, a, b, dtype); });
  });
}

}  // namespace

HostKernel unary_kernel() noexcept { return {run_unary}; }
HostKernel binary_kernel() noexcept { return {run_binary}; }

}  // namespace ricci::cpu
