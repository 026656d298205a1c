#include "ricci/io/object_file.h"

#include <cerrno>
#include <filesystem>

#include <dlfcn.h>
#include <fmt/format.h>

#include "ricci/io/file.h"
#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "io/child_process.h"
#include "support/environment.h"

namespace ricci::io {
namespace {

namespace fs = std::filesystem;

std::string from_environment(const char* name) {
  const char* value = environment_variable(name);
  return value == nullptr ? "" : value;
}

// A folder for what the linker reads, gone when this is.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code fault;
    const fs::path folder = fs::temp_directory_path(fault);
    std::string name = (folder / "ricci_link_XXXXXX").string();
    if (!fault && ::mkdtemp(name.data()) == nullptr) fault = {errno, std::generic_category()};
    if (fault) {
      throw UserError(
          ErrorCode::File,
          fmt::format("cannot make a folder for the linker to work in: {}", fault.message()),
          "TMPDIR names the folder it is made in");
    }
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

// Where the code of this function lies: the shared library it is part of, or the program.
fs::path own_file() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0 && info.dli_fname != nullptr) {
    const fs::path file = info.dli_fname;  // of a program: how it was called
    std::error_code none;
    const fs::path full = file.has_parent_path() ? fs::canonical(file, none) : fs::path();
    if (!full.empty()) return full;
  }
  std::error_code none;
  return fs::read_symlink("/proc/self/exe", none);
}

// Wherever the linker finds it.
constexpr const char* SystemRuntime = "-lricci_runtime";

// The runtime archive beside this library or program, as it is built or installed.
std::string runtime_archive() {
  const fs::path folder = own_file().parent_path();
  std::error_code none;
  for (const fs::path& place :
       {folder, folder / "lib", folder / ".." / "lib", folder / ".." / RICCI_LIBRARY_FOLDER}) {
    const fs::path archive = place / "libricci_runtime.a";
    if (!folder.empty() && fs::exists(archive, none)) return archive.lexically_normal().string();
  }
  return SystemRuntime;
}

// A portable build carries libraries along, in a folder beside the runtime archive.
std::string with_carried_libraries(std::string flag, const fs::path& runtime) {
  constexpr std::string_view Place = "{libraries}";
  const std::size_t at = flag.find(Place);
  if (at == std::string::npos) return flag;
  return flag.replace(at, Place.size(), (runtime.parent_path() / "ricci").string());
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// What a command to link with can begin with, in words. CXX is how a shell would be told.
std::vector<std::vector<std::string>> compilers(const LinkOptions& options) {
  if (!options.compiler.empty()) return {{options.compiler}};
  std::vector<std::string> wanted = words(from_environment("CXX"));
  if (!wanted.empty()) return {std::move(wanted)};
  return {{"c++"}, {"g++"}, {"clang++"}};
}

void link(const std::vector<std::string>& arguments, const LinkOptions& options,
          const std::string& log_file) {
  std::vector<std::string> tried;
  for (std::vector<std::string>& command : compilers(options)) {
    tried.push_back(join(command, " "));
    command.insert(command.end(), arguments.begin(), arguments.end());
    const std::optional<int> status = run_program(command, log_file);
    if (!status) continue;  // there is no such program
    if (*status == 0) return;
    const std::vector<std::byte> log = read_file(log_file);
    throw DeviceError(fmt::format("'{}' could not link the shared library", tried.back()),
                      {reinterpret_cast<const char*>(log.data()), log.size()});
  }
  throw UserError(
      ErrorCode::File,
      fmt::format("there is no compiler to link with: {} cannot be run", join(tried, ", ")),
      "install one, name it in CXX, or write an object and link it elsewhere");
}

// Nothing is written when the header would take the place of the program.
void require_own_header(const std::string& path, const char* ending) {
  if (header_path(path) != path) return;
  throw UserError(
      ErrorCode::File, fmt::format("'{}' is where the header of the program goes", path),
      fmt::format("name the program '{}'", fs::path(path).replace_extension(ending).string()));
}

}  // namespace

std::string header_path(const std::string& path) {
  return fs::path(path).replace_extension(".h").string();
}

void write_object(const ObjectFile& program, const std::string& path) {
  require_own_header(path, ".o");
  write_file(path, program.object);
  write_file(header_path(path), program.header);
}

void write_shared_library(const ObjectFile& program, const std::string& path,
                          const LinkOptions& options) {
  require_own_header(path, ".so");
  const ScratchFolder scratch;
  const std::string object = scratch.file("program.o");
  const std::string library = scratch.file("program.so");
  write_file(object, program.object);
  std::string runtime = options.runtime;
  if (runtime.empty()) runtime = from_environment("RICCI_RUNTIME");
  if (runtime.empty()) runtime = runtime_archive();
  std::vector<std::string> arguments = {"-shared", "-o", library, object, runtime,
                                        // Exports are the program's: the runtime is its own.
                                        "-Wl,--exclude-libs,ALL", "-Wl,-z,defs",
                                        "-Wl,-z,relro,-z,now"};
  for (const std::string& flag : words(RICCI_RUNTIME_LINK_FLAGS)) {
    arguments.push_back(with_carried_libraries(flag, runtime));
  }
  try {
    link(arguments, options, scratch.file("log.txt"));
  } catch (const DeviceError& error) {  // which has what the linker said
    const bool missed = std::string_view(error.what()).find(SystemRuntime) != std::string::npos;
    if (runtime != SystemRuntime || !missed) throw;
    throw UserError(ErrorCode::File,
                    "libricci_runtime.a is neither beside this program nor where the linker looks",
                    "name it in RICCI_RUNTIME, or install Ricci (make install)");
  }
  write_file(path, read_file(library));
  write_file(header_path(path), program.header);
}

}  // namespace ricci::io
