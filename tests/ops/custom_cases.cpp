#include "ricci/build/build.h"
#include "ricci/compiler/rule/batch.h"
#include "ricci/compiler/rule/eval.h"
#include "ricci/compiler/rule/jvp.h"
#include "ricci/compiler/rule/vjp.h"
#include "ricci/op/custom.h"

#include "ops/cases.h"

namespace ricci::testing {
namespace {

// y = a·x + b with a, b from the attribute bytes.
class Affine final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "test_affine"; }
  [[nodiscard]] std::optional<std::size_t> num_inputs() const override { return 1; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type> operands,
                                        const Bytes& attrs) const override {
    if (attrs.data.size() != 2) throw UserError(ErrorCode::Attr, "two bytes are needed");
    return {operands[0]};
  }
  void eval(const Bytes& attrs, EvalContext& c) const override {
    RealNd x = c.real(0);
    for (double& v : x.data) {
      v = v * std::to_integer<int>(attrs.data[0]) + std::to_integer<int>(attrs.data[1]);
    }
    c.give(0, x);
  }
  [[nodiscard]] std::vector<Value> vjp(const Bytes& attrs, const VjpContext& c) const override {
    return {c.cotangent() * factor(attrs)};
  }
  [[nodiscard]] std::vector<Value> jvp(const Bytes& attrs, JvpContext& c) const override {
    return {c.tangent(0) * factor(attrs)};
  }
  [[nodiscard]] std::vector<BatchedValue> vmap(const Bytes&, const VmapContext& c) const override {
    return c.emit(c.node().op, std::array{c[0]});
  }

 private:
  static double factor(const Bytes& attrs) { return std::to_integer<int>(attrs.data[0]); }
};

// An op whose shape rule gives no result.
class Nothing final : public CustomOp {
 public:
  [[nodiscard]] std::string name() const override { return "test_nothing"; }
  [[nodiscard]] std::vector<Type> infer(std::span<const Type>, const Bytes&) const override {
    return {};
  }
  void eval(const Bytes&, EvalContext&) const override {}
};

}  // namespace

Cases cases(const op::Custom*) {
  static const bool registered = [] {
    global_registry().add(std::make_shared<Affine>(), true);
    global_registry().add(std::make_shared<Nothing>(), true);
    return true;
  }();
  (void)registered;
  return cases_of<op::Custom>({
      {.name = "affine",
       .in = {T({2}).with({1, 2})},
       .op = {.name = "test_affine", .attrs = {{std::byte{3}, std::byte{1}}}},
       .out = {{4, 7}}},
      {.name = "operands",
       .in = {T({2}), T({2})},
       .op = {.name = "test_affine", .attrs = {{std::byte{3}, std::byte{1}}}},
       .rejects = "c2"},
      {.name = "unknown", .in = {T({2})}, .op = {.name = "nobody"}, .rejects = "c1"},
      {.name = "other_version",
       .in = {T({2})},
       .op = {.name = "test_affine", .version = 9},
       .rejects = "c1"},
      {.name = "no_result", .in = {T({2})}, .op = {.name = "test_nothing"}, .rejects = "c3"},
  });
}

}  // namespace ricci::testing
