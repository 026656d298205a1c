// Pictures in folders, one folder a class: flowers/rose/1.png, flowers/tulip/7.jpg.
//
//   const ImageFolder flowers = image_folder("flowers", {.height = 64, .width = 64});
//   Loader batches(flowers.data, {.batch = 32, .shuffle = 1});      // b.x is f32 [32, 3, 64, 64]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ricci/data/dataset.h"
#include "ricci/io/image.h"

namespace ricci {

struct ImageBatch {
  Array x;  ///< f32 [batch, channels, height, width] in [0, 1]
  Array y;  ///< i32 [batch]: the number of the class
};

struct ImageFolderOptions {
  /// What pictures are brought to; 0: they must all be of the first one's size.
  std::int64_t height = 0, width = 0;
  int channels = 3;  ///< 1 (grey), 3 or 4 (with opacity)
  io::ImageLimits limits = {};
};

struct ImageFolder {
  Dataset<ImageBatch> data;
  std::vector<std::string> classes;  ///< names of the folders, sorted
  std::vector<std::string> files;    ///< one a sample
};

/// Files that end in .png, .jpg or .jpeg; pictures are read when they are asked for. Without
/// folders inside, all are of one class. UserError(file) when there are none.
[[nodiscard]] ImageFolder image_folder(const std::string& path,
                                       const ImageFolderOptions& options = {});

/// A picture of u8 [height, width, channels] in another size: means of what each new place covers,
/// or between neighbours where it grows.
[[nodiscard]] Tensor resized(const Tensor& image, std::int64_t height, std::int64_t width);

}  // namespace ricci
