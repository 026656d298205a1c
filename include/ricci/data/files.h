// Datasets that lie in files: NumPy's arrays mapped, folders of pictures.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ricci/array/array.h"
#include "ricci/data/dataset.h"
#include "ricci/io/image.h"

// NumPy's files without a copy of them: elements are read when they are looked at.
//
//   const Dataset<Batch> data = Batch{map_npy("x.npy"), map_npy("y.npy")};

namespace ricci {

/// An array whose elements stay in the file, where they can be used as they lie: little-endian, of
/// a dtype there is, in C or Fortran order. Others are read into memory. The file is to be
/// replaced, not overwritten, as long as the array lives.
[[nodiscard]] Array map_npy(const std::string& path);
/// The same for the arrays of an archive; those that are packed, or lie at odd places, are read
/// into memory. The checksums of those that stay in the file are not looked at.
[[nodiscard]] std::map<std::string, Array> map_npz(const std::string& path);

}  // namespace ricci

// Pictures in folders, one folder a class: flowers/rose/1.png, flowers/tulip/7.jpg.
//
//   const ImageFolder flowers = image_folder("flowers", {.height = 64, .width = 64});
//   Loader batches(flowers.data, {.batch = 32, .shuffle = 1});      // b.x is f32 [32, 3, 64, 64]

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
