#include "schedule/fuse.h"

#include <algorithm>
#include <map>
#include <optional>
#include <queue>

#include "ricci/support/error.h"

#include "schedule/ancestry.h"
#include "schedule/item_rows.h"
#include "schedule/late_items.h"
#include "schedule/lower_for.h"

namespace ricci::schedule {
namespace {

using loop::element_count;
using Boundaries = std::vector<std::int64_t>;
using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Of the kernels that read an array, how many another that reads it is compared with.
constexpr std::size_t MostSiblings = 16;

struct ReductionPlan {
  Reach reach = Reach::Row;
  std::int64_t row = 0;
  Intervals accumulated;
};

void add_interval(Intervals& to, std::int64_t low, std::int64_t high) {
  if (!to.empty() && to.back().second == low) {
    to.back().second = high;
  } else {
    to.emplace_back(low, high);
  }
}

// How a reduction runs with rows of `row` elements; nothing when a row is neither all reduced nor
// all kept.
std::optional<ReductionPlan> with_row(const Item& item, std::int64_t row) {
  ReductionPlan plan{Reach::Row, row, {}};
  bool reduces_inside = false;
  bool keeps_inside = false;
  std::int64_t behind = 1;
  for (std::size_t i = item.dims.size(); i-- > 0;) {
    const std::int64_t with = behind * item.dims[i];
    if (item.dims[i] == 1) continue;
    if (behind < row) (item.reduced[i] ? reduces_inside : keeps_inside) = true;
    if (item.reduced[i] && with > row) add_interval(plan.accumulated, std::max(behind, row), with);
    behind = with;
  }
  if (reduces_inside && keeps_inside) return std::nullopt;
  if (!plan.accumulated.empty()) plan.reach = reduces_inside ? Reach::ElementsAndRows : Reach::Rows;
  if (!reduces_inside && plan.accumulated.empty()) return std::nullopt;
  return plan;
}

Walk walk_of(const Item& item) {
  if (item.kind != Item::Kind::Running) return Walk::Any;
  return item.from_end ? Walk::Backward : Walk::Forward;
}

// Elements behind the axis of a running total.
std::int64_t columns_of(const Item& item) {
  return element_count(std::span(item.dims).subspan(item.axis + 1));
}

Intervals walked_by(const Item& item) {
  const std::int64_t columns = columns_of(item);
  return {{columns, columns * item.dims[item.axis]}};
}

std::int64_t running_row(const Item& item, const KernelShape& shape) {
  const auto row = running_row(item.dims, item.axis, shape);
  check_internal(row.has_value(), "the columns of a running total cannot be shared out");
  return *row;
}

// A row's elements must be columns of one total each.
std::optional<ReductionPlan> running_with_row(const Item& item, std::int64_t row) {
  if (row <= 1 || columns_of(item) % row != 0) return std::nullopt;
  return ReductionPlan{Reach::Row, row, walked_by(item)};
}

bool reduces_rows(const Item& item, Reach reach) {
  return item.kind == Item::Kind::Reduction && reach != Reach::Rows;
}
bool sums_columns(const Item& item, Reach reach) {
  return item.kind == Item::Kind::Reduction && reach == Reach::Rows;
}

class Fuser {
 public:
  Fuser(const Items& items, const FuseOptions& options) : items_(items), options_(options) {}

  Fusion run() {
    fusion_.group_of.resize(items_.items.size());
    fusion_.reach.resize(items_.items.size(), Reach::Row);
    for (std::size_t i = 0; i < items_.items.size(); ++i) place(i);
    if (options_.enabled) {
      merge_siblings();
      move_late_items();
    }
    for (const Replacement& r : options_.replacements) fusion_.replaced.push_back(replace(r));
    return ordered();
  }

 private:
  struct Joined {
    std::int64_t row = 0;
    Boundaries boundaries;
    Intervals accumulated;
    Reach reach = Reach::Row;
    Walk walk = Walk::Any;
    std::int64_t run = 0;
  };

  // What sums down long rows would walk them in pieces of a few elements with what sees them as
  // many short ones, which are quick only on their own: they do not go together.
  [[nodiscard]] bool breaks_up(std::int64_t a, std::int64_t b, const Intervals& accumulated,
                               std::int64_t elements) const {
    const KernelShape& shape = options_.shape;
    return !accumulated.empty() && elements > shape.few_elements &&
           std::min(a, b) < shape.short_row && std::max(a, b) >= shape.shortest_wide_row;
  }

  [[nodiscard]] bool has_room_for_totals(std::int64_t row, bool reduces_rows,
                                         bool sums_columns) const {
    return !reduces_rows || !sums_columns || row <= options_.shape.longest_summed_row;
  }

  void place(std::size_t i) {
    const Item& item = items_.items[i];
    const std::vector<std::size_t> producers = producer_groups(item);
    std::optional<std::size_t> home;
    std::string why;
    if (item.kind != Item::Kind::Call && options_.enabled) {
      for (auto it = producers.rbegin(); it != producers.rend() && !home; ++it) {
        if (const auto state = can_join(*it, i, why)) {
          add_to(*it, i, *state);
          home = *it;
        }
      }
    }
    if (!home) {
      home = new_group(i);
      fusion_.groups[*home].apart_because = why;
    }
    for (const std::size_t g : producers) {
      if (g != *home) ancestry_.add(*home, g);
    }
    if (item.kind == Item::Kind::Call || !options_.enabled) return;
    for (const std::size_t g : producers) {
      if (g != fusion_.group_of[i] && alive(g)) try_merge(fusion_.group_of[i], g);
    }
  }

  static std::int64_t work_of(const Item& item) {
    return item.kind == Item::Kind::Pointwise ? loop::weight(item.instr) : 1;
  }
  [[nodiscard]] bool has_room(std::size_t items, std::int64_t work) const {
    return items <= options_.shape.most_instructions && work <= options_.shape.most_work;
  }
  [[nodiscard]] bool alive(std::size_t g) const { return !fusion_.groups[g].items.empty(); }

  std::vector<std::size_t> producer_groups(const Item& item) const {
    std::vector<std::size_t> groups;
    for (const Seen& seen : item.reads) {
      const auto* s = std::get_if<Stored>(&seen);
      if (s == nullptr) continue;
      for (const std::size_t w : items_.writers[static_cast<std::size_t>(s->storage)]) {
        groups.push_back(fusion_.group_of[w]);
      }
    }
    std::ranges::sort(groups);
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    return groups;
  }

  // What the group becomes when it takes the item in; nothing when they do not walk alike.
  std::optional<Joined> shape_with(const Group& g, const Item& item, std::string& why) const {
    if (g.call) {
      why = "its operand comes from a call";
      return std::nullopt;
    }
    if (!has_room(g.items.size() + 1, g.work + work_of(item))) {
      why = "the kernel would be too large";
      return std::nullopt;
    }
    Joined state{g.row, g.boundaries, g.accumulated, Reach::Row, g.walk, g.run};
    const std::int64_t count = element_count(item.dims);
    const bool running = item.kind == Item::Kind::Running;
    if (item.kind == Item::Kind::Reduction || running) {
      if (count != g.elements) {
        why = "it walks another number of elements";
        return std::nullopt;
      }
      const auto plan =
          running ? running_with_row(item, g.row != 0 ? g.row : running_row(item, options_.shape))
                  : with_row(item, g.row != 0 ? g.row : natural_row(item, options_.shape));
      if (!plan || (!plan->accumulated.empty() && !g.accumulated.empty() &&
                    (plan->accumulated != g.accumulated || walk_of(item) != g.walk))) {
        why = "it reduces along other axes";
        return std::nullopt;
      }
      state.row = plan->row;
      state.reach = plan->reach;
      if (!has_room_for_totals(plan->row, g.reduces_rows || reduces_rows(item, plan->reach),
                               g.sums_columns || sums_columns(item, plan->reach))) {
        why = "its rows are too long to be reduced and summed over at once";
        return std::nullopt;
      }
      if (!plan->accumulated.empty()) state.accumulated = plan->accumulated;
      if (running) state.walk = walk_of(item);
    } else if (count != g.elements && (g.row == 0 || count * g.row != g.elements)) {
      why = "it walks another number of elements";
      return std::nullopt;
    }
    const std::int64_t unit = count == g.elements ? 1 : g.row;
    auto all = joined(g.boundaries, boundaries_of(item.dims, unit));
    if (all && state.row > 1) all = joined(*all, {state.row});
    for (const auto& [low, high] : state.accumulated) {
      if (all) all = joined(*all, {low, high});
    }
    if (!all) {
      why = "its axes straddle those of its operand";
      return std::nullopt;
    }
    state.boundaries = std::move(*all);
    if (count == g.elements) {
      const std::int64_t run = run_of(item);
      if (breaks_up(g.run, run, state.accumulated, g.elements)) {
        why = "its rows are shorter than those that are summed";
        return std::nullopt;
      }
      state.run = std::min(g.run, run);
    }
    return state;
  }

  // Can a read of something the same kernel computes be served where it happens?
  [[nodiscard]] bool read_fits(const Item& reader, const Stored& read, std::size_t writer,
                               std::int64_t elements, std::int64_t row) const {
    const Item& from = items_.items[writer];
    if (!read.bounds.empty()) return false;
    if (from.piece || items_.writers[static_cast<std::size_t>(read.storage)].size() != 1)
      return false;
    if (from.kind == Item::Kind::Reduction && fusion_.reach[writer] != Reach::Row) return false;
    const bool reader_per_row = element_count(reader.dims) != elements;
    const bool writer_per_row =
        from.kind == Item::Kind::Reduction || element_count(from.dims) != elements;
    if (reader_per_row && !writer_per_row) return false;
    if (!reader_per_row && writer_per_row) return loop::is_per_row(read.layout, reader.dims, row);
    return loop::is_contiguous(read.layout, reader.dims);
  }

  [[nodiscard]] bool reads_fit(const Item& reader, std::size_t group, std::int64_t elements,
                               std::int64_t row) const {
    for (std::size_t k = 0; k < reader.reads.size(); ++k) {
      const auto* s = std::get_if<Stored>(&reader.reads[k]);
      if (s == nullptr) continue;
      for (const std::size_t w : items_.writers[static_cast<std::size_t>(s->storage)]) {
        if (fusion_.group_of[w] != group) continue;
        if (k == 0 && reader.indirect) return false;
        if (!read_fits(reader, *s, w, elements, row)) return false;
      }
    }
    return true;
  }

  std::optional<Joined> can_join(std::size_t g, std::size_t i, std::string& why) const {
    const Item& item = items_.items[i];
    const Group& group = fusion_.groups[g];
    auto state = shape_with(group, item, why);
    if (!state) return std::nullopt;
    if (!reads_fit(item, g, group.elements, state->row)) {
      why = "it reads its operand in another order, or before it is complete";
      return std::nullopt;
    }
    for (const std::size_t other : producer_groups(item)) {
      if (other != g && ancestry_.depends(other, g)) {
        why = "another operand waits for that kernel";
        return std::nullopt;
      }
    }
    return state;
  }

  void add_to(std::size_t g, std::size_t i, const Joined& state) {
    Group& group = fusion_.groups[g];
    group.items.push_back(i);
    group.work += work_of(items_.items[i]);
    group.row = state.row;
    group.boundaries = state.boundaries;
    group.accumulated = state.accumulated;
    group.walk = state.walk;
    group.run = state.run;
    note_reach(group, items_.items[i], state.reach);
    fusion_.group_of[i] = g;
    fusion_.reach[i] = state.reach;
  }

  static void note_reach(Group& group, const Item& item, Reach reach) {
    group.reduces_rows = group.reduces_rows || reduces_rows(item, reach);
    group.sums_columns = group.sums_columns || sums_columns(item, reach);
  }

  std::size_t new_group(std::size_t i) {
    const Item& item = items_.items[i];
    Group group;
    group.call = item.kind == Item::Kind::Call;
    group.items = {i};
    group.work = group.call ? 0 : work_of(item);
    if (!group.call) {
      group.elements = element_count(item.dims);
      group.boundaries = boundaries_of(item.dims, 1);
      group.run = run_of(item);
    }
    if (item.kind == Item::Kind::Reduction) {
      const auto plan = with_row(item, natural_row(item, options_.shape));
      check_internal(plan.has_value(), "a reduction does not fit its own rows");
      group.row = plan->row;
      group.accumulated = plan->accumulated;
      fusion_.reach[i] = plan->reach;
      note_reach(group, item, plan->reach);
      group.boundaries = joined(group.boundaries, {plan->row}).value();
    }
    if (item.kind == Item::Kind::Running) {
      group.row = running_row(item, options_.shape);
      group.accumulated = walked_by(item);
      group.walk = walk_of(item);
      group.boundaries = joined(group.boundaries, {group.row}).value();
    }
    fusion_.groups.push_back(std::move(group));
    ancestry_.grow();
    fusion_.group_of[i] = fusion_.groups.size() - 1;
    return fusion_.groups.size() - 1;
  }

  // One kernel from two, when they walk the same elements and neither waits for the other through
  // a third.
  bool try_merge(std::size_t a, std::size_t b) {
    const Group& x = fusion_.groups[a];
    const Group& y = fusion_.groups[b];
    if (x.call || y.call) return false;
    if (!has_room(x.items.size() + y.items.size(), x.work + y.work)) return false;
    const Group& big = x.elements >= y.elements ? x : y;
    const Group& small = x.elements >= y.elements ? y : x;
    std::int64_t row = big.row;
    std::int64_t unit = 1;
    if (big.elements != small.elements) {
      if (small.row != 0 || big.row == 0 || small.elements * big.row != big.elements) return false;
      unit = big.row;
    } else if (row == 0) {
      row = small.row;
    } else if (small.row != 0 && small.row != row) {
      return false;
    }
    if (!big.accumulated.empty() && !small.accumulated.empty() &&
        (big.accumulated != small.accumulated || big.walk != small.walk)) {
      return false;
    }
    const bool reduces_rows = x.reduces_rows || y.reduces_rows;
    const bool sums_columns = x.sums_columns || y.sums_columns;
    if (!has_room_for_totals(row, reduces_rows, sums_columns)) return false;
    Boundaries scaled = small.boundaries;
    for (std::int64_t& v : scaled) v *= unit;
    auto all = joined(big.boundaries, scaled);
    if (all && row > 1) all = joined(*all, {row});
    if (!all || ancestry_.linked_through_others(a, b)) return false;
    // Without rows so far, a reduction of the other group may not suit the new ones; reads may not.
    for (const std::size_t g : {a, b}) {
      for (const std::size_t i : fusion_.groups[g].items) {
        if (!reads_fit(items_.items[i], g == a ? b : a, big.elements, row)) return false;
        if (!reads_fit(items_.items[i], g, big.elements, row)) return false;
      }
    }
    const Intervals accumulated = big.accumulated.empty() ? small.accumulated : big.accumulated;
    const std::int64_t run = unit == 1 ? std::min(big.run, small.run) : big.run;
    if (unit == 1 && breaks_up(big.run, small.run, accumulated, big.elements)) return false;
    const Walk walk = big.walk == Walk::Any ? small.walk : big.walk;
    const std::int64_t elements = big.elements;
    Group& into = fusion_.groups[a];
    Group& gone = fusion_.groups[b];
    into.items.insert(into.items.end(), gone.items.begin(), gone.items.end());
    std::ranges::sort(into.items);
    for (const std::size_t i : gone.items) fusion_.group_of[i] = a;
    gone.items.clear();
    into.work += gone.work;
    into.elements = elements;
    into.row = row;
    into.reduces_rows = reduces_rows;
    into.sums_columns = sums_columns;
    into.boundaries = std::move(*all);
    into.accumulated = accumulated;
    into.walk = walk;
    into.run = run;
    ancestry_.merge(a, b);
    return true;
  }

  struct Read {
    std::size_t item = 0;
    const loop::Layout* layout = nullptr;
  };

  // Do two items that go through all of an array go through it in one order?
  [[nodiscard]] bool in_one_order(const Read& a, const Read& b) const {
    const StaticDims& x = items_.items[a.item].dims;
    const StaticDims& y = items_.items[b.item].dims;
    if (x == y) return a.layout->strides == b.layout->strides;
    return loop::is_contiguous(*a.layout, x) && loop::is_contiguous(*b.layout, y);
  }

  // Kernels that read the same array in the same order read it once.
  void merge_siblings() {
    std::vector<std::vector<Read>> readers(items_.storages.size());
    for (std::size_t i = 0; i < items_.items.size(); ++i) {
      if (items_.items[i].kind == Item::Kind::Call) continue;
      for (const Seen& seen : items_.items[i].reads) {
        const auto* s = std::get_if<Stored>(&seen);
        if (s == nullptr) continue;
        const Storage& storage = items_.storages[static_cast<std::size_t>(s->storage)];
        if (storage.elements >= 256 && storage.elements == element_count(items_.items[i].dims)) {
          readers[static_cast<std::size_t>(s->storage)].push_back({i, &s->layout});
        }
      }
    }
    for (const std::vector<Read>& list : readers) {
      for (std::size_t k = 1; k < list.size(); ++k) {
        const std::size_t a = fusion_.group_of[list[k].item];
        for (std::size_t j = k - std::min(k, MostSiblings); j < k; ++j) {
          const std::size_t b = fusion_.group_of[list[j].item];
          if (a == b || !alive(a) || !alive(b) || !in_one_order(list[j], list[k])) continue;
          if (try_merge(a, b)) break;
        }
      }
    }
  }

  // To the kernel that reads them what another computes for it of arrays that are there anyway: all
  // of it together, or one by one.
  void move_late_items() {
    const LateItems late(items_, fusion_.group_of);
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> wanted;
    for (std::size_t i = 0; i < items_.items.size(); ++i) {
      const std::size_t from = fusion_.group_of[i];
      if (element_count(items_.items[i].dims) != fusion_.groups[from].elements) continue;
      if (const auto to = late.only_reader(i)) wanted[{from, *to}].push_back(i);
    }
    for (auto& [groups, items] : wanted) {
      // Some may have gone since.
      std::erase_if(items, [&](std::size_t i) {
        return fusion_.group_of[i] != groups.first || late.only_reader(i) != groups.second;
      });
      if (move(late.chain(items), groups.first, groups.second)) continue;
      for (auto i = items.rbegin(); items.size() > 1 && i != items.rend(); ++i) {
        move(late.chain({*i}), groups.first, groups.second);
      }
    }
  }

  // All of them or none: each must walk as its new group does, whose items must find it where they
  // read it.
  bool move(const std::vector<std::size_t>& chain, std::size_t from, std::size_t to) {
    if (chain.empty() || chain.size() == fusion_.groups[from].items.size()) return false;
    const Group before = fusion_.groups[to];
    for (const std::size_t i : chain) fusion_.group_of[i] = to;
    bool fits = true;
    for (const std::size_t i : chain) {
      std::string why;
      const auto state = shape_with(fusion_.groups[to], items_.items[i], why);
      fits = fits && state && state->row == before.row &&
             items_.items[i].kind == Item::Kind::Pointwise;
      if (!fits) break;
      add_to(to, i, *state);
    }
    Group& group = fusion_.groups[to];
    for (const std::size_t i : group.items) {
      fits = fits && reads_fit(items_.items[i], to, group.elements, group.row);
    }
    if (!fits) {
      fusion_.groups[to] = before;
      for (const std::size_t i : chain) fusion_.group_of[i] = from;
      return false;
    }
    std::ranges::sort(group.items);
    Group& left = fusion_.groups[from];
    for (const std::size_t i : chain) {
      std::erase(left.items, i);
      left.work -= work_of(items_.items[i]);
    }
    return true;
  }

  // Makes the group that fills an output wait for all others that read what it replaces.
  bool replace(const Replacement& r) {
    const auto& writers = items_.writers[static_cast<std::size_t>(r.output)];
    if (writers.size() != 1 || items_.items[writers[0]].kind == Item::Kind::Call) return false;
    const std::size_t home = fusion_.group_of[writers[0]];
    std::vector<std::size_t> readers;
    for (std::size_t i = 0; i < items_.items.size(); ++i) {
      const std::size_t g = fusion_.group_of[i];
      if (g == home) continue;
      const bool reads = std::ranges::any_of(items_.items[i].reads, [&](const Seen& seen) {
        const auto* s = std::get_if<Stored>(&seen);
        return s != nullptr && s->storage == r.input;
      });
      if (!reads) continue;
      if (ancestry_.depends(g, home)) return false;
      readers.push_back(g);
    }
    for (const std::size_t g : readers) {
      ancestry_.add(home, g);
      waits_for_.emplace_back(home, g);
    }
    return true;
  }

  // Groups in an order in which they can run, as near to the graph's as may be.
  Fusion ordered() {
    const std::size_t n = fusion_.groups.size();
    std::vector<std::vector<std::size_t>> after(n);
    std::vector<std::size_t> waits(n, 0);
    for (std::size_t g = 0; g < n; ++g) {
      std::vector<std::size_t> before;
      for (const std::size_t i : fusion_.groups[g].items) {
        for (const std::size_t p : producer_groups(items_.items[i])) {
          if (p != g) before.push_back(p);
        }
      }
      for (const auto& [later, earlier] : waits_for_) {
        if (later == g) before.push_back(earlier);
      }
      std::ranges::sort(before);
      before.erase(std::unique(before.begin(), before.end()), before.end());
      waits[g] = before.size();
      for (const std::size_t p : before) after[p].push_back(g);
    }
    // Small ones that wait for nobody come first: then nobody who could follow a call at once waits
    // for them, and they can run side by side.
    std::vector<bool> first(n);
    for (std::size_t g = 0; g < n; ++g) {
      const Group& group = fusion_.groups[g];
      first[g] = waits[g] == 0 && !group.call && group.elements <= options_.shape.small_group;
    }
    const auto later = [&](std::size_t a, std::size_t b) {
      if (first[a] != first[b]) return bool{first[b]};
      return fusion_.groups[a].items.back() > fusion_.groups[b].items.back();
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> ready(later);
    for (std::size_t g = 0; g < n; ++g) {
      if (alive(g) && waits[g] == 0) ready.push(g);
    }
    Fusion result;
    result.replaced = std::move(fusion_.replaced);
    result.reach = std::move(fusion_.reach);
    result.group_of.resize(items_.items.size());
    std::size_t placed = 0;
    while (!ready.empty()) {
      const std::size_t g = ready.top();
      ready.pop();
      for (const std::size_t i : fusion_.groups[g].items) result.group_of[i] = result.groups.size();
      placed += fusion_.groups[g].items.size();
      result.groups.push_back(std::move(fusion_.groups[g]));
      for (const std::size_t next : after[g]) {
        if (--waits[next] == 0) ready.push(next);
      }
    }
    check_internal(placed == items_.items.size(), "kernels wait for each other in a circle");
    return result;
  }

  const Items& items_;
  const FuseOptions& options_;
  Fusion fusion_;
  Ancestry ancestry_;
  std::vector<std::pair<std::size_t, std::size_t>> waits_for_;
};

}  // namespace

Fusion fuse(const Items& items, const FuseOptions& options) { return Fuser(items, options).run(); }

bool runs_per_row(const Group& group, const Item& item) {
  return item.kind == Item::Kind::Pointwise && element_count(item.dims) != group.elements;
}

}  // namespace ricci::schedule
