#include "backend/cpu/structured/fourier.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "backend/cpu/structured/strided_copy.h"
#include "backend/cpu/structured/thread_scratch.h"
#include "support/unit_root.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t TileWork = 1 << 13;  // complex numbers worth a tile
constexpr std::int64_t LongLine = 1 << 13;  // worth more than one thread
constexpr std::int64_t ManyLines = 8;       // enough for a thread each

template <class T>
constexpr DType dtype_of_real = sizeof(T) == 8 ? DType::F64 : DType::F32;
template <class T>
constexpr DType dtype_of_pair = sizeof(T) == 8 ? DType::C128 : DType::C64;

// Elements up to a whole number of cache lines.
std::int64_t whole_lines(std::int64_t elements) { return (elements + 15) / 16 * 16; }

// Numbers of one line: elements of the array, and their size in reals.
struct LineShape {
  std::int64_t elements = 0;
  std::int64_t reals = 1;
};
LineShape operand_shape(const loop::FourierTransform& r) {
  using Kind = loop::FourierTransform::Of;
  switch (r.of) {
    case Kind::Complex: return {r.length, 2};
    case Kind::Blocks: return {2 * r.length, 1};
    case Kind::RealToHalf: return {r.length, 1};
    case Kind::HalfToReal: return {r.bins(), 2};
  }
  return {};
}
LineShape result_shape(const loop::FourierTransform& r) {
  using Kind = loop::FourierTransform::Of;
  if (r.of == Kind::RealToHalf) return {r.bins(), 2};
  if (r.of == Kind::HalfToReal) return {r.length, 1};
  return operand_shape(r);
}

// Asks for memory that is touched soon: pieces of many lines in turn are no order the processor
// foresees.
template <class T>
void prefetch(const T* from, std::int64_t count, bool written) {
  constexpr std::int64_t CacheLine = 64;
  constexpr std::int64_t Most = 1 << 15;
  const auto* bytes = reinterpret_cast<const std::byte*>(from);
  const std::int64_t size = count * static_cast<std::int64_t>(sizeof(T));
  if (size > Most) return;
  for (std::int64_t i = 0; i < size; i += CacheLine) {
    if (written) {
      __builtin_prefetch(bytes + i, 1, 3);
    } else {
      __builtin_prefetch(bytes + i, 0, 3);
    }
  }
}

// Axes [batch, elements, inner] become [batch, inner, elements], or back.
template <class T>
void exchange_axes(ThreadPool& pool, const loop::FourierTransform& r, const LineShape& line,
                   bool back, const T* from, T* to) {
  const DType dtype = line.reals == 2 ? dtype_of_pair<T> : dtype_of_real<T>;
  const std::int64_t all = line.elements * r.inner;
  const std::array<std::int64_t, 3> dims{r.batch, back ? line.elements : r.inner,
                                         back ? r.inner : line.elements};
  const std::array<std::int64_t, 3> plain{all, dims[2], 1};
  const std::array<std::int64_t, 3> turned{all, 1, dims[1]};
  auto* source = reinterpret_cast<std::byte*>(const_cast<T*>(from));
  copy_strided({reinterpret_cast<std::byte*>(to), dtype, dims, plain},
               {source, dtype, dims, turned}, pool);
}

}  // namespace

template <class T>
FourierPlan<T>::FourierPlan(const loop::FourierTransform& role, const FourierKernels<T>& kernels)
    : kernels_(kernels),
      role_(role),
      n_(role.is_real() && role.length % 2 == 0 ? role.length / 2 : role.length),
      in_(operand_shape(role).elements * operand_shape(role).reals),
      out_(result_shape(role).elements * result_shape(role).reals),
      scale_(static_cast<T>(role.scale.value)) {
  const std::int64_t lanes = kernels_.lanes;
  const std::int64_t half = n_;
  if (role.inner == 1 && role.of != Kind::Blocks && ShortTransform<T>::can(n_, kernels_) &&
      (is_even_real() || !role.is_real())) {
    plan_short();
    return;
  }
  const bool by_line = role.inner == 1 && LineTransform<T>::pays(n_, kernels_.lanes);
  if (!by_line && RowTransform<T>::can(n_)) {
    rows_ = std::make_unique<RowTransform<T>>(n_, kernels_);
    const std::int64_t room = std::max(rows_->room(), role.bins() + 1);
    thread_ = 2 * room * 2 * lanes;
    in_order_.resize(static_cast<std::size_t>(std::max(n_, role.bins())));
    std::iota(in_order_.begin(), in_order_.end(), 0);
    if (is_even_real()) roots_ = roots_of<T>(2 * half, half / 2 + 1);
    return;
  }
  if (role.inner != 1) {
    loop::FourierTransform lines = role;
    lines.batch = role.batch * role.inner;
    lines.inner = 1;
    turned_ = std::make_unique<FourierPlan>(lines, kernels_);
    scratch_ = lines.batch * (in_ + out_) + 64 + turned_->scratch_;
    thread_ = turned_->thread_;
    return;
  }
  line_ = std::make_unique<LineTransform<T>>(n_, kernels_);
  keep_line_roots();
  // Two lines of complex numbers beside what the passes need.
  const std::int64_t shared = whole_lines(line_->shared_room()) + (role.is_real() ? 4 * n_ : 0);
  shares_lines_ = n_ >= LongLine && role.batch < ManyLines;
  scratch_ = shares_lines_ ? shared : 0;
  thread_ = whole_lines(line_->thread_room()) + (shares_lines_ ? 0 : shared);
}

// Cosines, then sines.
template <class T>
void FourierPlan<T>::keep_line_roots() {
  if (!is_even_real()) return;
  for (std::int64_t k = 0; k <= n_ / 2; ++k) {
    roots_.push_back(static_cast<T>(unit_root(-k, 2 * n_).real()));
  }
  for (std::int64_t k = 0; k <= n_ / 2; ++k) {
    roots_.push_back(static_cast<T>(unit_root(-k, 2 * n_).imag()));
  }
}

template <class T>
void FourierPlan<T>::plan_short() {
  short_ = std::make_unique<ShortTransform<T>>(n_, role_.scale.value, kernels_);
  keep_line_roots();
  // Beside what the transform works in, lines of complex numbers that real ones become.
  thread_ = whole_lines(short_->room()) + (role_.is_real() ? short_->together() * 2 * n_ : 0);
}

template <class T>
T* FourierPlan<T>::own_room() const {
  return reinterpret_cast<T*>(thread_scratch(thread_bytes()));
}

template <class T>
void FourierPlan<T>::run(ThreadPool& pool, const T* in, T* out, T* scratch,
                         const LineHooks& hooks) const {
  if (short_) return run_short(pool, in, out, hooks);
  if (turned_) return run_turned(pool, in, out, scratch);
  if (rows_ && role_.inner == 1) return run_line_columns(pool, in, out, hooks);
  if (rows_) return run_columns(pool, in, out);
  run_lines(pool, in, out, scratch, hooks);
}

// Lines that are transformed at the same time.
template <class T>
std::int64_t FourierPlan<T>::lines_together() const {
  if (short_) return short_->together();
  return rows_ ? kernels_.lanes : 1;
}

template <class T>
std::int64_t FourierPlan<T>::lines_in_tile() const {
  const std::int64_t together = lines_together();
  return std::max<std::int64_t>(1, TileWork / std::max<std::int64_t>(1, n_ * together)) * together;
}

template <class T>
std::int64_t FourierPlan<T>::lines_at() const {
  return lines_room_ == 0 ? thread_ : whole_lines(thread_);
}

template <class T>
void FourierPlan<T>::make_room_for_lines() {
  lines_room_ = std::min(lines_in_tile(), role_.batch) * in_;
}

// Calls f(first, last, lines) for tiles of lines.
template <class T>
template <class F>
void FourierPlan<T>::run_tiles(ThreadPool& pool, const T* in, const LineHooks& hooks,
                               const F& f) const {
  const std::int64_t per_tile = lines_in_tile();
  pool.run((role_.batch + per_tile - 1) / per_tile, [&](std::int64_t tile) {
    const std::int64_t first = tile * per_tile;
    const std::int64_t last = std::min(role_.batch, first + per_tile);
    const T* lines = in + first * in_;
    if (hooks.before) {
      std::byte* room =
          lines_room_ == 0 ? nullptr : reinterpret_cast<std::byte*>(own_room() + lines_at());
      lines = reinterpret_cast<const T*>(hooks.before(first, last, room));
    }
    f(first, last, lines);
    if (hooks.done) hooks.done(first, last);
  });
}

template <class T>
void FourierPlan<T>::run_short(ThreadPool& pool, const T* in, T* out,
                               const LineHooks& hooks) const {
  const std::int64_t together = lines_together();
  run_tiles(pool, in, hooks, [&](std::int64_t begin, std::int64_t end, const T* lines) {
    T* room = thread_ == 0 ? nullptr : own_room();
    T* z = room + whole_lines(short_->room());
    for (std::int64_t first = begin; first < end; first += together) {
      run_short_group(lines + (first - begin) * in_, out + first * out_,
                      std::min(together, end - first), z, room);
    }
  });
}

template <class T>
void FourierPlan<T>::run_short_group(const T* in, T* out, std::int64_t count, T* z, T* room) const {
  FourierLines<T> lines{.count = count, .from_line = in_, .to_line = out_};
  if (!role_.is_real()) {
    lines.swap = role_.inverse;
    return short_->run(lines, in, out, room);
  }
  const T* cosines = roots_.data();
  const T* sines = cosines + n_ / 2 + 1;
  const std::int64_t mirrored = n_ / 2 + 1;
  if (role_.of == Kind::RealToHalf) {
    lines.to_line = 2 * n_;
    short_->run(lines, in, z, room);
    for (std::int64_t i = 0; i < count; ++i) {
      kernels_.split_line(z + i * 2 * n_, n_, cosines, sines, 0, mirrored, T(1), out + i * out_);
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    kernels_.join_line(in + i * in_, n_, cosines, sines, 0, mirrored, z + i * 2 * n_);
  }
  lines.from_line = 2 * n_;
  lines.swap = true;
  short_->run(lines, z, out, room);
}

template <class T>
void FourierPlan<T>::run_turned(ThreadPool& pool, const T* in, T* out, T* scratch) const {
  const std::int64_t lines = role_.batch * role_.inner;
  T* from = scratch;
  T* to = from + whole_lines(lines * in_);
  exchange_axes(pool, role_, operand_shape(role_), false, in, from);
  turned_->run(pool, from, to, to + whole_lines(lines * out_));
  exchange_axes(pool, role_, result_shape(role_), true, to, out);
}

// Columns are inner elements.
template <class T>
void FourierPlan<T>::run_columns(ThreadPool& pool, const T* in, T* out) const {
  const std::int64_t lanes = kernels_.lanes;
  const std::int64_t columns = role_.inner;
  const std::int64_t blocks = (columns + lanes - 1) / lanes;
  const std::int64_t all = role_.batch * blocks;
  const std::int64_t per_tile = std::max<std::int64_t>(1, TileWork / (n_ * lanes));
  pool.run((all + per_tile - 1) / per_tile, [&](std::int64_t tile) {
    T* a = own_room();
    T* b = a + thread_ / 2;
    const std::int64_t end = std::min(all, (tile + 1) * per_tile);
    for (std::int64_t i = tile * per_tile; i < end; ++i) {
      const std::int64_t group = i / blocks;
      const std::int64_t first = i % blocks * lanes;
      run_tile(in + group * in_ * columns + first * operand_shape(role_).reals,
               out + group * out_ * columns + first * result_shape(role_).reals,
               std::min(lanes, columns - first), a, b);
    }
  });
}

// Columns are lines of the batch.
template <class T>
void FourierPlan<T>::run_line_columns(ThreadPool& pool, const T* in, T* out,
                                      const LineHooks& hooks) const {
  const std::int64_t lanes = kernels_.lanes;
  run_tiles(pool, in, hooks, [&](std::int64_t begin, std::int64_t end, const T* lines) {
    T* a = own_room();
    T* b = a + thread_ / 2;
    for (std::int64_t first = begin; first < end; first += lanes) {
      const std::int64_t count = std::min(lanes, end - first);
      const T* from = lines + (first - begin) * in_;
      T* to = out + first * out_;
      prefetch(to, count * out_, true);
      prefetch(from + count * in_, std::min(lanes, end - first - count) * in_, false);
      run_tile(from, to, count, a, b);
    }
  });
}

template <class T>
void FourierPlan<T>::run_tile(const T* in, T* out, std::int64_t count, T* a, T* b) const {
  if (role_.is_real()) return run_real_tile(in, out, count, a, b);
  const bool in_blocks = role_.of == Kind::Blocks;
  const std::int64_t reals = in_blocks ? 1 : 2;
  const std::int64_t imaginary = in_blocks ? n_ * role_.inner : 1;
  const std::int64_t row = reals * role_.inner;
  const std::int64_t column = role_.inner == 1 ? in_ : reals;
  FourierView<const T> from{in, in + imaginary, row, column};
  FourierView<T> to{out, out + imaginary, row, column};
  // The inverse is the transform with real and imaginary parts exchanged, before and after.
  if (role_.inverse) {
    std::swap(from.re, from.im);
    std::swap(to.re, to.im);
  }
  rows_->run(from, count, scale_, to, a, b);
}

template <class T>
void FourierPlan<T>::run_real_tile(const T* in, T* out, std::int64_t count, T* a, T* b) const {
  const std::int64_t row = role_.inner;
  const bool by_lines = row == 1;
  const bool forward = role_.of == Kind::RealToHalf;
  const std::int64_t real_column = by_lines ? role_.length : 1;
  const std::int64_t bin_column = by_lines ? 2 * role_.bins() : 2;
  if (forward) {
    const FourierView<T> bins{out, out + 1, 2 * row, bin_column};
    if (is_even_real()) {  // two rows become one of complex numbers
      T* y = rows_->run({in, in + row, 2 * row, real_column}, count, a, b);
      kernels_.split_rows(y, n_, roots_.data());
      return kernels_.store(y, role_.bins(), count, scale_, bins);
    }
    T* y = rows_->run({in, nullptr, row, real_column}, count, a, b);
    std::fill_n(y + kernels_.lanes, kernels_.lanes, T(0));  // the sum of real numbers is real
    return kernels_.store(y, role_.bins(), count, scale_, bins);
  }
  kernels_.load({in, in + 1, 2 * row, bin_column}, role_.bins(), count, in_order_.data(), b);
  if (is_even_real()) {
    kernels_.join_rows(b, n_, roots_.data(), rows_->places(), a);
    return kernels_.store(rows_->run(a, b), n_, count, scale_,
                          {out + row, out, 2 * row, real_column});
  }
  // The conjugates' transform has the same real parts as the inverse.
  mirror_rows(b, a);
  kernels_.store(rows_->run(a, b), n_, count, scale_, {out, nullptr, row, real_column});
}

template <class T>
void FourierPlan<T>::mirror_rows(const T* b, T* a) const {
  const std::int64_t lanes = kernels_.lanes;
  const std::int32_t* places = rows_->places();
  for (std::int64_t k = 0; k < role_.bins(); ++k) {
    const T* from = b + k * 2 * lanes;
    T* to = a + places[k] * 2 * lanes;
    T* mirror = a + places[k == 0 ? 0 : n_ - k] * 2 * lanes;
    for (std::int64_t c = 0; c < lanes; ++c) {
      to[c] = mirror[c] = from[c];
      to[lanes + c] = k == 0 ? T(0) : -from[lanes + c];
      mirror[lanes + c] = -to[lanes + c];
    }
  }
}

template <class T>
void FourierPlan<T>::run_lines(ThreadPool& pool, const T* in, T* out, T* scratch,
                               const LineHooks& hooks) const {
  if (shares_lines_) {
    const auto each = [&](std::int64_t count, const auto& f) { pool.run(count, f); };
    for (std::int64_t i = 0; i < role_.batch; ++i) {
      run_line(each, in + i * in_, out + i * out_, scratch, [&] { return own_room(); });
    }
    return;
  }
  const auto in_turn = [](std::int64_t count, const auto& f) {
    for (std::int64_t i = 0; i < count; ++i) f(i);
  };
  run_tiles(pool, in, hooks, [&](std::int64_t begin, std::int64_t end, const T* lines) {
    T* own = own_room();
    T* shared = own + whole_lines(line_->thread_room());
    for (std::int64_t i = begin; i < end; ++i) {
      run_line(in_turn, lines + (i - begin) * in_, out + i * out_, shared, [&] { return own; });
    }
  });
}

template <class T>
template <class Each, class Own>
void FourierPlan<T>::run_line(const Each& each, const T* in, T* out, T* shared,
                              const Own& own) const {
  if (role_.is_real()) return run_real_line(each, in, out, shared, own);
  FourierLine<const T> from = paired_line<const T>(in, false);
  FourierLine<T> to = paired_line<T>(out, false);
  if (role_.of == Kind::Blocks) {
    from = {in, in + n_, 1};
    to = {out, out + n_, 1};
  }
  if (role_.inverse) {
    std::swap(from.re, from.im);
    std::swap(to.re, to.im);
  }
  line_->run(each, from, to, scale_, shared, own);
}

template <class T>
template <class Each, class Own>
void FourierPlan<T>::run_real_line(const Each& each, const T* in, T* out, T* shared,
                                   const Own& own) const {
  T* z = shared + whole_lines(line_->shared_room());
  const bool forward = role_.of == Kind::RealToHalf;
  const T* cosines = roots_.data();
  const T* sines = roots_.empty() ? nullptr : cosines + n_ / 2 + 1;  // odd lines have no roots
  const auto in_parts = [&](std::int64_t count, const auto& f) {
    each((count + TileWork - 1) / TileWork,
         [&](std::int64_t tile) { f(tile * TileWork, std::min(count, (tile + 1) * TileWork)); });
  };
  const std::int64_t mirrored = n_ / 2 + 1;
  if (is_even_real() && forward) {
    line_->run(each, paired_line<const T>(in, false), paired_line(z, false), T(1), shared, own);
    return in_parts(mirrored, [&](std::int64_t begin, std::int64_t end) {
      kernels_.split_line(z, n_, cosines, sines, begin, end, scale_, out);
    });
  }
  if (is_even_real()) {
    in_parts(mirrored, [&](std::int64_t begin, std::int64_t end) {
      kernels_.join_line(in, n_, cosines, sines, begin, end, z);
    });
    return line_->run(each, paired_line<const T>(z, true), paired_line(out, true), scale_, shared,
                      own);
  }
  T* y = z + 2 * n_;
  if (forward) {
    line_->run(each, {in, nullptr, 1}, paired_line(y, false), scale_, shared, own);
    std::copy_n(y, out_, out);
    out[1] = T(0);  // the sum of real numbers is real
    return;
  }
  for (std::int64_t k = 0; k < role_.bins(); ++k) {
    const T im = k == 0 ? T(0) : in[2 * k + 1];
    const std::int64_t mirror = k == 0 ? 0 : n_ - k;
    z[2 * k] = z[2 * mirror] = in[2 * k];
    z[2 * mirror + 1] = im;
    z[2 * k + 1] = -im;
  }
  line_->run(each, paired_line<const T>(z, false), paired_line(y, false), scale_, shared, own);
  for (std::int64_t j = 0; j < n_; ++j) out[j] = y[2 * j];
}

template class FourierPlan<float>;
template class FourierPlan<double>;

}  // namespace ricci::cpu
