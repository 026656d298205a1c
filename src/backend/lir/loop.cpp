#include "backend/lir/loop.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "ricci/compiler/rule/nd.h"
#include "ricci/support/error.h"

#include "backend/lir/number.h"
#include "loop/of_nothing.h"
#include "support/align.h"
#include "support/stop_flag.h"

namespace ricci::lir {
namespace {

using loop::StorageId;
using loop::WrittenBody;
using loop::WrittenItem;

// Which arrays of a body are its own: constants are read where they lie, and inputs from `carries`
// on where the loop's operands have them.
std::vector<bool> own_arrays(const WrittenBody& body, std::size_t carries) {
  std::vector<bool> own;
  for (const loop::Storage& s : body.storages) own.push_back(!s.constant);
  for (std::size_t k = carries; k < body.inputs.size(); ++k) {
    own[static_cast<std::size_t>(body.inputs[k])] = false;
  }
  return own;
}

std::int64_t bytes_of(const loop::Storage& s) { return s.elements * size_of(s.dtype); }

std::int64_t own_bytes(const WrittenBody& body, std::size_t carries) {
  const std::vector<bool> own = own_arrays(body, carries);
  std::int64_t bytes = 0;
  for (std::size_t s = 0; s < own.size(); ++s)
    bytes += own[s] ? aligned(bytes_of(body.storages[s])) : 0;
  return bytes;
}

// The arrays of a body, and what fills them.
class BodyRun {
 public:
  /// Its own arrays lie in `room`, one behind the other.
  BodyRun(const WrittenBody& body, std::size_t carries, std::span<std::byte> room)
      : body_(body), own_(own_arrays(body, carries)) {
    std::ranges::fill(room, Unwritten);
    for (std::size_t s = 0; s < own_.size(); ++s) {
      const loop::Storage& storage = body.storages[s];
      const auto bytes = static_cast<std::size_t>(bytes_of(storage));
      if (storage.constant) {
        const std::span<const std::byte> elements =
            constants_.emplace_back(storage.constant->contiguous()).bytes();
        arrays_.emplace_back(const_cast<std::byte*>(elements.data()), bytes);  // never stored to
      } else if (own_[s]) {
        arrays_.push_back(room.first(bytes));
        room = room.subspan(static_cast<std::size_t>(aligned(bytes_of(storage))));
      } else {
        arrays_.emplace_back();
      }
    }
  }

  [[nodiscard]] std::span<std::byte> input(std::size_t k) { return array(body_.inputs[k]); }
  [[nodiscard]] std::span<std::byte> output(std::size_t r) { return array(body_.outputs[r]); }
  [[nodiscard]] std::size_t input_bytes(std::size_t k) const {
    return static_cast<std::size_t>(
        bytes_of(body_.storages[static_cast<std::size_t>(body_.inputs[k])]));
  }
  /// From now on an input that is no carry is what lies there.
  void read_input(std::size_t k, std::span<std::byte> from) {
    arrays_[static_cast<std::size_t>(body_.inputs[k])] = from;
  }

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
  [[nodiscard]] std::byte* own_address(StorageId s, std::int64_t place) {
    check_internal(own_[static_cast<std::size_t>(s)], "a written-out loop fills what is not its");
    return address(s, place);
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
      store(item.instr.dtype, own_address(item.storage, place(item.to, index)), compute(item, in));
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
          totals.try_emplace(place(result, where), loop::reduction_of_nothing(item.reduce, dtype))
              .first->second;
      total = reduced_with(item.reduce, dtype, total, value(item.reads[0], index));
    });
    for (const auto& [at, total] : totals) {
      store(item.instr.dtype, own_address(item.storage, at), total);
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
      store(item.instr.dtype, own_address(item.storage, index[0] * n + index[1]), sum);
    });
  }

  const WrittenBody& body_;
  std::vector<bool> own_;
  std::vector<Tensor> constants_;
  std::vector<std::span<std::byte>> arrays_;
};

class LoopRun {
 public:
  LoopRun(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
          std::span<const KernelArgument> results, std::span<std::byte> room)
      : plan_(loop.plan),
        operands_(operands),
        results_(results),
        body_(loop.body, plan_.carries.size(), room.first(body_bytes(loop))) {
    if (loop.condition) {
      condition_.emplace(*loop.condition, plan_.carries.size(), room.subspan(body_bytes(loop)));
    }
  }
  static std::size_t body_bytes(const loop::WrittenLoop& loop) {
    return static_cast<std::size_t>(own_bytes(loop.body, loop.plan.carries.size()));
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
      const std::size_t input = plan_.carries.size() + k;
      body_.read_input(input, row(operands_, plan_.wholes[k], 0, body_.input_bytes(input)));
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
      const std::size_t input = carries + plan_.wholes.size() + k;
      body_.read_input(input, row(operands_, plan_.xs[k].array, plan_.xs[k].rows.row(trip),
                                  body_.input_bytes(input)));
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

std::int64_t loop_room_bytes(const loop::WrittenLoop& loop) {
  const std::size_t carries = loop.plan.carries.size();
  return own_bytes(loop.body, carries) + (loop.condition ? own_bytes(*loop.condition, carries) : 0);
}

void run_loop(const loop::WrittenLoop& loop, std::span<const KernelArgument> operands,
              std::span<const KernelArgument> results, std::span<std::byte> room) {
  check_internal(static_cast<std::int64_t>(room.size()) >= loop_room_bytes(loop),
                 "a written-out loop has no room for its arrays");
  LoopRun(loop, operands, results, room).run();
}

}  // namespace ricci::lir
