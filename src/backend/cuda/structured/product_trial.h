// A product tried on arrays of its own: how long its algorithms take, and whether what the library
// applies to results is what it says. Nobody says what its relu makes of NaN, nor how exact its
// gelu is.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "backend/cuda/run/memory.h"
#include "backend/cuda/structured/cublas_product.h"

namespace ricci::cuda {

class ProductTrial {
 public:
  /// `choices`: those that may be tried.
  ProductTrial(Multiplication& product, Memory& memory, std::span<const MatmulChoice> choices);
  ProductTrial(const ProductTrial&) = delete;
  ProductTrial& operator=(const ProductTrial&) = delete;
  ~ProductTrial();

  /// False: nothing can be tried.
  [[nodiscard]] bool has_room() const { return stream_ != nullptr; }
  [[nodiscard]] MatmulChoice fastest();
  /// Does the function of the epilogue keep NaN, and give what the reference gives?
  [[nodiscard]] bool is_right(const MatmulChoice& choice);

 private:
  using Seconds = std::chrono::duration<double>;
  [[nodiscard]] bool run(const MatmulChoice& choice);
  [[nodiscard]] GraphExec replayed(const MatmulChoice& choice, int runs);
  [[nodiscard]] std::optional<Seconds> time(const MatmulChoice& choice);
  void fill(const device::Array& array, unsigned char value) const;
  [[nodiscard]] bool keeps_nan(const MatmulChoice& choice);
  [[nodiscard]] bool gives_its_function(const MatmulChoice& choice);

  Multiplication& product_;
  Memory& memory_;
  std::span<const MatmulChoice> choices_;
  device::Array a_;
  device::Array b_;
  device::Array c_;
  device::Array bias_;
  device::Array added_;
  device::Array inner_;
  device::Array workspace_;
  Stream stream_ = nullptr;
};

}  // namespace ricci::cuda
