#include "lm/generate/batch/batch_generator.h"

#include "lm/generate/batch/batch_scheduler.h"

namespace caldera {

BatchGenerator::BatchGenerator(CausalLM& model, const BatchLimits& limits)
    : scheduler_(std::make_unique<BatchScheduler>(model, limits)) {}
BatchGenerator::~BatchGenerator() = default;

RequestId BatchGenerator::submit(GenerateRequest request) { return scheduler_->submit(std::move(request)); }
bool BatchGenerator::cancel(RequestId id) { return scheduler_->cancel(id); }
bool BatchGenerator::step() { return scheduler_->step(); }
void BatchGenerator::run() {
  while (scheduler_->step()) {
  }
}
bool BatchGenerator::wait(double seconds) { return scheduler_->wait(seconds); }
std::optional<std::string> BatchGenerator::failure() const { return scheduler_->failure(); }
BatchStatus BatchGenerator::status() const { return scheduler_->status(); }
const BatchLimits& BatchGenerator::limits() const { return scheduler_->limits(); }
std::int64_t BatchGenerator::bytes_per_position(const CausalLM& model) {
  return PagedForward::bytes_per_position(model);
}

void BatchGenerator::load_adapter(const std::string& name, const std::filesystem::path& dir) {
  scheduler_->load_adapter(name, dir);
}
void BatchGenerator::unload_adapter(const std::string& name) { scheduler_->unload_adapter(name); }
void BatchGenerator::forget_prefixes() { scheduler_->forget_prefixes(); }
std::vector<std::string> BatchGenerator::adapters() const { return scheduler_->adapters(); }

}  // namespace caldera
