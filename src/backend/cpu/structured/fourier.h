// Fourier transforms as calls ask for them: complex numbers, real and imaginary blocks, real
// numbers and half of their bins, along any axis of a row-major array.
//
//   const FourierPlan<float> plan(role);
//   plan.run(pool, in, out, scratch);              // scratch: plan.scratch_elements(), 64-aligned
//
// Real numbers of an even length are transformed as half as many complex ones. How work is cut
// depends on shapes alone. Plans are immutable and keep their roots.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "ricci/compiler/device/thread_pool.h"
#include "ricci/compiler/loop/call.h"

#include "backend/cpu/structured/fourier_line.h"
#include "backend/cpu/structured/fourier_short.h"

namespace ricci::cpu {

/// Called by tiles with lines [first, last): before they read them, and when the result has them.
/// Either may be empty. The first says where the first line lies, perhaps in `room`, which has
/// place for them if the plan was told of it.
struct LineHooks {
  std::function<const std::byte*(std::int64_t first, std::int64_t last, std::byte* room)> before =
      {};
  std::function<void(std::int64_t first, std::int64_t last)> done = {};
};

template <class T>
class FourierPlan {
 public:
  explicit FourierPlan(const loop::FourierTransform& role,
                       const FourierKernels<T>& kernels = fourier_kernels<T>());

  /// Numbers of type T.
  [[nodiscard]] std::int64_t scratch_elements() const { return scratch_; }
  [[nodiscard]] std::int64_t thread_bytes() const {
    return (lines_at() + lines_room_) * static_cast<std::int64_t>(sizeof(T));
  }
  /// Tiles have room for their lines of the operand from here on.
  void make_room_for_lines();
  /// Does `run` call hooks? It does where every tile has lines of its own.
  [[nodiscard]] bool tells_lines() const { return role_.inner == 1 && !shares_lines_; }
  void run(ThreadPool& pool, const T* in, T* out, T* scratch, const LineHooks& hooks = {}) const;

 private:
  using Kind = loop::FourierTransform::Of;

  void plan_short();
  void keep_line_roots();
  [[nodiscard]] std::int64_t lines_together() const;
  [[nodiscard]] std::int64_t lines_in_tile() const;
  [[nodiscard]] std::int64_t lines_at() const;
  template <class F>
  void run_tiles(ThreadPool& pool, const T* in, const LineHooks& hooks, const F& f) const;
  void run_short(ThreadPool& pool, const T* in, T* out, const LineHooks& hooks) const;
  void run_short_group(const T* in, T* out, std::int64_t count, T* z, T* room) const;
  void run_columns(ThreadPool& pool, const T* in, T* out) const;
  void run_line_columns(ThreadPool& pool, const T* in, T* out, const LineHooks& hooks) const;
  void run_tile(const T* in, T* out, std::int64_t count, T* a, T* b) const;
  void run_real_tile(const T* in, T* out, std::int64_t count, T* a, T* b) const;
  /// From bins in b, the conjugates of all, at their places in a.
  void mirror_rows(const T* b, T* a) const;
  void run_lines(ThreadPool& pool, const T* in, T* out, T* scratch, const LineHooks& hooks) const;
  template <class Each, class Own>
  void run_line(const Each& each, const T* in, T* out, T* shared, const Own& own) const;
  template <class Each, class Own>
  void run_real_line(const Each& each, const T* in, T* out, T* shared, const Own& own) const;
  void run_turned(ThreadPool& pool, const T* in, T* out, T* scratch) const;
  [[nodiscard]] T* own_room() const;

  [[nodiscard]] bool is_even_real() const { return role_.is_real() && role_.length % 2 == 0; }

  const FourierKernels<T>& kernels_;
  loop::FourierTransform role_;
  std::int64_t n_;    ///< complex numbers that are transformed at a time
  std::int64_t in_;   ///< real numbers of a line of the operand
  std::int64_t out_;  ///< of the result
  T scale_;
  std::int64_t scratch_ = 0;
  std::int64_t thread_ = 0;      ///< numbers a thread works in; behind them are
  std::int64_t lines_room_ = 0;  ///< those of lines that hooks make
  bool shares_lines_ = false;    ///< threads work on one line together
  std::vector<std::int32_t> in_order_;
  std::vector<T> roots_;  ///< of an even real length: pairs; for lines cosines, then sines
  std::unique_ptr<RowTransform<T>> rows_;
  std::unique_ptr<ShortTransform<T>> short_;
  std::unique_ptr<LineTransform<T>> line_;
  std::unique_ptr<FourierPlan> turned_;  ///< along the last axis instead
};

extern template class FourierPlan<float>;
extern template class FourierPlan<double>;

}  // namespace ricci::cpu
