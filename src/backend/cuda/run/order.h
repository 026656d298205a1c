// What has to wait for what, by the memory it uses: one thing for another that writes what it reads
// or writes, or reads what it writes. Steps that have nothing to do with each other need not follow
// each other. Nothing here needs a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace ricci::cuda {

/// Bytes that something reads, or writes (and may read).
struct Use {
  std::uint64_t at = 0;
  std::int64_t bytes = 0;
  bool written = false;
};

class Order {
 public:
  /// No more than so many are side by side: a GPU has no use for more.
  static constexpr std::size_t MostChains = 64;

  /// What is done next uses these: which of those before it have to be done by then, by their
  /// numbers, ascending. Those that others of them wait for already are left out.
  [[nodiscard]] std::vector<std::size_t> add(std::span<const Use> uses);
  [[nodiscard]] std::size_t size() const noexcept { return done_.size(); }

 private:
  static constexpr std::size_t Nobody = ~std::size_t{0};
  /// Who used the bytes from one place to the next one that is known.
  struct Stretch {
    std::size_t writer = Nobody;
    std::vector<std::size_t> readers = {};  ///< since then; none waits for another
  };
  using Stretches = std::map<std::uint64_t, Stretch>;
  /// Those before form chains, in which each waits for the one before it: how many of each chain
  /// are done when this one is, itself included.
  struct Done {
    std::size_t chain = 0;
    std::vector<std::size_t> of_chain;
  };

  [[nodiscard]] Stretches::iterator begin_at(std::uint64_t at);
  [[nodiscard]] std::vector<std::size_t> met(std::span<const Use> uses);
  [[nodiscard]] std::vector<std::size_t> fewest(std::vector<std::size_t> waits_for) const;
  [[nodiscard]] std::size_t chain_for(std::span<const std::size_t> waits_for) const;
  void note(const Use& use, std::size_t by);
  void append(std::size_t chain, std::span<const std::size_t> waits_for);
  [[nodiscard]] bool is_done_with(std::size_t earlier, std::size_t later) const;

  Stretches stretches_ = {{0, {}}};
  std::vector<Done> done_;
  std::vector<std::size_t> last_of_chain_;
};

}  // namespace ricci::cuda
