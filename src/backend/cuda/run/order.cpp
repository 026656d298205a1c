#include "backend/cuda/run/order.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace ricci::cuda {

std::vector<std::size_t> Order::add(std::span<const Use> uses) {
  std::vector<std::size_t> waits_for = fewest(met(uses));
  const std::size_t chain = chain_for(waits_for);
  if (chain < last_of_chain_.size()) {
    waits_for.push_back(last_of_chain_[chain]);
    waits_for = fewest(std::move(waits_for));
  }
  const std::size_t self = done_.size();
  append(chain, waits_for);
  for (const bool written : {false, true}) {  // what is read and written is written
    for (const Use& use : uses) {
      if (use.written == written) note(use, self);
    }
  }
  return waits_for;
}

// Without those that others of them wait for.
std::vector<std::size_t> Order::fewest(std::vector<std::size_t> waits_for) const {
  std::ranges::sort(waits_for, std::greater());  // who waits is seen before whom it waits for
  std::vector<std::size_t> out;
  for (const std::size_t earlier : waits_for) {
    const auto waited_for = [&](std::size_t later) { return is_done_with(earlier, later); };
    if (std::ranges::none_of(out, waited_for)) out.push_back(earlier);
  }
  std::ranges::reverse(out);
  return out;
}

// That of one it waits for which is the last of its chain, or else one of its own; where there are
// enough, the one that was added to longest ago.
std::size_t Order::chain_for(std::span<const std::size_t> waits_for) const {
  const auto is_last = [&](std::size_t earlier) {
    return last_of_chain_[done_[earlier].chain] == earlier;
  };
  const auto found = std::ranges::find_if(waits_for, is_last);
  if (found != waits_for.end()) return done_[*found].chain;
  if (last_of_chain_.size() < MostChains) return last_of_chain_.size();
  const auto oldest = std::ranges::min_element(last_of_chain_);
  return static_cast<std::size_t>(oldest - last_of_chain_.begin());
}

// The stretch that begins there.
Order::Stretches::iterator Order::begin_at(std::uint64_t at) {
  const auto before = std::prev(stretches_.upper_bound(at));
  if (before->first == at) return before;
  return stretches_.emplace_hint(std::next(before), at, before->second);
}

// All who used what is used now in a way that matters.
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
  std::ranges::sort(all);
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

void Order::append(std::size_t chain, std::span<const std::size_t> waits_for) {
  Done self{chain, {}};
  for (const std::size_t earlier : waits_for) {
    const std::vector<std::size_t>& its = done_[earlier].of_chain;
    if (self.of_chain.size() < its.size()) self.of_chain.resize(its.size());
    for (std::size_t c = 0; c < its.size(); ++c) {
      self.of_chain[c] = std::max(self.of_chain[c], its[c]);
    }
  }
  if (chain == last_of_chain_.size()) last_of_chain_.push_back(0);
  last_of_chain_[chain] = done_.size();
  if (self.of_chain.size() <= chain) self.of_chain.resize(chain + 1);
  ++self.of_chain[chain];
  done_.push_back(std::move(self));
}

// Is the earlier one always done when the later one is?
bool Order::is_done_with(std::size_t earlier, std::size_t later) const {
  const Done& first = done_[earlier];
  const std::vector<std::size_t>& all = done_[later].of_chain;
  return first.chain < all.size() && all[first.chain] >= first.of_chain[first.chain];
}

}  // namespace ricci::cuda
