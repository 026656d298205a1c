#include "ricci/op/sequence.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

void require_type(const InferContext& in, std::string_view label, std::string_view operand,
                  std::size_t k, const Type& expected) {
  if (in[k] == expected) return;
  in.reject(label, fmt::format("{} is {} instead of {}", operand, in[k].to_string(),
                               expected.to_string()));
}

void require_operands(const InferContext& in, std::string_view label, std::size_t expected) {
  if (in.operands.size() == expected) return;
  in.reject(label, fmt::format("{} operands are given where the attributes ask for {}",
                               in.operands.size(), expected));
}

// Operands x, delta, a, b, c and, at index 5, the initial state if there is one; gives the type of
// a state.
Type check_scan(const Dim& state_size, const InferContext& in, bool has_initial_state) {
  require_dtypes(in, "c1", 0, 5, dtypes::floats);
  if (in[0].rank() != 3 || in[1].dims != in[0].dims) {
    in.reject("c2", fmt::format("x is {} and delta is {}", in[0].to_string(), in[1].to_string()));
  }
  const Dims& x = in[0].dims;
  const Type rates = in[0].with({x[2], state_size});
  const Type own_rates = in[0].with({x[0], x[2], state_size});
  require_type(in, "c3", "a", 2, in[2].rank() == 3 ? own_rates : rates);
  require_type(in, "c4", "b", 3, in[0].with({x[0], x[1], state_size}));
  require_type(in, "c4", "c", 4, in[0].with({x[0], x[1], state_size}));
  const Type state{at_least_f32(in[0].dtype), {x[0], x[2], state_size}};
  if (has_initial_state) require_type(in, "c5", "h0", 5, state);
  return state;
}

// Operands q, k, v, g, beta; gives the type of a state.
Type check_delta_net(const Dim& state_size, const InferContext& in) {
  require_dtypes(in, "c1", 0, 5, dtypes::floats);
  const Dims& q = in[0].dims;
  const auto width = state_size.try_value();
  if (q.size() != 4 || q[3] != state_size || in[1].dims != q || (width && *width < 1)) {
    in.reject("c2", fmt::format("q is {} and k is {}, but state_size is {}", in[0].to_string(),
                                in[1].to_string(), state_size.to_string()));
  }
  const Dims& v = in[2].dims;
  if (v.size() != 4 || v[0] != q[0] || v[1] != q[1]) {
    in.reject("c3", fmt::format("v is {}, but q is {}", in[2].to_string(), in[0].to_string()));
  }
  if (v[2] != q[2] && (q[2].is(0) || !Dim::divide(v[2], q[2]))) {
    in.reject("c4", fmt::format("{} query and key heads do not divide {} value heads",
                                q[2].to_string(), v[2].to_string()));
  }
  require_type(in, "c5", "g", 3, in[0].with({v[0], v[1], v[2]}));
  require_type(in, "c5", "beta", 4, in[0].with({v[0], v[1], v[2]}));
  return {at_least_f32(in[0].dtype), {v[0], v[2], state_size, v[3]}};
}

// Where a backward op finds its operands: inputs 0 to 4, (state), the cotangent, (its state's).
struct BackwardOperands {
  std::size_t cotangent;
  std::size_t count;
};
BackwardOperands backward_operands(bool has_state, bool has_final_cotangent) {
  const std::size_t cotangent = has_state ? 6 : 5;
  return {cotangent, cotangent + (has_final_cotangent ? 2 : 1)};
}

}  // namespace

Inferred infer(const op::SelectiveScan& op, const InferContext& in) {
  const Type state = check_scan(op.state_size, in, in.operands.size() > 5);
  return std::vector<Type>{in[0], state};
}

Inferred infer(const op::SelectiveScanBackward& op, const InferContext& in) {
  const auto [dy, count] = backward_operands(op.has_initial_state, op.has_final_cotangent);
  require_operands(in, "c6", count);
  const Type state = check_scan(op.state_size, in, op.has_initial_state);
  if (in[dy].dtype != in[0].dtype) {
    in.reject("c1", fmt::format("dy is {}, but x is {}", name(in[dy].dtype), name(in[0].dtype)));
  }
  require_type(in, "c7", "dy", dy, in[0]);
  if (op.has_final_cotangent) require_type(in, "c8", "dh_final", dy + 1, state);
  std::vector<Type> gradients = {in[0], in[1], in[2], in[3], in[4]};
  if (op.has_initial_state) gradients.push_back(state);
  return gradients;
}

Inferred infer(const op::GatedDeltaNet& op, const InferContext& in) {
  const Type state = check_delta_net(op.state_size, in);
  const bool given = in.operands.size() > 5;
  if (given != op.carry_state) {
    in.reject("c6", fmt::format("a state is {}, but carry_state is {}", given ? "given" : "missing",
                                op.carry_state));
  }
  if (given) require_type(in, "c7", "state", 5, state);
  return std::vector<Type>{in[2], state};
}

Inferred infer(const op::GatedDeltaNetBackward& op, const InferContext& in) {
  const auto [dout, count] = backward_operands(op.carry_state, op.has_final_cotangent);
  require_operands(in, "c6", count);
  const Type state = check_delta_net(op.state_size, in);
  if (in[dout].dtype != in[0].dtype) {
    in.reject("c1", fmt::format("do is {}, but q is {}", name(in[dout].dtype), name(in[0].dtype)));
  }
  if (op.carry_state) require_type(in, "c7", "state", 5, state);
  require_type(in, "c8", "do", dout, in[2]);
  if (op.has_final_cotangent) require_type(in, "c9", "dstate_final", dout + 1, state);
  std::vector<Type> gradients = {in[0], in[1], in[2], in[3], in[4]};
  if (op.carry_state) gradients.push_back(state);
  return gradients;
}

}  // namespace ricci
