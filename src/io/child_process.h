// Running another program.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ricci::io {

/// Runs `arguments[0]`, looked for as a shell does, and waits for it; what it prints goes to
/// `log_file`. Its exit status (128 and more: ended by a signal), or nothing when there is no such
/// program. UserError(file) when it cannot be started for another reason. When the scope it is
/// called in is asked to stop, the program and what it has started are ended: UserError(stopped).
[[nodiscard]] std::optional<int> run_program(const std::vector<std::string>& arguments,
                                             const std::string& log_file);

}  // namespace ricci::io
