#include "backend/backends.h"

#include <array>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

// Every back end has a `make_backend`. Which ones this build has, and in which order, is the list
// the build writes: RICCI_BACKEND(name) for each.
#define RICCI_BACKEND(name)                                         \
  namespace ricci::name {                                           \
  std::shared_ptr<const device::Backend> make_backend(int threads); \
  }
#include "backend/backends.def"
#undef RICCI_BACKEND

namespace ricci::backend {
namespace {

struct Known {
  std::string_view name;
  std::shared_ptr<const device::Backend> (*make)(int threads);
};

constexpr std::array All = {
#define RICCI_BACKEND(name) Known{#name, &name::make_backend},
#include "backend/backends.def"
#undef RICCI_BACKEND
};

}  // namespace

std::vector<device::Listed> list() {
  std::vector<device::Listed> out;
  for (const Known& known : All) out.push_back({std::string(known.name)});
  return out;
}

std::shared_ptr<const device::Backend> open(std::string_view name, int threads) {
  std::vector<std::string> names;
  for (const Known& known : All) {
    if (known.name == name) return known.make(threads);
    names.emplace_back(known.name);
  }
  throw UserError(ErrorCode::UnsupportedOnBackend,
                  fmt::format("the device '{}' is not part of this build", name),
                  fmt::format("there is {}", join(names, ", ")));
}

}  // namespace ricci::backend
