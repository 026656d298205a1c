#include "backend/cuda/codegen/shape.h"

namespace ricci::cuda {

// Two blocks for each of 132 multiprocessors have work when a sum is cut in 264 parts; bits depend
// on these numbers, so they are the same for all GPUs.
const schedule::KernelShape& kernel_shape() {
  static constexpr schedule::KernelShape Shape{.longest_row = 8192,
                                               .shortest_part = 1024,
                                               .enough_rows = 264,
                                               .chunk_work = 1 << 14,
                                               .most_chunks = 264,
                                               .running_part = 512,
                                               .most_parts = 1024,
                                               .most_instructions = 256,
                                               .most_work = 4096,
                                               .rows_wait_in_outputs = true,
                                               .largest_row_buffer = 128 * 1024,
                                               .longest_summed_row = 8192};
  return Shape;
}

}  // namespace ricci::cuda
