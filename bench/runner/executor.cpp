#include "runner/executor.h"

#include <cstring>
#include <vector>

#include "runner/leaves.h"

namespace ricci::bench {
namespace {

// The reference interpreter behind the interface; right, and slow on purpose.
class InterpreterExecutor : public Executor {
 public:
  [[nodiscard]] std::string_view name() const override { return "interpreter"; }

  void compile(const Workload& workload) override { workload_ = &workload; }

  void bind(std::span<std::byte* const> leaves, std::span<std::byte* const> outputs) override {
    const std::vector<Leaf> declared = leaves_of(workload_->graph);
    for (std::size_t i = 0; i < declared.size(); ++i) {
      const Type& type = declared[i].type;
      const std::vector<std::int64_t> strides = row_major_strides(type.static_dims());
      feeds_.emplace(declared[i].name, Tensor::borrow(type, leaves[i], strides, nullptr));
    }
    outputs_.assign(outputs.begin(), outputs.end());
  }

  void run() override {
    std::vector<Tensor> results = interpret(workload_->graph, feeds_);
    // An output may be a view of an input that another output replaces: all are copied first.
    for (Tensor& result : results) result = result.contiguous();
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::span<const std::byte> bytes = results[i].bytes();
      std::memmove(outputs_[i], bytes.data(), bytes.size());
    }
  }

  [[nodiscard]] std::int64_t peak_bytes() const override { return 0; }

 private:
  const Workload* workload_ = nullptr;
  Feeds feeds_;
  std::vector<std::byte*> outputs_;
};

}  // namespace

std::unique_ptr<Executor> make_executor() { return std::make_unique<InterpreterExecutor>(); }

}  // namespace ricci::bench
