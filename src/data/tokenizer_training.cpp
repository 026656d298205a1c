// Which pairs are joined: again and again the one that is there most often, and of those the one of
// the first tokens.
#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/stop.h"
#include "ricci/support/text.h"

#include "data/pretokenizer.h"
#include "data/tokenizer_impl.h"

namespace ricci {
namespace {

struct Word {
  std::vector<std::int32_t> tokens;
  std::int64_t count = 0;
};

struct FrequentPair {
  std::int64_t count = 0;
  std::int32_t left = 0, right = 0;
  bool operator<(const FrequentPair& other) const {
    if (count != other.count) return count < other.count;
    return std::pair(left, right) > std::pair(other.left, other.right);
  }
};

class PairTrainer {
 public:
  PairTrainer(BytePairs& pairs, std::span<const std::string_view> texts) : pairs_(pairs) {
    std::map<std::string_view, std::int64_t> counts;
    for (std::string_view text : texts) {
      while (!text.empty()) {
        throw_if_stopped();
        const std::size_t size = first_word(text, WordPattern::Gpt2);
        ++counts[text.substr(0, size)];
        text.remove_prefix(size);
      }
    }
    for (const auto& [text, count] : counts) {
      Word word{{}, count};
      for (const char c : text) word.tokens.push_back(*pairs.find(std::string(1, c)));
      words_.push_back(std::move(word));
    }
    for (std::size_t w = 0; w < words_.size(); ++w) {
      const std::vector<std::int32_t>& t = words_[w].tokens;
      for (std::size_t i = 0; i + 1 < t.size(); ++i) add(t[i], t[i + 1], words_[w].count, w);
    }
    for (const auto& [key, count] : counts_) push(key);
  }

  void join(std::int64_t vocabulary, std::int64_t least_count, std::int32_t next) {
    std::int64_t size = next;
    while (size < vocabulary && !queue_.empty()) {
      throw_if_stopped();
      const FrequentPair best = queue_.top();
      queue_.pop();
      const std::uint64_t key = pair_key(best.left, best.right);
      const auto now = counts_.find(key);
      if (now == counts_.end() || now->second <= 0) continue;
      if (now->second != best.count) {
        push(key);
        continue;
      }
      if (best.count < least_count) return;
      const std::string made = *pairs_.bytes(best.left) + *pairs_.bytes(best.right);
      std::optional<std::int32_t> id = pairs_.find(made);
      if (!id) {
        id = next++;
        ++size;
        pairs_.add_token(*id, made);
      }
      pairs_.add_merge(best.left, best.right);
      replace(best.left, best.right, *id);
    }
  }

 private:
  void add(std::int32_t left, std::int32_t right, std::int64_t count, std::size_t word) {
    const std::uint64_t key = pair_key(left, right);
    counts_[key] += count;
    if (count > 0) where_[key].insert(word);
  }

  void push(std::uint64_t key) {
    queue_.push({counts_.at(key), static_cast<std::int32_t>(key >> 32U),
                 static_cast<std::int32_t>(key & 0xFFFFFFFFU)});
  }

  void replace(std::int32_t left, std::int32_t right, std::int32_t made) {
    const std::uint64_t key = pair_key(left, right);
    const std::set<std::size_t> words = std::move(where_[key]);
    where_.erase(key);
    std::set<std::uint64_t> grown;
    for (const std::size_t w : words) {
      Word& word = words_[w];
      const std::vector<std::int32_t> old = std::move(word.tokens);
      std::vector<std::int32_t> now;
      for (std::size_t i = 0; i < old.size(); ++i) {
        const bool joins = i + 1 < old.size() && old[i] == left && old[i + 1] == right;
        now.push_back(joins ? made : old[i]);
        if (joins) ++i;
      }
      for (std::size_t i = 0; i + 1 < old.size(); ++i) add(old[i], old[i + 1], -word.count, w);
      for (std::size_t i = 0; i + 1 < now.size(); ++i) {
        add(now[i], now[i + 1], word.count, w);
        if (now[i] == made || now[i + 1] == made) grown.insert(pair_key(now[i], now[i + 1]));
      }
      word.tokens = std::move(now);
    }
    counts_.erase(key);
    for (const std::uint64_t k : grown) push(k);
  }

  BytePairs& pairs_;
  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, std::int64_t> counts_;
  std::unordered_map<std::uint64_t, std::set<std::size_t>> where_;
  std::priority_queue<FrequentPair> queue_;
};

}  // namespace

std::shared_ptr<const Tokenizer::Impl> Tokenizer::Impl::trained(
    std::span<const std::string_view> texts, const TokenizerTraining& options) {
  const auto special = static_cast<std::int64_t>(options.special.size());
  constexpr std::int64_t Most = 1 << 24;
  if (options.vocabulary < 256 + special || options.vocabulary > Most || options.least_count < 1) {
    throw UserError(
        ErrorCode::Attr,
        fmt::format("a tokenizer is to have {} tokens, of pairs that are there {} times",
                    options.vocabulary, options.least_count),
        fmt::format("it has {} or more, and no more than {}: 256 bytes and the special "
                    "ones; pairs are there once or more",
                    256 + special, Most));
  }
  auto out = std::make_shared<Impl>();
  std::int32_t next = 0;
  std::set<std::string> names;
  for (const std::string& name : options.special) {
    if (name.empty() || !names.insert(name).second || valid_utf8_prefix(name) != name.size()) {
      throw UserError(ErrorCode::Name, fmt::format("{} cannot be a special token", quote(name)),
                      "give texts in UTF-8, each of them once");
    }
    out->pairs.add_token(next, unspelled(name).value_or(name));
    out->added.push_back({.id = next++, .content = name});
  }
  // In the order of the characters they are spelled with.
  std::vector<unsigned> bytes(256);
  std::iota(bytes.begin(), bytes.end(), 0U);
  std::ranges::sort(bytes, {}, [](unsigned b) { return byte_characters()[b]; });
  for (const unsigned b : bytes) {
    if (out->pairs.add_token(next, std::string(1, static_cast<char>(b)))) ++next;
  }
  PairTrainer(out->pairs, texts).join(options.vocabulary, options.least_count, next);
  out->finish();
  return out;
}

}  // namespace ricci
