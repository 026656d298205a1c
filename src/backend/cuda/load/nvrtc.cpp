#include "backend/cuda/load/nvrtc.h"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "backend/cuda/load/driver.h"
#include "backend/cuda/load/library.h"

namespace ricci::cuda {
namespace {

using NvrtcProgram = struct _nvrtcProgram*;

// F(member, exported name, parameters)
#define RICCI_NVRTC(F)                                                                             \
  F(version, "nvrtcVersion", (int* major, int* minor))                                             \
  F(create, "nvrtcCreateProgram",                                                                  \
    (NvrtcProgram * program, const char* source, const char* name, int headers,                    \
     const char* const* header_texts, const char* const* header_names))                            \
  F(destroy, "nvrtcDestroyProgram", (NvrtcProgram * program))                                      \
  F(compile, "nvrtcCompileProgram", (NvrtcProgram program, int count, const char* const* options)) \
  F(log_size, "nvrtcGetProgramLogSize", (NvrtcProgram program, std::size_t* size))                 \
  F(log, "nvrtcGetProgramLog", (NvrtcProgram program, char* text))                                 \
  F(cubin_size, "nvrtcGetCUBINSize", (NvrtcProgram program, std::size_t* size))                    \
  F(cubin, "nvrtcGetCUBIN", (NvrtcProgram program, char* code))                                    \
  F(ptx_size, "nvrtcGetPTXSize", (NvrtcProgram program, std::size_t* size))                        \
  F(ptx, "nvrtcGetPTX", (NvrtcProgram program, char* code))

struct NvrtcLibrary {
#define RICCI_NVRTC_MEMBER(member, exported, parameters) int(*member) parameters = nullptr;
  RICCI_NVRTC(RICCI_NVRTC_MEMBER)
#undef RICCI_NVRTC_MEMBER
  // Of newer ones.
  int (*arch_count)(int* count) = nullptr;
  int (*archs)(int* all) = nullptr;
  std::string why_not;
  std::string version_text;
  std::vector<int> architectures;  // 90 for sm_90, ascending; none: it does not say
};

const char* find_all(const Library& library, NvrtcLibrary& compiler) {
#define RICCI_NVRTC_FIND(member, exported, parameters)                           \
  compiler.member = reinterpret_cast<int(*) parameters>(library.find(exported)); \
  if (compiler.member == nullptr) return exported;
  RICCI_NVRTC(RICCI_NVRTC_FIND)
#undef RICCI_NVRTC_FIND
  return nullptr;
}

void ask_architectures(const Library& library, NvrtcLibrary& c) {
  c.arch_count = reinterpret_cast<int (*)(int*)>(library.find("nvrtcGetNumSupportedArchs"));
  c.archs = reinterpret_cast<int (*)(int*)>(library.find("nvrtcGetSupportedArchs"));
  int count = 0;
  if (c.arch_count == nullptr || c.archs == nullptr || c.arch_count(&count) != 0 || count <= 0) {
    return;
  }
  c.architectures.resize(static_cast<std::size_t>(count));
  if (c.archs(c.architectures.data()) != 0) c.architectures.clear();
  std::ranges::sort(c.architectures);
}

NvrtcLibrary load_compiler() {
  constexpr int Oldest = 12;
  NvrtcLibrary c;
  const int driver = loaded_driver().version;
  const std::vector<std::string> names = toolkit_names("libnvrtc.so", driver);
  int major = 0;
  int minor = 0;
  const Library library(names, library_folders(), [&](const Library& found) -> std::string {
    if (const char* missing = find_all(found, c)) {
      return fmt::format("it is too old: it has no {}", missing);
    }
    if (c.version(&major, &minor) != 0 || major < Oldest) {
      return fmt::format("it is {}.{}, at least {}.0 is needed", major, minor, Oldest);
    }
    if (driver != 0 && driver / 1000 < major) {
      return fmt::format("it is {}.{}, too new for a driver of CUDA {}.{}", major, minor,
                         driver / 1000, driver % 1000 / 10);
    }
    return {};
  });
  if (!library.found()) {
    c.why_not = fmt::format("there is no NVRTC, which compiles kernels ({})", library.why_not());
    return c;
  }
  c.version_text = fmt::format("{}.{}", major, minor);
  ask_architectures(library, c);
  return c;
}

const NvrtcLibrary& compiler() {
  static const NvrtcLibrary loaded = load_compiler();
  return loaded;
}

// Products and sums are rounded one by one, as everywhere else; what gains by a fused one says so.
constexpr std::array Options = {"--std=c++17", "--fmad=false",
                                "--device-as-default-execution-space"};

// A program of NVRTC's, destroyed with it.
struct Source {
  explicit Source(const std::string& text) {
    if (compiler().create(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) != 0) {
      throw DeviceError("NVRTC takes no more sources");
    }
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { compiler().destroy(&program); }

  [[nodiscard]] std::string log() const {
    std::size_t size = 0;
    if (compiler().log_size(program, &size) != 0 || size <= 1) return {};
    std::string text(size, '\0');
    compiler().log(program, text.data());
    return text;
  }

  NvrtcProgram program = nullptr;
};

}  // namespace

const std::string& why_no_compiler() { return compiler().why_not; }
const std::string& compiler_version() { return compiler().version_text; }
std::span<const int> compiler_architectures() { return compiler().architectures; }

std::optional<CodeTarget> code_target(int capability, std::span<const int> known) {
  if (known.empty() || std::ranges::binary_search(known, capability)) {
    // What is of this architecture alone is told by the letter.
    const char* own = capability == 90 ? "a" : "";
    return CodeTarget{fmt::format("sm_{}{}", capability, own), CodeForm::Cubin};
  }
  const auto above = std::ranges::upper_bound(known, capability);
  if (above == known.begin()) return std::nullopt;
  return CodeTarget{fmt::format("compute_{}", *std::prev(above)), CodeForm::Ptx};
}

std::optional<CodeTarget> code_target(int capability) {
  return code_target(capability, compiler().architectures);
}

std::string_view compiler_options() {
  static const std::string all = [] {
    std::string text;
    for (const char* option : Options) text += fmt::format("{} ", option);
    return text;
  }();
  return all;
}

std::vector<char> compile_source(const std::string& text, const std::string& architecture,
                                 CodeForm form) {
  const NvrtcLibrary& c = compiler();
  if (!c.why_not.empty()) throw UserError(ErrorCode::UnsupportedOnBackend, c.why_not);
  const Source source(text);
  const std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char*> options(Options.begin(), Options.end());
  options.push_back(target.c_str());
  if (c.compile(source.program, static_cast<int>(options.size()), options.data()) != 0) {
    throw DeviceError(fmt::format("NVRTC {} refuses a kernel for {}", c.version_text, architecture),
                      source.log() + "\n" + text);
  }
  std::size_t size = 0;
  const bool cubin = form == CodeForm::Cubin;
  const int sized = cubin ? c.cubin_size(source.program, &size) : c.ptx_size(source.program, &size);
  std::vector<char> code(size);
  if (sized != 0 || size == 0 ||
      (cubin ? c.cubin(source.program, code.data()) : c.ptx(source.program, code.data())) != 0) {
    throw DeviceError(fmt::format("NVRTC {} gives no code for {}", c.version_text, architecture),
                      source.log());
  }
  return code;
}

}  // namespace ricci::cuda
