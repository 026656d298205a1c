// Which names a request may have called this server by.
//
// A page of a stranger can have a name of its own that leads to this machine (DNS rebinding), and
// would then be one with the server for the browser. Addresses cannot be had like that.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ricci::serve {

/// Is it `localhost`, or a name below it, an address, or one of `names`, whatever the port and the
/// size of its letters? Who gives no name at all is no browser.
[[nodiscard]] bool is_own_host(std::string_view host, std::span<const std::string> names);
/// Can only this machine reach what listens there?
[[nodiscard]] bool is_loopback(std::string_view address);

}  // namespace ricci::serve
