// A device with hardly any room: short rows, tiny row buffers, small kernels, many parts. What the
// scheduler does only for large arrays elsewhere it does here for all.
#pragma once

#include "ricci/compiler/schedule/target.h"

namespace ricci::testing {

class CrampedTarget final : public schedule::Target {
 public:
  CrampedTarget() {
    shape_.longest_row = 16;
    shape_.shortest_part = 4;
    shape_.enough_rows = 2;
    shape_.chunk_work = 64;
    shape_.most_chunks = 3;
    shape_.most_parts = 5;
    shape_.most_instructions = 12;
    shape_.most_work = 128;
    shape_.rows_wait_in_outputs = false;
    shape_.largest_row_buffer = 32;
    shape_.longest_summed_row = 8;
    shape_.shortest_columns = 2;
    shape_.rows_worth_chunk = 2;
    shape_.few_elements = 8;
    shape_.small_group = 16;
    costs_.light_work = 40;
    costs_.least_elements = 4;
    costs_.early_work = 40;
    costs_.much_smaller = 2;
  }
  [[nodiscard]] bool claims(const loop::Call& /*call*/,
                            std::span<const Type> /*operands*/) const override {
    return false;
  }
  [[nodiscard]] const schedule::KernelShape& kernel_shape() const override { return shape_; }
  [[nodiscard]] const schedule::Costs& costs() const override { return costs_; }
  [[nodiscard]] std::int64_t alignment() const override { return 256; }
  [[nodiscard]] bool runs_in_parts(const loop::Call& /*call*/) const override { return true; }
  [[nodiscard]] bool gains_company(const loop::Kernel& /*kernel*/) const override { return false; }
  [[nodiscard]] bool writes_out(const loop::WrittenLoop& /*loop*/) const override { return false; }

 private:
  schedule::KernelShape shape_;
  schedule::Costs costs_;
};

}  // namespace ricci::testing
