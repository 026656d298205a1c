// How fast this machine copies memory: the roof over everything that streams.
#pragma once

namespace ricci::bench {

/// Bytes read and written per second by all cores copying arrays that do not fit into caches.
[[nodiscard]] double copy_bandwidth();

}  // namespace ricci::bench
