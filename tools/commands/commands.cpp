#include "commands/commands.h"

namespace ricci::tool {

void add_commands(CLI::App& app, Action& action) {
  add_run(app, action);
  add_check(app, action);
  add_print(app, action);
  add_opt(app, action);
  add_quantize(app, action);
  add_grad(app, action);
  add_jvp(app, action);
  add_hvp(app, action);
  add_nth_grad(app, action);
  add_jacobians(app, action);
  add_vmap(app, action);
  add_compile(app, action);
  add_bench(app, action);
  add_show(app, action);
  add_inspect(app, action);
  add_convert(app, action);
  add_train(app, action);
  add_sample(app, action);
  add_eval(app, action);
  add_report(app, action);
#ifdef RICCI_SERVE
  add_serve(app, action);
#endif
  add_doc(app, action);
}

}  // namespace ricci::tool
