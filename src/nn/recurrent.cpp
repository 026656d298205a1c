#include <fmt/format.h>

#include "ricci/array/control.h"
#include "ricci/array/create.h"
#include "ricci/array/ops.h"
#include "ricci/array/shape.h"
#include "ricci/nn/layers.h"

#include "array/node.h"
#include "nn/layer.h"

namespace ricci::nn {
namespace {

// Places first, and what does not depend on the state computed for all of them at once.
Array gates_of_inputs(const Array& x, const Array& w, const Array& b, const char* layer,
                      Here where) {
  if (x.rank() != 3 || x.dim(2) != w.dim(0)) {
    detail::refuse(ErrorCode::Shape, "recurrent",
                   fmt::format("'{}' of width {} is given {}", layer, w.dim(0).to_string(),
                               x.type().to_string()),
                   "it takes [batch, places, width]", where);
  }
  return transpose(add(matmul(x, w, where), b, where), {1, 0, 2}, where);
}

Array no_state(const Array& x, const Array& w_hidden, Here where) {
  return zeros({x.dim(0), w_hidden.dim(0)}, {.dtype = x.dtype()}, where);
}

}  // namespace

LSTM::LSTM(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options)
    : w_in(drawn_weight("LSTM", options.init, {in, 4 * hidden}, options.dtype)),
      w_hidden(drawn_weight("LSTM", options.hidden_init, {hidden, 4 * hidden}, options.dtype)),
      b(zeros({4 * hidden}, {.dtype = options.dtype})) {}

LSTM::Result LSTM::operator()(const Array& x, const std::optional<State>& start, Here where) const {
  const Array rows = gates_of_inputs(x, w_in, b, "LSTM", where);
  const Array nothing = no_state(x, w_hidden, where);
  const auto body = [&](const State& s, const Array& row) {
    const auto gates = split(add(row, matmul(s.h, w_hidden, where), where), 4, 1, where);
    const Array c = add(mul(sigmoid(gates[1], where), s.c, where),
                        mul(sigmoid(gates[0], where), tanh(gates[2], where), where), where);
    const Array h = mul(sigmoid(gates[3], where), tanh(c, where), where);
    return carry_and(State{h, c}, h);
  };
  const auto [last, ys] = scan(start.value_or(State{nothing, nothing}), rows, body, {}, where);
  return {transpose(ys, {1, 0, 2}, where), last};
}

GRU::GRU(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options)
    : w_in(drawn_weight("GRU", options.init, {in, 3 * hidden}, options.dtype)),
      w_hidden(drawn_weight("GRU", options.hidden_init, {hidden, 3 * hidden}, options.dtype)),
      b(zeros({3 * hidden}, {.dtype = options.dtype})),
      b_hidden(zeros({3 * hidden}, {.dtype = options.dtype})) {}

GRU::Result GRU::operator()(const Array& x, const std::optional<Array>& start, Here where) const {
  const Array rows = gates_of_inputs(x, w_in, b, "GRU", where);
  const auto body = [&](const Array& h, const Array& row) {
    const auto from_x = split(row, 3, 1, where);
    const auto from_h = split(add(matmul(h, w_hidden, where), b_hidden, where), 3, 1, where);
    const Array r = sigmoid(add(from_x[0], from_h[0], where), where);
    const Array z = sigmoid(add(from_x[1], from_h[1], where), where);
    const Array n = tanh(add(from_x[2], mul(r, from_h[2], where), where), where);
    const Array next = add(n, mul(z, sub(h, n, where), where), where);
    return carry_and(next, next);
  };
  const Array from = start ? *start : no_state(x, w_hidden, where);
  const auto [last, ys] = scan(from, rows, body, {}, where);
  return {transpose(ys, {1, 0, 2}, where), last};
}

}  // namespace ricci::nn
