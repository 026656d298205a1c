// What a kernel is launched with, as cuLaunchKernel takes it: see KernelText for the order. Nothing
// here needs a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "ricci/compiler/schedule/program.h"

namespace ricci::cuda {

/// Where a view begins; null for a result nobody wants. `buffers` is where a program's lie.
[[nodiscard]] std::byte* first_element(const BufferView& view, std::span<std::byte* const> buffers);
[[nodiscard]] std::vector<std::byte*> first_elements(std::span<const BufferView> views,
                                                     std::span<std::byte* const> buffers);

/// A pointer for each parameter of a printed kernel, and of a printed loop, before its scratch.
[[nodiscard]] std::vector<std::byte*> kernel_pointers(const loop::Kernel& kernel,
                                                      const Launch& launch,
                                                      std::span<std::byte* const> buffers);
[[nodiscard]] std::vector<std::byte*> loop_pointers(const LoopStep& step,
                                                    std::span<std::byte* const> buffers);

/// What every kernel is given behind its pointers.
struct CommonArguments {
  std::byte* scratch = nullptr;
  std::byte* fault = nullptr;
  unsigned origin = 0;
};

/// The addresses of all arguments. What they are made of must outlive them.
class LaunchArguments {
 public:
  LaunchArguments(std::span<std::byte* const> pointers, const CommonArguments& common);
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;
  [[nodiscard]] std::span<void*> addresses() noexcept { return all_; }

 private:
  std::array<void*, 64> few_{};  // most kernels have no more
  std::vector<void*> many_;
  std::span<void*> all_;
};

}  // namespace ricci::cuda
