// Pictures in JSON: PNG or JPEG as texts in base64.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ricci/type/tensor.h"

#include "io/json_cursor.h"

namespace ricci::serve {

/// The bytes of a text in base64 (RFC 4648), whose last letters may lack their `=`; nothing when it
/// is none.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

/// May a value of this type be given as pictures: f32 [n, channels, height, width]?
[[nodiscard]] bool takes_pictures(const Type& type);
/// Does a text, or an array that begins with one, come next in `text`?
[[nodiscard]] bool pictures_come(io::JsonCursor& json, std::string_view text);
/// One picture, or an array of them, brought to the size of the type. UserError(file.json) for what
/// is none, with the byte.
[[nodiscard]] Tensor read_pictures(io::JsonCursor& json, std::string_view text, const Type& type);

}  // namespace ricci::serve
