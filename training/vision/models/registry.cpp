#include <fmt/format.h>

#include <array>

#include "engine/base/error.h"
#include "training/vision/models/image_model.h"
#include "training/vision/models/image_networks.h"

namespace caldera::vision {
namespace {

struct NetworkKind {
  std::string_view name;
  std::int64_t least;  // height and width
  std::unique_ptr<Layer> (*make)(const ImageModelOptions& options);
};

constexpr std::array<NetworkKind, 10> kNetworks{{{"lenet5", 16, lenet5},
                                                 {"alexnet", 63, alexnet},
                                                 {"vgg16", 32, vgg16},
                                                 {"resnet18", 8, resnet18},
                                                 {"resnet34", 8, resnet34},
                                                 {"resnet50", 8, resnet50},
                                                 {"densenet121", 29, densenet121},
                                                 {"googlenet", 15, googlenet},
                                                 {"mobilenet_v2", 8, mobilenet_v2},
                                                 {"vit_tiny", 8, vit_tiny}}};

const NetworkKind& kind_of(std::string_view name) {
  for (const NetworkKind& kind : kNetworks) {
    if (kind.name == name) return kind;
  }
  throw ValueError(
      fmt::format("there is no network '{}'; there are {}", name, fmt::join(image_model_names(), ", ")));
}

}  // namespace

std::vector<std::string> image_model_names() {
  std::vector<std::string> names;
  names.reserve(kNetworks.size());
  for (const NetworkKind& kind : kNetworks) names.emplace_back(kind.name);
  return names;
}

std::unique_ptr<Layer> make_image_model(std::string_view name, const ImageModelOptions& options) {
  const NetworkKind& kind = kind_of(name);
  if (options.classes < 1 || options.channels < 1)
    throw ValueError(fmt::format("{}: {} classes, {} channels", name, options.classes, options.channels));
  if (options.height < kind.least || options.width < kind.least)
    throw ValueError(fmt::format("{}: images of {} x {} are too small; it takes {} x {} or more", name,
                                 options.height, options.width, kind.least, kind.least));
  std::unique_ptr<Layer> model = kind.make(options);
  model->materialize();
  return model;
}

std::int64_t least_image_size(std::string_view name) { return kind_of(name).least; }

}  // namespace caldera::vision
