#include "ricci/serve/generator.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ricci/support/error.h"

#include "array/program.h"
#include "serve/past.h"
#include "serve/step_programs.h"
#include "support/one_user.h"

namespace ricci {
namespace {

constexpr std::array<std::int64_t, 4> NextSizes = {1, 8, 32, 128};
constexpr std::int64_t FewestPlaces = 64;

struct Sequence {
  SequenceId id = 0;  // 0: the row is free
  std::vector<std::int32_t> tokens;
  std::size_t prompt = 0;
  std::int64_t filled = 0;  // places in the past
  GenerateOptions options;
  std::optional<Sampler> sampler;

  [[nodiscard]] std::int64_t waiting() const {
    return static_cast<std::int64_t>(tokens.size()) - filled;
  }
};

}  // namespace

std::string_view name(FinishReason reason) {
  switch (reason) {
    case FinishReason::None: return "none";
    case FinishReason::Stop: return "stop";
    case FinishReason::Length: return "length";
    case FinishReason::Context: return "context";
    case FinishReason::Failed: return "failed";
  }
  throw InternalError("there is no other reason to finish");
}

struct Generator::Impl {
  Impl(detail::StepModel model, GeneratorOptions given)
      : options(std::move(given)),
        programs(std::move(model), options.device ? *options.device : detail::current_device()),
        past(programs.model().past),
        rows(options.rows) {
    const std::int64_t context = programs.model().context;
    most_places = options.max_places;
    if (context > 0 && (most_places == 0 || most_places > context)) most_places = context;
  }

  // Few sizes: powers of two, and what there is at most.
  [[nodiscard]] std::int64_t places_for(std::int64_t places) const {
    std::int64_t n = FewestPlaces;
    while (n < places) n *= 2;
    return most_places > 0 ? std::min(n, most_places) : n;
  }
  [[nodiscard]] std::int64_t rows_for(std::size_t used) const {
    std::size_t n = 1;
    while (n < used) n *= 2;
    return static_cast<std::int64_t>(std::min(n, rows.size()));
  }
  [[nodiscard]] std::int64_t next_for(std::int64_t places) const {
    const std::int64_t most = std::min(places, options.prompt_chunk);
    for (const std::int64_t n : NextSizes) {
      if (n >= most) return n;
    }
    return NextSizes.back();
  }

  void reserve(std::int64_t row_count, std::int64_t places) {
    std::vector<std::int64_t> filled;
    for (const Sequence& s : rows) filled.push_back(s.filled);
    past.reserve(row_count, places_for(places), filled);
  }

  void release(Sequence& s, std::int64_t row) {
    if (row < past.rows()) past.clear(row, s.filled);
    s = Sequence{};
  }

  SequenceId add(std::span<const std::int32_t> prompt, const GenerateOptions& given);
  std::vector<TokenEvent> step(const StopToken& stop);
  void remove(SequenceId sequence);

  void draw(std::size_t row, std::span<const float> logits, std::vector<TokenEvent>& events) {
    Sequence& s = rows[row];
    TokenEvent event{.sequence = s.id};
    try {
      const std::int32_t token = (*s.sampler)(logits, s.tokens);
      const bool stops =
          std::ranges::find(s.options.stop_tokens, token) != s.options.stop_tokens.end();
      if (stops) {
        event.finished = FinishReason::Stop;
      } else {
        s.tokens.push_back(token);
        event.token = token;
        const auto made = static_cast<std::int64_t>(s.tokens.size() - s.prompt);
        const auto length = static_cast<std::int64_t>(s.tokens.size());
        if (made >= s.options.max_tokens) {
          event.finished = FinishReason::Length;
        } else if (most_places > 0 && length > most_places) {
          event.finished = FinishReason::Context;
        }
      }
    } catch (const UserError& e) {
      event.finished = FinishReason::Failed;
      event.failure = e.what();
    }
    const bool done = event.finished != FinishReason::None;
    events.push_back(std::move(event));
    if (done) release(s, static_cast<std::int64_t>(row));
  }

  // A piece of one prompt. What it has drawn is said when its last piece is read.
  void read_prompt(std::size_t row, const StopToken& stop, std::vector<TokenEvent>& events) {
    Sequence& s = rows[row];
    const std::int64_t next = next_for(s.waiting());
    const std::int64_t count = std::min(next, s.waiting());
    reserve(static_cast<std::int64_t>(row) + 1, s.filled + count);
    StepProgram& program = programs.at({1, next, past.places()}, past);
    for (std::int64_t i = 0; i < next; ++i) {
      program.tokens[static_cast<std::size_t>(i)] =
          i < count ? s.tokens[static_cast<std::size_t>(s.filled + i)] : 0;
    }
    program.first[0] = static_cast<std::int32_t>(s.filled);
    program.count[0] = static_cast<std::int32_t>(count);
    program.run(past, static_cast<std::int64_t>(row), stop);
    s.filled += count;
    if (s.waiting() == 0) draw(row, program.logits(0), events);
  }

  void go_on(std::span<const std::size_t> ready, const StopToken& stop,
             std::vector<TokenEvent>& events) {
    std::int64_t places = 0;
    for (const std::size_t row : ready) places = std::max(places, rows[row].filled + 1);
    const std::int64_t row_count = rows_for(ready.back() + 1);
    reserve(row_count, places);
    StepProgram& program = programs.at({row_count, 1, past.places()}, past);
    std::ranges::fill(program.tokens, 0);
    std::ranges::fill(program.first, 0);
    std::ranges::fill(program.count, 0);
    for (const std::size_t row : ready) {
      program.tokens[row] = rows[row].tokens.back();
      program.first[row] = static_cast<std::int32_t>(rows[row].filled);
      program.count[row] = 1;
    }
    program.run(past, 0, stop);
    for (const std::size_t row : ready) {
      ++rows[row].filled;
      draw(row, program.logits(static_cast<std::int64_t>(row)), events);
    }
  }

  // Sequences of one call: none keeps its row when the call ends early.
  class Guests {
   public:
    explicit Guests(Impl& impl) : impl_(impl) {}
    Guests(Impl& impl, SequenceId first) : impl_(impl) { add(first); }
    Guests(const Guests&) = delete;
    Guests& operator=(const Guests&) = delete;
    ~Guests() {
      for (const SequenceId id : ids_) impl_.remove(id);
    }
    void add(SequenceId id) { ids_.push_back(id); }

   private:
    Impl& impl_;
    std::vector<SequenceId> ids_;
  };

  GeneratorOptions options;
  serve::StepPrograms programs;
  serve::Past past;
  std::vector<Sequence> rows;
  OneAtATime one_user;
  std::int64_t most_places = 0;
  SequenceId last_id = 0;

  using StepProgram = serve::StepProgram;
};

Generator::Generator(detail::StepModel model, GeneratorOptions options) {
  if (options.rows < 1 || options.max_places < 0 || options.prompt_chunk < 1) {
    throw UserError(ErrorCode::Attr,
                    "a generator has one row at least, and sizes are not negative");
  }
  impl_ = std::make_unique<Impl>(std::move(model), std::move(options));
}
Generator::Generator(Generator&&) noexcept = default;
Generator& Generator::operator=(Generator&&) noexcept = default;
Generator::~Generator() = default;

bool Generator::has_room() const {
  return std::ranges::any_of(impl_->rows, [](const Sequence& s) { return s.id == 0; });
}

static OneUser only_user_of(OneAtATime& one) {
  return {one, "another thread is using this generator", "one thread uses a generator at a time"};
}

SequenceId Generator::add(std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  const OneUser user = only_user_of(impl_->one_user);
  return impl_->add(prompt, options);
}

SequenceId Generator::Impl::add(std::span<const std::int32_t> prompt,
                                const GenerateOptions& given) {
  const std::int64_t vocabulary = programs.model().vocabulary;
  if (prompt.empty()) {
    throw UserError(ErrorCode::Shape, "a prompt has no token",
                    "begin with the token that texts begin with");
  }
  for (const std::int32_t token : prompt) {
    if (token >= 0 && token < vocabulary) continue;
    throw UserError(ErrorCode::IndexOutOfRange,
                    fmt::format("the token {} is given to a model that has {}", token, vocabulary));
  }
  const auto length = static_cast<std::int64_t>(prompt.size());
  if (most_places > 0 && length > most_places) {
    throw UserError(ErrorCode::Shape,
                    fmt::format("a prompt of {} tokens is given to a model with "
                                "{} places",
                                length, most_places),
                    "cut the prompt");
  }
  if (given.max_tokens < 1) {
    throw UserError(ErrorCode::Attr, "a sequence goes on by one token at least");
  }
  given.sampling.check();
  const auto free = std::ranges::find_if(rows, [](const Sequence& s) { return s.id == 0; });
  if (free == rows.end()) {
    throw UserError(ErrorCode::Busy,
                    fmt::format("all {} rows of a generator are taken", rows.size()));
  }
  *free = {.id = ++last_id,
           .tokens = {prompt.begin(), prompt.end()},
           .prompt = prompt.size(),
           .filled = 0,
           .options = given,
           .sampler = Sampler(given.sampling)};
  return free->id;
}

std::vector<TokenEvent> Generator::step(const StopToken& stop) {
  const OneUser user = only_user_of(impl_->one_user);
  return impl_->step(stop);
}

std::vector<TokenEvent> Generator::Impl::step(const StopToken& stop) {
  std::vector<TokenEvent> events;
  std::vector<std::size_t> ready;
  std::vector<std::size_t> reading;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Sequence& s = rows[i];
    if (s.id != 0) (s.waiting() == 1 ? ready : reading).push_back(i);
  }
  // First those that go on, so that a long prompt keeps nobody from the next token for long.
  if (!ready.empty()) go_on(ready, stop, events);
  try {
    for (const std::size_t row : reading) read_prompt(row, stop, events);
  } catch (const UserError&) {
    if (events.empty()) throw;  // otherwise those are told first; it comes again
  }
  return events;
}

void Generator::set_params(std::vector<Tensor> params) {
  if (active() > 0) {
    throw UserError(ErrorCode::Busy, "the past of sequences is that of another model",
                    "let them come to their end, or remove them");
  }
  impl_->programs.set_params(std::move(params));
}

void Generator::remove(SequenceId sequence) {
  const OneUser user = only_user_of(impl_->one_user);
  impl_->remove(sequence);
}

void Generator::Impl::remove(SequenceId sequence) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (sequence == 0 || rows[i].id != sequence) continue;
    release(rows[i], static_cast<std::int64_t>(i));
  }
}

std::size_t Generator::active() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(impl_->rows, [](const Sequence& s) { return s.id != 0; }));
}

Generated Generator::operator()(std::span<const std::int32_t> prompt,
                                const GenerateOptions& options,
                                const std::function<bool(std::int32_t)>& on_token) {
  const OneUser user = only_user_of(impl_->one_user);
  const SequenceId id = impl_->add(prompt, options);
  const Impl::Guests guests(*impl_, id);
  Generated out;
  while (out.finished == FinishReason::None) {
    for (const TokenEvent& e : impl_->step({})) {
      if (e.sequence != id) continue;
      if (!e.failure.empty()) throw UserError(ErrorCode::Refused, e.failure);
      out.finished = e.finished;
      if (!e.token) continue;
      out.tokens.push_back(*e.token);
      if (on_token && !on_token(*e.token)) return out;
    }
  }
  return out;
}

std::vector<Generated> Generator::operator()(std::span<const std::vector<std::int32_t>> prompts,
                                             const GenerateOptions& options) {
  std::vector<Generated> out(prompts.size());
  std::vector<std::pair<SequenceId, std::size_t>> under_way;
  const OneUser user = only_user_of(impl_->one_user);
  Impl::Guests guests(*impl_);
  std::size_t next = 0;
  while (next < prompts.size() || !under_way.empty()) {
    while (next < prompts.size() && has_room()) {
      GenerateOptions own = options;
      own.sampling.seed += next;
      under_way.emplace_back(impl_->add(prompts[next], own), next);
      guests.add(under_way.back().first);
      ++next;
    }
    for (const TokenEvent& e : impl_->step({})) {
      const auto it =
          std::ranges::find(under_way, e.sequence, [](const auto& u) { return u.first; });
      if (it == under_way.end()) continue;
      if (!e.failure.empty()) throw UserError(ErrorCode::Refused, e.failure);
      Generated& g = out[it->second];
      if (e.token) g.tokens.push_back(*e.token);
      g.finished = e.finished;
      if (e.finished != FinishReason::None) under_way.erase(it);
    }
  }
  return out;
}

void Generator::prepare(std::int64_t places) {
  const OneUser user = only_user_of(impl_->one_user);
  impl_->reserve(impl_->rows_for(1), places);
  for (std::int64_t rows = 1;; rows = impl_->rows_for(static_cast<std::size_t>(rows) + 1)) {
    impl_->reserve(rows, places);
    (void)impl_->programs.at({rows, 1, impl_->past.places()}, impl_->past);
    if (rows >= static_cast<std::int64_t>(impl_->rows.size())) break;
  }
  for (const std::int64_t next : NextSizes) {
    if (next > 1 && next <= impl_->next_for(places)) {
      (void)impl_->programs.at({1, next, impl_->past.places()}, impl_->past);
    }
  }
}

std::size_t Generator::compiled() const { return impl_->programs.compiled(); }
std::int64_t Generator::past_bytes() const { return impl_->past.bytes(); }
std::int64_t Generator::vocabulary() const { return impl_->programs.model().vocabulary; }
std::int64_t Generator::max_places() const { return impl_->most_places; }

std::int64_t Generator::param_bytes() const {
  std::int64_t n = 0;
  for (const Tensor& t : impl_->programs.model().params) n += t.numel() * size_of(t.dtype());
  return n;
}

}  // namespace ricci
