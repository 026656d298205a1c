#include "ricci/op/control.h"

#include <fmt/format.h>

#include "op/infer_rules.h"

namespace ricci {
namespace {

std::string list_types(std::span<const Type> types) {
  std::string out = "(";
  for (const Type& t : types) {
    if (out.size() > 1) out += ", ";
    out += t.to_string();
  }
  return out + ")";
}

void require_signature(const InferContext& in, std::string_view label, const BodySignature& body,
                       std::span<const Type> expected) {
  if (!std::ranges::equal(body.inputs, expected)) {
    in.reject(label,
              fmt::format("body '{}' takes {}, but is given {}", body.role, list_types(body.inputs),
                          list_types(expected)),
              "a body's inputs, in order, have the operands' types");
  }
}

}  // namespace

Inferred infer(const op::If&, const InferContext& in) {
  if (in.operands.empty() || !product(in[0].dims).is(1)) {
    in.reject("c1", "the predicate of 'if' must have exactly one element");
  }
  const std::span<const Type> captures = in.operands.subspan(1);
  for (const BodySignature& body : in.bodies) require_signature(in, "c2", body, captures);
  const BodySignature& yes = *in.body("then");
  const BodySignature& no = *in.body("else");
  if (yes.outputs != no.outputs) {
    in.reject("c3", fmt::format("'then' gives {}, but 'else' gives {}", list_types(yes.outputs),
                                list_types(no.outputs)));
  }
  return yes.outputs;
}

Inferred infer(const op::Scan& op, const InferContext& in) {
  if (op.num_carry < 0 || op.num_bcast < 0 || op.num_xs < 0 || op.num_checkpoints < 0 ||
      (op.length.is_static() &&
       (op.length.value() < 0 || op.num_checkpoints > op.length.value()))) {
    in.reject("c5",
              fmt::format("num_checkpoints = {} and length = {} do not go together",
                          op.num_checkpoints, op.length.to_string()),
              "0 ≤ num_checkpoints ≤ length");
  }
  const auto carries = static_cast<std::size_t>(op.num_carry);
  const auto bcasts = static_cast<std::size_t>(op.num_bcast);
  const auto xs = static_cast<std::size_t>(op.num_xs);
  if (in.operands.size() != carries + bcasts + xs) {
    in.reject("c1", fmt::format("{} operands are given, but {} carries, {} bcasts and {} xs are "
                                "declared",
                                in.operands.size(), carries, bcasts, xs));
  }
  std::vector<Type> step(in.operands.begin(), in.operands.end());
  for (std::size_t k = carries + bcasts; k < step.size(); ++k) {
    if (step[k].dims.empty() || !(step[k].dims.front() == op.length)) {
      in.reject("c2",
                fmt::format("xs[{}] is {}, but its first size must be the length {}",
                            k - carries - bcasts, step[k].to_string(), op.length.to_string()));
    }
    step[k].dims.erase(step[k].dims.begin());
  }
  const BodySignature& body = *in.body("body");
  require_signature(in, "c3", body, step);
  const auto first = body.outputs.begin();
  if (body.outputs.size() < carries ||
      !std::equal(first, first + static_cast<std::ptrdiff_t>(carries), in.operands.begin())) {
    in.reject("c4",
              fmt::format("the body gives {}, but the carries are {}", list_types(body.outputs),
                          list_types(in.operands.subspan(0, carries))),
              "its first outputs are the next carries, with unchanged types");
  }
  std::vector<Type> out = body.outputs;
  const bool thinned = op.num_checkpoints > 0;
  for (std::size_t k = 0; k < out.size(); ++k) {
    const bool carry = k < carries;
    if (carry && !op.save_trajectory) continue;
    const Dim rows = carry && thinned ? Dim(op.num_checkpoints) : op.length;
    out[k].dims.insert(out[k].dims.begin(), rows);
  }
  return out;
}

}  // namespace ricci
