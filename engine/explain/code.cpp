// The generated code of a step, as `explain` and CALDERA_DEBUG=4 show it.
#include "engine/base/error.h"
#include "engine/explain/explained_plan.h"

namespace caldera {

std::vector<GeneratedCode> generated_code(const Step& step, CodeWriter code) {
  std::vector<GeneratedCode> all;
  for (const StepKernel& used : step.kernels()) {
    const char* title = all.empty() ? "kernel IR" : "kernel IR of the gradient";
    all.push_back({title, used.kernel->to_string()});
  }
  if (code == nullptr) return all;
  try {
    for (GeneratedCode& piece : code(step)) all.push_back(std::move(piece));
  } catch (const DTypeError& error) {
    all.push_back({"code", std::string("none: ") + error.what() + "\n"});
  }
  return all;
}

}  // namespace caldera
