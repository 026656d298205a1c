// ricci serve: a model or a program over HTTP.
#include "ricci/serve.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "ricci/ir/verify.h"
#include "ricci/runtime/session.h"
#include "ricci/support/text.h"

#include "commands/commands.h"
#include "commands/device_option.h"
#include "feeds.h"
#include "numbers.h"
#include "serve/service/completion_service.h"
#include "serve/service/forward_service.h"
#include "source.h"
#include "train/model_graph.h"
#include "train/tasks.h"

namespace ricci::tool {
namespace {

namespace fs = std::filesystem;

struct ServeCommand {
  Source source;
  FeedOptions feeds;
  serve::HttpServerOptions http;
  serve::ServiceLimits limits;
  std::string device = "cpu";
  int threads = 0;
  std::size_t batch = 8;
  std::int64_t context = 0;
  std::int64_t max_tokens = 128;
  std::string checkpoint = "best";
  std::string weights;
  bool int8_activations = false;
};

const StopSource& button() {
  static const StopSource source;
  return source;
}
extern "C" void on_stop_signal(int) { button().request_stop(); }

// The first signal ends it when what runs is finished, the second one at once.
void stop_on_signals() {
  (void)button();
  struct sigaction action = {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

using MakeService = std::function<std::unique_ptr<serve::Service>(serve::HttpServer&)>;

void run_server(const ServeCommand& options, const std::string& name, const MakeService& make) {
  std::unique_ptr<serve::Service> service;
  std::optional<serve::Routes> routes;
  serve::HttpServer server(options.http,
                           {.request = [&](serve::ConnectionId c,
                                           const serve::HttpRequest& r) { routes->request(c, r); },
                            .gone = [&](serve::ConnectionId c) { service->gone(c); },
                            .tick = [&] { service->tick(); },
                            .draining = [&] { routes->drain(); }});
  service = make(server);
  routes.emplace(server, *service, name);
  stop_on_signals();
  fmt::print("{} at http://{}:{}{}\n", name, options.http.host, server.port(), service->path());
  std::fflush(stdout);
  server.run(button().token());
  service.reset();
}

// A folder that `train` has made.
bool is_run(const std::string& path) {
  std::error_code none;
  return fs::exists(RunFolder{path}.file("run.toml"), none);
}
// A folder, or a file of weights beside its configuration.
bool is_model(const std::string& path) { return is_folder(path) || path.ends_with(".safetensors"); }

template <class Model>
Generator generator_of(const Model& model, const ServeCommand& options) {
  const GeneratorOptions how{.rows = options.batch,
                             .max_places = options.context,
                             .device = Device::named(options.device, options.threads)};
  if (options.weights.empty()) return Generator(model, how);
  return Generator(
      nn::pack_weights(model, options.weights, {.int8_activations = options.int8_activations}),
      how);
}

// Texts where there is a tokenizer; without one requests are tokens.
serve::TextCodec codec_of(const Tokenizer& tokenizer) {
  return {.encode =
              [tokenizer](std::string_view text) {
                const std::span<const std::int32_t> before = tokenizer.before();
                std::vector<std::int32_t> out(before.begin(), before.end());
                const std::vector<std::int32_t> tokens = tokenizer.encode(text);
                out.insert(out.end(), tokens.begin(), tokens.end());
                return out;
              },
          .bytes = [tokenizer](std::int32_t token) { return tokenizer.bytes(token); }};
}

// Of a folder in a public layout. One of a kind that is not known leaves the model its tokens.
serve::TextCodec codec_in(const fs::path& folder) {
  const fs::path file = folder / "tokenizer.json";
  std::error_code none;
  if (!fs::exists(file, none)) return {};
  try {
    return codec_of(Tokenizer::load(file.string()));
  } catch (const UserError& e) {
    fmt::print(stderr, "requests have to be tokens:\n{}\n", e.what());
    return {};
  }
}

template <class Model>
void serve_completions(const ServeCommand& options, const std::string& name, const Model& model,
                       const serve::TextCodec& codec, const std::vector<std::int32_t>& ends) {
  run_server(options, name, [&](serve::HttpServer& server) {
    Generator generator = generator_of(model, options);
    generator.prepare();
    return std::make_unique<serve::CompletionService>(
        server, std::move(generator), codec, name,
        GenerateOptions{.max_tokens = options.max_tokens, .stop_tokens = ends}, options.limits);
  });
}

// Who cuts a mapped file short would end the server.
Tensor in_memory(const Tensor& value) {
  const Tensor t = value.contiguous();
  return t.numel() == 0 ? t : Tensor::from_bytes(t.type(), t.bytes());
}
template <class Model>
Model in_memory(const Model& model) {
  std::vector<Array> copies;
  for (const Array& leaf : leaves(model)) copies.emplace_back(in_memory(leaf.tensor()));
  return with_leaves(model, copies);
}

void serve_calls(const ServeCommand& options, const std::string& name, const Graph& graph,
                 serve::KeptValues kept) {
  Session session(Device::named(options.device, options.threads));
  serve::JoinedProgram program(graph, std::move(session), std::move(kept));
  run_server(options, name, [&](serve::HttpServer& server) {
    return std::make_unique<serve::ForwardService>(server, std::move(program), options.batch,
                                                   options.limits);
  });
}

void serve_run(const ServeCommand& options) {
  const RunFolder folder{options.source.file};
  const RunSettings s = folder.settings();
  if (!is_language(s.kind)) {
    if (!options.weights.empty() || options.int8_activations) {
      throw UserError(ErrorCode::Refused, "weights in few bits are for models that complete texts",
                      "leave out --weights-in and --int8-activations");
    }
    ImageProgram program = image_program(s, folder, options.checkpoint);
    for (auto& [name, value] : program.params) value = in_memory(value);
    return serve_calls(options, folder.name(), program.graph, std::move(program.params));
  }
  with_language_model(s, folder, options.checkpoint,
                      [&](const auto& model, const Tokenizer& tokenizer) {
                        serve_completions(options, folder.name(), in_memory(stepping(model)),
                                          codec_of(tokenizer), {});
                      });
}

void serve_model(const ServeCommand& options) {
  const std::string& path = options.source.file;
  const nn::Pretrained loaded = nn::load_pretrained(path, {.files = io::FileBytes::Read});
  const fs::path folder = is_folder(path) ? fs::path(path) : fs::path(path).parent_path();
  std::error_code none;  // a folder without a name of its own has none
  const std::string name = fs::weakly_canonical(folder, none).filename().string();
  const serve::TextCodec codec = codec_in(folder);
  std::visit([&](const auto& m) { serve_completions(options, name, m, codec, loaded.end_tokens); },
             loaded.model);
}

void serve_program(const ServeCommand& options) {
  const Graph graph = options.source.load();
  verify(graph);
  RunValues values = make_values(graph, options.feeds);
  serve_calls(options, "@" + graph.name(), graph, {values.feeds.begin(), values.feeds.end()});
}

void declare_limits(CLI::App& command, ServeCommand& o) {
  command.add_option("--host", o.http.host, "address to listen at (default 127.0.0.1)")
      ->type_name("ADDRESS");
  command
      .add_option("--name", o.http.names,
                  "a name that requests may call it by, beside addresses and localhost, when it "
                  "listens on the loopback (repeatable)")
      ->type_name("HOST")
      ->allow_extra_args(false);
  command.add_option("--port", o.http.port, "port (default 8080; 0: any that is free)")
      ->type_name("N")
      ->check(check_whole<std::uint16_t>);
  command.add_option("--queue", o.limits.queue, "requests that may wait (default 64)")
      ->type_name("N")
      ->check(check_whole<std::size_t>);
  command.add_option("--timeout", o.limits.seconds, "seconds for a request (default 120)")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--max-body", o.http.limits.body_bytes, "bytes of a request (default 1048576)")
      ->type_name("BYTES")
      ->check(check_whole<std::size_t>);
  command.add_option("--connections", o.http.connections, "clients at a time (default 4096)")
      ->type_name("N")
      ->check(check_whole<std::size_t>);
}

}  // namespace

void add_serve(CLI::App& app, Action& action) {
  auto options = std::make_shared<ServeCommand>();
  options->http.port = 8080;
  CLI::App* command = app.add_subcommand(
      "serve", "serves completions of a model, or calls of a program, over HTTP");
  options->source.declare_one(*command);
  options->feeds.declare(*command);
  declare_limits(*command, *options);
  declare_device(*command, options->device);
  declare_threads(*command, options->threads);
  command->add_option("--batch", options->batch, "sequences or calls at a time (default 8)")
      ->type_name("N")
      ->check(check_whole<std::size_t>)
      ->check(CLI::Range(1, 4096));
  command->add_option("--context", options->context, "places of a sequence (default: the model's)")
      ->type_name("N")
      ->check(check_whole<std::int64_t>)
      ->check(CLI::PositiveNumber);
  command->add_option("--max-tokens", options->max_tokens, "tokens unless asked (default 128)")
      ->type_name("N")
      ->check(check_whole<std::int64_t>)
      ->check(CLI::PositiveNumber);
  auto* checkpoint = command
                         ->add_option("--checkpoint", options->checkpoint,
                                      "of a run: best, last or a file (default best)")
                         ->type_name("WHICH");
  command->add_option("--weights-in", options->weights, "keep weights in few bits: q8_0, q4_k, …")
      ->type_name("SCHEME");
  command->add_flag("--int8-activations", options->int8_activations,
                    "round what these are multiplied with to 8 bits: faster, less exact");
  command->callback([options, checkpoint, &action] {
    action = [options, chosen = checkpoint->count() > 0] {
      require_compiler(options->device);
      if (is_run(options->source.file)) return serve_run(*options);
      if (chosen) {
        throw UserError(ErrorCode::Refused,
                        fmt::format("'{}' has no checkpoints to choose from", options->source.file),
                        "leave out --checkpoint, or name the folder of a run");
      }
      if (is_model(options->source.file)) return serve_model(*options);
      serve_program(*options);
    };
  });
}

}  // namespace ricci::tool
