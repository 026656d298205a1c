// The GPU behind the device seam: what is said where there is none, captured runs, memory. What
// needs no GPU is tried everywhere; what holds on every device is in devices_test.cpp.
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/build/build.h"
#include "ricci/compiler/device/backend.h"
#include "ricci/model/training.h"
#include "ricci/runtime/session.h"

#include "backend/cuda/load/driver.h"
#include "backend/cuda/load/library.h"
#include "backend/cuda/load/nvrtc.h"
#include "backend/cuda/run/code_folder.h"
#include "backend/cuda/run/executable.h"
#include "backend/cuda/run/launch_arguments.h"
#include "backend/cuda/run/target.h"
#include "runtime/models.h"
#include "support/cuda_run.h"
#include "support/device_programs.h"
#include "support/every_device.h"
#include "support/scratch_folder.h"

namespace ricci::testing::cuda_device_test {
namespace {

// Without a GPU.

TEST(BackendCudaLoading, ALibraryThatIsMissingIsSaidSo) {
  const std::array<std::string, 2> names = {"libricci-has-no-such.so.1", "libricci-has-no-such.so"};
  const auto takes_all = [](const cuda::Library&) { return std::string(); };
  const cuda::Library none(names, "/nowhere:/nowhere/else", takes_all);
  EXPECT_FALSE(none.found());
  EXPECT_NE(none.why_not().find("libricci-has-no-such"), std::string::npos) << none.why_not();
  EXPECT_EQ(none.find("cuInit"), nullptr);
}

TEST(BackendCudaLoading, ALibraryThatWillNotDoIsFollowedByTheNext) {
  const std::array<std::string, 3> names = {"libm.so.6", "libricci-has-no-such.so", "libc.so.6"};
  std::vector<bool> has_sine;
  const auto wants_no_sine = [&](const cuda::Library& found) -> std::string {
    has_sine.push_back(found.find("sin") != nullptr);
    return has_sine.back() ? "it has a sine" : "";
  };
  const cuda::Library second(names, "", wants_no_sine);
  EXPECT_TRUE(second.found());
  EXPECT_EQ(has_sine, (std::vector<bool>{true, false}));
  const std::span<const std::string> first_two(names.data(), 2);
  const cuda::Library none(first_two, "", wants_no_sine);
  EXPECT_FALSE(none.found());
  EXPECT_EQ(none.why_not(), "libm.so.6: it has a sine");
}

TEST(BackendCudaLoading, ToolkitsNewerThanTheDriverAreNotLookedFor) {
  const std::vector<std::string> all = {"libx.so.13", "libx.so.12", "libx.so"};
  EXPECT_EQ(cuda::toolkit_names("libx.so", 0), all);
  EXPECT_EQ(cuda::toolkit_names("libx.so", 13010), all);
  EXPECT_EQ(cuda::toolkit_names("libx.so", 12080),
            (std::vector<std::string>{"libx.so.12", "libx.so"}));
}

TEST(BackendCudaLoading, AGpuNewerThanTheCompilerGetsPtx) {
  constexpr std::array Known = {80, 86, 90, 100};
  const auto own = cuda::code_target(90, Known);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->architecture, "sm_90a");
  EXPECT_EQ(own->form, cuda::CodeForm::Cubin);
  const auto newer = cuda::code_target(121, Known);
  ASSERT_TRUE(newer.has_value());
  EXPECT_EQ(newer->architecture, "compute_100");
  EXPECT_EQ(newer->form, cuda::CodeForm::Ptx);
  EXPECT_EQ(cuda::code_target(89, Known)->architecture, "compute_86");
  EXPECT_EQ(cuda::code_target(75, Known), std::nullopt);
  EXPECT_EQ(cuda::code_target(75, {})->architecture, "sm_75");
}

TEST(BackendCudaLoading, ADriverWithoutItsFunctionsIsRefused) {
  const ScratchFolder folder;
  // No library at all: the loader says why, and the next folder is tried.
  std::ofstream(folder.path() + "/libcuda.so.1") << "not a library";
  const cuda::LoadedDriver loaded = cuda::load_driver(folder.path());
  if (!why_no_cuda().empty()) {
    EXPECT_NE(loaded.why_not, "");
  }
}

TEST(BackendCudaLoading, IsListedWithWhyItCannotBeUsed) {
  const std::vector<DeviceListing> all = Device::all();
  EXPECT_EQ(all.back().name, "cuda");
  EXPECT_NE(Device::standard().name(), "cuda");
  if (all.back().why_not.empty()) {
    EXPECT_EQ(cuda_device().name(), "cuda");
    return;
  }
  try {
    (void)Device::cuda();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::UnsupportedOnBackend);
    EXPECT_NE(std::string(e.what()).find(all.back().why_not), std::string::npos) << e.what();
  }
}

TEST(BackendCudaCodeFolder, KeepsCodeAndTakesNoOther) {
  const ScratchFolder folder;
  const cuda::KeptCode kept(folder.path(), 1 << 20);
  EXPECT_EQ(kept.load("a key"), std::nullopt);
  kept.store("a key", "some code");
  const auto found = kept.load("a key");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(std::string(found->begin(), found->end()), "some code");
  EXPECT_EQ(kept.load("another key"), std::nullopt);
  // A file that is damaged, or another's, is none.
  const std::string file = folder.path() + "/" + cuda::kept_file_name("a key");
  std::string bytes;
  {
    std::ifstream in(file, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(in), {});
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(file, std::ios::binary) << damaged;
    EXPECT_EQ(kept.load("a key"), std::nullopt) << at;
  }
  std::ofstream(file, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_EQ(kept.load("a key"), std::nullopt);
  std::ofstream(file, std::ios::binary) << bytes;
  EXPECT_TRUE(kept.load("a key").has_value());
  std::filesystem::copy_file(file, folder.path() + "/" + cuda::kept_file_name("another key"));
  EXPECT_EQ(kept.load("another key"), std::nullopt);
}

TEST(BackendCudaPlans, ProductsThatTheLibraryCannotTakeAreKernels) {
  const Program program = make_program(dense_graph(), {.target = &cuda::target()});
  std::size_t products = 0;
  for (const Step& step : program.steps) {
    const auto* call = std::get_if<CallStep>(&step.what);
    if (call == nullptr) continue;
    ++products;
    const auto plan = cuda::plan_call(program, *call);
    ASSERT_TRUE(plan.has_value());
    ASSERT_EQ(plan->parts.size(), 1U);
    const auto& launch = std::get<cuda::CallLaunch>(plan->parts[0]);
    EXPECT_EQ(launch.text.blocks, 1);
    EXPECT_EQ(launch.places.size(), 3U);
    EXPECT_NE(launch.text.text.find("extern \"C\" __global__"), std::string::npos);
  }
  EXPECT_EQ(products, 1U);
}

// Results at the end that nobody wants have no parameter, and others keep their place.
TEST(BackendCudaPlans, LoopsAreGivenAPointerForEveryParameter) {
  Graph g("scanned");
  const auto body = [](Graph&, std::span<const Value> v) -> std::vector<Value> {
    const Value next = tanh(v[0] + v[1]);
    return {next, next * 2.0, next + 1.0};
  };
  const std::vector<Value> all =
      scan(std::array{g.input("c", f32({8}))}, {.xs = {g.input("x", f32({5, 8}))}}, body);
  g.set_outputs({all[0]});
  const Program program = make_program(g, {.target = &cuda::target()});
  std::vector<std::byte> memory(64 * program.buffers.size());
  std::vector<std::byte*> buffers;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) buffers.push_back(&memory[64 * b]);
  std::size_t loops = 0;
  for (const Step& step : program.steps) {
    const auto* loop = std::get_if<LoopStep>(&step.what);
    if (loop == nullptr) continue;
    ++loops;
    const std::vector<std::byte*> pointers = cuda::loop_pointers(*loop, buffers);
    EXPECT_EQ(pointers.size(), cuda::print_loop(loop->loop, "loop").pointers);
    const auto operands = static_cast<std::size_t>(cuda::loop_operands(loop->loop.plan));
    EXPECT_EQ(pointers[operands], cuda::first_element(loop->results[0], buffers));
    // Longer lists are cut off, shorter ones refused.
    LoopStep longer = *loop;
    longer.results.resize(longer.results.size() + 2, {-1, loop->results[0].type, {}});
    EXPECT_EQ(cuda::loop_pointers(longer, buffers), pointers);
    LoopStep shorter = *loop;
    shorter.results.clear();
    EXPECT_THROW((void)cuda::loop_pointers(shorter, buffers), InternalError);
  }
  EXPECT_EQ(loops, 1U);
}

TEST(BackendCudaPlans, ArgumentsAreInTheOrderOfTheParameters) {
  for (const std::size_t count : {0, 3, 100}) {
    std::vector<std::byte> memory(count + 2);
    std::vector<std::byte*> pointers;
    for (std::size_t p = 0; p < count; ++p) pointers.push_back(&memory[p]);
    const cuda::CommonArguments common{&memory[count], &memory[count + 1], 7};
    cuda::LaunchArguments arguments(pointers, common);
    ASSERT_EQ(arguments.addresses().size(), count + 3);
    for (std::size_t p = 0; p < count + 2; ++p) {
      EXPECT_EQ(*static_cast<std::byte**>(arguments.addresses()[p]), &memory[p]);
    }
    EXPECT_EQ(*static_cast<unsigned*>(arguments.addresses()[count + 2]), 7U);
  }
}

// With one.

TEST(BackendCudaDevice, RunsGraphs) {
  RICCI_NEEDS_CUDA();
  for (const Graph& g : {dense_graph(), dense_graph(33, 70, 129), wide_graph()}) {
    expect_close(run_on_cuda(g, random_feeds(g)), interpret(g, random_feeds(g)));
  }
}

TEST(BackendCudaDevice, CapturedRunsReadWhatTheirArraysHoldThen) {
  RICCI_NEEDS_CUDA();
  const Graph g = wide_graph();
  const device::Backend& backend = cuda_device().backend();
  const auto made = backend.compile(
      std::make_shared<const Program>(make_program(g, {.target = &backend.target()})));
  EXPECT_TRUE(static_cast<const cuda::Executable&>(*made).is_captured());
  const auto context = made->make_context();
  OnDevice first(backend, made->program(), g, random_feeds(g));
  OnDevice second(backend, made->program(), g, random_feeds(g));
  for (std::uint64_t run = 0; run < 8; ++run) {
    OnDevice& arrays = run % 4 == 3 ? second : first;  // other pointers now and then
    const Feeds feeds = random_feeds(g, 100 * run);
    const std::vector<Tensor> values = check_feeds(g, feeds).values;
    for (std::size_t k = 0; k < values.size(); ++k) arrays.arrays[k].copy_in(values[k].data());
    device::run(*made, *context, {arrays.inputs, arrays.outputs, 0, nullptr});
    const std::vector<Tensor> expected = interpret(g, feeds);
    for (std::size_t o = 0; o < expected.size(); ++o) {
      Tensor actual = Tensor::zeros(expected[o].type());
      arrays.arrays[values.size() + o].copy_out(actual.mutable_data());
      EXPECT_TRUE(close(actual, expected[o])) << "run " << run << ", output " << o;
    }
  }
}

TEST(BackendCudaFaults, LeaveTheProgramUsable) {
  RICCI_NEEDS_CUDA();
  const Graph g = picking_rows();
  const CompiledGraph f = compile(g, cuda_device());
  for (int again = 0; again < 4; ++again) {
    EXPECT_THROW((void)f.run(picking_feeds(g, 3, 16)), UserError);
    const Feeds good = picking_feeds(g, 3, 15);
    expect_close(f.run(good), interpret(g, good));
  }
}

TEST(BackendCudaMemory, WithoutRoomIsAnErrorAndTheDeviceGoesOn) {
  RICCI_NEEDS_CUDA();
  device::Memory& memory = cuda_device().backend().memory();
  for (const std::int64_t bytes : {memory.total_bytes(), memory.total_bytes() * 4}) {
    try {
      (void)memory.allocate(bytes);
      FAIL();
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
    }
  }
  const Graph g = dense_graph();
  expect_close(run_on_cuda(g, random_feeds(g)), interpret(g, random_feeds(g)));
}

TEST(BackendCudaCodeFolder, IsReadByTheNextProcess) {
  RICCI_NEEDS_CUDA();
  const ScratchFolder folder;
  const Graph g = dense_graph(7, 11, 13);
  const auto run = [&] {
    return compile(g, cuda_device(), {.code_cache = folder.path()}).run(random_feeds(g));
  };
  cuda::forget_code();
  const cuda::CodeStatistics before = cuda::code_statistics();
  const std::vector<Tensor> first = run();
  const cuda::CodeStatistics made = cuda::code_statistics();
  EXPECT_GT(made.compiled, before.compiled);
  cuda::forget_code();
  expect_close(run(), first);
  EXPECT_EQ(cuda::code_statistics().compiled, made.compiled);
  EXPECT_GT(cuda::code_statistics().loaded, made.loaded);
}

}  // namespace
}  // namespace ricci::testing::cuda_device_test
