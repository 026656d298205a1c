#include "serve/service/completion_request.h"

#include <limits>

#include <fmt/format.h>

#include "ricci/support/text.h"

#include "io/json_value.h"

namespace ricci::serve {
namespace {

using io::JsonValue;

std::int32_t token_of(const JsonValue& value) {
  const std::int64_t token = value.integer();
  if (token < 0 || token > std::numeric_limits<std::int32_t>::max())
    value.fault("this is no token");
  return static_cast<std::int32_t>(token);
}

std::vector<std::int32_t> tokens_of(const JsonValue& value) {
  std::vector<std::int32_t> out;
  for (const JsonValue& token : value.array()) out.push_back(token_of(token));
  return out;
}

std::vector<std::int32_t> prompt_of(const JsonValue& value, const TextCodec& codec) {
  if (value.kind() != JsonValue::Kind::String) return tokens_of(value);
  if (!codec.encode) value.fault("the model has no tokenizer: a prompt is an array of tokens");
  return codec.encode(value.string());
}

std::vector<std::string> stops_of(const JsonValue& value, const TextCodec& codec) {
  constexpr std::size_t Most = 16;
  if (!codec.bytes) value.fault("the model has no tokenizer: say \"stop_tokens\"");
  if (value.kind() == JsonValue::Kind::String) return {value.string()};
  std::vector<std::string> out;
  for (const JsonValue& stop : value.array()) out.push_back(stop.string());
  if (out.size() > Most) value.fault(fmt::format("there are at most {} stop texts", Most));
  return out;
}

void read_member(CompletionRequest& out, const std::string& key, const JsonValue& value,
                 const TextCodec& codec) {
  Sampling& s = out.options.sampling;
  if (key == "prompt") {
    out.prompt = prompt_of(value, codec);
  } else if (key == "max_tokens") {
    out.options.max_tokens = value.integer();
  } else if (key == "temperature") {
    s.temperature = value.number();
  } else if (key == "top_k") {
    s.top_k = value.integer();
  } else if (key == "top_p") {
    s.top_p = value.number();
  } else if (key == "repetition_penalty") {
    s.repetition_penalty = value.number();
  } else if (key == "seed") {
    s.seed = static_cast<std::uint64_t>(value.integer());
  } else if (key == "stop") {
    out.stops = stops_of(value, codec);
  } else if (key == "stop_tokens") {
    out.options.stop_tokens = tokens_of(value);
  } else if (key == "stream") {
    out.stream = value.boolean();
  } else if (key == "n") {
    if (value.integer() != 1) value.fault("there is one completion for a request");
  } else if (key != "model" && key != "user") {
    value.fault(fmt::format("a completion has no {}", quote(shortened(key))));
  }
}

}  // namespace

CompletionRequest read_completion(std::string_view body, const TextCodec& codec,
                                  const GenerateOptions& defaults) {
  const JsonValue json = io::parse_json(body);
  CompletionRequest out{.prompt = {}, .options = defaults, .stops = {}, .stream = false};
  (void)json.at("prompt");
  for (const auto& [key, value] : json.object()) {
    if (!value.is_null()) read_member(out, key, value, codec);
  }
  out.options.sampling.check();
  if (out.options.max_tokens < 1) json.at("max_tokens").fault("\"max_tokens\" is 1 at least");
  return out;
}

}  // namespace ricci::serve
