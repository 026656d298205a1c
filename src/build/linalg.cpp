// Linear algebra from factorisations.
#include "ricci/build/linalg.h"

#include <fmt/format.h>

#include "build/matrix_parts.h"
#include "type/epsilon.h"

namespace ricci {
namespace {

using namespace ricci::matrix;

constexpr double NegativeInfinity = -std::numeric_limits<double>::infinity();

void require_matrix(Value a, std::string_view builder, bool square, std::source_location loc) {
  const Dims& dims = a.dims();
  if (dims.size() >= 2 && (!square || dims[dims.size() - 2] == dims.back())) return;
  throw UserError(Diagnostic{ErrorCode::Shape,
                             std::string(builder),
                             fmt::format("'{}' takes {}matrices, but a is {}", builder,
                                         square ? "square " : "", a.type().to_string()),
                             SourcePosition::from(loc),
                             {},
                             "batch axes come before the two of a matrix"});
}

Dims batch_of(Value a) { return {a.dims().begin(), a.dims().end() - 2}; }

Dims behind(Dims batch, std::initializer_list<Dim> dims) {
  batch.insert(batch.end(), dims.begin(), dims.end());
  return batch;
}

// The node's results that are asked for; one of them.
Value only_result(Op op, Value a, std::uint32_t chosen, std::size_t count,
                  std::source_location loc) {
  std::vector<bool> wanted(count, false);
  wanted[chosen] = true;
  const NodeId id = a.graph().add(
      {.op = std::move(op),
       .operands = {a.id()},
       .bodies = {},
       .wanted = std::move(wanted),
       .names = {},
       .provenance = {.label = {}, .where = SourcePosition::from(loc), .origin = {}}});
  return a.graph().value({id, chosen});
}

// Right-hand sides [.., N, K] of one matrix as columns of one system: [N, B·K], and back.
Value solve_shared(Value a, Value b, std::source_location loc) {
  const auto batch = static_cast<std::int64_t>(b.rank()) - 2;
  Axes to{batch};
  Axes from;
  for (std::int64_t i = 0; i < batch; ++i) {
    to.emplace_back(i);
    from.emplace_back(i + 1);
  }
  to.emplace_back(batch + 1);
  from.emplace_back(0);
  from.emplace_back(batch + 1);
  const Value apart = transpose(b, {.perm = to}, loc);
  Dim columns = 1;
  for (std::size_t i = 1; i < apart.rank(); ++i) columns = columns * apart.dims()[i];
  const Dims dims = apart.dims();
  const Value x = dense_solve(a, reshape_to(apart, {dims[0], columns}, loc), {}, loc);
  return transpose(reshape_to(x, dims, loc), {.perm = from}, loc);
}

// Systems with a batch: folded into one axis.
Value solve_batched(Value a, Value b, std::source_location loc) {
  const Dims batch = broadcast(batch_of(a), batch_of(b)).value_or(batch_of(a));
  Dim count = 1;
  for (const Dim& d : batch) count = count * d;
  const Dim n = rows_of(b);
  const Dim k = columns_of(b);
  const Value all_a = broadcast_to(a, behind(batch, {rows_of(a), columns_of(a)}), loc);
  const Value all_b = broadcast_to(b, behind(batch, {n, k}), loc);
  const Value x = batched_dense_solve(reshape_to(all_a, {count, rows_of(a), columns_of(a)}, loc),
                                      reshape_to(all_b, {count, n, k}, loc), {}, loc);
  return reshape_to(x, behind(batch, {n, k}), loc);
}

// Calls `f` with b as columns; a vector a matrix is one column.
template <class F>
Value with_columns(Value a, Value b, std::source_location loc, const F& f) {
  if (b.rank() + 1 != a.rank()) return f(b);
  Dims column = b.dims();
  column.emplace_back(1);
  const Value x = f(reshape_to(b, std::move(column), loc));
  Dims dims = x.dims();
  dims.pop_back();
  return reshape_to(x, std::move(dims), loc);
}

// |a|², real.
Value squared_modulus(Value a) {
  return is_complex(a.dtype()) ? cast_to(a * conjugate(a), real_part_of(a.dtype())) : square(a);
}
Value modulus(Value a) { return is_complex(a.dtype()) ? sqrt(squared_modulus(a)) : abs(a); }

Value largest_of(Value x) {
  return reduce(x, {.op = ReduceKind::Max, .axes = {static_cast<std::int64_t>(x.rank()) - 1}});
}

}  // namespace

Value solve(Value a, Value b, std::source_location loc) {
  require_matrix(a, "solve", true, loc);
  if (b.rank() + 1 != a.rank()) require_matrix(b, "solve", false, loc);
  return with_columns(a, b, loc, [&](Value columns) {
    if (a.rank() == 2 && columns.rank() == 2) return dense_solve(a, columns, {}, loc);
    return a.rank() == 2 ? solve_shared(a, columns, loc) : solve_batched(a, columns, loc);
  });
}

Value inv(Value a, std::source_location loc) {
  require_matrix(a, "inv", true, loc);
  return solve(a, identity(a.graph(), columns_of(a), a.dtype()), loc);
}

LuFactors lu_factors(Value a, std::source_location loc) {
  const auto [packed, pivots, permutation] = lu(a, {}, loc);
  const Dim k = pivots.dims().back();
  const Value l = part_of(first_columns(packed, k), Part::StrictlyLower);
  const Value one =
      cast_to(eq(iota(a.graph(), {.shape = {rows_of(a), k}, .axis = 0, .dtype = DType::I64}),
                 iota(a.graph(), {.shape = {rows_of(a), k}, .axis = 1, .dtype = DType::I64})),
              a.dtype());
  return {permutation, l + one, part_of(first_rows(packed, k), Part::Upper)};
}

namespace {

// Unit vectors [.., M, M - N] that a's N columns lack: those of the rows that elimination with
// pivoting leaves over, so that all M are independent wherever a's columns are.
Value missing_units(Value a) {
  const Dim m = rows_of(a);
  const Dim n = columns_of(a);
  const Value permutation = lu(stop_gradient(a))[2];
  const auto last = static_cast<std::int64_t>(permutation.rank()) - 1;
  const Value left = narrow(permutation, {.axis = last, .start = n, .len = m - n});
  const Value rows = iota(a.graph(), {.shape = {m, 1}, .axis = 0, .dtype = left.dtype()});
  const Value columns = reshape_to(left, behind(batch_of(a), {1, m - n}));
  return cast_to(eq(rows, columns), a.dtype());
}

}  // namespace

FullQr qr_full(Value a, std::source_location loc) {
  require_matrix(a, "qr_full", false, loc);
  const Dim m = rows_of(a);
  const Dim n = columns_of(a);
  if (m == n || (m.is_static() && n.is_static() && m.value() < n.value())) {
    const auto [q, r] = qr(a, {}, loc);
    return {q, r};
  }
  if (!m.is_static() || !n.is_static()) {
    throw UserError(
        Diagnostic{ErrorCode::NeedsStaticDim,
                   "qr_full",
                   fmt::format("a is {}: which of its last two sizes is smaller must be "
                               "known",
                               a.type().to_string()),
                   SourcePosition::from(loc),
                   {},
                   "bind the sizes first"});
  }
  const std::vector<Value> all = {a, missing_units(a)};
  const auto [q, r] = qr(concat(all, {.axis = column_axis(a)}, loc), {}, loc);
  return {q, first_columns(r, n)};
}

FullSvd svd_full(Value a, std::source_location loc) {
  require_matrix(a, "svd_full", false, loc);
  const auto [u, s, vh] = svd(a, {}, loc);
  // The columns of x, and those that make it square.
  const auto completed = [&](Value x) {
    const Dim m = rows_of(x);
    const Dim n = columns_of(x);
    if (m == n) return x;
    const Value q = qr_full(x, loc).q;
    const Value rest = narrow(q, {.axis = column_axis(q), .start = n, .len = m - n}, loc);
    const std::vector<Value> all = {x, rest};
    return concat(all, {.axis = column_axis(x)}, loc);
  };
  return {completed(u), s, rows_of(vh) == columns_of(vh) ? vh : adjoint(completed(adjoint(vh)))};
}

SignAndLog slogdet(Value a, std::source_location loc) {
  require_matrix(a, "slogdet", true, loc);
  const auto [packed, pivots, permutation] = lu(a, {}, loc);
  const Value d = diagonal_of(packed);
  const Axis last = static_cast<std::int64_t>(d.rank()) - 1;
  const Value is_zero = eq(d, 0.0);
  const Value safe = where(is_zero, scalar_like(d, 1), d);
  const DType real = real_part_of(a.dtype());
  const Value exchanges = sign_of_exchanges(pivots, a.dtype());
  Value log_abs;
  Value sign;
  if (is_complex(a.dtype())) {
    const Value logs = log(safe);
    const Value real_logs = cast_to(logs, real);
    log_abs = real_logs;
    sign = exp(sum(logs - cast_to(real_logs, a.dtype()), {last})) * exchanges;
  } else {
    log_abs = log(abs(safe));
    sign = reduce(ricci::sign(safe), {.op = ReduceKind::Prod, .axes = {last}}) * exchanges;
  }
  const Value singular = reduce(is_zero, {.op = ReduceKind::Any, .axes = {last}});
  return {where(singular, scalar_like(sign, 0), sign),
          sum(where(is_zero, scalar_like(log_abs, NegativeInfinity), log_abs), {last})};
}

Value lstsq(Value a, Value b, std::optional<Real> rcond, std::source_location loc) {
  return with_columns(a, b, loc, [&](Value columns) {
    return matmul(pinv(a, {.rcond = rcond}, loc), columns, {}, loc);
  });
}

Value cholesky_solve(Value l, Value b, std::source_location loc) {
  return with_columns(l, b, loc, [&](Value columns) {
    const Value y = triangular_solve(l, columns, {.lower = true}, loc);
    const Value conjugated = is_complex(l.dtype()) ? conjugate(l) : l;
    return triangular_solve(conjugated, y, {.lower = true, .transpose = true}, loc);
  });
}

Value eigvalsh(Value a, std::source_location loc) {
  return only_result(Op(op::Eigh{}), a, 0, 2, loc);
}
Value svdvals(Value a, std::source_location loc) {
  return only_result(Op(op::Svd{}), a, 1, 3, loc);
}

Value matrix_rank(Value a, std::optional<Real> rcond, std::source_location loc) {
  const Value s = svdvals(a, loc);
  const Axis last = static_cast<std::int64_t>(s.rank()) - 1;
  const auto counted = [&](Value large) { return sum(cast_to(large, DType::I32), {last}); };
  if (s.dims().back().is(0)) return counted(gt(s, 0.0));
  const Dim longer = s.dims().back() == columns_of(a) ? rows_of(a) : columns_of(a);
  const auto known = longer.try_value();
  const Value size = known ? scalar_like(s, static_cast<double>(*known))
                           : dim_size(a.graph(), {.dim = longer, .dtype = s.dtype()});
  const Value share = rcond ? scalar_like(s, rcond->value) : size * epsilon_of(s.dtype());
  const Value largest = reduce(s, {.op = ReduceKind::Max, .axes = {last}, .keep_dim = true});
  return counted(gt(s, largest * share));
}

Value matrix_power(Value a, std::int64_t n, std::source_location loc) {
  require_matrix(a, "matrix_power", true, loc);
  if (n == 0) {
    const Value one = identity(a.graph(), columns_of(a), a.dtype());
    return broadcast_to(one, a.dims(), loc);
  }
  Value square = n < 0 ? inv(a, loc) : a;
  Value out;
  for (std::uint64_t left = n < 0 ? 0 - static_cast<std::uint64_t>(n)
                                  : static_cast<std::uint64_t>(n);
       left != 0; left >>= 1U) {
    if ((left & 1U) != 0) out = out.valid() ? matmul(out, square, {}, loc) : square;
    if (left > 1) square = matmul(square, square, {}, loc);
  }
  return out;
}

Value trace(Value a, std::source_location loc) {
  require_matrix(a, "trace", true, loc);
  const Value d = diagonal_of(a);
  return sum(d, {static_cast<std::int64_t>(d.rank()) - 1}, false, loc);
}

Value matrix_norm(Value a, MatrixNorm norm, std::source_location loc) {
  require_matrix(a, "matrix_norm", false, loc);
  switch (norm) {
    case MatrixNorm::Frobenius: break;
    case MatrixNorm::Nuclear: {
      const Value s = svdvals(a, loc);
      return sum(s, {static_cast<std::int64_t>(s.rank()) - 1}, false, loc);
    }
    case MatrixNorm::Spectral: return largest_of(svdvals(a, loc));
    case MatrixNorm::One: return largest_of(sum(modulus(a), {row_axis(a)}, false, loc));
    case MatrixNorm::Infinity: return largest_of(sum(modulus(a), {column_axis(a)}, false, loc));
  }
  return sqrt(sum(squared_modulus(a), {row_axis(a), column_axis(a)}, false, loc), loc);
}

}  // namespace ricci
