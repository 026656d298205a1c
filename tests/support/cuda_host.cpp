#include "support/cuda_host.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include "support/cuda_as_host.h"
#include "test_paths.h"

namespace ricci::testing {
namespace {

std::string text_of_file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string host_compiler() {
  const char* given = std::getenv("CXX");
  return given != nullptr && *given != 0 ? given : "c++";
}

void put_number(std::ostream& out, std::int64_t n) {
  out.write(reinterpret_cast<const char*>(&n), sizeof n);
}
template <class T>
bool get_value(std::istream& in, T& value) {
  return static_cast<bool>(in.read(reinterpret_cast<char*>(&value), sizeof value));
}

}  // namespace

std::string why_no_cuda_on_host() {
  static const bool found =
      std::system((host_compiler() + " --version > /dev/null 2>&1").c_str()) == 0;
  return found ? "" : "there is no C++ compiler here to run CUDA code on the host with";
}

HostKernels::HostKernels(std::span<const cuda::KernelText> kernels)
    : kernels_(kernels.begin(), kernels.end()) {
  write_source();
  const std::string command =
      fmt::format("{} -std=c++17 -O0 -w -ffp-contract=off {} -o {} 2> {}", host_compiler(),
                  folder_.file("kernels.cpp"), folder_.file("kernels"), folder_.file("errors.txt"));
  if (std::system(command.c_str()) == 0) return;
  if (const char* keep = std::getenv("RICCI_KEEP_CUDA_SOURCE")) {
    std::ofstream(keep) << text_of_file(folder_.file("kernels.cpp"));
  }
  throw std::runtime_error(text_of_file(folder_.file("errors.txt")).substr(0, 3000));
}

// Each kernel with a prelude of its own.
void HostKernels::write_source() const {
  std::ofstream out(folder_.file("kernels.cpp"));
  out << "#include \"" RICCI_SOURCE_DIR "/tests/support/cuda_shim.h\"\n";
  for (std::size_t n = 0; n < kernels_.size(); ++n) {
    out << fmt::format(
        "namespace source{0} {{\n{1}\nint launch(void** a, long blocks, int threads) {{\n"
        "  return fibers::launch([](void** p) {{ fibers::call(&{2}, p); }}, a, blocks, threads);\n"
        "}}\n}}\n",
        n, as_host_code(kernels_[n].text), kernels_[n].name);
  }
  out << "#include \"" RICCI_SOURCE_DIR "/tests/support/cuda_host_main.h\"\nnamespace {\n"
      << "Kernel kernel_number(long long n) {\n  static const Kernel all[] = {";
  for (std::size_t n = 0; n < kernels_.size(); ++n) out << fmt::format("source{}::launch, ", n);
  out << "};\n  return all[n];\n}\n}\n";
}

void HostKernels::run(std::vector<HostRun>& runs) const {
  {
    std::ofstream in(folder_.file("in"), std::ios::binary);
    put_number(in, static_cast<std::int64_t>(runs.size()));
    for (const HostRun& r : runs) {
      const cuda::KernelText& k = kernels_[r.kernel];
      for (const std::int64_t n :
           {static_cast<std::int64_t>(r.kernel), k.blocks, std::int64_t{k.threads}, k.scratch_bytes,
            static_cast<std::int64_t>(r.arrays.size())}) {
        put_number(in, n);
      }
      for (const std::vector<std::byte>& array : r.arrays) {
        put_number(in, static_cast<std::int64_t>(array.size()));
        in.write(reinterpret_cast<const char*>(array.data()),
                 static_cast<std::streamsize>(array.size()));
      }
    }
  }
  const std::string command =
      fmt::format("{} {} {}", folder_.file("kernels"), folder_.file("in"), folder_.file("out"));
  const int code = std::system(command.c_str());
  std::ifstream out(folder_.file("out"), std::ios::binary);
  for (HostRun& r : runs) {
    std::int64_t status = 0;
    if (!get_value(out, status) || !get_value(out, r.fault)) {
      r.wrong = fmt::format("the program around it ended with {}", code);
      return;
    }
    if (status != 0) r.wrong = status == 1 ? "its threads wait for ever" : "it writes outside";
    for (std::vector<std::byte>& array : r.arrays) {
      out.read(reinterpret_cast<char*>(array.data()), static_cast<std::streamsize>(array.size()));
    }
  }
}

}  // namespace ricci::testing
