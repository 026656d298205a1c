// Which stages can be differentiated.
#pragma once

#include <string_view>

#include "ricci/model/module.h"

namespace ricci::model {

/// AutodiffError(wrong_stage) for a program that is planned for a device already.
void require_differentiable(GraphStage stage, std::string_view module);

}  // namespace ricci::model
