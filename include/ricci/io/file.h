// Whole files, under the name of the other readers and writers. What they promise is said in
// support/file.h, where the layers below find them too.
#pragma once

#include "ricci/support/file.h"

namespace ricci::io {

using ricci::AtomicFile;
using ricci::read_file;
using ricci::write_file;

}  // namespace ricci::io
