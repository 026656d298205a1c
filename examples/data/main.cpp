// Data and checkpoints: a small table and a text are made, written, read again, trained on, and the
// training is interrupted and goes on. What docs/DATA.md and docs/CHECKPOINTS.md show.
#include <filesystem>
#include <fstream>
#include <iostream>

#include <ricci/nn.h>

using namespace ricci;

struct Batch {
  Array x, y;
};

struct Net {
  nn::Linear hidden{2, 16}, out{16, 1};
  nn::Dropout drop{0.1};
  Array operator()(const Array& x) const { return out(drop(tanh(hidden(x)))); }
};

Array loss(const Net& net, const Batch& b) { return mse(net(b.x), b.y); }

void tables(const std::string& folder) {
  std::ofstream(folder + "/flowers.csv")
      << "length,width,species\n5.1,3.5,setosa\n7.0,3.2,\"versi, color\"\n"
         "6.3,3.3,virginica\n";
  const io::Csv flowers = io::read_csv(folder + "/flowers.csv");
  const io::Categories species = flowers.categories("species");
  const Dataset<Batch> data = Batch{flowers.matrix({"length", "width"}), species.codes};

  const Batch one = data[1];
  const Batch some = data.batch({2, 0});
  std::cout << one.x << " is " << species.names[static_cast<std::size_t>(one.y.item())] << "\n"
            << some.x << "\n";
}

void numpy(const std::string& folder) {
  save_npy(folder + "/x.npy", normal(Key(1), {1000, 2}));
  save_npy(folder + "/y.npy", zeros({1000, 1}));
  const Dataset<Batch> data = Batch{map_npy(folder + "/x.npy"), map_npy(folder + "/y.npy")};

  const auto [train, test] = data.split(0.9, {.shuffle = 1});
  const auto doubled = train.take(100).map([](const Batch& b) { return Batch{b.x * 2, b.y}; });
  const auto scaled = train.map_batch([](const Batch& b) { return Batch{b.x / 10, b.y}; });
  print("{} {} {} {}", train.size(), test.size(), doubled.size(), scaled.size());
}

void texts(const std::string& folder) {
  const std::string text =
      "the quick brown fox jumps over the lazy dog; the dog sleeps, the fox thinks";
  const Tokenizer tokenizer =
      Tokenizer::train(text, {.vocabulary = 280, .special = {"<|endoftext|>"}});
  tokenizer.save(folder + "/tokenizer.json");
  const Tokenizer same = Tokenizer::load(folder + "/tokenizer.json");
  const std::vector<std::int32_t> tokens = same.encode(text + "<|endoftext|>");
  print("{} tokens: {}", tokens.size(), same.decode(tokens, true));

  write_tokens(folder + "/train.bin", tokens);
  const Dataset<TokenBatch> windows =
      token_windows(folder + "/train.bin", {.window = 8, .stride = 1});
  print("{} windows of 8", windows.size());
}

void training(const std::string& folder) {
  const Array x = normal(Key(2), {640, 2});
  const Dataset<Batch> data = Batch{x, sum(x, 1, true)};
  const std::string file = folder + "/run.safetensors";

  Trainer train(Net{}, loss, AdamW{.learning_rate = 1e-2});
  Loader batches(data, {.batch = 64, .shuffle = 1, .steps = 60, .threads = 2});
  for (auto [i, batch] : enumerate(batches)) {
    const Array l = train(batch);
    if (i % 20 == 0) print("{:4} loss {:.4f}", i, l);
    if (i == 39) save(file, train, batches);
  }

  Trainer again(Net{}, loss, AdamW{.learning_rate = 1e-2});
  Loader rest(data, {.batch = 64, .shuffle = 1, .steps = 60, .threads = 2});
  restore(file, again, rest);
  for (auto [i, batch] : enumerate(rest)) again(batch);  // from step 40 on
  const bool same = array_equal(again.model().out.w, train.model().out.w);

  const Net net = load<Net>(file);
  print("the same bits: {}, loss {:.4f} at step 40", same, loss(net, data.all()));
  if (!same) throw std::runtime_error("a resumed run took other steps");
}

void folders(const std::string& path, const Dataset<Batch>& data) {
  Trainer train(Net{}, loss, AdamW{.learning_rate = 1e-2});
  Loader batches(data, {.batch = 64, .shuffle = 1, .steps = 60});

  const CheckpointFolder folder(path, {.keep = 3, .keep_best = 1});
  if (const auto resumed = folder.restore(train, batches)) {
    for (const std::string& warning : resumed->warnings) std::cerr << warning << "\n";
  }
  for (auto [i, batch] : enumerate(batches)) {
    const Array l = train(batch);
    if (i % 10 == 9) folder.save(train, batches, {.notes = {{"by", "example"}}, .score = l.item()});
  }
  print("{} checkpoints, the best at step {}", folder.entries().size(), folder.best()->step);
}

int main() try {
  nn::seed(1);
  const std::string folder =
      (std::filesystem::temp_directory_path() / "ricci_example_data").string();
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  tables(folder);
  numpy(folder);
  texts(folder);
  training(folder);
  const Array x = normal(Key(2), {640, 2});
  folders(folder + "/runs", Batch{x, sum(x, 1, true)});
  std::filesystem::remove_all(folder);
  return 0;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}
