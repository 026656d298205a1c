#include "backend/lir/loop.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "ricci/rule/nd.h"
#include "ricci/support/error.h"

#include "backend/lir/number.h"
#include "support/stop_flag.h"

namespace ricci::lir {
namespace {

using loop::StorageId;
using loop::WrittenBody;
using loop::WrittenItem;

// The arrays of a body, and what fills them.
class BodyRun {
 public:
  explicit BodyRun(const WrittenBody& body) : body_(body) {
    for (const loop::Storage& s : body.storages) {
      std::vector<std::byte>& bytes = arrays_.emplace_back();
      bytes.assign(static_cast<std::size_t>(s.elements * size_of(s.dtype)), Unwritten);
      if (s.constant) std::ranges::copy(s.constant->contiguous().bytes(), bytes.begin());
    }
  }

  [[nodiscard]] std::span<std::byte> input(std::size_t k) { return array(body_.inputs[k]); }
  [[nodiscard]] std::span<std::byte> output(std::size_t r) { return array(body_.outputs[r]); }

  void run() {
    for (const WrittenItem& item : body_.items) {
      switch (item.kind) {
        case WrittenItem::Kind::Pointwise: run_pointwise(item); break;
        case WrittenItem::Kind::Reduction: run_reduction(item); break;
        case WrittenItem::Kind::Product: run_product(item); break;
      }
    }
  }

  /// Is every element of the output something else than zero?
  [[nodiscard]] bool holds() {
    const StorageId flag = body_.outputs[0];
    const loop::Storage& s = body_.storages[static_cast<std::size_t>(flag)];
    for (std::int64_t i = 0; i < s.elements; ++i) {
      if (!is_nonzero(load(s.dtype, address(flag, i)))) return false;
    }
    return true;
  }

 private:
  static constexpr std::byte Unwritten{0xA5};  // what nobody would take for a result

  [[nodiscard]] std::span<std::byte> array(StorageId s) {
    return arrays_[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] std::byte* address(StorageId s, std::int64_t place) {
    const loop::Storage& storage = body_.storages[static_cast<std::size_t>(s)];
    if (place < 0 || place >= storage.elements) {
      throw InternalError(fmt::format("a written-out loop: place {} of s{}, which has {} elements",
                                      place, s, storage.elements));
    }
    return array(s).data() + place * size_of(storage.dtype);
  }

  static std::int64_t place(const loop::Layout& layout, const StaticDims& index) {
    std::int64_t at = layout.offset;
    for (std::size_t a = 0; a < index.size(); ++a) at += index[a] * layout.strides[a];
    return at;
  }

  [[nodiscard]] Number value(const loop::Read& read, const StaticDims& index) {
    if (const auto* splat = std::get_if<loop::SplatRead>(&read)) {
      return as_stored(splat->dtype, splat->number);
    }
    if (const auto* sequence = std::get_if<loop::SequenceRead>(&read)) {
      return as_stored(sequence->dtype, place(sequence->layout, index));
    }
    const auto& stored = std::get<loop::StoredRead>(read);
    return load(read_dtype(body_, read), address(stored.storage, place(stored.layout, index)));
  }

  void run_pointwise(const WrittenItem& item) {
    for_each_index(item.dims, [&](const StaticDims& index) {
      std::vector<Number> in;
      for (const loop::Read& read : item.reads) in.push_back(value(read, index));
      store(item.instr.dtype, address(item.storage, place(item.to, index)), compute(item, in));
    });
  }

  [[nodiscard]] Number compute(const WrittenItem& item, const std::vector<Number>& in) const {
    const loop::Instr& i = item.instr;
    const DType dtype = read_dtype(body_, item.reads[0]);
    switch (i.code) {
      case loop::Code::Copy:
      case loop::Code::Cast: return in[0];
      case loop::Code::Unary: return unary(i.unary(), dtype, in[0]);
      case loop::Code::Binary: return binary(i.binary(), dtype, in[0], in[1]);
      case loop::Code::Compare: return truth(compare(i.compare(), dtype, in[0], in[1]));
      case loop::Code::Select: return is_nonzero(in[0]) ? in[1] : in[2];
      default: throw InternalError("a written-out loop has an instruction that is none");
    }
  }

  void run_reduction(const WrittenItem& item) {
    StaticDims kept;
    for (std::size_t a = 0; a < item.dims.size(); ++a) {
      if (!item.reduced[a]) kept.push_back(item.dims[a]);
    }
    const loop::Layout result = loop::contiguous(kept);
    const DType dtype = read_dtype(body_, item.reads[0]);
    std::map<std::int64_t, Number> totals;  // by place of the result
    for_each_index(item.dims, [&](const StaticDims& index) {
      StaticDims where;
      for (std::size_t a = 0; a < index.size(); ++a) {
        if (!item.reduced[a]) where.push_back(index[a]);
      }
      Number& total =
          totals.try_emplace(place(result, where), reduction_of_nothing(item.reduce, dtype))
              .first->second;
      total = reduced_with(item.reduce, dtype, total, value(item.reads[0], index));
    });
    for (const auto& [at, total] : totals) {
      store(item.instr.dtype, address(item.storage, at), total);
    }
  }

  void run_product(const WrittenItem& item) {
    const auto [m, k, n] = std::array{item.dims[0], item.dims[1], item.dims[2]};
    for_each_index(StaticDims{m, n}, [&](const StaticDims& index) {
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) {
        sum += std::get<double>(value(item.reads[0], {index[0], j})) *
               std::get<double>(value(item.reads[1], {j, index[1]}));
      }
      store(item.instr.dtype, address(item.storage, index[0] * n + index[1]), sum);
    });
  }

  const WrittenBody& body_;
  std::vector<std::vector<std::byte>> arrays_;
};

class LoopRun {
 public:
  LoopRun(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
          std::span<const KernelArgument> results)
      : plan_(loop.plan), operands_(operands), results_(results), body_(loop.body) {
    if (loop.condition) condition_.emplace(*loop.condition);
  }

  void run() {
    begin();
    std::int64_t trip = 0;
    for (; !plan_.most_trips || trip < *plan_.most_trips; ++trip) {
      throw_if_stopped();
      if (condition_ && !goes_on()) break;
      run_trip(trip);
    }
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
      const std::int32_t last = plan_.carries[k].last;
      if (last >= 0) copy(body_.input(k), row(results_, last, 0, body_.input(k).size()));
    }
    if (plan_.trip_count < 0) return;
    const auto count = static_cast<std::int32_t>(trip);
    copy(std::as_bytes(std::span(&count, 1)), row(results_, plan_.trip_count, 0, sizeof count));
  }

 private:
  struct Kept {
    std::int64_t count = 0;  // of the pace
    std::int64_t rows = 0;
  };

  static void copy(std::span<const std::byte> from, std::span<std::byte> to) {
    std::ranges::copy(from, to.begin());
  }
  // Row `n` of an array of rows of so many bytes.
  static std::span<std::byte> row(std::span<const KernelArgument> arrays, std::int32_t number,
                                  std::int64_t n, std::size_t bytes) {
    const KernelArgument& array = arrays[static_cast<std::size_t>(number)];
    const auto size = static_cast<std::int64_t>(bytes);
    if (n < 0 || size > array.bytes || (size > 0 && n > array.bytes / size - 1)) {
      throw InternalError(fmt::format("a written-out loop: row {} of {} bytes in an array of {}", n,
                                      size, array.bytes));
    }
    return {array.data + n * size, bytes};
  }

  void begin() {
    for (const std::int32_t r : plan_.zeroed) {
      const KernelArgument& array = results_[static_cast<std::size_t>(r)];
      std::fill_n(array.data, array.bytes, std::byte{});
    }
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
      const loop::Carry& carry = plan_.carries[k];
      copy(row(operands_, carry.operand, 0, body_.input(k).size()), body_.input(k));
      kept_.push_back({carry.kept ? carry.kept->pace.start : 0, 0});
    }
    for (std::size_t k = 0; k < plan_.wholes.size(); ++k) {
      const std::span<std::byte> to = body_.input(plan_.carries.size() + k);
      copy(row(operands_, plan_.wholes[k], 0, to.size()), to);
    }
  }

  bool goes_on() {
    for (std::size_t k = 0; k < plan_.carries.size(); ++k) {
      copy(body_.input(k), condition_->input(k));
    }
    condition_->run();
    return condition_->holds();
  }

  void run_trip(std::int64_t trip) {
    const std::size_t carries = plan_.carries.size();
    for (std::size_t k = 0; k < plan_.xs.size(); ++k) {
      const std::span<std::byte> to = body_.input(carries + plan_.wholes.size() + k);
      copy(row(operands_, plan_.xs[k].array, plan_.xs[k].rows.row(trip), to.size()), to);
    }
    body_.run();
    for (std::size_t k = 0; k < carries; ++k) keep(k);
    for (std::size_t k = 0; k < plan_.ys.size(); ++k) {
      const auto& [array, rows] = plan_.ys[k];
      const std::span<std::byte> from = body_.output(carries + k);
      if (array >= 0) copy(from, row(results_, array, rows.row(trip), from.size()));
    }
    for (std::size_t k = 0; k < carries; ++k) copy(body_.output(k), body_.input(k));
  }

  void keep(std::size_t k) {
    const std::optional<loop::KeptRows>& kept = plan_.carries[k].kept;
    if (!kept || !kept->pace.keeps(kept_[k].count)) return;
    const std::span<std::byte> from = kept->entering ? body_.input(k) : body_.output(k);
    copy(from, row(results_, kept->result, kept->rows.row(kept_[k].rows++), from.size()));
  }

  const loop::LoopPlan& plan_;
  std::span<const KernelArgument> operands_;
  std::span<const KernelArgument> results_;
  BodyRun body_;
  std::optional<BodyRun> condition_;
  std::vector<Kept> kept_;  // per carry
};

}  // namespace

void run_loop(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
              std::span<const KernelArgument> results) {
  LoopRun(loop, operands, results).run();
}

}  // namespace ricci::lir
