// A policy as a safetensors file.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/formats/safetensors/safetensors.h"
#include "training/rl/policy/policy.h"

namespace caldera::rl {
namespace {

using Json = nlohmann::json;
constexpr const char* kKey = "policy";
constexpr const char* kHeads[] = {"choices", "normal", "squashed"};

/// A bound as JSON, which has no infinity: null.
Json bounds_json(const std::vector<double>& bounds) {
  Json list = Json::array();
  for (const double x : bounds) list.push_back(std::isfinite(x) ? Json(x) : Json(nullptr));
  return list;
}

Json space_json(const Space& space) {
  if (!space.is_continuous()) return {{"counts", space.counts()}};
  return {{"low", bounds_json(space.low())}, {"high", bounds_json(space.high())}};
}

std::vector<double> bounds_from(const Json& list, double absent) {
  std::vector<double> bounds;
  for (const Json& x : list) bounds.push_back(x.is_null() ? absent : x.get<double>());
  return bounds;
}

Space space_from(const Json& json) {
  const double infinity = std::numeric_limits<double>::infinity();
  if (json.contains("low"))
    return Box(bounds_from(json.at("low"), -infinity), bounds_from(json.at("high"), infinity));
  const auto counts = json.at("counts").get<std::vector<std::int64_t>>();
  if (counts.size() == 1) return Discrete(counts[0]);
  return MultiDiscrete(counts);
}

PolicyNetwork::Head head_from(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kHeads); ++i)
    if (name == kHeads[i]) return static_cast<PolicyNetwork::Head>(i);
  throw ValueError("unknown head '" + name + "'");
}

std::vector<double> doubles_in(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& info = file.info(name);
  if (info.dtype != DType::f64 || info.foreign != ForeignType::none || info.shape.rank() != 1)
    throw ValueError("'" + name + "' is no list of f64");
  const auto bytes = file.bytes(name);
  return LazyTensor::from_bytes(bytes.data(), bytes.size(), DType::f64, info.shape, Device::cpu())
      .to_vector<double>();
}

PolicyNetwork network_in(const SafetensorsFile& file, const Json& facts, Device device) {
  PolicyNetwork network;
  network.head = head_from(facts.at("head").get<std::string>());
  network.activation = parse_activation(facts.at("activation").get<std::string>());
  const auto layers = facts.at("layers").get<std::size_t>();
  if (layers < 1 || layers > 1000) throw ValueError("a network of no known size");
  for (const std::string& name : mlp_names("actor", layers))
    network.parameters.push_back(LazyTensor::from_vector(file.read_f32(name), file.info(name).shape, device));
  return network;
}

}  // namespace

void Policy::save(const std::filesystem::path& path) const {
  const std::size_t layers = network_.parameters.size() / 2;
  const Json facts{{"head", kHeads[static_cast<std::size_t>(network_.head)]},
                   {"activation", name(network_.activation)},
                   {"layers", layers},
                   {"observations", space_json(observations_)},
                   {"actions", space_json(actions_)}};
  std::vector<std::vector<float>> values;
  std::vector<TensorToWrite> tensors;
  const std::vector<std::string> names = mlp_names("actor", layers);
  values.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    values.push_back(network_.parameters[i].to_vector<float>());
    tensors.push_back(
        {names[i], DType::f32, network_.parameters[i].shape(), std::as_bytes(std::span(values.back()))});
  }
  if (normalizer_) {
    const Shape shape{normalizer_->width()};
    tensors.push_back({"normalizer.mean", DType::f64, shape, std::as_bytes(std::span(normalizer_->mean()))});
    tensors.push_back(
        {"normalizer.variance", DType::f64, shape, std::as_bytes(std::span(normalizer_->variance()))});
  }
  write_safetensors(path, tensors, {{kKey, facts.dump()}});
}

Policy Policy::load(const std::filesystem::path& path, Device device) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto found = file.metadata().find(kKey);
  if (found == file.metadata().end())
    throw FileError(path.string() + ": this is no policy; Policy::save() writes one");
  const Json facts = caldera::detail::parse_json(found->second, path.string());
  try {
    std::optional<RunningMoments> normalizer;
    if (file.contains("normalizer.mean"))
      normalizer.emplace(doubles_in(file, "normalizer.mean"), doubles_in(file, "normalizer.variance"), 1.0);
    return Policy(space_from(facts.at("observations")), space_from(facts.at("actions")),
                  network_in(file, facts, device), std::move(normalizer));
  } catch (const Json::exception&) {
    throw FileError(path.string() + ": the description of the policy is damaged; save it again");
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace caldera::rl
