// The text of a sequence as it may be told piece by piece: whole characters of UTF-8, and nothing
// that could still become a stop text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ricci::serve {

class TextOutput {
 public:
  explicit TextOutput(std::vector<std::string> stops);
  /// What can be told now that these bytes have come.
  [[nodiscard]] std::string add(std::string_view bytes);
  /// What is left when nothing more comes.
  [[nodiscard]] std::string finish();
  /// A stop text has come: nothing behind it is told.
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace ricci::serve
