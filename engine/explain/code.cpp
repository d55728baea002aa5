// The generated code of a step, as `explain` and CALDERA_DEBUG=4 show it.
#include "engine/explain/explanation.h"
#include "engine/tensor/error.h"

namespace caldera {

std::vector<GeneratedCode> generated_code(const Step& step, CodeWriter code) {
  std::vector<GeneratedCode> all;
  if (step.kernel) all.push_back({"kernel IR", step.kernel->to_string()});
  if (step.gradient) all.push_back({"kernel IR of the gradient", step.gradient->to_string()});
  if (code == nullptr) return all;
  try {
    for (GeneratedCode& piece : code(step)) all.push_back(std::move(piece));
  } catch (const DTypeError& error) {
    all.push_back({"code", std::string("none: ") + error.what() + "\n"});
  }
  return all;
}

}  // namespace caldera
