#include "train/settings.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "ricci/support/error.h"
#include "ricci/support/text.h"

namespace ricci::tool {
namespace {

using S = RunSettings;

constexpr Setting Table[] = {
    {"data", "data", &S::data,
     "a text, a file of tokens (.bin), images (.npz with x and y, or a "
     "folder with one folder a class); default: what comes with the tool"},
    {"data", "tokenizer", &S::tokenizer, "a tokenizer.json; default: one that is made of the text",
     "gpt mamba"},
    {"data", "held_out", &S::held_out, "the share of the data that is kept for evaluations", "", 0,
     0.9},
    {"data", "examples", &S::examples, "how many digits are drawn where there is no data",
     "cnn mlp vit", 20, 1e7},
    {"data", "size", &S::size, "height and width that images are brought to, and digits drawn in",
     "cnn mlp vit", 8, 4096},
    {"model", "vocabulary", &S::vocabulary, "tokens of the tokenizer that is made; 256: bytes",
     "gpt mamba", 256, 1e6},
    {"model", "context", &S::context, "tokens a model sees", "gpt mamba", 1, 1e6},
    {"model", "width", &S::width,
     "numbers a token, patch or layer has; channels of the first stage", "", 0, 1e6},
    {"model", "layers", &S::layers, "blocks, hidden layers or stages", "", 0, 1000},
    {"model", "heads", &S::heads, "heads of attention; they divide the width", "gpt vit", 1, 1000},
    {"model", "state", &S::state, "numbers a channel remembers", "mamba", 1, 4096},
    {"model", "patch", &S::patch, "height and width of a patch", "vit", 1, 4096},
    {"model", "dropout", &S::dropout, "the share that is left out in training", "", 0, 0.99},
    {"training", "steps", &S::steps, "steps in all", "", 1, 16777216},
    {"training", "seconds", &S::seconds, "ends earlier, after so many seconds; 0: never", "", 0},
    {"training", "batch", &S::batch, "examples or pieces of text a step learns from", "", 1, 1e7},
    {"training", "optimizer", &S::optimizer, "adamw, sgd, lion, muon, …"},
    {"training", "learning_rate", &S::learning_rate, "at its highest", "", 0, 1e6},
    {"training", "schedule", &S::schedule, "of the rate: cosine, linear, one_cycle or constant"},
    {"training", "warm_up", &S::warm_up, "steps in which the rate rises; fewer in short runs", "",
     0, 1e12},
    {"training", "weight_decay", &S::weight_decay,
     "how much weights decay; below 0: as is usual for the optimizer", "", -1, 1e6},
    {"training", "clip_norm", &S::clip_norm, "the norm gradients are brought down to; 0: none", "",
     0},
    {"training", "clip_value", &S::clip_value,
     "what every element of the gradients is kept within; 0: anything", "", 0},
    {"training", "accumulate", &S::accumulate,
     "steps whose gradients are averaged before weights move", "", 1, 1e6},
    {"training", "ema", &S::ema,
     "how slowly an average follows the weights, which is what is evaluated and used (0.999); 0: "
     "the weights themselves",
     "", 0, 0.9999999},
    {"training", "precision", &S::precision, "what the model computes in: f32, bf16, f16 or fp8"},
    {"training", "loss_scaling", &S::loss_scaling,
     "what the loss is multiplied by at first, so that small gradients stay in f16 (65536); 0: "
     "nothing",
     "", 0, 1e30},
    {"training", "seed", &S::seed, "of first values, batches and dropout", "", 0},
    {"output", "log_every", &S::log_every, "steps between lines of the log", "", 1, 1e12},
    {"output", "evaluate_every", &S::evaluate_every, "steps between evaluations; 0: none", "", 0,
     1e12},
    {"output", "evaluation_batches", &S::evaluation_batches, "batches of an evaluation, at most",
     "", 1, 1e9},
    {"output", "sample_every", &S::sample_every, "steps between samples; 0: none", "", 0, 1e12},
    {"output", "checkpoint_every", &S::checkpoint_every, "steps between checkpoints; 0: at the end",
     "", 0, 1e12},
    {"output", "keep", &S::keep, "checkpoints that stay, beside the best", "", 1, 1e6},
    {"output", "prompt", &S::prompt, "what samples start with", "gpt mamba"},
    {"output", "sample_length", &S::sample_length, "tokens of a sample", "gpt mamba", 1, 1e6},
    {"output", "temperature", &S::temperature, "of samples; 0: the likeliest token", "gpt mamba", 0,
     100},
};

template <class T>
bool read_all(const std::string& text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04X}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// TOML tells whole numbers from others.
std::string toml_number(double v) {
  std::string out = fmt::format("{}", v);
  if (out.find_first_of(".en") == std::string::npos) out += ".0";
  return out;
}

}  // namespace

constexpr std::pair<std::string_view, std::string_view> Precisions[] = {
    {"f32", "always_f32"},
    {"bf16", "auto_mixed_bf16"},
    {"f16", "auto_mixed_conservative"},
    {"fp8", "auto_mixed_fp8"}};

bool is_language(std::string_view kind) { return kind == "gpt" || kind == "mamba"; }

std::vector<std::string> precision_names() {
  std::vector<std::string> out;
  for (const auto& [name, policy] : Precisions) out.emplace_back(name);
  return out;
}

PrecisionPolicy precision_of(std::string_view name) {
  const auto* it = std::ranges::find(Precisions, name, [](const auto& p) { return p.first; });
  return precision_policy_named(it == std::end(Precisions) ? name : it->second);
}

bool Setting::is_for(std::string_view kind) const {
  if (kinds.empty() || kind.empty()) return true;
  std::string_view rest = kinds;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == kind) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

bool Setting::lasts() const {
  constexpr std::string_view Others[] = {"tokenizer", "held_out",    "examples", "size",
                                         "batch",     "optimizer",   "seed",     "accumulate",
                                         "ema",       "loss_scaling"};
  if (table == "model") return name != "dropout";
  return std::ranges::find(Others, name) != std::end(Others);
}

bool Setting::is_path() const { return name == "data" || name == "tokenizer"; }

std::string Setting::flag() const {
  std::string out = "--" + std::string(name);
  std::ranges::replace(out, '_', '-');
  return out;
}

std::span<const Setting> all_settings() { return Table; }

const Setting* find_setting(std::string_view name) {
  const auto* it = std::ranges::find(Table, name, &Setting::name);
  return it == std::end(Table) ? nullptr : it;
}

std::string toml_value(const RunSettings& settings, const Setting& setting) {
  if (const auto* text = std::get_if<std::string S::*>(&setting.place)) {
    return toml_text(settings.**text);
  }
  if (const auto* whole = std::get_if<std::int64_t S::*>(&setting.place)) {
    return std::to_string(settings.**whole);
  }
  return toml_number(settings.*std::get<double S::*>(setting.place));
}

std::string plain_value(const RunSettings& settings, const Setting& setting) {
  if (const auto* text = std::get_if<std::string S::*>(&setting.place)) return settings.**text;
  if (const auto* whole = std::get_if<std::int64_t S::*>(&setting.place)) {
    return std::to_string(settings.**whole);
  }
  return fmt::format("{}", settings.*std::get<double S::*>(setting.place));
}

std::string set_value(RunSettings& settings, const Setting& setting, const SettingValue& value) {
  if (const auto* text = std::get_if<std::string S::*>(&setting.place)) {
    const auto* given = std::get_if<std::string>(&value);
    if (given == nullptr) return fmt::format("'{}' takes a text", setting.name);
    // TOML is UTF-8: what is not could be written, and never be read again.
    if (valid_utf8_prefix(*given) != given->size()) {
      return fmt::format("'{}' takes a text in UTF-8, and {} is none", setting.name,
                         quote(shortened(*given)));
    }
    settings.** text = *given;
    return "";
  }
  const bool is_whole = std::holds_alternative<std::int64_t S::*>(setting.place);
  const auto* whole = std::get_if<std::int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const double number = whole != nullptr  ? static_cast<double>(*whole)
                        : real != nullptr ? *real
                                          : std::nan("");
  const bool fits = (is_whole ? whole != nullptr : whole != nullptr || real != nullptr) &&
                    number >= setting.least && number <= setting.most;
  if (!fits) {
    return fmt::format("'{}' takes a {} from {} to {}", setting.name,
                       is_whole ? "whole number" : "number", setting.least, setting.most);
  }
  if (is_whole)
    settings.*std::get<std::int64_t S::*>(setting.place) = *whole;
  else
    settings.*std::get<double S::*>(setting.place) = number;
  return "";
}

std::string set_text(RunSettings& settings, const Setting& setting, const std::string& text) {
  if (std::holds_alternative<std::string S::*>(setting.place)) {
    return set_value(settings, setting, text);
  }
  std::int64_t whole = 0;
  if (read_all(text, whole)) return set_value(settings, setting, whole);
  double real = 0;
  if (read_all(text, real)) return set_value(settings, setting, real);
  return set_value(settings, setting, text);
}

void make_paths_absolute(RunSettings& settings) {
  for (const Setting& setting : all_settings()) {
    if (!setting.is_path()) continue;
    const std::string& path = settings.*std::get<std::string S::*>(setting.place);
    if (path.empty()) continue;
    std::error_code error;  // of a working folder that is gone: then the name stays as it is
    const std::filesystem::path whole = std::filesystem::absolute(path, error);
    if (error) continue;
    const std::string fault = set_value(settings, setting, whole.lexically_normal().string());
    if (!fault.empty())
      throw UserError(ErrorCode::Attr, fault, "move it to a folder named in UTF-8");
  }
}

std::string to_toml(const RunSettings& settings) {
  std::string out = fmt::format("kind = {}\n", toml_text(settings.kind));
  std::string_view table;
  for (const Setting& s : Table) {
    if (!s.is_for(settings.kind)) continue;
    if (s.table != table) out += fmt::format("\n[{}]\n", s.table);
    table = s.table;
    out += fmt::format("{} = {}\n", s.name, toml_value(settings, s));
  }
  return out;
}

}  // namespace ricci::tool
