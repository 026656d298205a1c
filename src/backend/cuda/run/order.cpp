#include "backend/cuda/run/order.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace ricci::cuda {

std::vector<std::size_t> Order::add(std::span<const Use> uses) {
  std::vector<std::size_t> waits_for;
  for (const std::size_t earlier :
       met(uses)) {  // latest first: who waits is seen before its reason
    const auto waited_for = [&](std::size_t later) { return is_done_with(earlier, later); };
    if (std::ranges::none_of(waits_for, waited_for)) waits_for.push_back(earlier);
  }
  std::ranges::reverse(waits_for);
  const std::size_t self = done_.size();
  join_chain(waits_for);
  for (const bool written : {false, true}) {  // what is read and written is written
    for (const Use& use : uses) {
      if (use.written == written) note(use, self);
    }
  }
  return waits_for;
}

// The stretch that begins there.
Order::Stretches::iterator Order::begin_at(std::uint64_t at) {
  const auto before = std::prev(stretches_.upper_bound(at));
  if (before->first == at) return before;
  return stretches_.emplace_hint(std::next(before), at, before->second);
}

// All who used what is used now in a way that matters, the latest first.
std::vector<std::size_t> Order::met(std::span<const Use> uses) {
  std::vector<std::size_t> all;
  for (const Use& use : uses) {
    if (use.bytes <= 0) continue;
    const auto end = begin_at(use.at + static_cast<std::uint64_t>(use.bytes));
    for (auto stretch = begin_at(use.at); stretch != end; ++stretch) {
      const auto& [writer, readers] = stretch->second;
      if (writer != Nobody) all.push_back(writer);
      if (use.written) all.insert(all.end(), readers.begin(), readers.end());
    }
  }
  std::ranges::sort(all, std::greater());
  const auto rest = std::ranges::unique(all);
  all.erase(rest.begin(), rest.end());
  return all;
}

void Order::note(const Use& use, std::size_t by) {
  if (use.bytes <= 0) return;
  const auto end = begin_at(use.at + static_cast<std::uint64_t>(use.bytes));
  const auto first = begin_at(use.at);
  if (use.written) {
    first->second = {by, {}};
    stretches_.erase(std::next(first), end);
    return;
  }
  for (auto stretch = first; stretch != end; ++stretch) {
    std::vector<std::size_t>& readers = stretch->second.readers;
    std::erase_if(readers, [&](std::size_t r) { return is_done_with(r, by); });
    readers.push_back(by);
  }
}

// Behind one of those it waits for, if that is the last of its chain, or else one of its own.
void Order::join_chain(std::span<const std::size_t> waits_for) {
  Done self;
  for (const std::size_t earlier : waits_for) {
    const std::vector<std::size_t>& its = done_[earlier].of_chain;
    if (self.of_chain.size() < its.size()) self.of_chain.resize(its.size());
    for (std::size_t c = 0; c < its.size(); ++c) {
      self.of_chain[c] = std::max(self.of_chain[c], its[c]);
    }
  }
  const auto is_last = [&](std::size_t earlier) {
    return last_of_chain_[done_[earlier].chain] == earlier;
  };
  const auto found = std::ranges::find_if(waits_for, is_last);
  self.chain = found == waits_for.end() ? last_of_chain_.size() : done_[*found].chain;
  if (found == waits_for.end()) last_of_chain_.push_back(0);
  last_of_chain_[self.chain] = done_.size();
  if (self.of_chain.size() <= self.chain) self.of_chain.resize(self.chain + 1);
  ++self.of_chain[self.chain];
  done_.push_back(std::move(self));
}

// Is the earlier one always done when the later one is?
bool Order::is_done_with(std::size_t earlier, std::size_t later) const {
  const Done& first = done_[earlier];
  const std::vector<std::size_t>& all = done_[later].of_chain;
  return first.chain < all.size() && all[first.chain] >= first.of_chain[first.chain];
}

}  // namespace ricci::cuda
