// Element-wise ops of any dtype, as the reference computes them: for what the code generator does
// not know (quotients and functions of complex numbers) and wherever no generated kernel is at
// hand.
#include "ricci/op/elementwise.h"

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
void for_each_piece(const HostCall& c, const F& f) {
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
OwnedView broadcast(const HostCall& c, std::size_t k) {
  return OwnedView(c.operands[k]).broadcast_to(c.results[0].dims);
}

void run_unary(const HostCall& c) {
  const UnaryKind kind = c.op.as<op::Unary>()->kind;
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
void run_pairs(const HostCall& c, const F& f) {
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

void run_binary(const HostCall& c) {
  const BinaryKind kind = c.op.as<op::Binary>()->kind;
  const DType dtype = c.operands[0].dtype;
  with_number_class(dtype, [&]<class N>() {
    run_pairs<N, N>(c, [&](N a, N b) { return rule::eval_binary(kind, a, b, dtype); });
  });
}

void run_compare(const HostCall& c) {
  const CompareKind kind = c.op.as<op::Compare>()->kind;
  with_number_class(c.operands[0].dtype, [&]<class N>() {
    run_pairs<N, std::int64_t>(
        c, [&](N a, N b) { return std::int64_t{rule::compare_numbers(kind, a, b) ? 1 : 0}; });
  });
}

// Elements are moved, not converted, so that NaNs keep their bits.
void run_where(const HostCall& c) {
  const OwnedView cond = broadcast(c, 0);
  const OwnedView yes = broadcast(c, 1);
  const OwnedView no = broadcast(c, 2);
  with_element_type(c.results[0].dtype, [&]<class T>() {
    for_each_piece(c, [&](std::int64_t begin, std::int64_t count) {
      Piece<std::complex<double>> chosen;
      Piece<std::int64_t> at_yes;
      Piece<std::int64_t> at_no;
      read_numbers(cond.view(), begin, count, chosen.data());
      offsets_of(yes.view(), begin, count, at_yes.data());
      offsets_of(no.view(), begin, count, at_no.data());
      T* out = c.results[0].as<T>() + begin;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        out[i] = chosen[i] != std::complex<double>(0) ? load_as<T>(yes.view().as<T>() + at_yes[i])
                                                      : load_as<T>(no.view().as<T>() + at_no[i]);
      }
    });
  });
}

void run_cast(const HostCall& c) {
  with_number_class(c.operands[0].dtype, [&]<class N>() {
    for_each_piece(c, [&](std::int64_t begin, std::int64_t count) {
      Piece<N> x;
      read_numbers(c.operands[0], begin, count, x.data());
      write_numbers(c.results[0], begin, count, x.data());
    });
  });
}

}  // namespace

HostKernel unary_kernel() noexcept { return {run_unary}; }
HostKernel binary_kernel() noexcept { return {run_binary}; }
HostKernel compare_kernel() noexcept { return {run_compare}; }
HostKernel where_kernel() noexcept { return {run_where}; }
HostKernel cast_kernel() noexcept { return {run_cast}; }

}  // namespace ricci::cpu
