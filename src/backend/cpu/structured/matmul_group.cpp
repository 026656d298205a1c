#include "backend/cpu/structured/matmul_group.h"

#include <algorithm>

#include "ricci/support/error.h"

namespace ricci::cpu {
namespace {

// Tiles of several products, counted one product after the other.
class Tiles {
 public:
  Tiles(std::span<const GroupedProduct> products,
        std::int64_t (MatmulPlan::*count)() const noexcept) {
    for (const GroupedProduct& p : products) ends_.push_back(total() + (p.plan.*count)());
  }
  [[nodiscard]] std::int64_t total() const { return ends_.empty() ? 0 : ends_.back(); }
  /// Calls `f(product, tile of it)`.
  template <class F>
  void run(ThreadPool& pool, const F& f) const {
    pool.run(total(), [&](std::int64_t tile) {
      const auto at = std::upper_bound(ends_.begin(), ends_.end(), tile) - ends_.begin();
      const auto product = static_cast<std::size_t>(at);
      f(product, product == 0 ? tile : tile - ends_[product - 1]);
    });
  }

 private:
  std::vector<std::int64_t> ends_;
};

}  // namespace

void run_products(ThreadPool& pool, std::span<const GroupedProduct> products,
                  std::span<std::byte> room) {
  const auto room_bytes = static_cast<std::int64_t>(room.size());
  std::vector<std::byte*> scratch;
  while (!products.empty()) {
    scratch.clear();
    std::int64_t used = 0;
    for (const GroupedProduct& p : products) {
      const std::int64_t bytes = p.plan.scratch_bytes();
      if (used + bytes > room_bytes) break;
      scratch.push_back(room.data() + used);
      used += bytes;
    }
    check_internal(!scratch.empty(), "a product is given too little scratch");
    const auto now = products.first(scratch.size());
    products = products.subspan(scratch.size());
    Tiles(now, &MatmulPlan::prepare_tiles).run(pool, [&](std::size_t i, std::int64_t tile) {
      now[i].plan.prepare_tile(tile, now[i].a, now[i].b, scratch[i]);
    });
    Tiles(now, &MatmulPlan::pack_tiles).run(pool, [&](std::size_t i, std::int64_t tile) {
      now[i].plan.pack_tile(tile, now[i].a, now[i].b, scratch[i]);
    });
    Tiles(now, &MatmulPlan::tiles).run(pool, [&](std::size_t i, std::int64_t tile) {
      now[i].plan.run_tile(tile, now[i].a, now[i].b, now[i].c, scratch[i]);
    });
  }
}

}  // namespace ricci::cpu
