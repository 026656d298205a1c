#include "support/c_program.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ricci/io/file.h"
#include "ricci/io/object_file.h"

namespace ricci::testing {
namespace {

std::string c_type(DType dtype) {
  switch (dtype) {
    case DType::F32: return "float";
    case DType::F64: return "double";
    case DType::I32: return "int32_t";
    case DType::Bool: return "bool";
    default: ADD_FAILURE() << "no C type is given for " << name(dtype); return "char";
  }
}

std::string array_file(std::size_t run, const std::string& field) {
  return scratch(fmt::format("run{}_{}.bin", run, field));
}

constexpr const char* Helpers = R"(
#include <stdio.h>
#include <stdlib.h>

static void load(const char* path, void* to, size_t bytes) {
  FILE* file = fopen(path, "rb");
  if (file == NULL || fread(to, 1, bytes, file) != bytes) exit(3);
  fclose(file);
}
static void store(const char* path, const void* from, size_t bytes) {
  FILE* file = fopen(path, "wb");
  if (file == NULL || fwrite(from, 1, bytes, file) != bytes) exit(3);
  fclose(file);
}
)";

std::string function_of(const CRun& run, std::size_t number) {
  const std::string& n = run.program.name;
  std::string arrays;
  std::string loads;
  std::string members;
  std::string stores;
  const auto add = [&](const std::string& field, const Tensor& value, bool written) {
    arrays +=
        fmt::format("  static {} {}[{}_{}_elements];\n", c_type(value.dtype()), field, n, field);
    loads +=
        fmt::format("  load(\"{}\", {}, sizeof {});\n", array_file(number, field), field, field);
    members += fmt::format("    .{} = {},\n", field, field);
    if (written) {
      stores +=
          fmt::format("  store(\"{}\", {}, sizeof {});\n", array_file(number, field), field, field);
    }
    io::write_file(array_file(number, field), value.contiguous().bytes());
  };
  for (const auto& [field, value] : run.read) add(field, value, false);
  for (const auto& [field, value] : run.written) add(field, value, true);
  return fmt::format(R"(
static int run_{0}(void) {{
{1}  {0}_program* program;
  const {0}_arrays arrays = {{
{2}  }};
  int i, status = {0}_create(&program, {3});
{4}  for (i = 0; i < {5} && status == {0}_ok; ++i) status = {0}_run(program, &arrays, 7);
  if (status != {0}_ok) fprintf(stderr, "{0}: %d %s\n", status, {0}_error());
  {0}_destroy(program);
{6}  return status;
}}
)",
                     n, arrays, members, run.threads, loads, run.runs, stores);
}

}  // namespace

std::string build_c(const std::string& name, const std::string& source,
                    const std::vector<ObjectFile>& programs) {
  std::string objects;
  for (const ObjectFile& program : programs) {
    const std::string object = scratch(program.name + ".o");
    io::write_object(program, object);
    objects += fmt::format(" '{}'", object);
  }
  const std::string c_file = scratch(name + ".c");
  const std::string executable = scratch(name);
  io::write_file(c_file, source);
  const ToolRun compiled = run_shell(
      fmt::format("cc -std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror -c '{}' -o '{}.o'",
                  c_file, executable));
  EXPECT_EQ(compiled.status, 0) << compiled.err << source;
  if (compiled.status != 0) return {};
  const ToolRun linked =
      run_shell(fmt::format("'{}' {} {} '{}.o' {} '{}' {} -o '{}'", RICCI_TEST_LINKER,
                            RICCI_TEST_CXX_FLAGS, RICCI_TEST_LINK_OPTIONS, executable, objects,
                            RICCI_RUNTIME_ARCHIVE, RICCI_RUNTIME_LINK_FLAGS, executable));
  EXPECT_EQ(linked.status, 0) << linked.err;
  return linked.status == 0 ? executable : "";
}

std::vector<std::map<std::string, Tensor>> run_in_c(const std::vector<CRun>& runs) {
  std::string includes;
  std::string functions;
  std::string calls;
  std::vector<ObjectFile> programs;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    includes += fmt::format("#include \"{}.h\"\n", runs[r].program.name);
    functions += function_of(runs[r], r);
    calls += fmt::format("  failed |= run_{}();\n", runs[r].program.name);
    programs.push_back(runs[r].program);
  }
  const std::string main =
      fmt::format("{}{}{}\nint main(void) {{\n  int failed = 0;\n{}  return failed;\n}}\n",
                  includes, Helpers, functions, calls);
  const std::string executable = build_c("main", main, programs);
  if (executable.empty()) return {};
  const ToolRun ran = run_shell("'" + executable + "'");
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::vector<std::map<std::string, Tensor>> out(runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    for (const auto& [field, before] : runs[r].written) {
      out[r].emplace(field, Tensor::from_bytes(before.type(), io::read_file(array_file(r, field))));
    }
  }
  return out;
}

}  // namespace ricci::testing
