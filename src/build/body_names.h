// Names by which builders are told what to keep of a body.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ricci/ir/graph.h"

namespace ricci {

/// UserError(name) when the body, which messages call `what`, has no value of one of the names.
void require_names(const Graph& body, std::span<const std::string> names, std::string_view what);

}  // namespace ricci
