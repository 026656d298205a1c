// The back ends of this build.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ricci/compiler/device/backend.h"

namespace ricci::backend {

/// All there are, whether or not they can be used on this machine; the one that is used unless
/// another is asked for comes first. Drivers may be loaded to find out.
[[nodiscard]] std::vector<device::Listed> list();
/// The same by name alone.
[[nodiscard]] std::vector<std::string> names();
/// One by name. `threads` is how many of the host's its programs may use, 0 for one per core.
/// UserError(unsupported_on_backend) that says why when there is none or it cannot be used here.
[[nodiscard]] std::shared_ptr<const device::Backend> open(std::string_view name, int threads = 0);
/// What makes code for one, whether or not it is here. UserError when this build has none.
[[nodiscard]] std::shared_ptr<const device::Compiler> open_compiler(std::string_view name);

}  // namespace ricci::backend
