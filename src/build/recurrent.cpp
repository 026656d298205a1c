#include "ricci/build/recurrent.h"

#include <fmt/format.h>

#include "ricci/build/control.h"

#include "build/composed.h"

namespace ricci {
namespace {

// x_t·w + b for all steps at once: [T, B, I] → [T, B, G].
Value inputs_times(const ComposedScope& scope, Value x, Value w, Value b) {
  if (x.rank() != 3 || w.rank() != 2 || b.rank() != 1) {
    scope.fail(ErrorCode::Shape,
               fmt::format("x is {}, w_x {} and the bias {}", x.type().to_string(),
                           w.type().to_string(), b.type().to_string()),
               "x is [T, B, inputs], w_x [inputs, gates], the bias [gates]");
  }
  const Value rows = reshape_to(x, {x.dims()[0] * x.dims()[1], x.dims()[2]});
  const Value products = matmul(rows, w) + b;
  return reshape_to(products, {x.dims()[0], x.dims()[1], w.dims()[1]});
}

// Gate number i of `width` columns each.
Value gate(Value gates, const Value& state, std::int64_t i) {
  const Dim width = state.dims().back();
  return narrow(gates, {.axis = -1, .start = width * Dim(i), .len = width});
}

std::vector<Value> run(std::vector<Value> carries, Value x, std::vector<Value> shared,
                       const RecurrentOptions& options, const BodyFunction& body) {
  // A gradient keeps the products, as others' layers do: to make them again would cost as much as
  // the forward pass, and a row of them is no larger than the row of x it is added to.
  const ScanOptions scan_options{.bcasts = std::move(shared),
                                 .xs = {x},
                                 .reverse = options.reverse,
                                 .saving = {.policy = ScanSave::Matmuls}};
  return scan(carries, scan_options, body);
}

}  // namespace

RecurrentResult rnn(Value x, Value h0, Value w_x, Value w_h, Value b, RecurrentOptions options,
                    std::source_location loc) {
  const ComposedScope scope(x, "rnn", loc);
  const auto out = run({h0}, inputs_times(scope, x, w_x, b), {w_h}, options,
                       [](Graph&, std::span<const Value> in) {
                         const Value h = tanh(in[2] + matmul(in[0], in[1]));
                         return std::vector{h, h};
                       });
  return {out[1], out[0]};
}

RecurrentResult gru(Value x, Value h0, Value w_x, Value w_h, Value b_x, Value b_h,
                    RecurrentOptions options, std::source_location loc) {
  const ComposedScope scope(x, "gru", loc);
  const auto out = run({h0}, inputs_times(scope, x, w_x, b_x), {w_h, b_h}, options,
                       [](Graph&, std::span<const Value> in) {
                         const Value h = in[0];
                         const Value own = in[3];
                         const Value past = matmul(h, in[1]) + in[2];
                         const Value r = sigmoid(gate(own, h, 0) + gate(past, h, 0));
                         const Value z = sigmoid(gate(own, h, 1) + gate(past, h, 1));
                         const Value n = tanh(gate(own, h, 2) + r * gate(past, h, 2));
                         const Value next = n + z * (h - n);
                         return std::vector{next, next};
                       });
  return {out[1], out[0]};
}

LstmResult lstm(Value x, Value h0, Value c0, Value w_x, Value w_h, Value b,
                RecurrentOptions options, std::source_location loc) {
  const ComposedScope scope(x, "lstm", loc);
  const auto out = run({h0, c0}, inputs_times(scope, x, w_x, b), {w_h}, options,
                       [](Graph&, std::span<const Value> in) {
                         const Value h = in[0];
                         const Value gates = in[3] + matmul(h, in[2]);
                         const Value kept = sigmoid(gate(gates, h, 1)) * in[1];
                         const Value fresh = sigmoid(gate(gates, h, 0)) * tanh(gate(gates, h, 2));
                         const Value c = kept + fresh;
                         const Value next = sigmoid(gate(gates, h, 3)) * tanh(c);
                         return std::vector{next, c, next};
                       });
  return {out[2], out[0], out[1]};
}

}  // namespace ricci
