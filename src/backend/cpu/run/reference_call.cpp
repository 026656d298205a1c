#include "backend/cpu/run/reference_call.h"

#include "device/reference_call.h"

namespace ricci::cpu {
namespace {

class ReferenceKernel final : public CallKernel {
 public:
  ReferenceKernel(const Program& program, const CallStep& step) : call_(program, step) {}
  void run(const CallArguments& a) const override { call_.run(a.operands, a.results, a.seed); }
  [[nodiscard]] std::string_view how() const override { return "host call"; }

 private:
  device::ReferenceCall call_;
};

}  // namespace

std::unique_ptr<CallKernel> make_reference_call(const Program& program, const CallStep& step) {
  return std::make_unique<ReferenceKernel>(program, step);
}

}  // namespace ricci::cpu
