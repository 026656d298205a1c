// Are the buffers a caller hands in usable? Called for every run with pointers, so it allocates
// nothing and looks again only when a pointer has changed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ricci/compiler/schedule/program.h"

namespace ricci::device {

/// What a program's buffers are to their caller.
struct BufferPorts {
  std::vector<std::string> inputs;  ///< as messages name them
  std::vector<std::string> outputs;
  std::vector<int> donors;  ///< for each output the input whose buffer it may take, or -1
  std::string null_help;    ///< what may be left out
};

class BufferCheck {
 public:
  BufferCheck(BufferPorts ports, const Program& program);

  /// UserError that names the input or output that is null, misaligned, or overlaps another.
  void check(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs);

 private:
  struct Range {
    const std::byte* first = nullptr;
    const std::byte* last = nullptr;
    int input = -1;  // or output
    int output = -1;
  };
  struct Need {
    std::size_t bytes = 0;
    std::size_t alignment = 1;
  };
  void check_overlap(std::span<const std::byte* const> inputs, std::span<std::byte* const> outputs);
  [[nodiscard]] const std::string& name_of(const Range& r) const;

  BufferPorts ports_;
  std::vector<Need> inputs_;
  std::vector<Need> outputs_;
  std::vector<const std::byte*> good_;  // pointers that were found to be usable
  bool checked_ = false;
  std::vector<Range> ranges_;
};

}  // namespace ricci::device
