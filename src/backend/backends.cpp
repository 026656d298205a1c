#include "backend/backends.h"

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

#include "backend/cpu/codegen/backend.h"
#include "backend/lir/backend.h"

namespace ricci::backend {

std::vector<device::Listed> list() { return {{"cpu"}, {"lir"}}; }

std::shared_ptr<const device::Backend> open(std::string_view name, int threads) {
  if (name == "cpu") return std::make_shared<cpu::Backend>(threads);
  if (name == "lir") return std::make_shared<lir::Backend>();
  std::vector<std::string> names;
  for (const device::Listed& l : list()) names.push_back(l.name);
  throw UserError(ErrorCode::UnsupportedOnBackend,
                  fmt::format("the device '{}' is not part of this build", name),
                  fmt::format("there is {}", join(names, ", ")));
}

}  // namespace ricci::backend
