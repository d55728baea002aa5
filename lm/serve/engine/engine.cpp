#include "lm/serve/engine/engine.h"

#include "engine/base/error.h"

namespace caldera::serve {

void Engine::load_adapter(const std::string& /*name*/, const std::filesystem::path& /*dir*/) {
  throw ValueError("adapters cannot be loaded here");
}
void Engine::unload_adapter(const std::string& /*name*/) {
  throw ValueError("adapters cannot be forgotten here");
}

}  // namespace caldera::serve
