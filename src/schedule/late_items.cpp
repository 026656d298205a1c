#include "schedule/late_items.h"

#include <algorithm>
#include <set>

namespace ricci::schedule {
namespace {

constexpr std::int64_t SmallerBy = 8;  // times: then it costs nothing to keep

std::size_t place_of_storage(StorageId s) { return static_cast<std::size_t>(s); }

}  // namespace

LateItems::LateItems(const Items& items, const std::vector<std::size_t>& group_of)
    : items_(items), group_of_(group_of), readers_(items.storages.size()) {
  for (std::size_t i = 0; i < items.items.size(); ++i) {
    for (const Seen& seen : items.items[i].reads) {
      const auto* s = std::get_if<Stored>(&seen);
      if (s != nullptr) readers_[place_of_storage(s->storage)].push_back(i);
    }
  }
}

// Is it an instruction for each element, whose result it alone fills and no caller wants?
bool LateItems::is_own(std::size_t i) const {
  const Item& it = item(i);
  if (it.kind != Item::Kind::Pointwise || it.piece || it.indirect || it.writes.size() != 1) {
    return false;
  }
  const StorageId s = it.writes[0];
  return s >= 0 && items_.storages[place_of_storage(s)].role == Storage::Role::Temporary &&
         items_.writers[place_of_storage(s)].size() == 1;
}

struct LateItems::Search {
  std::size_t from = 0;  // the group it is taken from
  std::size_t to = 0;
  std::int64_t elements = 0;
  std::set<std::size_t> items;
  std::set<StorageId> arrays;  // that the other group has not read so far
};

bool LateItems::collect(std::size_t i, Search& search) const {
  if (!search.items.insert(i).second) return true;
  for (const Seen& seen : item(i).reads) {
    const auto* stored = std::get_if<Stored>(&seen);
    if (stored == nullptr) continue;
    const StorageId s = stored->storage;
    const Storage& storage = items_.storages[place_of_storage(s)];
    if (storage.elements * SmallerBy <= search.elements) continue;
    const auto reads_it = [&](std::size_t r) { return group_of_[r] == search.to; };
    const std::vector<std::size_t>& writers = items_.writers[place_of_storage(s)];
    const bool in_memory =
        storage.role != Storage::Role::Temporary || writers.empty() ||
        std::ranges::any_of(readers(s),
                            [&](std::size_t r) { return group_of_[r] != group_of_[writers[0]]; }) ||
        item(writers[0]).kind == Item::Kind::Call;
    if (in_memory) {
      if (std::ranges::none_of(readers(s), reads_it)) search.arrays.insert(s);
      continue;
    }
    const auto is_inside = [&](std::size_t r) { return search.items.contains(r); };
    const bool goes_along = group_of_[writers[0]] == search.from && is_own(writers[0]) &&
                            loop::element_count(item(writers[0]).dims) == search.elements &&
                            std::ranges::all_of(readers(s), is_inside);
    if (!goes_along || !collect(writers[0], search)) return false;
  }
  return true;
}

std::optional<std::size_t> LateItems::only_reader(std::size_t i) const {
  if (!is_own(i)) return std::nullopt;
  const std::vector<std::size_t>& all = readers(item(i).writes[0]);
  if (all.empty() || item(all[0]).kind == Item::Kind::Call) return std::nullopt;
  const std::size_t group = group_of_[all[0]];
  const auto is_there = [&](std::size_t r) { return group_of_[r] == group; };
  if (group == group_of_[i] || !std::ranges::all_of(all, is_there)) return std::nullopt;
  return group;
}

std::vector<std::size_t> LateItems::chain(const std::vector<std::size_t>& wanted) const {
  const auto bytes = [&](StorageId s) {
    const Storage& storage = items_.storages[place_of_storage(s)];
    return storage.elements * size_of(storage.dtype);
  };
  Search search{.items = {}, .arrays = {}};
  std::int64_t stored = 0;
  for (const std::size_t i : wanted) {
    const std::optional<std::size_t> reader = only_reader(i);
    if (!reader) return {};
    search.from = group_of_[i];
    search.to = *reader;
    search.elements = loop::element_count(item(i).dims);
    stored += bytes(item(i).writes[0]);
    if (!collect(i, search)) return {};
  }
  std::int64_t anew = 0;
  for (const StorageId s : search.arrays) anew += bytes(s);
  if (anew >= stored) return {};
  return {search.items.begin(), search.items.end()};
}

}  // namespace ricci::schedule
