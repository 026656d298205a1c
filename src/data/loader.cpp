#include "ricci/data/loader.h"

#include <algorithm>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"

#include "data/prefetcher.h"
#include "support/fork.h"
#include "support/one_user.h"

namespace ricci::detail {
namespace {

[[noreturn]] void refuse(ErrorCode code, std::string message, std::source_location where,
                         std::string help) {
  throw UserError(Diagnostic{.code = code,
                             .detail = "loader",
                             .message = std::move(message),
                             .where = SourcePosition::from(where),
                             .notes = {},
                             .help = std::move(help)});
}

void require_sense(std::int64_t samples, const LoaderOptions& o, std::source_location where) {
  const auto require = [&](std::int64_t value, std::int64_t least, std::int64_t most,
                           std::string_view name) {
    if (value >= least && value <= most) return;
    refuse(ErrorCode::Attr, fmt::format("{} of a loader is {}", name, value), where,
           fmt::format("give a number from {} to {}", least, most));
  };
  constexpr std::int64_t Most = std::int64_t{1} << 40;
  require(o.batch, 1, Most, "batch");
  require(o.threads, 0, 1024, "threads");
  require(o.prefetch, 1, 1 << 20, "prefetch");
  if (o.steps) require(*o.steps, 0, Most, "steps");
  if (samples == 0 && o.steps.value_or(0) > 0) {
    refuse(ErrorCode::Refused, "a loader is to give batches of a dataset without samples", where,
           "look at how the dataset was made");
  }
  if (o.drop_last && samples > 0 && samples < o.batch) {
    refuse(ErrorCode::Refused,
           fmt::format("there are {} samples, fewer than a batch of {}, and drop_last leaves out "
                       "what is smaller",
                       samples, o.batch),
           where, "take a smaller batch, or leave drop_last off");
  }
}

// Orders of different epochs have nothing in common.
std::uint64_t seed_of(std::uint64_t seed, std::int64_t epoch) {
  return (seed + 0x632BE59BD9B4E019ULL) * 0x9E3779B97F4A7C15ULL ^
         (static_cast<std::uint64_t>(epoch) * 0xD1342543DE82EF95ULL);
}

}  // namespace

struct LoaderState::Impl {
  std::int64_t samples = 0;
  Make make;
  LoaderOptions options;
  std::source_location where;
  std::int64_t per_epoch = 0;
  std::int64_t step = 0;
  bool round_is_over = false;
  std::shared_ptr<Prefetcher> ahead;
  std::uint64_t generation = 0;  // of the process its threads run in
  OneAtATime one_reader;

  [[nodiscard]] std::shared_ptr<const void> batch(std::int64_t number) const {
    const std::int64_t epoch = number / per_epoch;
    const std::int64_t first = number % per_epoch * options.batch;
    std::vector<std::int64_t> rows(
        static_cast<std::size_t>(std::min(options.batch, samples - first)));
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = first + static_cast<std::int64_t>(i);
    if (options.shuffle) {
      const Permutation order(samples, seed_of(*options.shuffle, epoch));
      for (std::int64_t& row : rows) row = order(row);
    }
    return make(rows);
  }

  // One past the last batch of the round that the next batch is in.
  [[nodiscard]] std::int64_t end() const {
    if (options.steps) return *options.steps;
    return per_epoch == 0 ? 0 : (step / per_epoch + 1) * per_epoch;
  }

  void drop_threads() {
    // Those of a process that has forked live on in the parent alone: nobody here can wait for
    // them, and what they held stays as it was.
    if (ahead && generation != process_generation())
      new std::shared_ptr(std::move(ahead));  // NOLINT
    ahead.reset();
  }

  [[nodiscard]] Prefetcher& threads() {
    if (ahead && generation != process_generation()) drop_threads();
    if (!ahead) {
      generation = process_generation();
      ahead = std::make_shared<Prefetcher>([this](std::int64_t number) { return batch(number); },
                                           step, options.threads, options.prefetch);
    }
    return *ahead;
  }
};

LoaderState::LoaderState(std::int64_t samples, Make make, LoaderOptions options,
                         std::source_location where)
    : impl_(std::make_unique<Impl>()) {
  require_sense(samples, options, where);
  impl_->samples = samples;
  impl_->make = std::move(make);
  impl_->options = options;
  impl_->where = where;
  impl_->per_epoch =
      options.drop_last ? samples / options.batch : (samples + options.batch - 1) / options.batch;
}

LoaderState::~LoaderState() { impl_->drop_threads(); }

void LoaderState::begin() noexcept { impl_->round_is_over = false; }

static OneUser only_reader_of(OneAtATime& one) {
  return {one, "another thread is reading this loader", "make a loader for each thread"};
}

std::shared_ptr<const void> LoaderState::next() {
  Impl& s = *impl_;
  const OneUser reader = only_reader_of(s.one_reader);
  if (s.round_is_over && !s.options.steps) {
    s.round_is_over = false;
    return nullptr;
  }
  const std::int64_t end = s.end();
  if (s.step >= end) return nullptr;
  throw_if_stopped();
  std::shared_ptr<const void> out;
  if (s.options.threads == 0) {
    out = s.batch(s.step);
  } else {
    try {
      out = s.threads().take(end);
    } catch (...) {
      s.drop_threads();  // what comes next is the same batch again
      throw;
    }
  }
  ++s.step;
  s.round_is_over = s.step == end;
  return out;
}

DataPosition LoaderState::position() const {
  const Impl& s = *impl_;
  const std::int64_t per_epoch = std::max<std::int64_t>(s.per_epoch, 1);
  return {.epoch = s.step / per_epoch,
          .batch = s.step % per_epoch,
          .step = s.step,
          .samples = s.samples,
          .batch_size = s.options.batch,
          .shuffle = s.options.shuffle,
          .drop_last = s.options.drop_last};
}

void LoaderState::seek(const DataPosition& position) {
  Impl& s = *impl_;
  const OneUser reader = only_reader_of(s.one_reader);
  DataPosition here = this->position();
  here.epoch = position.epoch;
  here.batch = position.batch;
  here.step = position.step;
  if (here != position) {
    refuse(ErrorCode::Refused,
           fmt::format("the position \"{}\" is one in other batches than \"{}\"",
                       position.to_text(), this->position().to_text()),
           s.where, "resume with the same data, batch, shuffle and drop_last");
  }
  const std::int64_t per_epoch = std::max<std::int64_t>(s.per_epoch, 1);
  if (position.step < 0 || position.epoch != position.step / per_epoch ||
      position.batch != position.step % per_epoch) {
    refuse(ErrorCode::Refused,
           fmt::format("the position \"{}\" contradicts itself", position.to_text()), s.where,
           "give one that a loader gave");
  }
  s.drop_threads();
  s.step = position.step;
  s.round_is_over = false;
}

std::int64_t LoaderState::batches_per_epoch() const noexcept { return impl_->per_epoch; }

}  // namespace ricci::detail
