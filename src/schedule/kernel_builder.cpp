#include "schedule/kernel_builder.h"

#include <algorithm>
#include <map>
#include <set>

#include "ricci/support/error.h"

#include "schedule/kernel_axes.h"
#include "schedule/sums_over_rows.h"
#include "type/small_dtype.h"

namespace ricci::schedule {
namespace {

using loop::Access;
using loop::Code;
using loop::Instr;
using loop::Kernel;
using loop::Reg;
using loop::Stage;

bool is_cheap(const Instr& i) {
  switch (i.code) {
    case Code::Copy:
    case Code::Cast:
    case Code::Compare:
    case Code::Select: return true;
    case Code::Binary:
    case Code::Unary: return loop::weight(i) == 1 && !is_small_float(i.dtype);  // rounding is work
    default: return false;
  }
}

loop::Number number_of(const Tensor& value) {
  if (is_float(value.dtype())) return value.item();
  if (is_complex(value.dtype())) return value.numbers<std::complex<double>>()[0];
  return value.numbers<std::int64_t>()[0];
}

// Loads that are alike.
struct LoadKey {
  bool each = false;
  std::int32_t argument = -1;
  std::int64_t offset = 0;
  std::vector<std::int64_t> strides;
  std::vector<loop::Guard> guards;
  std::vector<std::byte> fill;
  auto operator<=>(const LoadKey&) const = default;
};

class Builder {
 public:
  Builder(const Items& items, const Fusion& fusion, std::size_t group,
          const std::vector<bool>& used_outside, const Target& target)
      : shape_(target.kernel_shape()),
        costs_(target.costs()),
        items_(items),
        fusion_(fusion),
        group_(fusion.groups[group]),
        index_(group),
        used_outside_(used_outside),
        axes_(axes_of(group_)) {}

  BuiltKernel run(std::string name) {
    kernel().name = std::move(name);
    kernel().extents = axes_.extents;
    kernel().kept = axes_.kept;
    kernel().outer = axes_.outer;
    if (group_.row <= 1) kernel().kept = kernel().outer = axes_.extents.size();
    assign_stages();
    emit_all();
    finish_stages();
    if (group_.walk == Walk::Backward) walk_backwards();
    loop::coalesce(kernel());
    if (group_.row <= 1) choose_row();
    if (shape_.rows_wait_in_outputs) share_row_buffers();
    loop::sum_up(kernel());
    kernel().chunks = chunks_of(kernel(), shape_);
    finish_accumulators();
    loop::verify(kernel());
    return std::move(built_);
  }

 private:
  Kernel& kernel() { return built_.kernel; }
  const Item& item(std::size_t i) const { return items_.items[i]; }

  [[nodiscard]] bool per_row(std::size_t i) const { return runs_per_row(group_, item(i)); }

  // The item of this group that fills a storage, if one does.
  [[nodiscard]] std::optional<std::size_t> local_writer(StorageId s) const {
    for (const std::size_t w : items_.writers[static_cast<std::size_t>(s)]) {
      if (fusion_.group_of[w] == index_) return w;
    }
    return std::nullopt;
  }

  template <class F>
  void for_local_reads(std::size_t i, F&& f) const {
    for (const Seen& seen : item(i).reads) {
      if (const auto* s = std::get_if<Stored>(&seen)) {
        if (const auto w = local_writer(s->storage)) f(*w);
      }
    }
  }

  // Values per element run as early as they can and then as late as their readers let them; what a
  // row reduction gives is there from the next stage on.
  void assign_stages() {
    for (const std::size_t i : group_.items) {
      int earliest = 0;
      for_local_reads(i, [&](std::size_t w) { earliest = std::max(earliest, available_[w]); });
      stage_[i] = earliest;
      const bool row_result = item(i).kind == Item::Kind::Reduction;
      available_[i] = row_result ? earliest + 1 : earliest;
      last_stage_ = std::max(last_stage_, available_[i]);
    }
    std::map<std::size_t, int> latest;
    for (auto it = group_.items.rbegin(); it != group_.items.rend(); ++it) {
      const std::size_t i = *it;
      if (item(i).kind == Item::Kind::Pointwise && !per_row(i) && latest.contains(i)) {
        stage_[i] = std::max(stage_[i], latest[i]);
      }
      for_local_reads(i, [&](std::size_t w) {
        const auto found = latest.find(w);
        latest[w] = found == latest.end() ? stage_[i] : std::min(found->second, stage_[i]);
      });
    }
    elements_.resize(static_cast<std::size_t>(last_stage_) + 1);
    once_.resize(static_cast<std::size_t>(last_stage_) + 1);
    for (Stage& s : once_) s.per_element = false;
    loads_.resize(elements_.size());
    values_.resize(elements_.size());
  }

  void emit_all() {
    for (const std::size_t i : group_.items) {
      const Item& it = item(i);
      if (it.kind == Item::Kind::Reduction) {
        emit_reduction(i);
      } else if (per_row(i)) {
        row_value_[i] = emit(i, stage_[i], false);
        store(i, row_value_[i], stage_[i], false);
      } else {
        const Reg r = element_value(i, stage_[i]);
        store(i, r, stage_[i], true);
      }
    }
  }

  void emit_reduction(std::size_t i) {
    const Item& it = item(i);
    const int stage = stage_[i];
    const Reg value = read(it, 0, stage, true);
    const Reach reach = fusion_.reach[i];
    Stage& s = elements_[static_cast<std::size_t>(stage)];
    if (reach == Reach::Rows) {
      s.accumulators.push_back(accumulator(i, value, true));
      return;
    }
    // What is added up over rows too is rounded when all of it is there.
    const DType dtype = reach == Reach::ElementsAndRows ? widened(it.instr.dtype) : it.instr.dtype;
    const Reg r = reduced({it.reduce, dtype, value}, stage);
    if (reach == Reach::ElementsAndRows) {
      once_[static_cast<std::size_t>(stage) + 1].accumulators.push_back(accumulator(i, r, false));
      return;
    }
    row_value_[i] = r;
    store(i, r, stage + 1, false);
  }

  // Nodes that reduce the same value, such as a softmax and its gradient, share one reduction.
  Reg reduced(const loop::Reduction& red, int stage) {
    Stage& s = elements_[static_cast<std::size_t>(stage)];
    for (const std::int32_t m : s.reductions) {
      const loop::Reduction& known = kernel().reductions[static_cast<std::size_t>(m)];
      if (known.kind != red.kind || known.dtype != red.dtype || known.value != red.value) continue;
      const auto r = std::ranges::find_if(kernel().code, [&](const Instr& i) {
        return i.code == Code::Reduced && i.reduction == m;
      });
      return static_cast<Reg>(r - kernel().code.begin());
    }
    const auto m = static_cast<std::int32_t>(kernel().reductions.size());
    kernel().reductions.push_back(red);
    s.reductions.push_back(m);
    return add({.code = Code::Reduced, .dtype = red.dtype, .reduction = m}, stage + 1, false);
  }

  std::int32_t accumulator(std::size_t i, Reg value, bool per_element) {
    kernel().accumulators.push_back(
        {item(i).reduce, item(i).instr.dtype, value, per_element, -1, -1});
    accumulated_items_.push_back(i);
    return static_cast<std::int32_t>(kernel().accumulators.size() - 1);
  }

  // An element's value in a stage: computed there, kept from an earlier one, or computed again.
  Reg element_value(std::size_t i, int stage) {
    auto& known = values_[static_cast<std::size_t>(stage)];
    if (const auto found = known.find(i); found != known.end()) return found->second;
    Reg r = loop::NoReg;
    if (stage == stage_[i] || can_repeat(i) || is_made_again(i)) {
      r = emit(i, stage, true);
    } else {
      r = kept(i, stage);
    }
    known[i] = r;
    return r;
  }

  // One cheap instruction on what any stage can read is cheaper than keeping its result.
  [[nodiscard]] bool can_repeat(std::size_t i) const {
    if (!is_cheap(item(i).instr)) return false;
    bool simple = true;
    for_local_reads(i, [&](std::size_t w) {
      simple = simple && (per_row(w) || item(w).kind == Item::Kind::Reduction);
    });
    return simple;
  }

  [[nodiscard]] std::int64_t row_bytes(std::size_t i) const {
    return group_.row * size_of(item(i).instr.dtype);
  }

  // A value for which there is no row buffer would be written to memory and read again: that is
  // worse than some work on what is read, where that takes no more bytes. One that takes more than
  // half the room leaves it to what it is made of, where that takes less.
  [[nodiscard]] bool is_made_again(std::size_t i) {
    if (const auto known = made_again_.find(i); known != made_again_.end()) return known->second;
    const std::int64_t size = size_of(item(i).instr.dtype);
    const bool large = row_bytes(i) > shape_.largest_row_buffer / 2;
    Making making;
    const bool again = large && !used_outside_[static_cast<std::size_t>(item(i).writes[0])] &&
                       add_making(i, making) &&
                       making.bytes <= (row_bytes(i) > shape_.largest_row_buffer ? 2 : 1) * size;
    return made_again_[i] = again;
  }

  struct Making {
    std::int64_t work = 0;   ///< of an element, in units of simple instructions
    std::int64_t bytes = 0;  ///< of what is there in every stage
  };
  bool add_making(std::size_t i, Making& making) {
    const Item& it = item(i);
    if (it.kind != Item::Kind::Pointwise || it.indirect || it.instr.code == Code::Random) {
      return false;
    }
    making.work += loop::weight(it.instr);
    return making.work <= costs_.row_work && std::ranges::all_of(it.reads, [&](const Seen& seen) {
             const auto* stored = std::get_if<Stored>(&seen);
             if (stored == nullptr) return true;
             const auto w = local_writer(stored->storage);
             if (w && (per_row(*w) || item(*w).kind == Item::Kind::Reduction)) return true;
             const bool waits = w && (used_outside_[static_cast<std::size_t>(stored->storage)] ||
                                      row_bytes(*w) <= shape_.largest_row_buffer);
             if (w && (!waits || can_repeat(*w) || is_made_again(*w)))
               return add_making(*w, making);
             making.bytes +=
                 size_of(items_.storages[static_cast<std::size_t>(stored->storage)].dtype);
             return true;
           });
  }

  // From the array it is stored in anyway, or from a row buffer.
  Reg kept(std::size_t i, int stage) {
    Access place;
    if (used_outside_[static_cast<std::size_t>(item(i).writes[0])]) {
      place = storage_access(i);
    } else if (row_bytes(i) > shape_.largest_row_buffer) {
      place = in_memory(i);
    } else {
      place = row_buffer(i);
    }
    return add({.code = Code::Load, .dtype = item(i).instr.dtype, .access = std::move(place)},
               stage, true);
  }

  Access row_buffer(std::size_t i) {
    Access place;
    place.strides.assign(axes_.extents.size(), 0);
    for (std::size_t a = axes_.outer; a < axes_.extents.size(); ++a)
      place.strides[a] = axes_.behind[a];
    const auto found = row_buffers_.find(i);
    if (found != row_buffers_.end()) {
      place.argument = found->second;
      return place;
    }
    place.argument = add_argument({item(i).instr.dtype, loop::ArgumentRole::Local, group_.row}, -1);
    row_buffers_[i] = place.argument;
    elements_[static_cast<std::size_t>(stage_[i])].stores.push_back(
        {values_[static_cast<std::size_t>(stage_[i])].at(i), place});
    return place;
  }

  // The storage it has anyway, which otherwise nobody would fill.
  Access in_memory(std::size_t i) {
    Access place = storage_access(i);
    if (in_memory_.insert(i).second) {
      elements_[static_cast<std::size_t>(stage_[i])].stores.push_back(
          {values_[static_cast<std::size_t>(stage_[i])].at(i), place});
    }
    return place;
  }

  Reg emit_running(std::size_t i, int stage) {
    const Item& it = item(i);
    const DType dtype = it.instr.dtype;
    const DType held = running_in(it.reduce, dtype);
    const auto as = [&](Reg r, DType to) {
      if (held == dtype) return r;
      return add({.code = Code::Cast, .dtype = to, .in = {r, loop::NoReg, loop::NoReg}}, stage,
                 true);
    };
    Instr instr{.code = Code::Running, .dtype = held};
    instr.in[0] = as(read(it, 0, stage, true), held);
    instr.reduction = static_cast<std::int32_t>(kernel().accumulators.size());
    loop::Accumulator acc{it.reduce, held, instr.in[0], true, -1, -1};
    acc.running = true;
    acc.exclusive = it.exclusive;
    kernel().accumulators.push_back(acc);
    accumulated_items_.push_back(i);
    return as(add(std::move(instr), stage, true), dtype);
  }

  // Rows that are accumulated over, from the last to the first.
  void walk_backwards() {
    const auto flip = [&](std::int64_t& offset, std::vector<std::int64_t>& strides) {
      for (std::size_t a = kernel().kept; a < kernel().outer; ++a) {
        offset += strides[a] * (kernel().extents[a] - 1);
        strides[a] = -strides[a];
      }
    };
    loop::for_each_access(kernel(), [&](Access& access) {
      flip(access.offset, access.strides);
      for (loop::Guard& g : access.guards) flip(g.offset, g.strides);
    });
  }

  Reg emit(std::size_t i, int stage, bool per_element) {
    const Item& it = item(i);
    if (it.kind == Item::Kind::Running) return emit_running(i, stage);
    Instr instr = it.instr;
    if (it.indirect) {
      const Reg index = read(it, it.indirect->by, stage, per_element);
      instr.access = access(std::get<Stored>(it.reads[0]), it.dims, unit(it));
      instr.access.terms = {{index, it.indirect_stride, it.indirect->limit, it.indirect->clamp}};
    } else {
      for (std::size_t k = 0; k < it.reads.size(); ++k)
        instr.in[k] = read(it, k, stage, per_element);
    }
    if (instr.code == Code::Copy) return instr.in[0];
    if (instr.code == Code::Random) {
      instr.access.strides = spread({0, it.instr.access.strides}, it.dims, axes_, unit(it));
    }
    return add(std::move(instr), stage, per_element);
  }

  [[nodiscard]] std::int64_t unit(const Item& it) const {
    return loop::element_count(it.dims) == group_.elements ? 1 : group_.row;
  }

  Reg read(const Item& it, std::size_t k, int stage, bool per_element) {
    const Seen& seen = it.reads[k];
    if (const auto* splat = std::get_if<Splat>(&seen)) return constant(splat->value);
    if (const auto* seq = std::get_if<Sequence>(&seen)) {
      Instr instr{.code = Code::Index, .dtype = seq->dtype};
      instr.access.offset = seq->layout.offset;
      instr.access.strides = spread(seq->layout, it.dims, axes_, unit(it));
      return add(std::move(instr), stage, per_element);
    }
    const auto& stored = std::get<Stored>(seen);
    if (const auto w = local_writer(stored.storage)) {
      const auto row = row_value_.find(*w);
      return row != row_value_.end() ? row->second : element_value(*w, stage);
    }
    return load(stored, it, stage, per_element);
  }

  // One load for each place and stage; what does not move along the row is loaded once a row.
  Reg load(const Stored& stored, const Item& it, int stage, bool per_element) {
    Instr instr{.code = Code::Load,
                .dtype = items_.storages[static_cast<std::size_t>(stored.storage)].dtype};
    instr.access = access(stored, it.dims, unit(it));
    const Access& place = instr.access;
    bool moves = moves_along_row(place.strides);
    for (const loop::Guard& g : place.guards) moves = moves || moves_along_row(g.strides);
    const bool each = per_element && (moves || group_.row <= 1);
    LoadKey key{each, place.argument, place.offset, place.strides, place.guards, {}};
    if (!stored.bounds.empty()) {
      instr.number = number_of(stored.fill);
      const std::span<const std::byte> fill = stored.fill.bytes();
      key.fill.assign(fill.begin(), fill.end());
    }
    auto& known = loads_[static_cast<std::size_t>(each ? stage : 0)];
    if (const auto found = known.find(key); found != known.end()) return found->second;
    const Reg r = add(std::move(instr), each ? stage : 0, each);
    known[std::move(key)] = r;
    return r;
  }

  [[nodiscard]] bool moves_along_row(const std::vector<std::int64_t>& strides) const {
    const std::size_t from = group_.row <= 1 ? 0 : axes_.outer;
    return std::ranges::any_of(strides.begin() + static_cast<std::ptrdiff_t>(from), strides.end(),
                               [](std::int64_t s) { return s != 0; });
  }

  Reg constant(const Tensor& value) {
    return add({.code = Code::Constant, .dtype = value.dtype(), .number = number_of(value)}, 0,
               false);
  }

  Access access(const Stored& stored, const StaticDims& dims, std::int64_t each) {
    Access a;
    a.argument = argument(stored.storage, loop::ArgumentRole::In);
    a.offset = stored.layout.offset;
    a.strides = spread(stored.layout, dims, axes_, each);
    for (const loop::Bound& b : stored.bounds) {
      a.guards.push_back({b.place.offset, spread(b.place, dims, axes_, each), b.limit});
    }
    return a;
  }

  Access storage_access(std::size_t i) {
    const Item& it = item(i);
    StaticDims dims;
    if (it.kind == Item::Kind::Reduction) {
      for (std::size_t d = 0; d < it.dims.size(); ++d) {
        if (!it.reduced[d]) dims.push_back(it.dims[d]);
      }
    } else {
      dims = it.dims;
    }
    const Stored place{it.writes[0], it.piece ? *it.piece : loop::contiguous(dims)};
    Access a;
    a.argument = argument(place.storage, loop::ArgumentRole::Out);
    a.offset = place.layout.offset;
    a.strides =
        spread(place.layout, dims, axes_, it.kind == Item::Kind::Reduction ? group_.row : unit(it));
    return a;
  }

  void store(std::size_t i, Reg value, int stage, bool per_element) {
    if (!used_outside_[static_cast<std::size_t>(item(i).writes[0])]) return;
    Stage& s = (per_element ? elements_ : once_)[static_cast<std::size_t>(stage)];
    s.stores.push_back({value, storage_access(i)});
  }

  std::int32_t argument(StorageId s, loop::ArgumentRole role) {
    const auto found = arguments_.find(s);
    if (found != arguments_.end()) {
      if (role == loop::ArgumentRole::Out) {
        kernel().arguments[static_cast<std::size_t>(found->second)].role = role;
      }
      return found->second;
    }
    const std::int32_t a =
        add_argument({items_.storages[static_cast<std::size_t>(s)].dtype, role, 0}, s);
    arguments_[s] = a;
    return a;
  }

  std::int32_t add_argument(loop::Argument argument, StorageId s) {
    kernel().arguments.push_back(argument);
    built_.storages.push_back(s);
    return static_cast<std::int32_t>(kernel().arguments.size() - 1);
  }

  Reg add(Instr instr, int stage, bool per_element) {
    instr.per_element = per_element;
    kernel().code.push_back(std::move(instr));
    const Reg r = static_cast<Reg>(kernel().code.size() - 1);
    (per_element ? elements_ : once_)[static_cast<std::size_t>(stage)].code.push_back(r);
    return r;
  }

  void finish_stages() {
    for (std::size_t s = 0; s < elements_.size(); ++s) {
      for (Stage* stage : {&once_[s], &elements_[s]}) {
        const bool empty = stage->code.empty() && stage->stores.empty() &&
                           stage->reductions.empty() && stage->accumulators.empty();
        if (!empty) kernel().stages.push_back(std::move(*stage));
      }
    }
  }

  void share_row_buffers() {
    std::vector<StorageId> storages;
    arguments_.clear();
    for (const std::size_t a : loop::share_row_buffers(kernel())) {
      const StorageId s = built_.storages[a];
      if (s >= 0) arguments_[s] = static_cast<std::int32_t>(storages.size());
      storages.push_back(s);
    }
    built_.storages = std::move(storages);
  }

  // Without reductions any axis can be the row: the last one, which neighbours in memory share.
  void choose_row() {
    if (kernel().extents.empty()) {
      kernel().extents = {1};
      loop::for_each_strides(kernel(), [](auto& strides) { strides = {0}; });
    }
    kernel().outer = kernel().kept = kernel().extents.size() - 1;
  }

  // Where every chunk is a row of elements that are stored, what was stored is combined.
  [[nodiscard]] bool combine_stored() {
    Kernel& k = kernel();
    const std::vector<std::int32_t> stored = stored_rows(k);
    for (std::size_t m = 0; m < stored.size(); ++m) {
      const loop::Accumulator& acc = k.accumulators[m];
      built_.partials.push_back({static_cast<std::size_t>(stored[m]), acc.kind, widened(acc.dtype),
                                 acc.dtype, k.kept_rows(), k.chunks, k.row_elements(),
                                 item(accumulated_items_[m]).writes[0]});
    }
    if (!stored.empty()) accumulate_nothing(k);
    return !stored.empty();
  }

  void finish_accumulators() {
    if (combine_stored()) return;
    Kernel& k = kernel();
    for (std::size_t m = 0; m < k.accumulators.size(); ++m) {
      loop::Accumulator& acc = k.accumulators[m];
      const std::size_t i = accumulated_items_[m];
      const std::int64_t length = acc.per_element ? k.row_elements() : 1;
      // Smaller floats are summed in f32 and rounded once.
      const DType wide = widened(acc.dtype);
      acc.local =
          add_argument({wide, loop::ArgumentRole::Local, local_elements(k, acc, length)}, -1);
      if (acc.running) continue;
      const StorageId result = item(i).writes[0];
      if (k.chunks == 1) {
        acc.argument = argument(result, loop::ArgumentRole::Out);
        continue;
      }
      acc.argument = add_argument({wide, loop::ArgumentRole::Out, 0}, -1);
      built_.partials.push_back({static_cast<std::size_t>(acc.argument), acc.kind, wide, acc.dtype,
                                 k.kept_rows(), k.chunks, length, result});
    }
  }

  const KernelShape& shape_;
  const Costs& costs_;
  const Items& items_;
  const Fusion& fusion_;
  const Group& group_;
  std::size_t index_;
  const std::vector<bool>& used_outside_;
  Axes axes_;
  BuiltKernel built_;
  std::map<std::size_t, int> stage_;
  std::map<std::size_t, int> available_;
  int last_stage_ = 0;
  std::vector<Stage> elements_;
  std::vector<Stage> once_;
  std::map<std::size_t, Reg> row_value_;
  std::vector<std::map<std::size_t, Reg>> values_;  ///< per stage: values per element
  std::vector<std::map<LoadKey, Reg>> loads_;
  std::map<StorageId, std::int32_t> arguments_;
  std::map<std::size_t, std::int32_t> row_buffers_;
  std::set<std::size_t> in_memory_;
  std::map<std::size_t, bool> made_again_;
  std::vector<std::size_t> accumulated_items_;
};

}  // namespace

BuiltKernel build_kernel(const Items& items, const Fusion& fusion, std::size_t group,
                         const std::vector<bool>& used_outside, std::string name,
                         const Target& target) {
  return Builder(items, fusion, group, used_outside, target).run(std::move(name));
}

loop::Kernel combining_kernel(const BuiltKernel::Partial& p, std::string name) {
  Kernel k;
  k.name = std::move(name);
  k.extents = {p.kept, p.chunks, p.length};
  k.kept = 1;
  k.outer = 2;
  k.arguments = {{p.dtype, loop::ArgumentRole::In, 0},
                 {p.result_dtype, loop::ArgumentRole::Out, 0},
                 {p.dtype, loop::ArgumentRole::Local, p.length}};
  Instr load{.code = Code::Load, .dtype = p.dtype};
  load.per_element = true;
  load.access = {0, 0, {p.chunks * p.length, p.length, 1}, {}};
  k.code = {load};
  k.accumulators = {{p.kind, p.dtype, 0, true, 1, 2}};
  Stage s;
  s.code = {0};
  s.accumulators = {0};
  k.stages = {s};
  loop::sum_up(k);
  loop::verify(k);
  return k;
}

}  // namespace ricci::schedule
