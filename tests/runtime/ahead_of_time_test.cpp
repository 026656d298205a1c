// Graphs compiled ahead of time: called from C, without LLVM, with the bits of the JIT.
#include "ricci/runtime/ahead_of_time.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/object_file.h"
#include "ricci/ir/text.h"
#include "ricci/model/training.h"
#include "ricci/op/ops.h"

#include "backend/cpu/kernels/cpu_features.h"
#include "backend/cpu/run/packaged_program.h"
#include "backend/cpu/run/target.h"
#include "runtime/c_header.h"
#include "runtime/models.h"
#include "schedule/program_bytes.h"
#include "support/c_program.h"
#include "support/elf.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

constexpr const char* Programs = R"(
graph @rows {
  %x = input "x" : f32[33, 70]
  %g = param "a gain" : f32[70]
  %s = mul %x, %g
  %e = exp %s
  %t = reduce %e {op = sum, axes = [1], keep_dim = true}
  %y = div %e, %t
  %m = reduce %y {op = max, axes = [0, 1]}
  return %y, %m
}
graph @product {
  %x = input "x" : f32[17, 40]
  %w = param "w" : f32[40, 24]
  %y = matmul %x, %w
  return %y
}
graph @short_loop {
  %x = input "x" : f32[4]
  %y = scan %x {length = 9} body {
    %c = input "c" : f32[4]
    %n = tanh %c
    return %n
  }
  return %y
}
graph @long_loop {
  %x = input "x" : f32[20, 20]
  %w = param "w" : f32[20, 20]
  %y = scan %x, %w {length = 5, num_carry = 1, num_bcast = 1} body {
    %c = input "c" : f32[20, 20]
    %v = input "v" : f32[20, 20]
    %p = matmul %c, %v
    %n = tanh %p
    return %n
  }
  return %y
}
graph @open_loop {
  %x = input "x" : f32[4]
  %y, %trips, %tape = while %x {max_iterations = 9, num_checkpoints = 3} cond {
    %c = input "c" : f32[4]
    %l = constant -2.0 : f32[]
    %t = gt %c, %l
    return %t
  } body {
    %c = input "c" : f32[4]
    %d = constant 0.5 : f32[]
    %n = sub %c, %d
    return %n
  }
  %kept = scan %x {length = 7, save_trajectory = true, num_checkpoints = 3} body {
    %c = input "c" : f32[4]
    %n = sin %c
    return %n
  }
  return %y, %trips, %tape, %kept
}
graph @choice {
  %p = input "p" : bool[]
  %x = input "x" : f32[100]
  %y = if %p, %x then {
    %a = input "a" : f32[100]
    %r = exp %a
    return %r
  } else {
    %a = input "a" : f32[100]
    %r = sin %a
    return %r
  }
  return %y
}
)";

Graph graph_named(const char* name) {
  for (Graph& g : parse(Programs)) {
    if (g.name() == name) return g;
  }
  throw std::runtime_error(name);
}

TEST(RuntimeAheadOfTime, CProgramsGiveTheBitsOfTheJit) {
  // Fields are named after inputs, and outputs after their values.
  const struct {
    const char* graph;
    std::map<std::string, std::string> fields;  // input: field
    std::vector<std::string> outputs;
  } cases[] = {
      {"rows", {{"x", "x"}, {"a gain", "a_gain"}}, {"y", "m"}},
      {"product", {{"x", "x"}, {"w", "w"}}, {"y"}},
      {"short_loop", {{"x", "x"}}, {"y"}},
      {"long_loop", {{"x", "x"}, {"w", "w"}}, {"y"}},
      {"open_loop", {{"x", "x"}}, {"y", "trips", "tape", "kept"}},
      {"choice", {{"p", "p"}, {"x", "x"}}, {"y"}},
  };
  std::vector<CRun> runs;
  std::vector<std::vector<Tensor>> expected;
  for (const auto& c : cases) {
    const Graph graph = graph_named(c.graph);
    const Feeds feeds = random_feeds(graph);
    expected.push_back(compile(graph).run(feeds));
    CRun run{compile_object(graph), {}, {}, 2, 2};
    for (const auto& [input, field] : c.fields) run.read.emplace(field, feeds.at(input));
    for (std::size_t o = 0; o < c.outputs.size(); ++o) {
      run.written.emplace(c.outputs[o], Tensor::zeros(expected.back()[o].type()));
    }
    runs.push_back(std::move(run));
  }
  // All in one executable: names do not clash.
  const auto actual = run_in_c(runs);
  ASSERT_EQ(actual.size(), runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (std::size_t o = 0; o < cases[r].outputs.size(); ++o) {
      EXPECT_TRUE(actual[r].at(cases[r].outputs[o]).identical(expected[r][o]))
          << cases[r].graph << " output " << o;
    }
  }
}

GraphModule classifier() {
  Graph g("mlp");
  const Value x = g.input("x", f32({16, 12}));
  const Value labels = g.input("labels", {DType::I32, {16}});
  const Value h = relu(matmul(x, g.param("w1", f32({12, 32}))) + g.param("b1", f32({32})));
  const Value logits = matmul(h, g.param("w2", f32({32, 5})));
  const Value losses = softmax_cross_entropy_with_logits(logits, labels);
  g.set_outputs({reduce(losses, {.op = ReduceKind::Mean, .axes = {0}})});
  return GraphModule::from_mir(g);
}

TEST(RuntimeAheadOfTime, TrainingStepsUpdateInPlace) {
  TrainingStep training = compile_training(classifier(), {.optimizer = AdamW{}, .clip_norm = 1.0});
  const Feeds params = {{"w1", random_tensor(1, f32({12, 32}))},
                        {"b1", random_tensor(2, f32({32}))},
                        {"w2", random_tensor(3, f32({32, 5}))}};
  const Tensor x = random_tensor(4, f32({16, 12}));
  const Tensor labels = random_tensor(5, {DType::I32, {16}}, 0, 4);
  CRun run{compile_object(training.graph(), {.name = "mlp_step"}), {}, {}, 6, 2};
  run.read = {{"x", x}, {"labels", labels}};
  run.written = {{"loss", Tensor::zeros(f32({}))}, {"gradient_norm", Tensor::zeros(f32({}))}};
  for (const auto& [name, value] : params) {
    training.set_param(name, value);
    run.written.emplace(name, value);
    for (const char* state : {"first", "second"}) {
      run.written.emplace(fmt::format("{}_{}", name, state), Tensor::zeros(value.type()));
    }
  }
  run.written.emplace("optimizer_steps", Tensor::zeros({DType::I32, {}}));
  TrainingStep::Result last;
  for (int i = 0; i < run.runs; ++i) last = training.step({{"x", x}, {"labels", labels}});

  const auto actual = run_in_c({run});
  ASSERT_EQ(actual.size(), 1U);
  EXPECT_TRUE(actual[0].at("loss").identical(last.loss));
  EXPECT_EQ(actual[0].at("gradient_norm").item(), last.gradient_norm);
  EXPECT_EQ(actual[0].at("optimizer_steps").item(), 6);
  for (const auto& [name, before] : params) {
    EXPECT_TRUE(actual[0].at(name).identical(training.param(name))) << name;
    EXPECT_FALSE(actual[0].at(name).identical(before)) << name;
    EXPECT_TRUE(actual[0].at(name + "_second").identical(training.state(name, "second"))) << name;
  }
}

TEST(RuntimeAheadOfTime, TheTutorialWorks) {
  const std::string page = read_text(RICCI_SOURCE_DIR "/docs/AHEAD_OF_TIME.md");
  const std::size_t start = page.find("```c\n") + 5;
  const std::string source = page.substr(start, page.find("```", start) - start);
  const Graph loss = parse_graph(read_text(RICCI_SOURCE_DIR "/examples/programs/mlp_loss.ric"));
  const TrainingGraph training =
      make_training_graph(GraphModule::from_graph(loss), {.optimizer = AdamW{}});
  const std::string executable =
      build_c("tutorial", source, {compile_object(training, {.name = "mlp"})});
  ASSERT_FALSE(executable.empty());
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
  double first = 0;
  double last = 0;
  ASSERT_EQ(std::sscanf(ran.out.c_str(), "step 0: loss %lf", &first), 1) << ran.out;
  const std::size_t end = ran.out.find("after 200 steps: loss ");
  ASSERT_NE(end, std::string::npos) << ran.out;
  last = std::stod(ran.out.substr(end + 22));
  EXPECT_LT(last, first / 2) << ran.out;
}

TEST(RuntimeAheadOfTime, FaultsAreCodesWithWords) {
  const Graph graph = parse_graph(R"(
graph @pick {
  %x = input "x" : f32[5]
  %i = input "i" : i32[2]
  %y = gather %x, %i {axis = 0}
  return %y
}
)");
  const std::string executable = build_c("faults", R"c(
#include "pick.h"
#include <stdio.h>
#include <string.h>

static int expect(int status, int wanted, const char* words) {
  const int right = status == wanted && strstr(pick_error(), words) != NULL;
  if (!right) fprintf(stderr, "%d instead of %d: %s\n", status, wanted, pick_error());
  return right ? 0 : 1;
}

int main(void) {
  static float x[pick_x_elements];
  static int32_t i[pick_i_elements];
  static float y[pick_y_elements];
  pick_arrays arrays = {.x = x, .i = i, .y = y};
  pick_program* program = NULL;
  int faults = 0;
  faults += expect(pick_create(NULL, 1), pick_bad_argument, "no place");
  faults += expect(pick_create(&program, -1), pick_bad_argument, "threads");
  faults += expect(pick_run(NULL, &arrays, 0), pick_bad_argument, "no program");
  if (pick_create(&program, 1) != pick_ok) return 9;
  i[1] = 5;
  faults += expect(pick_run(program, &arrays, 0), pick_bad_values, "index 5 is outside [0, 5)");
  i[1] = 4;
  arrays.y = NULL;
  faults += expect(pick_run(program, &arrays, 0), pick_bad_argument, "'y' is null");
  arrays.y = x;
  faults += expect(pick_run(program, &arrays, 0), pick_bad_argument, "overlap");
  arrays.y = y;
  x[4] = 2.5f;
  if (pick_run(program, &arrays, 0) != pick_ok || y[1] != 2.5f) ++faults;
  pick_destroy(program);
  pick_destroy(NULL);
  return faults;
}
)c",
                                         {compile_object(graph)});
  ASSERT_FALSE(executable.empty());
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
}

TEST(RuntimeAheadOfTime, NothingOfTheRuntimeNeedsLlvm) {
  const ToolRun symbols = run_shell(
      fmt::format("nm -C --undefined-only '{}' | grep -c 'llvm::' || true", RICCI_RUNTIME_ARCHIVE));
  EXPECT_EQ(symbols.out, "0\n") << symbols.err;
}

TEST(RuntimeAheadOfTime, HeadersAreGoodInCppToo) {
  const ObjectFile program = compile_object(graph_named("rows"), {.name = "softmax"});
  const std::string object = scratch("softmax.o");
  io::write_object(program, object);
  io::write_file(scratch("user.cpp"), std::string_view(R"(
#include "softmax.h"
int main() {
  softmax_program* p = nullptr;
  return softmax_create(&p, 0) == softmax_ok ? 0 : 1;
})"));
  const ToolRun run = run_shell(fmt::format(
      "c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only '{}'", scratch("user.cpp")));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(program.header.find("  const float* a_gain; /* param 'a gain': f32[70] */"),
            std::string::npos)
      << program.header;
  EXPECT_NE(program.header.find("#define softmax_x_elements INT64_C(2310)"), std::string::npos);
}

TEST(RuntimeAheadOfTime, EveryTypeAndNameHasOneInC) {
  Graph g("2 odd names");
  std::vector<Value> outputs;
  outputs.reserve(2 * AllDTypes.size());
  for (const DType dtype : AllDTypes) {
    outputs.push_back(g.input(fmt::format("of {}", name(dtype)), {dtype, {3}}));
  }
  for (const char* odd :
       {"a b", "a_b", "1st", "*/ int", "of_f32_2", "_Complex", "__linux__", "_"}) {
    outputs.push_back(g.input(odd, f32({})));
  }
  for (const std::string_view word : runtime::reserved_words()) {
    outputs.push_back(g.input(std::string(word), f32({})));
  }
  g.set_outputs(outputs);
  const ObjectFile program = compile_object(g);
  EXPECT_EQ(program.name, "_2_odd_names");
  const auto expect_line = [&](const std::string& line) {
    EXPECT_NE(program.header.find(line), std::string::npos) << line << program.header;
  };
  expect_line("  const uint16_t* of_bf16; /* input 'of bf16': bf16[3]; ");
  expect_line("  const float* of_c64; /* input 'of c64': c64[3]; real and imaginary parts in turn");
  expect_line("#define _2_odd_names_of_c64_elements INT64_C(6)");
  expect_line("  const float* new_; /* input 'new': f32[] */");
  expect_line("  const float* x_Complex; /* input '_Complex': f32[] */");
  expect_line("  const float* a_b_2; /* input 'a_b': f32[] */");
  io::write_file(scratch("odd.h"), std::string_view(program.header));
  for (const char* compiler :
       {"cc -std=c99", "cc -std=gnu17", "c++ -x c++ -std=c++11", "c++ -x c++ -std=gnu++20"}) {
    const ToolRun run = run_shell(fmt::format(
        "{} -Wall -Wextra -Wpedantic -Werror -fsyntax-only '{}'", compiler, scratch("odd.h")));
    EXPECT_EQ(run.status, 0) << run.err;
  }
}

// The user's compiler links without the options of a sanitizer or of coverage.
constexpr bool PlainBuild = std::string_view(RICCI_TEST_CXX_FLAGS).empty();
constexpr const char* NotPlain = "the library is built with options that no user's compiler has";

TEST(RuntimeAheadOfTime, SharedLibrariesExportTheirOwnFunctionsOnly) {
  if (!PlainBuild) GTEST_SKIP() << NotPlain;
  const Graph graph = graph_named("product");
  const Feeds feeds = random_feeds(graph);
  const std::string path = scratch("libproduct.so");
  io::write_shared_library(compile_object(graph), path);
  testing::expect_hardened(path);
  EXPECT_EQ(run_shell(fmt::format("ldd '{}' | grep -ci llvm", path)).out, "0\n");
  EXPECT_EQ(
      run_shell(fmt::format("nm -D --defined-only '{}' | grep ' T ' | cut -d' ' -f3 | sort", path))
          .out,
      "product_create\nproduct_destroy\nproduct_error\nproduct_run\nproduct_stop\n");

  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << ::dlerror();
  const auto create = reinterpret_cast<int (*)(void**, int)>(::dlsym(library, "product_create"));
  const auto run = reinterpret_cast<int (*)(void*, const void* const*, std::uint64_t)>(
      ::dlsym(library, "product_run"));
  const auto destroy = reinterpret_cast<void (*)(void*)>(::dlsym(library, "product_destroy"));
  void* program = nullptr;
  ASSERT_EQ(create(&program, 1), 0);
  Tensor y = Tensor::zeros(f32({17, 24}));
  const void* arrays[] = {feeds.at("x").data(), feeds.at("w").data(), y.mutable_data()};
  EXPECT_EQ(run(program, arrays, 0), 0);
  EXPECT_TRUE(y.identical(compile(graph).run(feeds)[0]));
  destroy(program);
  ::dlclose(library);
}

TEST(RuntimeAheadOfTime, WithoutACompilerThereIsNoSharedLibrary) {
  try {
    io::write_shared_library(compile_object(graph_named("product")), scratch("libnone.so"),
                             {.compiler = "no-such-compiler"});
    ADD_FAILURE() << "it was linked";
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), ErrorCode::File);
    EXPECT_NE(std::string(e.what()).find("no-such-compiler"), std::string::npos) << e.what();
  }
}

TEST(RuntimeAheadOfTime, TheCompilerInTheEnvironmentMayHaveArguments) {
  if (!PlainBuild) GTEST_SKIP() << NotPlain;
  const char* before = std::getenv("CXX");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("CXX", " env  c++ ", 1);
  const std::string path = scratch("libwords.so");
  EXPECT_NO_THROW(io::write_shared_library(compile_object(graph_named("product")), path));
  before == nullptr ? ::unsetenv("CXX") : ::setenv("CXX", kept.c_str(), 1);
  EXPECT_EQ(read_text(path).substr(1, 3), "ELF");
}

TEST(RuntimeAheadOfTime, AHeaderNeverTakesThePlaceOfItsProgram) {
  const ObjectFile program = compile_object(graph_named("product"));
  const auto refused = [&](auto write, const std::string& mended) {
    try {
      write(program, scratch("program.h"));
      ADD_FAILURE() << "it was written";
    } catch (const UserError& e) {
      EXPECT_EQ(e.code(), ErrorCode::File);
      EXPECT_NE(std::string(e.what()).find(mended), std::string::npos) << e.what();
    }
  };
  refused([](const auto& p, const auto& to) { io::write_object(p, to); }, "program.o'");
  refused([](const auto& p, const auto& to) { io::write_shared_library(p, to); }, "program.so'");
}

ErrorCode refusal(const Graph& graph, const ObjectOptions& options) {
  try {
    (void)compile_object(graph, options);
  } catch (const UserError& e) {
    return e.code();
  }
  return ErrorCode::Internal;
}

TEST(RuntimeAheadOfTime, RefusesWhatCannotBe) {
  Graph symbolic("symbolic");
  symbolic.set_outputs({tanh(symbolic.input("x", f32({"n"})))});
  EXPECT_EQ(refusal(symbolic, {}), ErrorCode::NeedsStaticDim);
  const Graph graph = graph_named("product");
  EXPECT_EQ(refusal(graph, {.name = "2 words"}), ErrorCode::Name);
  EXPECT_EQ(refusal(graph, {.name = "while"}), ErrorCode::Name);
  EXPECT_EQ(refusal(graph, {.target = "abacus"}), ErrorCode::Name);
  EXPECT_EQ(refusal(graph, {.donations = {{0, "w"}}}), ErrorCode::Shape);
  EXPECT_EQ(refusal(graph, {.donations = {{0, "v"}}}), ErrorCode::Name);
}

// A package as an object would hold it.
struct PackageParts {
  std::vector<std::byte> interface_bytes;
  std::vector<std::byte> program_bytes;
  std::vector<const void*> functions;

  [[nodiscard]] cpu::Package get() const {
    return {cpu::PackageVersion,  interface_bytes.data(), interface_bytes.size(),
            program_bytes.data(), program_bytes.size(),   functions.data(),
            functions.size()};
  }
};

PackageParts matmul_package(const std::vector<std::string>& features = {}) {
  const device::PackagedInterface interface{
      "product", "host", features, {{"x", 0, -1}, {"w", 1, -1}, {"y", -1, 0}}};
  const Program program =
      make_program(graph_named("product"), {.fuse = true, .target = &cpu::target()});
  return {device::to_bytes(interface), schedule::to_bytes(program), {}};
}

std::string create_error(const cpu::Package& package, cpu::PackagedStatus expected) {
  cpu::PackagedProgram* program = nullptr;
  EXPECT_EQ(ricci_packaged_create(&package, &program, 1), static_cast<std::int32_t>(expected));
  EXPECT_EQ(program, nullptr);
  return ricci_packaged_error();
}

TEST(RuntimeAheadOfTime, PackagesAreCheckedWhenTheyAreOpened) {
  using cpu::PackagedStatus;
  const PackageParts good = matmul_package();
  const cpu::Package whole = good.get();
  cpu::PackagedProgram* program = nullptr;
  EXPECT_EQ(ricci_packaged_create(&whole, &program, 1), 0) << ricci_packaged_error();
  ricci_packaged_destroy(program);

  cpu::Package other = whole;
  other.version = 99;
  EXPECT_NE(create_error(other, PackagedStatus::Package).find("version 99"), std::string::npos);
  PackageParts damaged = good;
  damaged.program_bytes[100] ^= std::byte{1};
  EXPECT_NE(create_error(damaged.get(), PackagedStatus::Package).find("check sum"),
            std::string::npos);
  PackageParts extra = good;
  extra.functions.push_back(nullptr);
  EXPECT_NE(create_error(extra.get(), PackagedStatus::Package).find("more functions"),
            std::string::npos);
  for (const char* feature : {"avx512bf16", "avx512f", "avx2"}) {
    if (cpu::cpu_has(feature)) continue;
    const PackageParts elsewhere = matmul_package({"sse3", feature});
    EXPECT_NE(create_error(elsewhere.get(), PackagedStatus::Machine)
                  .find(fmt::format("has no {}, but 'product'", feature)),
              std::string::npos);
  }
}

// A C program that knows no array by name finds all of them in the table of the header.
TEST(RuntimeAheadOfTime, TheTableOfArraysSaysWhatTheyAre) {  // [FE-11a]
  Graph graph = parse(R"(
graph @described {
  %x = input "x \"?\" ä" : f64[2, 0, 3]
  %n = input "n" : i32[]
  %w = param "w" : c64[5]
  %y = add %n, %n
  return %y as "twice", %x, %w
}
)")
                    .front();
  const ObjectFile program = compile_object(graph, {.name = "described"});
  const std::string source = R"(
#include <stdio.h>
#include <string.h>
#include "described.h"
int main(void) {
  described_arrays arrays;
  const described_array_info* a;
  int32_t n = 21;
  int i = 0;
  described_program* program;
  memset(&arrays, 0, sizeof arrays);
  for (a = described_array_table(); a->name; ++a, ++i) {
    int k;
    void* memory = calloc((size_t)a->elements + 1, a->element_bytes);
    if (memory == NULL) return 2;
    if (strcmp(a->name, "n") == 0) memcpy(memory, &n, sizeof n);
    memcpy((char*)&arrays + a->offset, &memory, sizeof memory);
    printf("%s|%s|%s|%d|%d:", a->name, a->kind, a->dtype, a->is_written, (int)a->elements);
    for (k = 0; k < a->rank; ++k) printf(" %d", (int)a->shape[k]);
    printf("\n");
  }
  if (i != described_array_count || described_create(&program, 1) != described_ok) return 3;
  if (described_run(program, &arrays, 0) != described_ok) return 4;
  printf("%d\n", (int)*arrays.twice);
  return 0;
}
)";
  const std::string built = build_c("describes", source, {program});
  ASSERT_FALSE(built.empty());
  const ToolRun run = run_shell("'" + built + "'");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "x \"?\" ä|input|f64|0|0: 2 0 3\n"
                     "n|input|i32|0|1:\n"
                     "w|param|c64|0|10: 5\n"
                     "twice|output|i32|1|1:\n"
                     "x|output|f64|1|0: 2 0 3\n"
                     "w|output|c64|1|10: 5\n"
                     "42\n");
}

// What is linked with a program is what its calls need.
TEST(RuntimeAheadOfTime, LibrariesAreLinkedWhereCallsNeedThem) {  // [FE-11b]
  if (!PlainBuild) GTEST_SKIP() << NotPlain;
  const auto needs = [](const std::string& body) {
    const Graph graph = parse("graph @part {\n" + body + "}\n").front();
    const std::string path = scratch("libpart.so");
    io::write_shared_library(compile_object(graph), path);
    std::string found;
    for (const std::string& name : read_elf(path).needed) {
      for (const char* library : {"dnnl", "gomp", "openblas"}) {
        if (name.find(library) != std::string::npos) found += std::string(library) + " ";
      }
    }
    return found;
  };
  const std::string network = R"(
  %x = input "x" : f32[17, 40]
  %w = param "w" : f32[40, 24]
  %y = matmul %x, %w
  %z = softmax %y
  return %z
)";
  EXPECT_EQ(needs(network), "");
  const std::string convolution = R"(
  %x = input "x" : f32[2, 8, 16, 16]
  %w = param "w" : f32[8, 8, 3, 3]
  %y = conv %x, %w {padding = [1, 1]}
  return %y
)";
  EXPECT_EQ(needs(convolution), "dnnl gomp ");
  const std::string solve_in_a_loop = R"(
  %x = input "x" : f64[70]
  %a = param "a" : f64[70, 70]
  %y = scan %x, %a {length = 3, num_carry = 1, num_bcast = 1} body {
    %c = input "c" : f64[70]
    %m = input "m" : f64[70, 70]
    %n = dense_solve %m, %c
    return %n
  }
  return %y
)";
  EXPECT_EQ(needs(solve_in_a_loop), "openblas ");
}

}  // namespace
}  // namespace ricci::testing
