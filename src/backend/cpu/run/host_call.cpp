#include "backend/cpu/run/host_call.h"

namespace ricci::cpu {

void HostCall::fail(ErrorCode code, std::string message, std::string help) const {
  throw UserError(
      Diagnostic{code, std::string(op.mnemonic()), std::move(message), {}, {}, std::move(help)});
}

}  // namespace ricci::cpu
