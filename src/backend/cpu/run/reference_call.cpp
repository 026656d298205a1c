#include "backend/cpu/run/reference_call.h"

#include <cstring>

#include "ricci/rule/eval.h"

namespace ricci::cpu {
namespace {

class ReferenceKernel final : public CallKernel {
 public:
  ReferenceKernel(const CallStep& step, const Registry& registry)
      : graph_("call", registry), node_{.op = step.op}, operands_(step.operands) {
    for (const BufferView& v : step.results) {
      node_.types.push_back(v.type);
      node_.wanted.push_back(v.buffer >= 0);
    }
  }

  void run(const CallArguments& a) const override {
    std::vector<Tensor> operands;
    operands.reserve(operands_.size());
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      operands.push_back(
          Tensor::borrow(operands_[k].type, a.operands[k], operands_[k].layout.strides, nullptr));
    }
    EvalContext context(node_, graph_, std::move(operands), a.seed, {});
    evaluate(context);
    const std::vector<Tensor> results = context.take_results();
    for (std::size_t r = 0; r < a.results.size(); ++r) {
      if (a.results[r] == nullptr) continue;
      const Tensor plain = results[r].contiguous();
      std::memcpy(a.results[r], plain.data(), plain.bytes().size());
    }
  }
  [[nodiscard]] std::string_view how() const override { return "reference"; }

 private:
  Graph graph_;  // empty: it says where registered ops are found
  Node node_;
  std::vector<BufferView> operands_;
};

}  // namespace

std::unique_ptr<CallKernel> make_reference_call(const CallStep& step, const Registry& registry) {
  return std::make_unique<ReferenceKernel>(step, registry);
}

}  // namespace ricci::cpu
