#include "backend/backends.h"

#include <array>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

// Every back end has a `make_backend` and a `make_compiler`, and says why it cannot be used here.
// Which ones this build has, and in which order, is the list the build writes: RICCI_BACKEND(name)
// for each.
#define RICCI_BACKEND(name)                                         \
  namespace ricci::name {                                           \
  std::shared_ptr<const device::Backend> make_backend(int threads); \
  std::shared_ptr<const device::Compiler> make_compiler();          \
  std::string why_not();                                            \
  }
#include "backend/backends.def"
#undef RICCI_BACKEND

namespace ricci::backend {
namespace {

struct Known {
  std::string_view name;
  std::shared_ptr<const device::Backend> (*make)(int threads);
  std::shared_ptr<const device::Compiler> (*make_compiler)();
  std::string (*why_not)();
};

constexpr std::array All = {
#define RICCI_BACKEND(name) Known{#name, &name::make_backend, &name::make_compiler, &name::why_not},
#include "backend/backends.def"
#undef RICCI_BACKEND
};

const Known& find(std::string_view name) {
  for (const Known& known : All) {
    if (known.name == name) return known;
  }
  throw UserError(ErrorCode::UnsupportedOnBackend,
                  fmt::format("the device '{}' is not part of this build", name),
                  fmt::format("there is {}", join(names(), ", ")));
}

}  // namespace

std::vector<device::Listed> list() {
  std::vector<device::Listed> out;
  for (const Known& known : All) out.push_back({std::string(known.name), known.why_not()});
  return out;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const Known& known : All) out.emplace_back(known.name);
  return out;
}

std::shared_ptr<const device::Backend> open(std::string_view name, int threads) {
  return find(name).make(threads);
}

std::shared_ptr<const device::Compiler> open_compiler(std::string_view name) {
  return find(name).make_compiler();
}

}  // namespace ricci::backend
