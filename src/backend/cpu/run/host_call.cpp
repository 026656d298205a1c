#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

void HostArguments::fail(ErrorCode code, std::string message, std::string help) const {
  throw UserError(Diagnostic{code, std::string(name), std::move(message), {}, {}, std::move(help)});
}

}  // namespace ricci::cpu
