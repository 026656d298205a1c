// Products and convolutions of codes: exact sums of small products, scaled and rounded once.
//
// Sums are of x' w, where x' = x + 128 for signed x, so that one factor has no sign; zero points
// are taken out afterwards: Σ (x' - p)(w - z) = Σ x' w - p Σ w - z Σ x' + K p z.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "backend/cpu/host/kernels.h"
#include "backend/cpu/host/scratch.h"
#include "backend/cpu/kernels/vector_kernels.h"
#include "backend/cpu/structured/thread_scratch.h"

namespace ricci::cpu {
namespace {

constexpr std::int64_t StripWidth = IntegerKernels::Columns;
// Sums of so many products of 8 bits fit into 32; longer ones are added up in 64.
constexpr std::int64_t LongestSum = std::int64_t{1} << 15;
constexpr std::int64_t RowsAtOnce = 96;
// So few rows are multiplied with the weight as it lies: it is read once, and packing would write
// it once more.
constexpr std::int64_t SweptRows = 4;
constexpr std::int64_t SweptColumns = 1024;

// Rows of x' and their sums.
struct CodeRows {
  const std::uint8_t* codes = nullptr;
  std::int64_t stride = 0;
  const std::int64_t* sums = nullptr;
};

// A weight as strips for every piece of the depth.
class CodeWeight {
 public:
  CodeWeight(std::int64_t depth, std::int64_t columns, Scratch& scratch)
      : depth_(depth),
        columns_(columns),
        strips_((columns + StripWidth - 1) / StripWidth),
        pieces_(std::max<std::int64_t>(1, (depth + LongestSum - 1) / LongestSum)),
        packed_(scratch.take<std::int8_t>(pieces_ * strips_ * StripWidth *
                                          ((std::min(depth, LongestSum) + 3) / 4 * 4))),
        sums_(scratch.take<std::int32_t>(pieces_ * strips_ * StripWidth)) {}

  // Some strips together, a few rows at a time, so that rows are read along.
  void pack(ThreadPool& pool, const std::int8_t* w, std::int64_t row, std::int64_t column) const {
    constexpr std::int64_t MostStrips = 16;
    constexpr std::int64_t Groups = 8;  // work for several threads
    constexpr std::int64_t DepthAtOnce = 16;
    const std::int64_t at_once = std::clamp<std::int64_t>(strips_ / Groups, 1, MostStrips);
    const std::int64_t groups = (strips_ + at_once - 1) / at_once;
    pool.run(pieces_ * groups, [&](std::int64_t i) {
      const std::int64_t piece = i / groups;
      const std::int64_t first = i % groups * at_once;
      const std::int64_t last = std::min(strips_, first + at_once);
      std::int32_t* sums = sums_ + piece * strips_ * StripWidth;
      std::fill(sums + first * StripWidth, sums + last * StripWidth, 0);
      for (std::int64_t k = 0; k < depth_of(piece); k += DepthAtOnce) {
        for (std::int64_t s = first; s < last; ++s) {
          const std::int64_t n = s * StripWidth;
          integer_kernels().pack(
              w + (piece * LongestSum + k) * row + n * column, row, column,
              std::min(StripWidth, columns_ - n), std::min(DepthAtOnce, depth_of(piece) - k),
              const_cast<std::int8_t*>(strip(piece, s)) + k * StripWidth, sums + n);
        }
      }
    });
  }
  [[nodiscard]] std::int64_t depth() const { return depth_; }
  [[nodiscard]] std::int64_t columns() const { return columns_; }
  [[nodiscard]] std::int64_t strips() const { return strips_; }
  [[nodiscard]] std::int64_t pieces() const { return pieces_; }
  [[nodiscard]] std::int64_t depth_of(std::int64_t piece) const {
    return std::min(LongestSum, depth_ - piece * LongestSum);
  }
  [[nodiscard]] const std::int8_t* strip(std::int64_t piece, std::int64_t s) const {
    const std::int64_t room = StripWidth * ((std::min(depth_, LongestSum) + 3) / 4 * 4);
    return packed_ + (piece * strips_ + s) * room;
  }
  /// Σ w of a column.
  [[nodiscard]] std::int64_t sum(std::int64_t column) const {
    std::int64_t total = 0;
    for (std::int64_t p = 0; p < pieces_; ++p) total += sums_[p * strips_ * StripWidth + column];
    return total;
  }

 private:
  std::int64_t depth_;
  std::int64_t columns_;
  std::int64_t strips_;
  std::int64_t pieces_;
  std::int8_t* packed_;
  std::int32_t* sums_;
};

// How exact sums become results.
class Rescale {
 public:
  Rescale(const loop::Rescaling& r, DType dtype, bool is_signed, const std::int32_t* bias)
      : r_(r), dtype_(dtype), x_zero_(r.x_zero + (is_signed ? 128 : 0)), bias_(bias) {}

  /// The same for columns that are counted from `first` on.
  [[nodiscard]] Rescale from(std::int64_t first) const {
    Rescale out = *this;
    out.first_ = first;
    return out;
  }

  /// What columns add to a sum, how often they count a row's, and their factors.
  struct Columns {
    double* starts = nullptr;
    double* w_zeros = nullptr;
    double* factors = nullptr;
    static constexpr std::int64_t BytesOfEach = 3 * sizeof(double);
    Columns(std::byte* room, std::int64_t count)
        : starts(reinterpret_cast<double*>(room)),
          w_zeros(starts + count),
          factors(w_zeros + count) {}
  };
  void read_column(std::int64_t at, std::int64_t w_sum, std::int64_t depth, const Columns& to,
                   std::int64_t n) const {
    const auto entry = [&](const auto& list) {
      return list[list.size() == 1 ? 0 : static_cast<std::size_t>(first_ + at)];
    };
    const std::int64_t z = entry(r_.w_zeros);
    const std::int64_t bias = bias_ == nullptr ? 0 : bias_[first_ + at];
    to.starts[n] = static_cast<double>(bias - x_zero_ * w_sum + depth * x_zero_ * z);
    to.w_zeros[n] = static_cast<double>(z);
    to.factors[n] = entry(r_.factors);
  }
  void store(const SummedRow& row, const double* factors, std::byte* to) const {
    const IntegerKernels& kernels = integer_kernels();
    if (dtype_ == DType::I32) return kernels.give_sums(row, reinterpret_cast<std::int32_t*>(to));
    const CodeScale scale{factors, static_cast<double>(r_.out_zero), static_cast<double>(r_.low),
                          static_cast<double>(r_.high)};
    kernels.give_codes(row, scale, reinterpret_cast<std::uint8_t*>(to));
  }
  [[nodiscard]] std::int64_t size() const { return size_of(dtype_); }
  [[nodiscard]] std::int64_t x_zero() const { return x_zero_; }

 private:
  const loop::Rescaling& r_;
  DType dtype_;
  std::int64_t x_zero_;
  const std::int32_t* bias_;
  std::int64_t first_ = 0;
};

// Where rows of a result lie, in bytes.
struct ResultRows {
  std::byte* first = nullptr;
  std::int64_t row = 0;
  std::int64_t column = 0;
};

// What a block of rows and a strip need.
constexpr std::int64_t SumsBytes =
    RowsAtOnce * StripWidth * 12 + StripWidth * Rescale::Columns::BytesOfEach;

// `count` numbers of a row that lies elsewhere.
void scatter_row(const std::byte* row, std::int64_t count, std::int64_t size, std::byte* to,
                 std::int64_t step) {
  for (std::int64_t n = 0; n < count; ++n) {
    if (size == 1) {
      to[n * step] = row[n];
    } else {
      std::memcpy(to + n * step, row + n * size, sizeof(std::int32_t));
    }
  }
}

// Rows [row0, row1) times one strip. Element (r, n) of all columns goes to its place in `to`.
void multiply_strip(const CodeRows& x, const CodeWeight& w, const Rescale& rescale,
                    std::int64_t row0, std::int64_t row1, std::int64_t strip, std::byte* room,
                    const ResultRows& to) {
  const std::int64_t rows = row1 - row0;
  const Rescale::Columns columns(room, StripWidth);
  double* earlier = columns.factors + StripWidth;  // sums of pieces but the last
  auto* part = reinterpret_cast<std::int32_t*>(earlier + RowsAtOnce * StripWidth);
  const std::int64_t n0 = strip * StripWidth;
  const std::int64_t count = std::min(w.columns() - n0, StripWidth);
  for (std::int64_t n = 0; n < count; ++n) {
    rescale.read_column(n0 + n, w.sum(n0 + n), w.depth(), columns, n);
  }
  const auto multiply = [&](std::int64_t p) {
    integer_kernels().multiply(x.codes + row0 * x.stride + p * LongestSum, x.stride,
                               w.strip(p, strip), rows, w.depth_of(p), part);
  };
  const std::int64_t last = w.pieces() - 1;
  for (std::int64_t p = 0; p < last; ++p) {
    multiply(p);
    for (std::int64_t i = 0; i < rows * StripWidth; ++i) {
      const std::int64_t n = i % StripWidth;
      if (p == 0) earlier[i] = n < count ? columns.starts[n] : 0;
      earlier[i] += part[i];
    }
  }
  multiply(last);
  const std::int64_t size = rescale.size();
  std::byte held[StripWidth * sizeof(std::int32_t)];
  for (std::int64_t r = 0; r < rows; ++r) {
    std::byte* out = to.first + (row0 + r) * to.row + n0 * to.column;
    std::byte* row = to.column == size ? out : held;
    rescale.store({.count = count,
                   .sums = part + r * StripWidth,
                   .starts = last == 0 ? columns.starts : earlier + r * StripWidth,
                   .w_zeros = columns.w_zeros,
                   .x_sum = static_cast<double>(x.sums[row0 + r])},
                  columns.factors, row);
    if (row == held) scatter_row(held, count, size, out, to.column);
  }
}

const std::int32_t* bias_of(const HostArguments& call, const DenseOperand* bias) {
  if (bias == nullptr) return nullptr;
  bias->pack(call.pool);
  return bias->as<std::int32_t>();
}

class IntegerProduct {
 public:
  IntegerProduct(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::IntegerProduct>()),
        call_(call),
        few_(role_.rows <= SweptRows),
        stride_((role_.depth + 3) / 4 * 4),
        x_(call, 0, scratch),
        w_(call, 1, scratch),
        weight_(few_ ? 0 : role_.depth, few_ ? 0 : role_.columns, scratch),
        codes_(scratch.take<std::uint8_t>((role_.rows + 1) * stride_)),
        sums_(scratch.take<std::int64_t>(role_.rows)) {
    if (call.operands.size() > 2) bias_.emplace(call, 2, scratch);
  }

  [[nodiscard]] std::int64_t thread_bytes() const { return few_ ? SweptBytes : SumsBytes; }
  void run() const {
    x_.pack(call_.pool);
    w_.pack(call_.pool);
    const bool is_signed = call_.operands[0].dtype == DType::I8;
    const Rescale rescale(role_.rescaling, role_.dtype, is_signed,
                          bias_of(call_, bias_ ? &*bias_ : nullptr));
    for (std::int64_t b = 0; b < role_.batch; ++b) {
      read_rows(x_.as<std::uint8_t>() + b * role_.rows * role_.depth, is_signed ? 0x80 : 0);
      const std::int8_t* w = w_.as<std::int8_t>() + b * role_.depth * role_.columns;
      std::byte* out = call_.results[0].data + b * role_.rows * role_.columns * rescale.size();
      few_ ? sweep(w, rescale, out) : multiply(w, rescale, out);
    }
  }

 private:
  // Sums of rows of x', and of a row of ones behind them: Σ w. Then what belongs to columns.
  static constexpr std::int64_t SweptBytes =
      (SweptRows + 1) * SweptColumns * 12 + SweptColumns * Rescale::Columns::BytesOfEach;

  void multiply(const std::int8_t* w, const Rescale& rescale, std::byte* out) const {
    weight_.pack(call_.pool, w, role_.columns, 1);
    const CodeRows rows{codes_, stride_, sums_};
    const std::int64_t blocks = (role_.rows + RowsAtOnce - 1) / RowsAtOnce;
    call_.pool.run(blocks * weight_.strips(), [&](std::int64_t i) {
      const std::int64_t row0 = i % blocks * RowsAtOnce;
      multiply_strip(rows, weight_, rescale, row0, std::min(role_.rows, row0 + RowsAtOnce),
                     i / blocks, thread_scratch(SumsBytes),
                     {out, role_.columns * rescale.size(), rescale.size()});
    });
  }

  void sweep(const std::int8_t* w, const Rescale& rescale, std::byte* out) const {
    std::fill_n(codes_ + role_.rows * stride_, stride_, std::uint8_t{1});
    call_.pool.run((role_.columns + SweptColumns - 1) / SweptColumns, [&](std::int64_t tile) {
      const std::int64_t first = tile * SweptColumns;
      sweep_columns(w + first, std::min(SweptColumns, role_.columns - first), rescale.from(first),
                    out + first * rescale.size());
    });
  }

  void sweep_columns(const std::int8_t* w, std::int64_t columns, const Rescale& rescale,
                     std::byte* out) const {
    const std::int64_t rows = role_.rows + 1;
    std::byte* room = thread_scratch(SweptBytes);
    const Rescale::Columns of(room, SweptColumns);
    double* earlier = of.factors + SweptColumns;  // sums of pieces but the last
    auto* part = reinterpret_cast<std::int32_t*>(earlier + (SweptRows + 1) * SweptColumns);
    std::fill_n(earlier, rows * SweptColumns, 0.0);
    std::int64_t k = 0;
    const auto sweep_piece = [&] {
      std::fill_n(part, rows * SweptColumns, 0);
      integer_kernels().sweep({.rows = rows,
                               .depth = std::min(LongestSum, role_.depth - k),
                               .columns = columns,
                               .x = codes_ + k,
                               .x_row = stride_,
                               .w = w + k * role_.columns,
                               .w_row = role_.columns,
                               .c = part,
                               .c_row = SweptColumns});
    };
    for (; role_.depth - k > LongestSum; k += LongestSum) {
      sweep_piece();
      for (std::int64_t i = 0; i < rows * SweptColumns; ++i) earlier[i] += part[i];
    }
    sweep_piece();
    const std::int64_t ones = role_.rows * SweptColumns;
    for (std::int64_t n = 0; n < columns; ++n) {
      const auto w_sum = static_cast<std::int64_t>(earlier[ones + n] + part[ones + n]);
      rescale.read_column(n, w_sum, role_.depth, of, n);
    }
    for (std::int64_t r = 0; r < role_.rows; ++r) {
      double* starts = earlier + r * SweptColumns;
      for (std::int64_t n = 0; n < columns; ++n) starts[n] += of.starts[n];
      rescale.store({.count = columns,
                     .sums = part + r * SweptColumns,
                     .starts = starts,
                     .w_zeros = of.w_zeros,
                     .x_sum = static_cast<double>(sums_[r])},
                    of.factors, out + r * role_.columns * rescale.size());
    }
  }

  // x' is x with its sign bit the other way round.
  void read_rows(const std::uint8_t* from, std::uint8_t flip) const {
    parallel_for(
        call_.pool, role_.rows, grain_for(role_.depth), [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            std::uint8_t* to = codes_ + r * stride_;
            sums_[r] = integer_kernels().read(from + r * role_.depth, flip, role_.depth, to);
            std::fill(to + role_.depth, to + stride_, std::uint8_t{0});
          }
        });
  }

  const loop::IntegerProduct& role_;
  const HostArguments& call_;
  bool few_;
  std::int64_t stride_;
  DenseOperand x_;
  DenseOperand w_;
  std::optional<DenseOperand> bias_;
  CodeWeight weight_;
  std::uint8_t* codes_;
  std::int64_t* sums_;
};

// Windows are the rows of a product, block by block; channels of the result its columns.
class IntegerConvolution {
 public:
  IntegerConvolution(const HostArguments& call, Scratch& scratch)
      : role_(call.as<loop::IntegerConvolution>()),
        g_(role_.geometry),
        call_(call),
        outputs_(g_.channels_out / g_.groups),
        stride_((g_.taps() + 3) / 4 * 4),
        x_(call, 0, scratch),
        w_(call, 1, scratch) {
    for (std::int64_t i = 0; i < g_.groups; ++i)
      weights_.emplace_back(g_.taps(), outputs_, scratch);
    if (call.operands.size() > 2) bias_.emplace(call, 2, scratch);
  }

  [[nodiscard]] std::int64_t thread_bytes() const { return SumsBytes + RowsAtOnce * (8 + stride_); }
  void run() const {
    x_.pack(call_.pool);
    w_.pack(call_.pool);
    for (std::int64_t i = 0; i < g_.groups; ++i) {
      weights_[static_cast<std::size_t>(i)].pack(
          call_.pool, w_.as<std::int8_t>() + i * outputs_ * g_.taps(), 1, g_.taps());
    }
    const bool is_signed = call_.operands[0].dtype == DType::I8;
    const Rescale rescale(role_.rescaling, g_.dtype, is_signed,
                          bias_of(call_, bias_ ? &*bias_ : nullptr));
    const std::int64_t plane = g_.size_out[0] * g_.size_out[1];
    const std::int64_t blocks = (plane + RowsAtOnce - 1) / RowsAtOnce;
    call_.pool.run(g_.images * g_.groups * blocks, [&](std::int64_t i) {
      const std::int64_t first = i % blocks * RowsAtOnce;
      run_block(rescale, is_signed, i / blocks / g_.groups, i / blocks % g_.groups, first,
                std::min(plane, first + RowsAtOnce));
    });
  }

 private:
  // Windows [first, last) of one image and one group.
  void run_block(const Rescale& rescale, bool is_signed, std::int64_t image, std::int64_t group,
                 std::int64_t first, std::int64_t last) const {
    std::byte* room = thread_scratch(thread_bytes());
    auto* sums = reinterpret_cast<std::int64_t*>(room + SumsBytes);
    auto* codes = reinterpret_cast<std::uint8_t*>(sums + RowsAtOnce);
    const unsigned flip = is_signed ? 0x80 : 0;
    const auto outside = static_cast<std::uint8_t>(rescale.x_zero());
    for (std::int64_t at = first; at < last; ++at) {
      std::uint8_t* to = codes + (at - first) * stride_;
      sums[at - first] = read_window(image, group, at, flip, outside, to);
      std::fill(to + g_.taps(), to + stride_, std::uint8_t{0});
    }
    const CodeWeight& weight = weights_[static_cast<std::size_t>(group)];
    const std::int64_t plane = g_.size_out[0] * g_.size_out[1];
    std::byte* out = call_.results[0].data +
                     (image * g_.channels_out + group * outputs_) * plane * rescale.size();
    for (std::int64_t s = 0; s < weight.strips(); ++s) {
      multiply_strip(CodeRows{codes, stride_, sums}, weight, rescale.from(group * outputs_), 0,
                     last - first, s, room,
                     {out + first * rescale.size(), rescale.size(), plane * rescale.size()});
    }
  }
  std::int64_t read_window(std::int64_t image, std::int64_t group, std::int64_t at, unsigned flip,
                           std::uint8_t outside, std::uint8_t* to) const {
    const std::int64_t channels = g_.channels_in / g_.groups;
    const std::int64_t i = at / g_.size_out[1] * g_.stride[0] - g_.padding[0];
    const std::int64_t j = at % g_.size_out[1] * g_.stride[1] - g_.padding[1];
    std::int64_t total = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto* plane = x_.as<std::uint8_t>() + (image * g_.channels_in + group * channels + c) *
                                                      g_.size_in[0] * g_.size_in[1];
      for (std::int64_t u = 0; u < g_.kernel[0]; ++u) {
        const std::int64_t row = i + u * g_.dilation[0];
        for (std::int64_t v = 0; v < g_.kernel[1]; ++v) {
          const std::int64_t column = j + v * g_.dilation[1];
          const bool inside =
              row >= 0 && row < g_.size_in[0] && column >= 0 && column < g_.size_in[1];
          *to = inside ? static_cast<std::uint8_t>(plane[row * g_.size_in[1] + column] ^ flip)
                       : outside;
          total += *to++;
        }
      }
    }
    return total;
  }

  const loop::IntegerConvolution& role_;
  const loop::Convolution& g_;
  const HostArguments& call_;
  std::int64_t outputs_;
  std::int64_t stride_;
  DenseOperand x_;
  DenseOperand w_;
  std::optional<DenseOperand> bias_;
  std::vector<CodeWeight> weights_;
};

}  // namespace

HostKernel integer_product_kernel() noexcept { return kernel_of<IntegerProduct>(); }
HostKernel integer_convolution_kernel() noexcept { return kernel_of<IntegerConvolution>(); }

}  // namespace ricci::cpu
