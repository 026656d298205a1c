// What a run of `ricci train` is told: one table of settings, of which flags, TOML files, the log
// and `ricci sample` know.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ricci/op/precision_policy.h"

namespace ricci::tool {

struct RunSettings {
  std::string kind;  ///< gpt, mamba, cnn, mlp or vit

  // data
  std::string data;  ///< empty: what comes with the tool
  std::string tokenizer;
  double held_out = 0.1;
  std::int64_t examples = 4000;
  std::int64_t size = 16;

  // model
  std::int64_t vocabulary = 256;
  std::int64_t context = 64;
  std::int64_t width = 0;  ///< 0: what is usual for the kind
  std::int64_t layers = 0;
  std::int64_t heads = 4;
  std::int64_t state = 16;
  std::int64_t patch = 4;
  double dropout = 0;

  // training
  std::int64_t steps = 1000;
  double seconds = 0;
  std::int64_t batch = 16;
  std::string optimizer = "adamw";
  double learning_rate = 2e-3;
  std::string schedule = "cosine";
  std::int64_t warm_up = 50;
  double weight_decay = -1;  ///< below 0: the optimiser's own
  double clip_norm = 1;
  double clip_value = 0;
  std::int64_t accumulate = 1;
  double ema = 0;
  std::string precision = "f32";
  double loss_scaling = 0;
  std::int64_t seed = 1;

  // output
  std::int64_t log_every = 1;
  std::int64_t evaluate_every = 100;
  std::int64_t evaluation_batches = 20;
  std::int64_t sample_every = 200;
  std::int64_t checkpoint_every = 100;
  std::int64_t keep = 3;
  std::string prompt = "The ";
  std::int64_t sample_length = 200;
  double temperature = 0.8;
};

inline constexpr std::string_view RunKinds[] = {"gpt", "mamba", "cnn", "mlp", "vit"};
/// A kind whose model reads tokens; others look at images.
[[nodiscard]] bool is_language(std::string_view kind);
/// In which dtypes a model computes, by what `precision` may be.
[[nodiscard]] PrecisionPolicy precision_of(std::string_view name);
[[nodiscard]] std::vector<std::string> precision_names();

/// A setting: where it is kept, what it may be, and for which kinds.
struct Setting {
  using Place =
      std::variant<std::string RunSettings::*, std::int64_t RunSettings::*, double RunSettings::*>;
  std::string_view table;  ///< of a TOML file: data, model, training, output
  std::string_view name;
  Place place;
  std::string_view help;
  std::string_view kinds = {};  ///< separated by spaces; empty: all
  double least = 0;             ///< numbers: at least this
  double most = 1e15;

  [[nodiscard]] bool is_for(std::string_view kind) const;
  /// `--learning-rate`
  [[nodiscard]] std::string flag() const;
  /// What a run was made with, and what cannot change when it goes on: its checkpoints would not
  /// fit, or its batches would be others.
  [[nodiscard]] bool lasts() const;
  /// The name of a file or a folder.
  [[nodiscard]] bool is_path() const;
};
[[nodiscard]] std::span<const Setting> all_settings();
[[nodiscard]] const Setting* find_setting(std::string_view name);

/// As TOML writes it, and as people read it.
[[nodiscard]] std::string toml_value(const RunSettings& settings, const Setting& setting);
[[nodiscard]] std::string plain_value(const RunSettings& settings, const Setting& setting);

using SettingValue = std::variant<std::string, std::int64_t, double>;
/// What is wrong with a value; empty: it was set.
[[nodiscard]] std::string set_value(RunSettings& settings, const Setting& setting,
                                    const SettingValue& value);
/// The same from a flag's text.
[[nodiscard]] std::string set_text(RunSettings& settings, const Setting& setting,
                                   const std::string& text);

/// What is usual for the kind where nothing was said: width, layers. UserError(attr) for settings
/// that make no sense together.
void settle(RunSettings& settings);

/// Names of files as they are called from any folder: a run goes on and is evaluated from others
/// than it was begun in. UserError(attr) when such a name is no text.
void make_paths_absolute(RunSettings& settings);

/// UserError(attr) for a setting that lasts and is not what it was.
void require_same_run(const RunSettings& was, const RunSettings& now);

/// All settings of the kind, as a TOML file.
[[nodiscard]] std::string to_toml(const RunSettings& settings);
/// Settings from a TOML file, over those that are there. UserError(parse) with the line for keys
/// that are none, values that do not fit and what is no TOML.
void read_toml(RunSettings& settings, const std::string& path);
/// The same from a text, which messages call `path`.
void read_toml_text(RunSettings& settings, std::string text, const std::string& path);

}  // namespace ricci::tool
