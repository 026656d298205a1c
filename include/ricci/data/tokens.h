// Texts as numbers: files of tokens, mapped, and windows of them with what comes next.
//
//   write_tokens("train.bin", tokenizer.encode(text));
//   const Dataset<TokenBatch> data = token_windows("train.bin", {.window = 256});
//   auto loss = [](const nn::Gpt& gpt, const TokenBatch& b) { return cross_entropy(gpt(b.x), b.y);
//   };
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ricci/data/dataset.h"

namespace ricci {

/// Unsigned integers, little-endian, as nanoGPT and others write them.
enum class TokenWidth : std::uint8_t { U16 = 2, U32 = 4 };

struct TokenBatch {
  Array x;  ///< i32 [batch, window]
  Array y;  ///< the same, one place on: what a model is to say at each
};

struct TokenOptions {
  std::int64_t window = 0;  ///< tokens in a sample; to be given
  /// From the start of one sample to the next; 0: a window. With 1 there is a sample at every
  /// token.
  std::int64_t stride = 0;
  TokenWidth width = TokenWidth::U16;  ///< of a file's tokens
  std::int64_t skip_bytes = 0;         ///< of a file, before its tokens
  /// Tokens from here on are refused when a sample has one; 0: all that fit in i32 are taken.
  std::int64_t vocabulary = 0;
};

/// The file is mapped: samples are read when they are asked for. It has a sample at every stride
/// that a window and one more token fit behind. UserError(file) for a file that is no whole number
/// of tokens.
[[nodiscard]] Dataset<TokenBatch> token_windows(const std::string& path,
                                                const TokenOptions& options);
/// The same of tokens in memory.
[[nodiscard]] Dataset<TokenBatch> token_windows(std::span<const std::int32_t> tokens,
                                                const TokenOptions& options);

/// The file appears when it is complete. UserError(refused) for a token that does not fit.
void write_tokens(const std::string& path, std::span<const std::int32_t> tokens,
                  TokenWidth width = TokenWidth::U16);

}  // namespace ricci
