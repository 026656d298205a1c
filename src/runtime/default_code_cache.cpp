#include "ricci/runtime/compiled_graph.h"

#include "support/environment.h"

namespace ricci {

std::string default_code_cache() {
  // An empty RICCI_CACHE_DIR switches it off; paths that are not absolute are not used, as the XDG
  // rules demand.
  if (const char* own = environment_variable("RICCI_CACHE_DIR")) return own;
  const char* xdg = environment_variable("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/ricci";
  const char* home = environment_variable("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.cache/ricci";
  return {};
}

}  // namespace ricci
