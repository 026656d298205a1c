// Kernels that need room. Such a kernel is a class: its constructor lays out what it needs in a
// `Scratch`, and `run` does the work. The same constructor says how many bytes that takes when the
// scratch has no memory yet.
#pragma once

#include <optional>

#include "ricci/compiler/rule/nd.h"
#include "ricci/support/checked.h"

#include "backend/cpu/host/numbers.h"
#include "backend/cpu/host/parallel.h"
#include "backend/cpu/host/view.h"
#include "backend/cpu/run/host_call.h"
#include "backend/cpu/structured/strided_copy.h"

namespace ricci::cpu {

class Scratch {
 public:
  /// Counts only.
  Scratch() = default;
  explicit Scratch(std::span<std::byte> memory) : memory_(memory), counts_only_(false) {}

  template <class T>
  [[nodiscard]] T* take(std::int64_t count) {
    const std::int64_t at = used_;
    const std::int64_t bytes = checked_mul(count, static_cast<std::int64_t>(sizeof(T)));
    used_ = checked_add(used_, checked_add(bytes, 63) / 64 * 64);
    if (counts_only_) return nullptr;
    check_internal(used_ <= static_cast<std::int64_t>(memory_.size()),
                   "a host kernel is given too little scratch");
    return reinterpret_cast<T*>(memory_.data() + at);
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  std::span<std::byte> memory_;
  std::int64_t used_ = 0;
  bool counts_only_ = true;
};

/// An operand in row-major order: itself, or a copy.
class DenseOperand {
 public:
  DenseOperand(const HostArguments& call, std::size_t k, Scratch& scratch)
      : from_(call.operands[k]) {
    if (is_row_major(from_)) return;
    copied_ = true;
    copy_ = scratch.take<std::byte>(count_of(from_.dims) * size_of(from_.dtype));
  }
  void pack(ThreadPool& pool) const {
    if (copied_) copy_strided(OwnedView(copy_, from_.dtype, from_.dims).view(), from_, pool);
  }
  [[nodiscard]] const std::byte* data() const { return copied_ ? copy_ : from_.data; }
  template <class T>
  [[nodiscard]] const T* as() const {
    return reinterpret_cast<const T*>(data());
  }

 private:
  const ArrayView& from_;
  std::byte* copy_ = nullptr;
  bool copied_ = false;
};

/// Writes a view's elements as row-major numbers.
template <class N>
void pack_numbers(const ArrayView& from, N* to, ThreadPool& pool) {
  if (from.dtype == dtype_of<N>) {
    auto* bytes = reinterpret_cast<std::byte*>(to);
    copy_strided(OwnedView(bytes, from.dtype, from.dims).view(), from, pool);
    return;
  }
  parallel_for(pool, count_of(from.dims), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
    read_numbers(from, begin, end - begin, to + begin);
  });
}

/// A view as row-major numbers: itself when they are its elements, or a converted copy.
template <class N>
class NumberOperand {
 public:
  NumberOperand(const ArrayView& from, Scratch& scratch) : from_(from) {
    if (from.dtype == dtype_of<N> && is_row_major(from)) return;
    copied_ = true;
    copy_ = scratch.take<N>(count_of(from.dims));
  }
  NumberOperand(const HostArguments& call, std::size_t k, Scratch& scratch)
      : NumberOperand(call.operands[k], scratch) {}
  void pack(ThreadPool& pool) const {
    if (copied_) pack_numbers(from_, copy_, pool);
  }
  /// Elements [begin, end) alone.
  void pack(std::int64_t begin, std::int64_t end) const {
    if (copied_) read_numbers(from_, begin, end - begin, copy_ + begin);
  }
  [[nodiscard]] const N* data() const { return copied_ ? copy_ : from_.as<const N>(); }

 private:
  ArrayView from_;
  N* copy_ = nullptr;
  bool copied_ = false;
};

/// What each thread keeps for a class of the kind above: its `thread_bytes`, if it has any.
template <class K>
[[nodiscard]] std::int64_t thread_bytes_of(const HostArguments& call) {
  if constexpr (requires(const K& k) { k.thread_bytes(); }) {
    Scratch scratch;
    return K(call, scratch).thread_bytes();
  } else {
    return 0;
  }
}

/// The kernel such a class makes.
template <class K>
[[nodiscard]] HostKernel kernel_of() noexcept {
  return {.run =
              [](const HostArguments& call) {
                Scratch scratch(call.scratch);
                K(call, scratch).run();
              },
          .scratch =
              [](const HostArguments& call) {
                Scratch scratch;
                (void)K(call, scratch);
                return scratch.used();
              },
          .thread_bytes = thread_bytes_of<K>};
}

/// The same for a class template on the numbers it computes with: `choose(call, f)` calls
/// `f.template operator()<N>()` with the one for a call.
template <template <class N> class K, auto Choose>
[[nodiscard]] HostKernel kernel_chosen_by() noexcept {
  return {.run =
              [](const HostArguments& call) {
                Choose(call, [&]<class N>() { kernel_of<K<N>>().run(call); });
              },
          .scratch =
              [](const HostArguments& call) {
                return Choose(call, [&]<class N>() { return kernel_of<K<N>>().scratch(call); });
              },
          .thread_bytes =
              [](const HostArguments& call) {
                return Choose(call, [&]<class N>() { return thread_bytes_of<K<N>>(call); });
              }};
}

/// Computes in f64 when operand 0 is that, in f32 for narrower floats.
template <template <class N> class K>
[[nodiscard]] HostKernel kernel_of_float() noexcept {
  return kernel_chosen_by<K, [](const HostArguments& call, const auto& f) {
    return call.operands[0].dtype == DType::F64 ? f.template operator()<double>()
                                                : f.template operator()<float>();
  }>();
}

}  // namespace ricci::cpu
