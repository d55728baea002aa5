#include "training/data/forms/example.h"

namespace caldera {

std::string_view description_of(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::preference:
      return R"(pairs ({"prompt", "chosen", "rejected"}))";
    case ExampleKind::similar:
      return R"(texts that belong together ({"anchor", "positive"}))";
    case ExampleKind::prompt:
      return R"(prompts alone ({"prompt"}))";
    case ExampleKind::text:
      break;
  }
  return R"(texts ({"text"}, {"prompt", "completion"} or {"messages"}))";
}

}  // namespace caldera
