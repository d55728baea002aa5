#include "lm/generate/batch_generator.h"

#include "lm/generate/batch/batch_engine.h"

namespace caldera {

BatchGenerator::BatchGenerator(CausalLM& model, const BatchLimits& limits)
    : engine_(std::make_unique<Engine>(model, limits)) {}
BatchGenerator::~BatchGenerator() = default;

RequestId BatchGenerator::submit(GenerateRequest request) { return engine_->submit(std::move(request)); }
bool BatchGenerator::cancel(RequestId id) { return engine_->cancel(id); }
bool BatchGenerator::step() { return engine_->step(); }
void BatchGenerator::run() {
  while (engine_->step()) {
  }
}
bool BatchGenerator::wait(double seconds) { return engine_->wait(seconds); }
BatchStatus BatchGenerator::status() const { return engine_->status(); }
const BatchLimits& BatchGenerator::limits() const { return engine_->limits(); }
std::int64_t BatchGenerator::bytes_per_position(const CausalLM& model) {
  return PagedForward::bytes_per_position(model);
}

void BatchGenerator::load_adapter(const std::string& name, const std::filesystem::path& dir) {
  engine_->load_adapter(name, dir);
}
void BatchGenerator::unload_adapter(const std::string& name) { engine_->unload_adapter(name); }
void BatchGenerator::forget_prefixes() { engine_->forget_prefixes(); }
std::vector<std::string> BatchGenerator::adapters() const { return engine_->adapters(); }

}  // namespace caldera
