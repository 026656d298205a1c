// Items that a kernel computes for another one alone, of arrays that are in memory anyway: the
// other is better off computing them itself.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "schedule/items.h"

namespace ricci::schedule {

class LateItems {
 public:
  /// `group_of`: the group of every item, as it is now.
  LateItems(const Items& items, const std::vector<std::size_t>& group_of);

  /// The group that reads an item and that nobody else does, where it is another than the item's.
  [[nodiscard]] std::optional<std::size_t> only_reader(std::size_t i) const;
  /// Items of one group that one other reads, with all that is computed for them alone, ascending;
  /// nothing where no less is read for them anew than is stored now.
  [[nodiscard]] std::vector<std::size_t> chain(const std::vector<std::size_t>& wanted) const;

 private:
  struct Search;
  [[nodiscard]] const Item& item(std::size_t i) const { return items_.items[i]; }
  [[nodiscard]] const std::vector<std::size_t>& readers(StorageId s) const {
    return readers_[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] bool is_own(std::size_t i) const;
  [[nodiscard]] bool collect(std::size_t i, Search& search) const;

  const Items& items_;
  const std::vector<std::size_t>& group_of_;
  std::vector<std::vector<std::size_t>> readers_;  // of every storage
};

}  // namespace ricci::schedule
