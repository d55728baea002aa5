#include "training/rl/policy/agent.h"

#include <fmt/format.h>

#include <bit>
#include <chrono>
#include <cmath>

#include "engine/base/error.h"
#include "lm/formats/safetensors/safetensors.h"

namespace caldera::rl {
namespace {

constexpr const char* kKind = "agent";
constexpr const char* kEnvironments = "environments";

std::string described(const VectorEnvironment& environments) {
  return fmt::format("{} environments of {} with {}", environments.count(),
                     environments.observation_space().to_string(), environments.action_space().to_string());
}

LazyTensor numbers_tensor(const std::vector<double>& values) {
  return LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, Device::cpu());
}

LazyTensor bits_tensor(const std::vector<std::uint64_t>& bits) {
  std::vector<std::int64_t> integers;
  integers.reserve(bits.size());
  for (const std::uint64_t b : bits) integers.push_back(std::bit_cast<std::int64_t>(b));
  return LazyTensor::from_vector(integers, {static_cast<std::int64_t>(integers.size())}, Device::cpu());
}

std::vector<std::uint64_t> bits_of(const LazyTensor& tensor) {
  std::vector<std::uint64_t> bits;
  for (const std::int64_t i : tensor.to_vector<std::int64_t>())
    bits.push_back(std::bit_cast<std::uint64_t>(i));
  return bits;
}

}  // namespace

Agent::Agent(std::string kind, std::unique_ptr<VectorEnvironment> environments, std::uint64_t seed)
    : kind_(std::move(kind)),
      environments_(std::move(environments)),
      monitor_(environments_ ? environments_->count() : 1),
      random_(Random::stream(seed, 0)) {
  if (!environments_) throw ValueError("an agent needs environments: make_vector_environment() makes them");
}

void Agent::train(std::int64_t steps, const Callback& callback) {
  if (steps < 1) throw ValueError(fmt::format("train: {} steps; at least 1", steps));
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const std::int64_t first = steps_;
  while (steps_ < steps) {
    iterate(steps);
    check_losses();
    if (!callback) continue;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const Progress progress{steps_,
                            steps,
                            monitor_.episodes(),
                            monitor_.mean_return(),
                            monitor_.mean_length(),
                            static_cast<double>(steps_ - first) / seconds,
                            figures()};
    if (!callback(progress)) return;
  }
}

void Agent::check_losses() const {
  for (const auto& [name, value] : figures())
    if (name.ends_with("_loss") && !std::isfinite(value))
      throw ValueError(fmt::format(
          "{}: {} is {} after {} steps; lower the learning rate, and look at what the environment gives by "
          "check_environment()",
          kind_, name, value, steps_));
}

std::map<std::string, LazyTensor> Agent::state() const {
  std::map<std::string, LazyTensor> state;
  // The list of pointers is that of a mutable agent; nothing is written through it here.
  for (const auto& [name, tensor] : const_cast<Agent*>(this)->tensors())  // NOLINT
    state["tensor." + name] = *tensor;
  const VectorState environments = environments_->state();
  state["environments.numbers"] = numbers_tensor(environments.numbers);
  state["environments.randoms"] = bits_tensor(environments.randoms);
  state["monitor"] = numbers_tensor(monitor_.state());
  state["counters"] = bits_tensor({static_cast<std::uint64_t>(steps_), random_.state()});
  return state;
}

void Agent::save(const std::filesystem::path& path) const {
  std::vector<TensorToWrite> tensors;
  std::vector<std::vector<std::byte>> bytes;
  const std::map<std::string, LazyTensor> saved = state();
  bytes.reserve(saved.size());
  for (const auto& [name, tensor] : saved) {
    bytes.emplace_back(static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype()));
    tensor.copy_to_host(bytes.back().data());
    tensors.push_back({name, tensor.dtype(), tensor.shape(), bytes.back()});
  }
  write_safetensors(path, tensors, {{kKind, kind_}, {kEnvironments, described(*environments_)}});
}

void Agent::load(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto refuse = [&](const std::string& what) -> FileError {
    return FileError(fmt::format("{}: {}", path.string(), what));
  };
  const auto kind = file.metadata().find(kKind);
  if (kind == file.metadata().end()) throw refuse("this is no saved agent");
  if (kind->second != kind_)
    throw refuse(fmt::format("it was saved by an agent '{}'; this one is '{}'", kind->second, kind_));
  const auto worlds = file.metadata().find(kEnvironments);
  if (worlds != file.metadata().end() && worlds->second != described(*environments_))
    throw refuse(
        fmt::format("it was saved with {}; this agent has {}", worlds->second, described(*environments_)));
  // Everything is read and checked before anything is changed.
  std::map<std::string, LazyTensor> read;
  for (const auto& [name, now] : state()) {
    if (!file.contains(name)) throw refuse(fmt::format("there is no tensor '{}' in it", name));
    const TensorInfo& info = file.info(name);
    const bool list = name == "monitor" || name == "environments.numbers";  // whose lengths change
    if (info.dtype != now.dtype() || info.foreign != ForeignType::none ||
        (info.shape != now.shape() && !list) || info.shape.rank() != now.rank())
      throw refuse(fmt::format("'{}' is {} of {}; this agent has {} of {}", name, info.shape.to_string(),
                               type_name(info), now.shape().to_string(), caldera::name(now.dtype())));
    const auto bytes = file.bytes(name);
    read[name] = LazyTensor::from_bytes(bytes.data(), bytes.size(), info.dtype, info.shape, now.device());
  }
  const std::vector<std::uint64_t> counters = bits_of(read["counters"]);
  const VectorState before = environments_->state();
  try {
    if (counters[0] >> 62 != 0) throw ValueError("its number of steps is none");
    check_state(read);
    environments_->set_state(
        {read["environments.numbers"].to_vector<double>(), bits_of(read["environments.randoms"])});
    monitor_.set_state(read["monitor"].to_vector<double>());
  } catch (const Error& error) {
    environments_->set_state(before);
    throw refuse(error.what());
  }
  for (const auto& [name, tensor] : tensors()) *tensor = read["tensor." + name];
  steps_ = static_cast<std::int64_t>(counters[0]);
  random_ = Random(counters[1]);
}

}  // namespace caldera::rl
