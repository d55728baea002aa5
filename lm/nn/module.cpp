#include "lm/nn/module.h"

#include "engine/base/splitmix64.h"

namespace caldera {
namespace {

class Collector final : public ParameterVisitor {
 public:
  void parameter(const std::string& name, Weight& weight) override {
    if (weight.tensor.defined()) found.push_back({name, &weight.tensor, weight.trainable});
  }
  std::vector<Parameter> found;
};

class Freezer final : public ParameterVisitor {
 public:
  void parameter(const std::string&, Weight& weight) override { weight.trainable = false; }
};

class Counter final : public ParameterVisitor {
 public:
  void parameter(const std::string&, Weight& weight) override {
    if (!weight.is_quantized() && !weight.tensor.defined()) return;
    all += weight.shape().numel();
    any_quantized = any_quantized || weight.is_quantized();
    if (weight.trainable && !weight.is_quantized()) trainable += weight.shape().numel();
  }
  std::int64_t all = 0;
  std::int64_t trainable = 0;
  bool any_quantized = false;
};

Counter count(Module& module) {
  Counter counter;
  module.visit({}, counter);
  return counter;
}

}  // namespace

void ParameterVisitor::parameter(const std::string&, Weight&) {}
void ParameterVisitor::matrix(const std::string& name, Weight& weight) { parameter(name, weight); }
void ParameterVisitor::module(const std::string& name, Module& module) { module.visit(name, *this); }
void ParameterVisitor::projection(const std::string& name, std::unique_ptr<Projection>& slot) {
  module(name, *slot);
}

std::vector<Parameter> Module::parameters() {
  Collector collector;
  visit({}, collector);
  return std::move(collector.found);
}

std::vector<Parameter> Module::trainable_parameters() {
  std::vector<Parameter> all = parameters();
  std::erase_if(all, [](const Parameter& p) { return !p.trainable; });
  return all;
}

std::int64_t Module::parameter_count() { return count(*this).all; }
std::int64_t Module::trainable_parameter_count() { return count(*this).trainable; }
bool Module::has_quantized_weights() { return count(*this).any_quantized; }

void Module::freeze() {
  Freezer freezer;
  visit({}, freezer);
}

void Module::set_training(bool training) {
  class Setter final : public ParameterVisitor {
   public:
    explicit Setter(bool value) : value_(value) {}
    void module(const std::string& name, Module& module) override {
      module.training_ = value_;
      ParameterVisitor::module(name, module);
    }

   private:
    bool value_;
  };
  training_ = training;
  Setter setter(training);
  visit({}, setter);
}

void Module::set_random_seed(std::uint64_t seed) {
  class Seeder final : public ParameterVisitor {
   public:
    explicit Seeder(std::uint64_t seed) : seed_(seed) {}
    void module(const std::string& name, Module& module) override {
      module.reseed(seed_);
      ParameterVisitor::module(name, module);
    }

   private:
    std::uint64_t seed_;
  };
  reseed(seed);
  Seeder seeder(seed);
  visit({}, seeder);
}

void Module::materialize() {
  const std::vector<Parameter> all = parameters();
  std::vector<LazyTensor> tensors;
  tensors.reserve(all.size());
  for (const Parameter& p : all) tensors.push_back(*p.tensor);
  eval(tensors);
}

void Module::reseed(std::uint64_t) {}

std::string join_name(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

std::uint64_t mix_seed(std::uint64_t seed, std::uint64_t stream) {
  const auto mix = [](std::uint64_t state) { return splitmix64(state + kSplitMix64Step); };
  return mix(mix(seed) + stream);
}

Device Projection::device() {
  class Finder final : public ParameterVisitor {
   public:
    void parameter(const std::string&, Weight& weight) override {
      if (!device && (weight.is_quantized() || weight.tensor.defined())) device = weight.device();
    }
    std::optional<Device> device;
  };
  Finder finder;
  visit({}, finder);
  return finder.device.value();
}

}  // namespace caldera
