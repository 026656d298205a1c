// Programs for a device that claims nothing: loops and host calls give what a device's own kernels
// give, on every device.
#include <gtest/gtest.h>

#include "ricci/compiler/device/backend.h"
#include "ricci/compiler/schedule/program.h"
#include "ricci/compiler/schedule/target.h"
#include "ricci/ir/text.h"
#include "ricci/runtime/device.h"

#include "runtime/models.h"
#include "support/claiming_target.h"
#include "support/compare.h"
#include "support/every_device.h"
#include "support/run_executable.h"

namespace ricci::testing::host_calls_test {
namespace {

// A call of most roles; what has an expansion is loops for the one device and a call for the other.
Graph varied_graph() {
  return parse_graph(R"(
graph @varied {
  %x = input "x" : f32[2, 4, 8]
  %w = input "w" : f32[8, 8]
  %i = input "i" : f32[2, 3, 6, 6]
  %f = input "f" : f32[4, 3, 3, 3]
  %p = matmul %x, %w
  %a = attention %p, %x, %x {num_heads = 2, head_dim = 4, mask_kind = causal}
  %s, _ = sort %a {axis = 1, descending = true}
  %c = cumsum %s {axis = 1}
  %t, %k = top_k %c {k = 3}
  %y = conv %i, %f {padding = [1, 1]}
  %m = pool %y {kind = max, kernel_size = [2, 2], stride = [2, 2]}
  %z = dense_solve %w, %w
  %n = arg_max %c {axis = 2}
  %g = cast %n {to = f32}
  return %c, %t, %m, %z, %g
}
)");
}

std::vector<Tensor> run_on(const std::string& name, const Graph& graph, const Program& program,
                           const Feeds& feeds) {
  const Device device = Device::named(name);
  return run_executable(*device.backend().compile(std::make_shared<const Program>(program)), graph,
                        feeds, device.backend().memory());
}

// What a device would make itself; of one that claims nothing, what a device with all kernels
// would.
const schedule::Target& target_with_calls() {
  return has_device("cpu") ? Device::named("cpu").backend().target() : claiming_target();
}

std::size_t count_calls(const Program& program, bool on_host) {
  std::size_t count = 0;
  for (const Step& step : program.steps) {
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call == nullptr) continue;
    count += std::holds_alternative<loop::HostCall>(call->call) == on_host ? 1 : 0;
  }
  return count;
}

void expect_agreement(const Graph& graph) {
  const Feeds feeds = random_feeds(graph);
  const Program claimed = make_program(graph, {.target = &target_with_calls()});
  const Program unclaimed = make_program(graph, {.target = &schedule::plain_target()});
  EXPECT_GT(count_calls(claimed, false), 4U) << to_string(claimed);
  EXPECT_EQ(count_calls(claimed, true), 0U) << to_string(claimed);
  EXPECT_EQ(count_calls(unclaimed, false), 0U) << to_string(unclaimed);
  EXPECT_GT(count_calls(unclaimed, true), 2U) << to_string(unclaimed);
  const std::vector<Tensor> expected = interpret(graph, feeds);
  for (const Program* program : {&claimed, &unclaimed}) {
    for (const std::string& device : usable_devices()) {
      const std::vector<Tensor> actual = run_on(device, graph, *program, feeds);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(close(actual[i], expected[i])) << "output " << i << " on " << device;
      }
    }
  }
}

TEST(BackendHostCalls, GiveWhatNativeCallsGive) { expect_agreement(varied_graph()); }

}  // namespace
}  // namespace ricci::testing::host_calls_test
